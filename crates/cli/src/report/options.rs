//! The options of a report, and the report of a test that runs.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use ottla::{Config, properties};
use ottla_core::config::is_secret;

use super::output::Output;
use super::page::{page, runs_of};
use super::run::Run;
use super::sampling::{Counters, Sampling};
use crate::failure::{Failure, Outcome};
use crate::times::{iso_time, now_ms};

/// The options of both performance tests.
#[derive(Args, Debug, Default)]
pub struct ReportOptions {
    /// Write a report with charts to this file: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Show the runs of this earlier report beside the new one; can be repeated
    #[arg(long, value_name = "FILE", requires = "report")]
    report_compare: Vec<PathBuf>,

    /// The name of the run in the report [default: the topic and the start]
    #[arg(long, value_name = "NAME", requires = "report")]
    report_name: Option<String>,
}

/// What will be written after the test.
#[derive(Debug)]
pub struct Recording {
    output: Output,
    earlier: Vec<Run>,
    name: Option<String>,
    started_ms: i64,
}

impl ReportOptions {
    /// Reads the earlier reports and checks that the new one can be written. `None` without `--report`.
    ///
    /// # Errors
    ///
    /// A file can't be read or written.
    pub fn open(&self) -> Outcome<Option<Recording>> {
        let Some(path) = &self.report else { return Ok(None) };
        let earlier = read_all(&self.report_compare)?;
        let output = Output::open(path)?;
        Ok(Some(Recording { output, earlier, name: self.report_name.clone(), started_ms: now_ms() }))
    }
}

impl Recording {
    /// Writes the report of a test. `run` has its command, the meaning of its latency, and its options.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn write(self, sampling: &Sampling, topic: &str, run: Run) -> Outcome {
        let recorder = sampling.recorder();
        let started = iso_time(self.started_ms);
        let run = Run {
            name: self
                .name
                .unwrap_or_else(|| format!("{topic}, {}", started.get(11..19).unwrap_or(&started))),
            started,
            totals: recorder.totals(),
            points: recorder.points(),
            histogram: recorder.histogram(),
            ..run
        };
        let runs: Vec<Run> = self.earlier.into_iter().chain([run]).collect();
        self.output.write(&page(&runs))
    }
}

/// Starts to take readings of a test that started at `start` if they are needed for a report or for a line on the terminal.
pub fn sample(
    recording: &Option<Recording>,
    start: Instant,
    counters: impl FnMut() -> Counters + Send + 'static,
) -> Option<Sampling> {
    (recording.is_some() || is_live()).then(|| Sampling::start(start, counters))
}

/// Whether there is a line on the terminal.
pub fn is_live() -> bool {
    use std::io::IsTerminal;
    std::io::stderr().is_terminal()
}

/// Reads the runs of reports.
///
/// # Errors
///
/// A file can't be read, or is not a report.
pub fn read_all(paths: &[PathBuf]) -> Outcome<Vec<Run>> {
    let mut runs = Vec::new();
    for path in paths {
        runs.extend(read(path)?);
    }
    Ok(runs)
}

fn read(path: &Path) -> Outcome<Vec<Run>> {
    /// The most bytes of a report that is read.
    const MOST_BYTES: u64 = 100 << 20;
    let wrong = |what: String| Failure::Usage(format!("the report {}: {what}", path.display()));
    let unreadable = |error: std::io::Error| wrong(format!("it can't be read: {error}"));
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MOST_BYTES {
        return Err(wrong(format!("{size} bytes are too many for a report")));
    }
    let text = std::fs::read(path).map_err(unreadable)?;
    runs_of(&String::from_utf8_lossy(&text)).map_err(wrong)
}

/// Returns the properties that were set and that nobody would hide.
pub fn shown_properties(config: &Config) -> Vec<(String, String)> {
    let is_of_security = |name: &str| ["sasl.", "ssl.", "https."].iter().any(|start| name.starts_with(start));
    let own = properties::properties().filter(|property| property.alias.is_none());
    own.filter(|property| config.is_modified(property.name))
        .filter(|property| !is_secret(property.name) && !is_of_security(property.name))
        .filter_map(|property| Some((usual_name(property.name).to_owned(), config.get(property.name)?)))
        .collect()
}

/// Returns the name that is shorter and that of the Java client, such as `acks`, if a property has two.
fn usual_name(name: &'static str) -> &'static str {
    let is_alias = |property: &&properties::Property| property.alias.is_some_and(|alias| alias.of == name);
    properties::properties().find(is_alias).map_or(name, |property| property.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_properties_are_not_in_the_report() {
        let set =
            [("bootstrap.servers", "a:1"), ("acks", "1"), ("sasl.password", "hush"), ("sasl.username", "me")];
        let config = Config::from_properties(set).unwrap();
        let mut shown = shown_properties(&config);
        shown.sort();
        let expected = [("acks", "1"), ("bootstrap.servers", "a:1")];
        assert_eq!(shown, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
