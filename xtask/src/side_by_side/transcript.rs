//! The output of a case, and the differences between two of them.

use std::fmt::Write as _;

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// A part of a line that depends on the build and not on the behaviour.
struct Volatile {
    /// The text before the part.
    after: &'static str,
    /// The characters of the part.
    is_part: fn(char) -> bool,
    /// What a transcript has in its place.
    name: &'static str,
}

/// Every volatile part that the programs can't leave out themselves.
const VOLATILE: [Volatile; 1] =
    [Volatile { after: "-ottla-", is_part: |it| it.is_ascii_digit() || it == '.', name: "VERSION" }];

impl Volatile {
    fn replace(&self, line: &str) -> String {
        let mut parts = line.split(self.after);
        let mut replaced = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(self.is_part);
            replaced.push_str(self.after);
            replaced.push_str(if rest.len() < part.len() { self.name } else { "" });
            replaced.push_str(rest);
        }
        replaced
    }
}

/// The last line of a case that ran until its end.
const END: &str = "end";

/// The lines of a case, and the signal that ended it.
#[derive(Debug, PartialEq)]
pub struct Transcript {
    pub lines: Vec<String>,
    pub crash: Option<i32>,
}

impl Transcript {
    pub fn of(text: &str, crash: Option<i32>) -> Self {
        let stable = |line: &str| {
            VOLATILE.iter().fold(line.trim_end().to_owned(), |line, volatile| volatile.replace(&line))
        };
        let mut lines: Vec<String> = text.lines().map(stable).collect();
        if let Some(signal) = crash {
            lines.push(format!("ended by signal {signal}"));
        }
        Self { lines, crash }
    }

    /// True if the case ran until its end.
    pub fn is_complete(&self) -> bool {
        self.lines.last().is_some_and(|line| line == END)
    }

    /// Returns the labels of misuse that ends with a signal.
    fn crashes(&self) -> Vec<&str> {
        self.lines.iter().filter_map(|line| line.strip_prefix("misuse ")?.strip_suffix(" CRASHES")).collect()
    }

    /// Returns the lines outside of the misuse with these labels.
    fn without(&self, labels: &[&str]) -> Vec<String> {
        let mut kept = Vec::new();
        let mut skipping = false;
        for line in &self.lines {
            let misuse = line.strip_prefix("misuse ").unwrap_or("");
            let is = |suffix| misuse.strip_suffix(suffix).is_some_and(|label| labels.contains(&label));
            skipping |= is(" begins");
            if !skipping {
                kept.push(line.clone());
            }
            skipping &= !(is(" ends") || is(" CRASHES"));
        }
        kept
    }
}

/// Lines that only the original prints, and the lines that Ottla prints in their place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hunk {
    pub original: Vec<String>,
    pub ottla: Vec<String>,
    /// The preceding line, as context.
    pub after: Option<String>,
}

/// The number of lines of a place that are printed: a program that calls something until its time is over has millions.
const MOST_LINES: usize = 100;

impl Hunk {
    /// Formats the lines: `-` is a line of the original, `+` one of Ottla.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (sign, lines) in [('-', &self.original), ('+', &self.ottla)] {
            for line in lines.iter().take(MOST_LINES) {
                let _ = writeln!(text, "{}", format!("{sign} {line}").trim_end());
            }
            if let Some(more) = lines.len().checked_sub(MOST_LINES + 1) {
                let _ = writeln!(text, "{sign} and {} more lines", more + 1);
            }
        }
        text
    }
}

/// All places where two transcripts differ.
#[derive(Debug, Default, PartialEq)]
pub struct Comparison {
    pub hunks: Vec<Hunk>,
}

impl Comparison {
    /// Compares the original's transcript with Ottla's. Misuse that crashes the original is not compared, unless it
    /// crashes only Ottla.
    pub fn of(original: &Transcript, ottla: &Transcript) -> Self {
        let crashes = original.crashes();
        Self { hunks: hunks(&original.without(&crashes), &ottla.without(&crashes)) }
    }

    /// Formats the differences, each below the line that precedes it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for hunk in &self.hunks {
            if let Some(after) = &hunk.after {
                let _ = writeln!(text, "    {after}");
            }
            for line in hunk.text().lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }
}

/// Returns the places where two lists of lines differ.
fn hunks(original: &[String], ottla: &[String]) -> Vec<Hunk> {
    let mut found: Vec<Hunk> = Vec::new();
    let mut is_open = false;
    for operation in capture_diff_slices(Algorithm::Myers, original, ottla) {
        let (tag, of_original, of_ottla) = operation.as_tag_tuple();
        if tag == DiffTag::Equal {
            is_open = false;
            continue;
        }
        if !is_open {
            let after = of_original.start.checked_sub(1).map(|before| original[before].clone());
            found.push(Hunk { after, ..Hunk::default() });
            is_open = true;
        }
        if let Some(hunk) = found.last_mut() {
            hunk.original.extend_from_slice(&original[of_original]);
            hunk.ottla.extend_from_slice(&ottla[of_ottla]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(original: &str, ottla: &str) -> String {
        Comparison::of(&Transcript::of(original, None), &Transcript::of(ottla, None)).text()
    }

    #[test]
    fn equal_transcripts_have_no_hunks() {
        assert_eq!(compared("a\nb\n", "a\nb\n"), "");
    }

    #[test]
    fn hunks_contain_lines_of_one_library_only() {
        assert_eq!(compared("a\nb\nc\nd\n", "a\nx\nc\n"), "    a\n  - b\n  + x\n    c\n  - d\n");
    }

    #[test]
    fn misuse_that_crashes_the_original_is_not_compared() {
        let original = "a\nmisuse f begins\nmisuse f CRASHES\nb\n";
        assert_eq!(compared(original, "a\nmisuse f begins\n_INVALID_ARG\nmisuse f ends\nb\n"), "");
    }

    #[test]
    fn misuse_that_crashes_ottla_alone_is_a_difference() {
        let original = "misuse f begins\nNULL\nmisuse f ends\n";
        assert!(compared(original, "misuse f begins\nmisuse f CRASHES\n").contains("+ misuse f CRASHES"));
    }

    #[test]
    fn lines_removed_and_added_in_one_place_are_one_hunk() {
        let (original, ottla) = (Transcript::of("a\n1\n2\nb\n", None), Transcript::of("a\nx\nb\n", None));
        let hunks = Comparison::of(&original, &ottla).hunks;
        assert!(matches!(&hunks[..], [hunk] if hunk.text() == "- 1\n- 2\n+ x\n"), "{hunks:?}");
    }

    #[test]
    fn volatile_part_becomes_its_name() {
        let transcript = Transcript::of("version 2.16.0-ottla-0.1.0 \"-ottla-x\"\n", None);
        assert_eq!(transcript.lines, ["version 2.16.0-ottla-VERSION \"-ottla-x\""]);
    }

    #[test]
    fn transcript_without_its_last_line_is_incomplete() {
        assert!(Transcript::of("a\nend\n", None).is_complete());
        assert!(!Transcript::of("a\nend\n", Some(14)).is_complete());
        assert!(!Transcript::of("NO BROKER: x\n", None).is_complete());
    }
}
