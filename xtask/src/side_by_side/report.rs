//! The results of the cases, and what is printed about them.

use std::collections::BTreeMap;

use super::differences::{Judgement, TO_BE_FIXED};

/// The result of a case.
#[derive(Debug)]
pub enum Outcome {
    /// The libraries differ as the rows say.
    AsAllowed,
    /// The reason.
    Failed(String),
    /// What is missing to run the case.
    NotChecked(String),
}

/// A case that was chosen.
#[derive(Debug)]
pub struct CaseResult {
    pub name: String,
    pub outcome: Outcome,
    /// The uses of rows; empty if the case did not run.
    pub judgement: Judgement,
}

/// The results of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// One per case that was chosen, in the order of their names.
    pub cases: Vec<CaseResult>,
    /// What is wrong with rows as such.
    pub stale: Vec<String>,
}

impl Report {
    /// Returns the numbers of cases as allowed, failed, and not checked; a stale row counts as failed.
    fn counts(&self) -> [usize; 3] {
        let mut counts = [0, self.stale.len(), 0];
        for case in &self.cases {
            counts[match case.outcome {
                Outcome::AsAllowed => 0,
                Outcome::Failed(_) => 1,
                Outcome::NotChecked(_) => 2,
            }] += 1;
        }
        counts
    }

    /// True if nothing failed and something was checked.
    pub fn is_success(&self) -> bool {
        let [same, failed, _] = self.counts();
        same > 0 && failed == 0
    }

    /// Formats the uses of each row, and the numbers of cases.
    pub fn summary(&self) -> String {
        let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
        for case in &self.cases {
            for ((row, _), uses) in &case.judgement.uses {
                *rows.entry(row).or_default() += uses;
            }
        }
        let open = rows.get(TO_BE_FIXED).copied().unwrap_or(0);
        let uses: usize = rows.values().sum();
        let mut text = String::new();
        rows.iter().for_each(|(row, uses)| text += &format!("{uses:6} {row}\n"));
        let [same, failed, not_checked] = self.counts();
        text += &format!(
            "{} cases: {same} as allowed, {failed} failed, {not_checked} not checked; {uses} differences of {} rows of \
             docs/guide/differences.md, {open} to be fixed",
            self.cases.len(),
            rows.len()
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, outcome: Outcome, uses: usize) -> CaseResult {
        let uses = [(("row".to_owned(), 0), uses)].into();
        CaseResult { name: name.into(), outcome, judgement: Judgement { uses, ..Judgement::default() } }
    }

    #[test]
    fn cases_that_did_not_run_are_counted() {
        let mut report = Report {
            cases: vec![
                case("p.a", Outcome::AsAllowed, 2),
                case("p.b", Outcome::AsAllowed, 1),
                case("p.c", Outcome::NotChecked("no library".into()), 0),
            ],
            stale: Vec::new(),
        };
        assert!(report.is_success());
        let text = report.summary();
        assert!(
            text.contains("     3 row\n3 cases: 2 as allowed, 0 failed, 1 not checked; 3 diff"),
            "{text}"
        );
        report.cases.drain(..2);
        assert!(!report.is_success());
    }

    #[test]
    fn stale_row_fails_the_run() {
        let cases = vec![case("p.a", Outcome::AsAllowed, 0)];
        assert!(!Report { cases, stale: vec!["no such case".into()] }.is_success());
    }
}
