//! What a run took: the table at its end, and the file that the next `--list` reads.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use serde_json::{Value, json};

use super::{session::Counts, usage::processors};
use crate::Result;

/// What a step gave and took.
#[derive(Debug)]
pub struct Row {
    pub step: &'static str,
    pub counts: Counts,
    /// From its first program to its end, without waiting for other steps.
    pub wall: Duration,
    pub cpu: Duration,
}

impl Row {
    fn text(&self) -> String {
        let Counts { passed, failures, not_checked } = &self.counts;
        let (wall, cpu) = (self.wall.as_secs_f64(), self.cpu.as_secs_f64());
        let used = 100.0 * cpu / (wall * processors()).max(0.001);
        format!(
            "{:13} {passed:6} {:6} {:11} {wall:8.1} {cpu:8.1} {used:6.0} %",
            self.step,
            failures.len(),
            not_checked.len()
        )
    }
}

/// Prints a line per step.
pub fn print_table(rows: &[Row]) {
    println!(
        "{:13} {:>6} {:>6} {:>11} {:>8} {:>8} {:>8}",
        "step", "passed", "failed", "not checked", "wall s", "CPU s", "used"
    );
    rows.iter().for_each(|row| println!("{}", row.text()));
}

/// Returns the last line: `N passed, M failed`, and what was not checked, if there is anything.
pub fn last_line(passed: u64, failed: usize, not_checked: usize) -> String {
    let rest = if not_checked == 0 { String::new() } else { format!(", {not_checked} not checked") };
    format!("{passed} passed, {failed} failed{rest}")
}

/// Writes the times of the steps that ran; those of the others stay.
pub fn remember(file: &Path, rows: &[Row]) -> Result<()> {
    let mut times = recall(file);
    for row in rows {
        times.insert(row.step.to_owned(), (row.wall.as_secs_f64(), row.cpu.as_secs_f64()));
    }
    let times: BTreeMap<String, Value> =
        times.into_iter().map(|(step, (wall, cpu))| (step, json!({"wall": wall, "cpu": cpu}))).collect();
    fs::write(file, serde_json::to_string_pretty(&times)? + "\n")?;
    Ok(())
}

/// Returns the seconds that each step took last time: wall, and CPU.
pub fn recall(file: &Path) -> BTreeMap<String, (f64, f64)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let times: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    let seconds = |value: &Value| Some((value["wall"].as_f64()?, value["cpu"].as_f64()?));
    times.into_iter().filter_map(|(step, value)| Some((step, seconds(&value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_names_what_was_not_checked_only_if_there_is_something() {
        assert_eq!(last_line(7, 0, 0), "7 passed, 0 failed");
        assert_eq!(last_line(7, 1, 2), "7 passed, 1 failed, 2 not checked");
    }

    #[test]
    fn times_of_steps_that_did_not_run_stay() {
        let file = std::env::temp_dir().join(format!("ottla-times-{}", std::process::id()));
        let row = |step, wall| Row {
            step,
            counts: Counts::default(),
            wall: Duration::from_secs(wall),
            cpu: Duration::from_secs(1),
        };
        remember(&file, &[row("a", 2), row("b", 3)]).unwrap();
        remember(&file, &[row("b", 4)]).unwrap();
        let times = recall(&file);
        fs::remove_file(&file).unwrap();
        assert_eq!((times["a"], times["b"]), ((2.0, 1.0), (4.0, 1.0)));
        assert!(recall(&file).is_empty());
    }
}
