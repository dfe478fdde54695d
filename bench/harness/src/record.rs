//! Stores every run: a file per call under `bench/runs/`, written after each run, so that an interrupted call loses
//! nothing.

use std::{
    fs,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{Result, case::Case, folder, machine, peer::Outcome};

pub struct Record {
    path: Option<PathBuf>,
    head: Value,
    runs: Vec<Value>,
}

impl Record {
    pub fn new(keep: bool) -> Result<Self> {
        let (commit, changed) = machine::commit();
        let date = date_of_now()?;
        let name = format!("{}-{commit}.json", date.replace([':', ' '], "-"));
        let head = json!({
            "date": date, "commit": commit, "changed_since": changed, "machine": machine::describe(),
        });
        Ok(Self { path: keep.then(|| folder().join("runs").join(name)), head, runs: Vec::new() })
    }

    /// Keeps a run, prints a line.
    pub fn add(&mut self, case: &Case, peer: &str, run: usize, outcome: Result<Outcome>) -> Result<()> {
        let mut row = json!({"case": case.name, "what": case.what(), "peer": peer, "run": run, "load": machine::load()});
        match outcome {
            Ok(outcome) => {
                let rate =
                    outcome.messages_per_second.map_or(String::new(), |rate| format!("{rate:12.0} msg/s"));
                let latency = outcome.latency.map_or(String::new(), |[p50, p99, p999]| {
                    format!("  p50 {p50:.1} us, p99 {p99:.1} us, p99.9 {p999:.1} us")
                });
                println!(
                    "  {peer:20} {run}  {:8.1} ns CPU/msg {rate} {:7.1} MiB{latency}",
                    outcome.cpu_nanoseconds_per_message, outcome.max_resident_mib
                );
                row["version"] = json!(outcome.version);
                row["messages"] = json!(outcome.messages);
                row["cpu_ns_per_message"] = rounded(outcome.cpu_nanoseconds_per_message);
                row["messages_per_second"] =
                    outcome.messages_per_second.map_or(Value::Null, |it| json!(it.round()));
                row["max_resident_mib"] = rounded(outcome.max_resident_mib);
                row["user_s"] = json!(outcome.user_seconds);
                row["system_s"] = json!(outcome.system_seconds);
                row["latency_us"] = json!(outcome.latency);
            }
            Err(error) => {
                println!("  {peer:20} {run}  FAILED: {error}");
                row["failed"] = json!(error.to_string());
            }
        }
        self.runs.push(row);
        self.write()
    }

    /// The median of every peer in this case.
    pub fn summary(&self, case: &Case) {
        let mut lines: Vec<(f64, String)> = Vec::new();
        let mut peers: Vec<&str> = self.rows(case).filter_map(|row| row["peer"].as_str()).collect();
        peers.dedup();
        peers.sort_unstable();
        peers.dedup();
        for peer in peers {
            let rows = self.rows(case).filter(|row| row["peer"] == peer);
            let mut figures: Vec<f64> = rows.filter_map(|row| row["cpu_ns_per_message"].as_f64()).collect();
            figures.sort_by(f64::total_cmp);
            if let Some(median) = figures.get(figures.len() / 2) {
                lines.push((*median, format!("{peer} {median:.0}")));
            }
        }
        lines.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
        println!("  median ns CPU/msg: {}", lines.join(", "));
    }

    fn rows<'a>(&'a self, case: &'a Case) -> impl Iterator<Item = &'a Value> {
        self.runs.iter().filter(move |row| row["case"] == case.name)
    }

    fn write(&self) -> Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        fs::create_dir_all(folder().join("runs"))?;
        // A line per run, so that two files can be compared by eye.
        let rows: Vec<String> = self.runs.iter().map(Value::to_string).collect();
        let head = self.head.to_string();
        let head = head.strip_suffix('}').unwrap_or(&head);
        fs::write(path, format!("{head},\"runs\":[\n{}\n]}}\n", rows.join(",\n")))?;
        Ok(())
    }
}

fn rounded(value: f64) -> Value {
    json!((value * 10.0).round() / 10.0)
}

/// The time of the call, in UTC.
pub fn date_of_now() -> Result<String> {
    Ok(date(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs()))
}

/// `2026-11-21 04:05:06`, in UTC, of seconds since 1970.
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (mut year, mut day) = (1970, days);
    let leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (hours, minutes) = (rest / 3600, rest % 3600 / 60);
    format!("{year}-{:02}-{:02} {hours:02}:{minutes:02}:{:02}", month + 1, day + 1, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_calendar_dates() {
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(date(1_795_229_106), "2026-11-21 02:45:06");
    }
}
