//! What the programs of a run found, and which functions they reached.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use super::{
    compare::Difference,
    program::Program,
    runner::Transcript,
    table::{EXCLUDED, Table, WITHOUT_SUCCESS},
};

use crate::Result;

/// The lines around the counts in the page of the differences.
const BEGIN: &str =
    "<!-- programs that met a row: written by `cargo xtask abi --generate --write-counts` -->";
const END: &str = "<!-- end of the programs that met a row -->";

/// A difference without a row.
#[derive(Clone, Debug)]
pub struct Finding {
    pub seed: u64,
    pub difference: Difference,
    pub program: Program,
    /// How many programs had it.
    pub programs: usize,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Report {
    pub programs: usize,
    /// The time on a processor in microseconds, of the original and of Ottla.
    pub cpu: [u64; 2],
    /// The time of all programs, which run beside each other.
    pub time: Duration,
    pub same: usize,
    /// The original crashed or hung in a step.
    pub original_fails: BTreeMap<String, usize>,
    /// The seeds of differences that a second run did not have.
    pub unstable: Vec<(u64, Difference)>,
    /// The number of programs that met each row.
    pub rows: BTreeMap<String, usize>,
    pub findings: BTreeMap<(String, String), Finding>,
    /// For each function the calls that succeeded and failed.
    pub calls: BTreeMap<String, [usize; 2]>,
}

impl Report {
    /// Counts a program and its calls.
    pub fn count(&mut self, [original, ottla]: &[Transcript; 2], time: Duration) {
        self.programs += 1;
        self.time += time;
        self.cpu[0] += original.cpu;
        self.cpu[1] += ottla.cpu;
        for (function, succeeded) in original.calls() {
            self.calls.entry(function.to_owned()).or_default()[usize::from(!succeeded)] += 1;
        }
    }

    /// Formats the differences that a second run did not have, those of one kind together.
    pub fn unsteady(&self) -> String {
        let mut kinds: BTreeMap<_, Vec<&(u64, Difference)>> = BTreeMap::new();
        for unstable in &self.unstable {
            kinds.entry(unstable.1.class()).or_default().push(unstable);
        }
        let mut text = String::new();
        for same in kinds.values() {
            let seeds: Vec<String> = same.iter().map(|(seed, _)| seed.to_string()).collect();
            let _ = write!(text, "not repeatable, of seeds {}:\n{}", seeds.join(","), same[0].1.text());
        }
        text
    }

    /// Returns the functions that were never called with success, and those that can fail and never did.
    pub fn unreached(&self, table: &Table) -> [Vec<String>; 2] {
        let calls = |name: &str| self.calls.get(name).copied().unwrap_or_default();
        let mut unreached = [Vec::new(), Vec::new()];
        for function in table.functions.values() {
            if EXCLUDED.iter().any(|(name, _)| *name == function.name) {
                continue;
            }
            let [ok, no] = calls(&function.name);
            if ok == 0 {
                unreached[0].push(function.name.clone());
            }
            let can_fail = ["err", "conf", "E", "ierr"].contains(&function.result.as_str());
            if can_fail && no == 0 {
                unreached[1].push(function.name.clone());
            }
        }
        unreached
    }

    /// Returns the page of the differences with the number of programs that met each row.
    ///
    /// # Errors
    ///
    /// The page has no place for them.
    pub fn write_counts(&self, page: &str) -> Result<String> {
        let (before, rest) = page.split_once(BEGIN).ok_or("the page of the differences has no counts")?;
        let (_, after) = rest.split_once(END).ok_or("the counts of the differences have no end")?;
        let mut met: Vec<_> = self.rows.iter().filter(|(_, programs)| **programs > 0).collect();
        met.sort_by_key(|(row, programs)| (std::cmp::Reverse(**programs), row.as_str()));
        let mut text = format!("{before}{BEGIN}\n| row | programs of {} |\n|---|---|\n", self.programs);
        for (row, programs) in met {
            let _ = writeln!(text, "| {row} | {programs} |");
        }
        let never: Vec<_> =
            self.rows.iter().filter(|(_, count)| **count == 0).map(|(row, _)| row.as_str()).collect();
        let _ = writeln!(text, "| none met {} | 0 |", never.join(", "));
        Ok(format!("{text}{END}{after}"))
    }

    /// Formats the counts; `is_long` names every function that was not reached.
    pub fn summary(&self, table: &Table, is_long: bool) -> String {
        let mut text = String::new();
        for (row, programs) in self.rows.iter().filter(|(_, programs)| **programs > 0) {
            let _ = writeln!(text, "{programs:6} programs met {row}");
        }
        for (step, programs) in &self.original_fails {
            let _ = writeln!(text, "{programs:6} programs: the original ends with {step}");
        }
        let mut findings: Vec<&Finding> = self.findings.values().collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.programs));
        for Finding { seed, difference, programs, .. } in findings {
            let _ = write!(
                text,
                "{programs:6} programs, the first of seed {seed}, without a row:\n{}",
                difference.text()
            );
        }
        let [succeeded, failed] = self.unreached(table);
        if is_long {
            let reason = |name: &String| WITHOUT_SUCCESS.iter().find(|(function, _)| function == name);
            for (function, reason) in succeeded.iter().filter_map(reason).chain(&EXCLUDED) {
                let _ = writeln!(text, "never with success: {function}: {reason}");
            }
            let open = succeeded.iter().filter(|name| reason(name).is_none());
            let _ = writeln!(
                text,
                "never with success: {}",
                open.map(String::as_str).collect::<Vec<_>>().join(" ")
            );
            let _ = writeln!(text, "never with failure: {}", failed.join(" "));
        }
        let all = table.functions.len() - EXCLUDED.len();
        let [original, ottla] = self.cpu.map(|cpu| cpu as f64 / 1000.0 / self.programs.max(1) as f64);
        let time = self.time.as_secs_f64() * 1000.0 / self.programs.max(1) as f64;
        let _ = writeln!(
            text,
            "a program takes {time:.0} ms with both libraries; CPU: original {original:.0} ms, Ottla {ottla:.0} ms"
        );
        let _ = write!(
            text,
            "{} programs: {} the same, {} with a row, {} end the original, {} not repeatable, {} findings; {} of {all} functions \
             called with success, {} that can fail never did",
            self.programs,
            self.same,
            self.rows.values().sum::<usize>(),
            self.original_fails.values().sum::<usize>(),
            self.unstable.len(),
            self.findings.len(),
            all - succeeded.len(),
            failed.len(),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsteady_differences_of_one_kind_are_listed_together() {
        let difference = |original: &str| Difference {
            stream: "main".into(),
            original: original.into(),
            ottla: "7 ok f -> 1".into(),
        };
        let unstable =
            vec![(3, difference("7 no f -> 0")), (5, difference("7 ok g")), (9, difference("8 no f -> 0"))];
        let text = Report { unstable, ..Report::default() }.unsteady();
        let first = "not repeatable, of seeds 3,9:\nmain - 7 no f -> 0\nmain + 7 ok f -> 1\n";
        assert!(text.starts_with(first) && text.contains("of seeds 5:\n"), "{text}");
    }

    #[test]
    fn counts_replace_those_of_the_page() {
        let rows = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 3), ("c".to_owned(), 0)]);
        let report = Report { programs: 9, rows, ..Report::default() };
        let page = report.write_counts(&format!("x\n{BEGIN}\nold\n{END}\ny\n")).unwrap();
        let table = "| row | programs of 9 |\n|---|---|\n| b | 3 |\n| a | 1 |\n| none met c | 0 |\n";
        assert_eq!(page, format!("x\n{BEGIN}\n{table}{END}\ny\n"));
        assert_eq!(report.write_counts(&page).unwrap(), page);
        assert!(report.write_counts("x").is_err());
    }
}
