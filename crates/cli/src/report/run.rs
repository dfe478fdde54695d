//! A measurement: points over time, a histogram and sums. To JSON and back.

use serde_json::{Value, json};

/// The version of the JSON.
const VERSION: u64 = 1;
/// The most points that a file may have: more were not written by this program.
const MOST_POINTS: usize = 100_000;

/// A measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The name: what distinguishes it from others.
    pub name: String,
    /// The command.
    pub tool: String,
    /// What the latency is.
    pub latency: String,
    /// The start, as `2026-11-29T10:00:05Z`.
    pub started: String,
    /// The options and properties that were given.
    pub settings: Vec<(String, String)>,
    /// The sums.
    pub totals: Totals,
    /// The values over time.
    pub points: Vec<Point>,
    /// The latencies of all records.
    pub histogram: Vec<Bucket>,
}

/// The sums of a run. Latencies are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// The duration.
    pub seconds: f64,
    /// The number of records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The requests that the client sent.
    pub requests: u64,
    /// The CPU time of the process, if it is known.
    pub cpu_seconds: Option<f64>,
    /// The median latency.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The 99.9th percentile.
    pub p999: Option<f64>,
    /// The largest latency.
    pub max: Option<f64>,
}

/// What happened until a time, since the point before. Rates are per second, latencies in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// The time since the start.
    pub seconds: f64,
    /// Records per second.
    pub records: f64,
    /// Bytes per second.
    pub bytes: f64,
    /// The median latency.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// Requests per second.
    pub requests: f64,
    /// CPU time, in percent of one processor.
    pub cpu: Option<f64>,
}

/// Records of a latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The latency in microseconds.
    pub us: u64,
    /// The number of records.
    pub count: u64,
}

/// Returns runs as JSON.
pub fn to_json(runs: &[Run]) -> Value {
    json!({"ottla_report": VERSION, "runs": runs.iter().map(Run::to_json).collect::<Value>()})
}

/// Reads runs.
///
/// # Errors
///
/// What is wrong with the JSON.
pub fn from_json(value: &Value) -> Result<Vec<Run>, String> {
    match value.get("ottla_report").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(other) => {
            return Err(format!("its data have the version {other}; this program reads version {VERSION}"));
        }
        None => return Err("it has no data of a report".to_owned()),
    }
    let runs = value.get("runs").and_then(Value::as_array).ok_or("\"runs\" is not a list")?;
    runs.iter().map(Run::from_json).collect()
}

impl Run {
    fn to_json(&self) -> Value {
        let column = |of: fn(&Point) -> Option<f64>| -> Value {
            self.points.iter().map(|point| of(point).map(rounded)).collect()
        };
        let Totals { seconds, records, bytes, requests, cpu_seconds, p50, p95, p99, p999, max } =
            &self.totals;
        json!({
            "name": self.name, "tool": self.tool, "latency": self.latency, "started": self.started,
            "settings": self.settings.iter().map(|(name, value)| json!([name, value])).collect::<Value>(),
            "totals": {
                "seconds": rounded(*seconds), "records": records, "bytes": bytes, "requests": requests,
                "cpu_seconds": cpu_seconds.map(rounded), "p50": p50, "p95": p95, "p99": p99, "p999": p999, "max": max,
            },
            "points": {
                "seconds": column(|point| Some(point.seconds)), "records": column(|point| Some(point.records)),
                "bytes": column(|point| Some(point.bytes)), "p50": column(|point| point.p50),
                "p99": column(|point| point.p99), "requests": column(|point| Some(point.requests)),
                "cpu": column(|point| point.cpu),
            },
            "histogram": self.histogram.iter().map(|bucket| json!([bucket.us, bucket.count])).collect::<Value>(),
        })
    }

    fn from_json(value: &Value) -> Result<Run, String> {
        let text = |name: &str| {
            let text = value.get(name).and_then(Value::as_str);
            text.map(str::to_owned).ok_or(format!("\"{name}\" of a run is not a text"))
        };
        let list = |name: &str| {
            value.get(name).and_then(Value::as_array).ok_or(format!("\"{name}\" of a run is not a list"))
        };
        let setting =
            |pair: &Value| match (pair.get(0).and_then(Value::as_str), pair.get(1).and_then(Value::as_str)) {
                (Some(name), Some(value)) => Ok((name.to_owned(), value.to_owned())),
                _ => Err("a setting is not a name and a value".to_owned()),
            };
        let bucket =
            |pair: &Value| match (pair.get(0).and_then(Value::as_u64), pair.get(1).and_then(Value::as_u64)) {
                (Some(us), Some(count)) => Ok(Bucket { us, count }),
                _ => Err("a part of the histogram is not two numbers".to_owned()),
            };
        Ok(Run {
            name: text("name")?,
            tool: text("tool")?,
            latency: text("latency")?,
            started: text("started")?,
            settings: list("settings")?.iter().map(setting).collect::<Result<_, _>>()?,
            totals: totals(value.get("totals").ok_or("a run has no \"totals\"")?)?,
            points: points(value.get("points").ok_or("a run has no \"points\"")?)?,
            histogram: list("histogram")?.iter().map(bucket).collect::<Result<_, _>>()?,
        })
    }

    /// Returns records per second.
    pub fn rate(&self) -> f64 {
        self.totals.records as f64 / self.totals.seconds.max(1e-6)
    }
}

/// Four digits are more than a chart shows.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let factor = 10_f64.powi(digits.max(0));
    (value * factor).round() / factor
}

fn totals(value: &Value) -> Result<Totals, String> {
    let number = |name: &str| value.get(name).and_then(Value::as_f64).filter(|number| *number >= 0.0);
    let count = |name: &str| {
        value.get(name).and_then(Value::as_u64).ok_or(format!("\"{name}\" of the totals is not a number"))
    };
    Ok(Totals {
        seconds: number("seconds").ok_or("\"seconds\" of the totals is not a number")?,
        records: count("records")?,
        bytes: count("bytes")?,
        requests: count("requests")?,
        cpu_seconds: number("cpu_seconds"),
        p50: number("p50"),
        p95: number("p95"),
        p99: number("p99"),
        p999: number("p999"),
        max: number("max"),
    })
}

fn points(value: &Value) -> Result<Vec<Point>, String> {
    let column = |name: &str| -> Result<Vec<Option<f64>>, String> {
        let list = value
            .get(name)
            .and_then(Value::as_array)
            .ok_or(format!("\"{name}\" of the points is not a list"))?;
        Ok(list.iter().map(|one| one.as_f64().filter(|number| *number >= 0.0)).collect())
    };
    let names = ["seconds", "records", "bytes", "p50", "p99", "requests", "cpu"];
    let columns = names.map(column).into_iter().collect::<Result<Vec<_>, _>>()?;
    let count = columns[0].len();
    if count > MOST_POINTS || columns.iter().any(|column| column.len() != count) {
        return Err("the lists of the points have different lengths, or are too long".to_owned());
    }
    let point = |index: usize| {
        let of = |column: usize| columns[column][index];
        Point {
            seconds: of(0).unwrap_or(0.0),
            records: of(1).unwrap_or(0.0),
            bytes: of(2).unwrap_or(0.0),
            p50: of(3),
            p99: of(4),
            requests: of(5).unwrap_or(0.0),
            cpu: of(6),
        }
    };
    Ok((0..count).map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let point = |number: u32| Point {
            seconds: f64::from(number) * 0.25,
            records: 123_400.0,
            bytes: 12_340_000.0,
            p50: Some(1.25),
            p99: (number > 1).then_some(7.5),
            requests: 12.0,
            cpu: None,
        };
        Run {
            name: "orders </script>".into(),
            tool: "producer-perf-test".into(),
            latency: "send to acknowledgement".into(),
            started: "2026-11-29T10:00:05Z".into(),
            settings: vec![("acks".into(), "all".into())],
            totals: Totals {
                seconds: 2.5,
                records: 5,
                bytes: 6,
                requests: 7,
                p99: Some(1.5),
                ..Totals::default()
            },
            points: (1..4).map(point).collect(),
            histogram: vec![Bucket { us: 100, count: 2 }, Bucket { us: u64::MAX >> 12, count: 3 }],
        }
    }

    #[test]
    fn runs_survive_json() {
        let runs = [run(), Run { name: "other".into(), ..run() }];
        let text = to_json(&runs).to_string();
        assert_eq!(from_json(&serde_json::from_str(&text).unwrap()).unwrap(), runs);
    }

    #[test]
    fn wrong_json_is_described() {
        let good = to_json(&[run()]);
        for (path, value, error) in [
            ("/ottla_report", json!(2), "its data have the version 2"),
            ("/ottla_report", json!("x"), "it has no data of a report"),
            ("/runs", json!(5), "\"runs\" is not a list"),
            ("/runs/0/name", json!(5), "\"name\" of a run is not a text"),
            ("/runs/0/settings/0", json!(["a"]), "a setting is not a name and a value"),
            ("/runs/0/histogram/0", json!([1, -1]), "a part of the histogram"),
            ("/runs/0/totals/records", json!(-5), "\"records\" of the totals"),
            ("/runs/0/totals/seconds", json!(null), "\"seconds\" of the totals"),
            ("/runs/0/points/p99", json!([1]), "the lists of the points have different lengths"),
            ("/runs/0/points/cpu", json!({}), "\"cpu\" of the points is not a list"),
        ] {
            let mut wrong = good.clone();
            *wrong.pointer_mut(path).unwrap() = value;
            let found = from_json(&wrong).unwrap_err();
            assert!(found.starts_with(error), "{path}: {found}");
        }
        assert!(from_json(&json!([])).is_err());
    }

    #[test]
    fn numbers_keep_four_digits() {
        for (value, kept) in [(0.0, 0.0), (123_456.7, 123_457.0), (0.001_234_56, 0.001_235), (f64::NAN, 0.0)]
        {
            assert_eq!(rounded(value), kept, "{value}");
        }
    }
}
