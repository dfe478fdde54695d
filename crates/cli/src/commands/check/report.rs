//! What a check prints: a line per finding, JSON, or metrics in Prometheus' text format.

use std::io::{self, Write};

use clap::Args;
use serde_json::{Map, Value};

use crate::client_options::ClientOptions;
use crate::failure::{Failure, Outcome};

/// The options of every check.
#[derive(Args, Debug)]
pub struct CommonOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// Print the results as JSON
    #[arg(short = 'J', long, conflicts_with = "prometheus")]
    json: bool,

    /// Print the results as metrics in Prometheus' text format
    #[arg(long)]
    prometheus: bool,
}

/// The name, help text and unit of a metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, with the unit.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
}

/// A measured value.
#[derive(Clone, Debug)]
struct Sample {
    metric: Metric,
    labels: Vec<(&'static str, String)>,
    value: f64,
    /// The limit, if it is exceeded.
    exceeds: Option<f64>,
}

/// The results of a check.
#[derive(Debug, Default)]
pub struct Report {
    samples: Vec<Sample>,
}

impl Report {
    /// Adds a value, which is well up to `limit`.
    pub fn add(&mut self, metric: Metric, labels: &[(&'static str, &str)], value: f64, limit: Option<f64>) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        self.samples.push(Sample { metric, labels, value, exceeds: limit.filter(|limit| value > *limit) });
    }

    /// Prints the results.
    ///
    /// # Errors
    ///
    /// [`Failure::Exceeded`] if a limit is exceeded.
    pub fn finish(&self, check: &str, options: &CommonOptions) -> Outcome {
        let mut out = io::stdout().lock();
        let exceeded = self.samples.iter().filter(|sample| sample.exceeds.is_some()).count();
        if options.json {
            writeln!(out, "{}", self.as_json(check, exceeded == 0))?;
        } else if options.prometheus {
            write!(out, "{}", self.as_prometheus(check, exceeded == 0))?;
        } else {
            self.samples.iter().try_for_each(|sample| writeln!(out, "{}", sample.line()))?;
        }
        out.flush()?;
        match exceeded {
            0 => Ok(()),
            1 => Err(Failure::Exceeded(format!("check {check}: 1 limit is exceeded"))),
            count => Err(Failure::Exceeded(format!("check {check}: {count} limits are exceeded"))),
        }
    }

    fn as_json(&self, check: &str, is_ok: bool) -> Value {
        let sample = |sample: &Sample| {
            let mut object: Map<String, Value> = sample
                .labels
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
                .collect();
            object.insert("metric".into(), sample.metric.name.into());
            object.insert("value".into(), sample.value.into());
            object.insert("ok".into(), sample.exceeds.is_none().into());
            Value::Object(object)
        };
        serde_json::json!({"check": check, "ok": is_ok, "results": self.samples.iter().map(sample).collect::<Vec<_>>()})
    }

    fn as_prometheus(&self, check: &str, is_ok: bool) -> String {
        let mut text = format!(
            "# HELP ottla_check_ok 1 if the check found nothing wrong.\n# TYPE ottla_check_ok gauge\n\
             ottla_check_ok{{check=\"{check}\"}} {}\n",
            u8::from(is_ok)
        );
        let mut names: Vec<Metric> = Vec::new();
        for sample in &self.samples {
            if !names.iter().any(|metric| metric.name == sample.metric.name) {
                names.push(sample.metric);
            }
        }
        // All samples of a metric stand together, as the format demands.
        for metric in names {
            text.push_str(&format!("# HELP {0} {1}\n# TYPE {0} gauge\n", metric.name, metric.help));
            for sample in self.samples.iter().filter(|sample| sample.metric.name == metric.name) {
                let labels: Vec<String> = sample
                    .labels
                    .iter()
                    .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                    .collect();
                let labels =
                    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
                text.push_str(&format!("{}{labels} {}\n", metric.name, sample.value));
            }
        }
        text
    }
}

impl Sample {
    fn line(&self) -> String {
        let labels: Vec<String> = self.labels.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let what = if labels.is_empty() { String::new() } else { format!(" {}", labels.join(", ")) };
        match self.exceeds {
            Some(limit) => format!("FAILED{what}: {} {} is more than {limit}", self.metric.name, self.value),
            None => format!("ok{what}: {} {}", self.metric.name, self.value),
        }
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG: Metric =
        Metric { name: "ottla_group_lag_messages", help: "Messages that a group has not read." };

    #[test]
    fn metrics_of_one_name_stand_together_with_escaped_labels() {
        let mut report = Report::default();
        report.add(LAG, &[("group", "a\"b")], 5.0, Some(10.0));
        report.add(Metric { name: "other", help: "Another." }, &[], 0.5, None);
        report.add(LAG, &[("group", "c")], 11.0, Some(10.0));
        assert_eq!(
            report.as_prometheus("lag", false),
            "# HELP ottla_check_ok 1 if the check found nothing wrong.\n# TYPE ottla_check_ok gauge\nottla_check_ok{check=\"lag\"} 0\n\
             # HELP ottla_group_lag_messages Messages that a group has not read.\n# TYPE ottla_group_lag_messages gauge\n\
             ottla_group_lag_messages{group=\"a\\\"b\"} 5\nottla_group_lag_messages{group=\"c\"} 11\n\
             # HELP other Another.\n# TYPE other gauge\nother 0.5\n"
        );
        assert_eq!(report.samples[2].line(), "FAILED group c: ottla_group_lag_messages 11 is more than 10");
        assert_eq!(report.samples[1].line(), "ok: other 0.5");
    }
}
