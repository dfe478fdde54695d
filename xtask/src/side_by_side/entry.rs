//! A file of `tests/abi/side_by_side/differences`: the hunks that a row of the page allows.
//!
//! ```text
//! mock.metadata
//! mock.two_brokers 2 times
//! - controller 0
//! + controller 1
//! ```
//!
//! Names of cases, then lines of the original and lines of Ottla in their place; a blank line ends an entry.

use std::{collections::BTreeMap, fmt::Write as _};

use super::transcript::Hunk;
use crate::Result;

/// A hunk, and how often each case has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub cases: BTreeMap<String, usize>,
    pub hunk: Hunk,
}

/// Reads a file.
///
/// # Errors
///
/// An entry lacks a case or lines that differ, or a line has another form.
pub fn parse(text: &str) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut entry = Entry { cases: BTreeMap::new(), hunk: Hunk::default() };
        for line in block.lines().filter(|line| !line.is_empty()) {
            let (sign, rest) = line.split_at(1.min(line.len()));
            let rest = rest.strip_prefix(' ').unwrap_or(rest).to_owned();
            match sign {
                "-" => entry.hunk.original.push(rest),
                "+" => entry.hunk.ottla.push(rest),
                _ => {
                    let (name, times) = case(line).ok_or(format!("`{line}` names no case"))?;
                    entry.cases.insert(name.to_owned(), times);
                }
            }
        }
        if entry.cases.is_empty() || (entry.hunk.original.is_empty() && entry.hunk.ottla.is_empty()) {
            return Err(format!("an entry needs a case and a line that differs:\n{block}").into());
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Returns the case that a line names, and how often it has the hunk.
fn case(line: &str) -> Option<(&str, usize)> {
    let (name, times) = match line.split_once(' ') {
        None => (line, 1),
        Some((name, times)) => (name, times.strip_suffix(" times")?.parse().ok()?),
    };
    (name.contains('.') && times > 0).then_some((name, times))
}

/// Formats the entries of a file, in the order of their cases.
pub fn format(entries: &[Entry]) -> String {
    let mut blocks: Vec<String> = entries.iter().map(block).collect();
    blocks.sort();
    blocks.join("\n")
}

fn block(entry: &Entry) -> String {
    let mut text = String::new();
    for (name, times) in &entry.cases {
        let _ = match times {
            1 => writeln!(text, "{name}"),
            times => writeln!(text, "{name} {times} times"),
        };
    }
    text + &entry.hunk.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "a.x\na.y 3 times\n- one\n-   two | `*`\n+ three\n\nb.z\n+\n";

    #[test]
    fn file_is_read_and_written_the_same() {
        let entries = parse(FILE).unwrap();
        assert_eq!(entries[0].cases, [("a.x".to_owned(), 1), ("a.y".to_owned(), 3)].into());
        assert_eq!(entries[0].hunk.original, ["one", "  two | `*`"]);
        assert_eq!(entries[1].hunk.ottla, [""]);
        assert_eq!(format(&entries), FILE);
    }

    #[test]
    fn incomplete_entries_are_refused() {
        for text in ["a.x\n", "- one\n", "a.x often\n- one\n", "a\n- one\n", "a.x 0 times\n- one\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
