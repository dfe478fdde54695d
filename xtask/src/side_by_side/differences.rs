//! The intended differences from the original: rows of `docs/guide/differences.md`, and the hunks that each allows.
//!
//! ```text
//! docs/guide/differences.md                              a row: name, reason
//! tests/abi/side_by_side/differences/NAME.txt      the hunks of the row, by case
//! tests/abi/side_by_side/differences/to_be_fixed.txt   hunks without a decision, which `--write` adds
//! ```
//!
//! A hunk of a case is allowed as a whole, by one entry or by several, one after the other: differences of two rows in
//! neighbouring lines make one hunk. Each case uses the entries that name it exactly as often as they say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use super::{
    entry::{self, Entry},
    transcript::{Comparison, Hunk},
};
use crate::{Result, shell::root};

const PAGE: &str = "docs/guide/differences.md";
const FOLDER: &str = "tests/abi/side_by_side/differences";
/// The rows of `cargo xtask abi --generate`.
const GENERATED: &str = "tests/abi/generate/differences.txt";
/// The file without a row: differences without a decision.
pub const TO_BE_FIXED: &str = "to_be_fixed";

/// All rows, with their entries.
#[derive(Debug, Default)]
pub struct Differences {
    rows: BTreeMap<String, Vec<Entry>>,
}

/// An entry of a row.
#[derive(Clone, Copy)]
struct Place<'a> {
    row: &'a str,
    at: usize,
    hunk: &'a Hunk,
    /// How often the case may use it.
    left: usize,
}

/// The result of a case.
#[derive(Debug, Default, PartialEq)]
pub struct Judgement {
    /// The hunks that no row allows.
    pub new: Comparison,
    /// How often the case used the entries that name it, by row and place in the row.
    pub uses: BTreeMap<(String, usize), usize>,
    /// The rows that allow more than the case needs, each with a hunk.
    pub unneeded: Vec<(String, Hunk)>,
}

impl Judgement {
    /// Returns true if the case differs as the rows say.
    pub fn is_as_allowed(&self) -> bool {
        self.new.hunks.is_empty() && self.unneeded.is_empty()
    }

    /// Formats what is wrong; empty if the case differs as the rows say.
    pub fn text(&self) -> String {
        let mut text = self.new.text();
        for (row, hunk) in &self.unneeded {
            text += &format!("  {FOLDER}/{row}.txt allows this, which does not happen so often:\n");
            hunk.text().lines().for_each(|line| text += &format!("  {line}\n"));
        }
        text
    }
}

impl Differences {
    /// Reads the page and its files.
    ///
    /// # Errors
    ///
    /// A row without a reason or without a file, and a file without a row.
    pub fn read() -> Result<Self> {
        let page = fs::read_to_string(root().join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
        let reasons = reasons(&page)?;
        let mut rows = BTreeMap::new();
        for file in fs::read_dir(root().join(FOLDER)).into_iter().flatten() {
            let path = file?.path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if !reasons.contains(&name) && name != TO_BE_FIXED {
                return Err(format!("{PAGE} has no row for {FOLDER}/{name}.txt").into());
            }
            let entries = entry::parse(&fs::read_to_string(&path)?)
                .map_err(|error| format!("{FOLDER}/{name}.txt: {error}"))?;
            rows.insert(name, entries);
        }
        if let Some(name) = reasons.iter().find(|name| rows.get(*name).is_none_or(Vec::is_empty)) {
            return Err(format!("{PAGE}: no difference needs the row {name}").into());
        }
        Ok(Self { rows })
    }

    /// Compares the hunks of a case with the rows.
    pub fn judge(&self, case: &str, comparison: &Comparison) -> Judgement {
        let mut places = self.places(case);
        let mut judgement = Judgement::default();
        for hunk in &comparison.hunks {
            if !cover(&hunk.original, &hunk.ottla, &mut places) {
                judgement.new.hunks.push(hunk.clone());
            }
        }
        for (place, all) in places.iter().zip(self.places(case)) {
            judgement.uses.insert((place.row.to_owned(), place.at), all.left - place.left);
            if place.left > 0 {
                judgement.unneeded.push((place.row.to_owned(), place.hunk.clone()));
            }
        }
        judgement
    }

    /// Returns the entries that name a case, the longest first, so that a whole hunk is preferred to its parts.
    fn places(&self, case: &str) -> Vec<Place<'_>> {
        let mut places = Vec::new();
        for (row, entries) in &self.rows {
            for (at, entry) in entries.iter().enumerate() {
                if let Some(&left) = entry.cases.get(case) {
                    places.push(Place { row, at, hunk: &entry.hunk, left });
                }
            }
        }
        places.sort_by_key(|place| std::cmp::Reverse(place.hunk.original.len() + place.hunk.ottla.len()));
        places
    }

    /// Returns the cases that rows name although their programs do not have them.
    pub fn unknown_cases(&self, known: &[&str]) -> Vec<String> {
        let program = |case: &str| case.split('.').next().unwrap_or_default().to_owned();
        // A program that could not be compiled has no cases that are known.
        let uncompiled: BTreeSet<String> =
            known.iter().filter_map(|case| Some(case.strip_suffix(".*")?.to_owned())).collect();
        let mut unknown = Vec::new();
        for (row, entries) in &self.rows {
            let cases: BTreeSet<&String> = entries.iter().flat_map(|entry| entry.cases.keys()).collect();
            for case in cases.into_iter().filter(|case| !known.contains(&case.as_str())) {
                if !uncompiled.contains(&program(case)) {
                    unknown.push(format!("{FOLDER}/{row}.txt names {case}, which is not a case"));
                }
            }
        }
        unknown
    }

    /// Takes over what cases did: removes and counts entries, and adds new hunks to those that are to be fixed.
    pub fn update(&mut self, judged: &[(&str, &Judgement)]) {
        let mut new: Vec<Entry> = self.rows.remove(TO_BE_FIXED).unwrap_or_default();
        for (case, judgement) in judged {
            for ((row, at), &uses) in &judgement.uses {
                let entries = if row == TO_BE_FIXED { Some(&mut new) } else { self.rows.get_mut(row) };
                let Some(entry) = entries.and_then(|entries| entries.get_mut(*at)) else { continue };
                entry.cases.insert((*case).to_owned(), uses);
            }
        }
        for (case, judgement) in judged {
            for hunk in &judgement.new.hunks {
                let hunk = Hunk { after: None, ..hunk.clone() };
                let at = new.iter().position(|entry| entry.hunk == hunk).unwrap_or_else(|| {
                    new.push(Entry { cases: BTreeMap::new(), hunk });
                    new.len() - 1
                });
                *new[at].cases.entry((*case).to_owned()).or_default() += 1;
            }
        }
        self.rows.insert(TO_BE_FIXED.to_owned(), new);
        for entries in self.rows.values_mut() {
            entries.iter_mut().for_each(|entry| entry.cases.retain(|_, times| *times > 0));
            entries.retain(|entry| !entry.cases.is_empty());
        }
    }

    /// Writes the files; one without an entry is removed.
    pub fn write(&self) -> Result<()> {
        let folder = root().join(FOLDER);
        fs::create_dir_all(&folder)?;
        for (name, entries) in &self.rows {
            let path: PathBuf = folder.join(format!("{name}.txt"));
            if !entries.is_empty() {
                fs::write(path, entry::format(entries))?;
            } else if path.exists() {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// True if entries, one after the other, are the lines of a hunk; counts their uses.
fn cover(original: &[String], ottla: &[String], places: &mut [Place<'_>]) -> bool {
    if original.is_empty() && ottla.is_empty() {
        return true;
    }
    for at in 0..places.len() {
        let hunk = places[at].hunk;
        let (Some(original), Some(ottla)) =
            (original.strip_prefix(&hunk.original[..]), ottla.strip_prefix(&hunk.ottla[..]))
        else {
            continue;
        };
        if places[at].left == 0 {
            continue;
        }
        places[at].left -= 1;
        if cover(original, ottla, places) {
            return true;
        }
        places[at].left += 1;
    }
    false
}

/// Returns the names of the rows of the page. A row starts with a link to its file.
fn reasons(page: &str) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for line in page.lines() {
        let Some((name, rest)) = line.strip_prefix("| [").and_then(|line| line.split_once("](")) else {
            continue;
        };
        let reason = rest.split_once('|').map_or("", |(_, reason)| reason).trim_matches(['|', ' ']);
        // A row that only generated programs have.
        if !reason.is_empty() && rest.starts_with(&format!("../../{GENERATED}) |")) {
            continue;
        }
        if reason.is_empty() || !rest.starts_with(&format!("../../{FOLDER}/{name}.txt) |")) {
            return Err(
                format!("{PAGE}: a row is `| [NAME](../../{FOLDER}/NAME.txt) | REASON |`: {line}").into()
            );
        }
        if !names.insert(name.to_owned()) {
            return Err(format!("{PAGE} has two rows {name}").into());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::{super::transcript::Transcript, *};

    fn differences(rows: &[(&str, &str)]) -> Differences {
        let rows = rows.iter().map(|(name, text)| ((*name).to_owned(), entry::parse(text).unwrap()));
        Differences { rows: rows.collect() }
    }

    fn compared(original: &str, ottla: &str) -> Comparison {
        Comparison::of(&Transcript::of(original, None), &Transcript::of(ottla, None))
    }

    #[test]
    fn page_and_files_belong_together() {
        assert!(!Differences::read().unwrap().rows.is_empty());
    }

    #[test]
    fn row_allows_its_hunk_as_a_whole() {
        let differences = differences(&[("row", "p.a\n- 1\n- 2\n+ 3\n")]);
        assert_eq!(differences.judge("p.a", &compared("1\n2\n", "3\n")).text(), "");
        for (case, original, ottla) in
            [("p.a", "1\n", "3\n"), ("p.a", "1\n2\n", ""), ("p.b", "1\n2\n", "3\n")]
        {
            assert!(!differences.judge(case, &compared(original, ottla)).new.hunks.is_empty(), "{case}");
        }
    }

    #[test]
    fn differences_of_two_rows_may_be_neighbours() {
        let differences = differences(&[("a", "p.a\n- 1\n+ x\n"), ("b", "p.a\n- 2\n+ y\n")]);
        assert_eq!(differences.judge("p.a", &compared("1\n2\n", "x\ny\n")).text(), "");
        // Each once, and in this order.
        assert_ne!(differences.judge("p.a", &compared("2\n1\n", "x\ny\n")).text(), "");
        assert_ne!(differences.judge("p.a", &compared("1\n2\n1\n", "x\ny\nx\n")).text(), "");
    }

    #[test]
    fn entry_that_is_used_less_often_than_it_says_fails() {
        let differences = differences(&[("row", "p.a\np.b 2 times\n- 1\n+ 2\n")]);
        assert_eq!(differences.judge("p.a", &compared("1\n", "2\n")).text(), "");
        assert_eq!(differences.judge("p.b", &compared("1\nx\n1\n", "2\nx\n2\n")).text(), "");
        let once = differences.judge("p.b", &compared("1\n", "2\n"));
        assert_eq!(once.unneeded.len(), 1);
        assert_eq!(once.uses, [(("row".to_owned(), 0), 1)].into());
        assert!(once.text().contains("row.txt allows"));
    }

    #[test]
    fn names_of_cases_are_exact() {
        let differences = differences(&[("row", "p.a\nq.b\n- 1\n")]);
        assert_eq!(differences.unknown_cases(&["p.a", "q.*"]), Vec::<String>::new());
        assert_eq!(differences.unknown_cases(&["p.b", "q.b"]).len(), 1);
    }

    #[test]
    fn update_counts_removes_and_adds_hunks() {
        let mut differences = differences(&[("row", "p.a 2 times\n- 1\n\np.a\np.b\n- 2\n")]);
        let judgement = differences.judge("p.a", &compared("1\nx\n3\ny\n3\n", "x\ny\n"));
        differences.update(&[("p.a", &judgement)]);
        assert_eq!(entry::format(&differences.rows["row"]), "p.a\n- 1\n\np.b\n- 2\n");
        assert_eq!(entry::format(&differences.rows[TO_BE_FIXED]), "p.a 2 times\n- 3\n");
    }

    #[test]
    fn row_without_its_file_or_a_reason_is_refused() {
        let link = format!("../../{FOLDER}/a.txt");
        assert!(reasons(&format!("| [a]({link}) | so it is |")).unwrap().contains("a"));
        for row in
            [format!("| [a]({link}) |  |"), "| [a](a.txt) | so it is |".to_owned(), format!("| [a]({link})")]
        {
            assert!(reasons(&row).is_err(), "{row}");
        }
    }
}
