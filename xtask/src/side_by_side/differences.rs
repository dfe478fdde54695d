//! The rows of `docs/differences.md`: intended differences from the original.
//!
//! A row has patterns of cases, of lines of the original and of Ottla's lines in their place, and the reason. `*` in a
//! pattern stands for anything; an empty cell means that the other library prints nothing there.
//!
//! The second table of the page, below [`TO_BE_FIXED`], is generated: differences without a decision.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::atomic::{AtomicU64, Ordering},
};

use super::transcript::{Comparison, Hunk};
use crate::{Result, shell::root};

const PAGE: &str = "docs/differences.md";
/// The heading of the table that `--write` writes.
const TO_BE_FIXED: &str = "## To be fixed";
/// A difference that occurs in this many cases of a program becomes one row.
const COMMON: usize = 3;

/// A case, a line of the original, and Ottla's in its place.
pub type Difference = (String, String, String);

struct Row {
    cases: Vec<Pattern>,
    original: Vec<Pattern>,
    ottla: Vec<Pattern>,
    /// The line of the page.
    line: String,
}

/// A pattern in a cell of a row.
struct Pattern {
    text: String,
    /// The number of lines or cases that needed it.
    uses: AtomicU64,
}

impl Pattern {
    fn matches(&self, text: &str) -> bool {
        matches(&self.text, text)
    }

    fn count_use(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    fn is_used(&self) -> bool {
        self.uses.load(Ordering::Relaxed) > 0
    }
}

impl Row {
    fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.cases.iter().chain(&self.original).chain(&self.ottla)
    }

    fn is_used(&self) -> bool {
        self.cases.iter().any(Pattern::is_used)
    }
}

/// The rows of the page.
pub struct Differences {
    rows: Vec<Row>,
}

impl Differences {
    pub fn read() -> Result<Self> {
        Self::of(&fs::read_to_string(root().join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?)
    }

    fn of(page: &str) -> Result<Self> {
        let mut rows = Vec::new();
        // A row of the table starts with a pattern in backquotes.
        for line in page.lines().filter(|line| line.starts_with("| `")) {
            let cells = cells(line);
            let [cases, original, ottla, reason] = cells.as_slice() else {
                return Err(format!("{PAGE}: a row has {} cells instead of 4: {line}", cells.len()).into());
            };
            if reason.is_empty() || reason == "REASON" {
                return Err(format!("{PAGE}: a row has no reason: {line}").into());
            }
            rows.push(Row {
                cases: patterns(cases),
                original: patterns(original),
                ottla: patterns(ottla),
                line: line.to_owned(),
            });
        }
        Ok(Self { rows })
    }

    /// Returns the part of a comparison that no row allows.
    pub fn unexplained(&self, case: &str, comparison: &Comparison) -> Comparison {
        let mut left = Vec::new();
        for hunk in &comparison.hunks {
            let lines = |lines: &[String], cell: fn(&Row) -> &[Pattern]| -> Vec<String> {
                lines.iter().filter(|line| !self.allows(case, line, cell)).cloned().collect()
            };
            let original = lines(&hunk.original, |row| &row.original);
            let ottla = lines(&hunk.ottla, |row| &row.ottla);
            if !original.is_empty() || !ottla.is_empty() {
                left.push(Hunk { original, ottla, after: hunk.after.clone() });
            }
        }
        Comparison { hunks: left }
    }

    fn allows(&self, case: &str, line: &str, cell: fn(&Row) -> &[Pattern]) -> bool {
        let mut allowed = false;
        for row in &self.rows {
            let cases: Vec<&Pattern> = row.cases.iter().filter(|pattern| pattern.matches(case)).collect();
            for pattern in
                cell(row).iter().filter(|pattern| !cases.is_empty() && pattern.matches(line.trim()))
            {
                pattern.count_use();
                cases.iter().for_each(|case| case.count_use());
                allowed = true;
            }
        }
        allowed
    }

    /// Returns the unused patterns of the rows whose cases have run.
    pub fn unused(&self, cases: &[&str], complete: bool) -> Vec<String> {
        // A pattern of several cases may be needed by one that did not run.
        let has_run =
            |row: &&Row| complete || row.cases.iter().all(|case| cases.contains(&case.text.as_str()));
        let mut unused = Vec::new();
        for row in self.rows.iter().filter(has_run) {
            let patterns = row.patterns().filter(|pattern| !pattern.is_used());
            unused.extend(patterns.map(|pattern| format!("`{}` in: {}", pattern.text, row.line)));
        }
        unused
    }

    /// Returns the number of rows that allowed a line.
    pub fn used(&self) -> usize {
        self.rows.iter().filter(|row| row.is_used()).count()
    }
}

/// Writes the table of differences to be fixed: removes unused rows and adds rows for new differences.
pub fn write(differences: &Differences, complete: bool, new: &[Difference]) -> Result<()> {
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path)?;
    let (decided, open) =
        page.split_once(TO_BE_FIXED).ok_or(format!("{PAGE} has no heading `{TO_BE_FIXED}`"))?;
    let gone: Vec<&str> = differences
        .rows
        .iter()
        .filter(|row| complete && !row.is_used())
        .map(|row| row.line.as_str())
        .collect();
    let (head, rows): (Vec<&str>, Vec<&str>) = open.lines().partition(|line| !line.starts_with("| `"));
    let mut rows: BTreeSet<String> =
        rows.into_iter().filter(|line| !gone.contains(line)).map(str::to_owned).collect();
    rows.extend(grouped(new));
    let rows: Vec<String> = rows.into_iter().collect();
    let head = head.join("\n");
    fs::write(path, format!("{decided}{TO_BE_FIXED}{}\n{}\n", head.trim_end(), rows.join("\n")))?;
    Ok(())
}

/// Returns rows for differences; a difference of many cases of a program is one row of the program.
fn grouped(new: &[Difference]) -> Vec<String> {
    let mut cases: BTreeMap<(&str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (case, original, ottla) in new {
        let program = case.split('.').next().unwrap_or_default();
        cases.entry((program, original, ottla)).or_default().insert(case);
    }
    let cell =
        |line: &str| if line.is_empty() { String::new() } else { format!("`{}`", line.replace('|', "\\|")) };
    let mut rows = Vec::new();
    for ((program, original, ottla), cases) in cases {
        let names = if cases.len() < COMMON {
            cases.into_iter().map(str::to_owned).collect()
        } else {
            vec![format!("{program}.*")]
        };
        rows.extend(
            names
                .into_iter()
                .map(|name| format!("| `{name}` | {} | {} | to be fixed |", cell(original), cell(ottla))),
        );
    }
    rows
}

/// Returns the cells of a table row; `\|` stands for a bar in a cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|').replace("\\|", "\u{1}");
    let line = line.strip_suffix('|').unwrap_or(&line).to_owned();
    line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
}

/// Returns the patterns of a cell, each of which is in backquotes.
fn patterns(cell: &str) -> Vec<Pattern> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.map(|text| Pattern { text: text.to_owned(), uses: AtomicU64::new(0) }).collect()
}

/// True if a text matches the pattern; `*` stands for any characters.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::{super::transcript::Transcript, *};

    const PAGE: &str = "\
| case | librdkafka | Ottla | reason |
|---|---|---|---|
| `conf.*` | `a \\| b` | `c*` | it is better |
| `conf.x` | `never` |  | gone |
";

    fn compared(original: &str, ottla: &str) -> Comparison {
        Comparison::of(&Transcript::of(original, None), &Transcript::of(ottla, None))
    }

    #[test]
    fn rows_allow_the_lines_they_name() {
        let differences = Differences::of(PAGE).unwrap();
        assert_eq!(differences.unexplained("conf.x", &compared("a | b\n", "  cde\n")), Comparison::default());
        assert_eq!(differences.used(), 1);
        assert!(!differences.unexplained("conf.x", &compared("a | b\n", "d\n")).hunks.is_empty());
        assert!(!differences.unexplained("other.x", &compared("a | b\n", "c\n")).hunks.is_empty());
    }

    #[test]
    fn rows_without_a_difference_are_found() {
        let differences = Differences::of(PAGE).unwrap();
        assert_eq!(differences.unused(&["conf.x"], false).len(), 2);
        assert_eq!(differences.unused(&[], true).len(), 5);
    }

    #[test]
    fn each_pattern_of_a_row_has_to_be_needed() {
        let differences = Differences::of("| `a.x` `a.y` | `one` `two` | `1` | so it is |").unwrap();
        for (case, line) in [("a.x", "one\n"), ("a.y", "one\n")] {
            assert_eq!(differences.unexplained(case, &compared(line, "1\n")), Comparison::default());
        }
        assert_eq!(differences.used(), 1);
        let unused = differences.unused(&["a.x", "a.y"], false);
        assert!(matches!(&unused[..], [text] if text.starts_with("`two` in")), "{unused:?}");
    }

    #[test]
    fn rows_without_a_reason_are_refused() {
        assert!(Differences::of("| `a` | `b` | `c` |  |").is_err());
        assert!(Differences::of("| `a` | `b` | `c` |").is_err());
    }

    #[test]
    fn differences_of_many_cases_are_one_row() {
        let new: Vec<Difference> =
            ["p.a", "p.b", "p.c"].map(|case| (case.to_owned(), "1 | 2".to_owned(), String::new())).into();
        assert_eq!(grouped(&new), ["| `p.*` | `1 \\| 2` |  | to be fixed |"]);
        assert_eq!(grouped(&new[..1]), ["| `p.a` | `1 \\| 2` |  | to be fixed |"]);
    }

    #[test]
    fn patterns_match_whole_texts() {
        assert!(
            matches("a*c", "abc") && matches("*", "") && matches("abc", "abc") && matches("a*b*c", "a-b-b-c")
        );
        assert!(!matches("a*c", "abcd") && !matches("abc", "abcd") && !matches("a*b", "a"));
    }
}
