//! The options of the command line.

use std::path::PathBuf;

use super::programs::{Case, Kind};

/// Runs every case of tests/abi/side_by_side with Ottla's C library and with the original librdkafka 2.16.0, and compares the
/// transcripts. docs/guide/differences.md has a row with the reason for each permitted difference, and
/// tests/abi/side_by_side/differences the lines that a row permits.
///
/// Cases with brokers start embedded ones; `OTTLA_BOOTSTRAP` names others.
#[derive(Debug, clap::Parser)]
#[command(name = "cargo xtask abi --side-by-side", disable_help_subcommand = true)]
pub struct Options {
    /// Cases whose name matches; `*` stands for any text, and a word without `*` matches anywhere
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<String>,
    /// Only cases that need no broker: what CI runs
    #[arg(long)]
    pub plain: bool,
    /// Print the names of the cases, and run nothing
    #[arg(long)]
    pub list: bool,
    /// Print the transcripts of the cases, equal or not
    #[arg(long)]
    pub show: bool,
    /// Write what the cases that ran need: adds differences without a row to `to_be_fixed.txt`, and removes unused ones
    #[arg(long)]
    pub write: bool,
    /// Run each case this often; a transcript that differs from the first one of its library is a failure
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub repeat: usize,
    /// Cases at a time; most of them wait
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    pub jobs: usize,
    /// The original library, instead of fetching it with pip
    #[arg(long, value_name = "LIBRARY")]
    pub original: Option<PathBuf>,
    /// The profile that Ottla is built with: dev or release
    #[arg(long, value_name = "NAME", default_value = "dev")]
    pub profile: String,
}

impl Options {
    /// True if the options name a case.
    pub fn chooses(&self, case: &Case) -> bool {
        let named = self.only.as_ref().is_none_or(|pattern| {
            if pattern.contains('*') { matches(pattern, &case.name) } else { case.name.contains(pattern) }
        });
        named && !(self.plain && case.kind == Kind::Broker)
    }
}

/// True if a text matches the pattern; `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
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
    use clap::Parser as _;

    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        assert!(
            matches("a*c", "abc") && matches("*", "") && matches("abc", "abc") && matches("a*b*c", "a-b-b-c")
        );
        assert!(!matches("a*c", "abcd") && !matches("abc", "abcd") && !matches("a*b", "a"));
    }

    #[test]
    fn plain_leaves_out_cases_with_brokers() {
        let case = |kind| Case { name: "p.case".into(), kind, missing: None };
        let chooses = |options: &[&str], kind| {
            Options::parse_from([&["command"], options].concat()).chooses(&case(kind))
        };
        assert!(chooses(&["--only", "cas"], Kind::Broker) && !chooses(&["--only", "cas*"], Kind::Broker));
        assert!(chooses(&["--plain"], Kind::Crash) && !chooses(&["--plain"], Kind::Broker));
    }
}
