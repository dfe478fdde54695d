//! The output of a case, and the differences between two of them.

use std::fmt::Write as _;

/// The lines of a case, and the signal that ended it.
#[derive(Debug, PartialEq)]
pub struct Transcript {
    pub lines: Vec<String>,
    pub crash: Option<i32>,
}

impl Transcript {
    pub fn of(text: &str, crash: Option<i32>) -> Self {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if let Some(signal) = crash {
            lines.push(format!("ended by signal {signal}"));
        }
        Self { lines, crash }
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
#[derive(Clone, Debug, PartialEq)]
pub struct Hunk {
    pub original: Vec<String>,
    pub ottla: Vec<String>,
    /// The preceding line, as context.
    pub after: Option<String>,
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

    /// Formats the differences: `-` is a line of the original, `+` one of Ottla.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for hunk in &self.hunks {
            if let Some(after) = &hunk.after {
                let _ = writeln!(text, "    {after}");
            }
            for (sign, lines) in [('-', &hunk.original), ('+', &hunk.ottla)] {
                for line in lines {
                    let _ = writeln!(text, "  {sign} {line}");
                }
            }
        }
        text
    }

    /// Returns pairs of differing lines, as in the table of differences; one of a pair may be empty.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let line = |lines: &[String], at: usize| lines.get(at).map_or("", |line| line.trim()).to_owned();
        let pairs = |hunk: &Hunk| -> Vec<(String, String)> {
            let count = hunk.original.len().max(hunk.ottla.len());
            (0..count).map(|at| (line(&hunk.original, at), line(&hunk.ottla, at))).collect()
        };
        self.hunks.iter().flat_map(pairs).collect()
    }
}

/// Returns the differing ranges of two lists of lines: the lines outside of a longest common subsequence.
fn hunks(left: &[String], right: &[String]) -> Vec<Hunk> {
    let width = right.len() + 1;
    let mut common = vec![0_u32; (left.len() + 1) * width];
    for a in (0..left.len()).rev() {
        for b in (0..right.len()).rev() {
            common[a * width + b] = if left[a] == right[b] {
                common[(a + 1) * width + b + 1] + 1
            } else {
                common[(a + 1) * width + b].max(common[a * width + b + 1])
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    let mut found: Vec<Hunk> = Vec::new();
    let mut open = false;
    while a < left.len() || b < right.len() {
        if a < left.len() && b < right.len() && left[a] == right[b] {
            (a, b, open) = (a + 1, b + 1, false);
            continue;
        }
        if !open {
            let after = a.checked_sub(1).map(|before| left[before].clone());
            found.push(Hunk { original: Vec::new(), ottla: Vec::new(), after });
            open = true;
        }
        let Some(hunk) = found.last_mut() else { break };
        let take_left =
            b == right.len() || (a < left.len() && common[(a + 1) * width + b] >= common[a * width + b + 1]);
        if take_left {
            hunk.original.push(left[a].clone());
            a += 1;
        } else {
            hunk.ottla.push(right[b].clone());
            b += 1;
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
}
