//! The first difference between two transcripts of a program, and the rows that permit one.
//!
//! Only the first difference of a program counts, because what follows may be its consequence.

use std::{collections::BTreeMap, fs};

use super::{
    program::Program,
    runner::{CALLS, Transcript},
};
use crate::{Result, shell::root};

const FILE: &str = "tests/abi/generate/differences.txt";
/// The page with a row for each permitted difference.
pub const PAGE: &str = "docs/guide/differences.md";

/// Lines of the two libraries in the same place; one that is missing is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    pub stream: String,
    pub original: String,
    pub ottla: String,
}

impl Difference {
    /// Formats the lines as a row has them.
    pub fn text(&self) -> String {
        format!("{} - {}\n{} + {}\n", self.stream, self.original, self.stream, self.ottla)
    }

    /// Returns the number of the step of the main thread that differs.
    pub fn step(&self) -> Option<usize> {
        let line = if self.original.is_empty() { &self.ottla } else { &self.original };
        let number = line.split(' ').next()?.parse().ok();
        number.filter(|_| self.stream == "main")
    }

    /// Returns what findings of one cause have in common: the lines without names, partitions and offsets.
    pub fn class(&self) -> (String, String) {
        (classed(&self.original), classed(&self.ottla))
    }
}

/// The result of comparing the runs of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Same,
    /// The original crashed or hung: what follows can't be compared.
    OriginalFails(String),
    Differs(Difference),
}

/// Compares what both libraries did.
pub fn compare(original: &Transcript, ottla: &Transcript) -> Outcome {
    let empty = Vec::new();
    let first = |stream: &str| {
        let lines = |transcript: &'_ Transcript| transcript.streams.get(stream).unwrap_or(&empty).clone();
        let (a, b) = (lines(original), lines(ottla));
        let at = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
        let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
        (a != b).then(|| Difference { stream: stream.to_owned(), original: line(&a), ottla: line(&b) })
    };
    let main = first("main");
    // What the original did not live to do is not a difference.
    if let Some(ending) = original.ending()
        && main.as_ref().is_none_or(|it| is_ending(&it.original) || it.original.is_empty())
    {
        return Outcome::OriginalFails(ending.to_owned());
    }
    if let Some(main) = main {
        return Outcome::Differs(main);
    }
    let streams = original.streams.keys().chain(ottla.streams.keys());
    streams
        .filter(|stream| *stream != "main" && *stream != CALLS)
        .find_map(|stream| first(stream))
        .map_or(Outcome::Same, Outcome::Differs)
}

fn is_ending(line: &str) -> bool {
    ["CRASH", "HANG", "ended by", "exits with"].iter().any(|ending| line.starts_with(ending))
}

/// Returns a line in which a partition is a `P`, and the length of a list is left out.
fn classed(line: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in without_number(line).split(' ') {
        let is_partition = word.contains("]@");
        let is_length = words.last() == Some(&"list") && word.parse::<usize>().is_ok();
        // The same of several partitions counts once.
        let is_again = is_partition && words.last() == Some(&"P");
        if !is_length && !is_again {
            words.push(if is_partition { "P" } else { word });
        }
    }
    words.join(" ")
}

/// Returns a line without the number of its step.
pub fn without_number(line: &str) -> &str {
    match line.split_once(' ') {
        Some((number, rest)) if number.parse::<usize>().is_ok() => rest,
        _ => line,
    }
}

/// Returns the words of a line without these.
fn without<'a>(line: &'a str, words: &[&str]) -> Vec<&'a str> {
    line.split(' ').filter(|word| !words.contains(word)).collect()
}

/// Returns a step of a program's text without the names of what it makes.
fn without_names(line: &str) -> &str {
    let step = line.trim();
    match step.split_once(" = ") {
        Some((names, rest)) if !names.contains(' ') => rest,
        _ => step,
    }
}

/// A row: the name of one in docs/guide/differences.md, patterns of the lines, and of steps of the program.
#[derive(Clone, Debug, Default, PartialEq)]
struct Row {
    name: String,
    original: String,
    ottla: String,
    /// `if PATTERN`: the step that differs.
    step: Option<String>,
    /// `with PATTERN`: a step that the program has anywhere.
    other_step: Option<String>,
}

impl Row {
    fn parse(block: &str) -> Result<Option<Self>> {
        let mut row = Self::default();
        let mut parts = 0;
        for line in block.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(pattern) = line.strip_prefix("if ") {
                row.step = Some(pattern.to_owned());
                continue;
            }
            if let Some(pattern) = line.strip_prefix("with ") {
                row.other_step = Some(pattern.to_owned());
                continue;
            }
            parts += 1;
            match (parts, line.get(..1), line.get(1..).map(str::trim)) {
                (1, ..) => line.clone_into(&mut row.name),
                (2, Some("-"), Some(rest)) => rest.clone_into(&mut row.original),
                (3, Some("+"), Some(rest)) => rest.clone_into(&mut row.ottla),
                _ => {
                    return Err(
                        format!("{FILE}: a row is a name, a line `-` and a line `+`:\n{block}").into()
                    );
                }
            }
        }
        match parts {
            0 => Ok(None),
            3 => Ok(Some(row)),
            _ => Err(format!("{FILE}: a row is a name, a line `-` and a line `+`:\n{block}").into()),
        }
    }

    /// True if the steps of the program are as the row says. A line begins with the number of its step.
    fn suits(&self, difference: &Difference, program: &str) -> bool {
        let line = if difference.original.is_empty() { &difference.ottla } else { &difference.original };
        let number: Option<usize> = line.split(' ').next().and_then(|word| word.parse().ok());
        let mut steps = program.lines().map(without_names);
        let is_step = self.step.as_ref().is_none_or(|pattern| {
            let step = number.and_then(|number| steps.clone().nth(number.checked_sub(1)?));
            step.is_some_and(|step| matches(pattern, step))
        });
        is_step && self.other_step.as_ref().is_none_or(|pattern| steps.any(|step| matches(pattern, step)))
    }

    fn permits(&self, original: &str, ottla: &str) -> bool {
        if !matches(&self.original, original) {
            return false;
        }
        // `also WORD`: Ottla's line has the word in more places, and is the same otherwise.
        if let Some(word) = self.ottla.strip_prefix("also ") {
            let count = |line: &str| line.split(' ').filter(|part| *part == word).count();
            return count(ottla) > count(original) && without(original, &[word]) == without(ottla, &[word]);
        }
        // `WORD for WORD`: Ottla's line has the first in place of the second.
        if let Some((word, other)) = self.ottla.split_once(" for ") {
            let (a, b): (Vec<&str>, Vec<&str>) = (original.split(' ').collect(), ottla.split(' ').collect());
            let is_one = |(a, b): (&&str, &&str)| a == b || (*a == other && *b == word);
            return original != ottla && a.len() == b.len() && a.iter().zip(&b).all(is_one);
        }
        // `without WORD...`: the lines are the same but for these words.
        let Some(words) = self.ottla.strip_prefix("without ") else { return matches(&self.ottla, ottla) };
        let words: Vec<&str> = words.split(' ').collect();
        original != ottla && without(original, &words) == without(ottla, &words)
    }
}

/// The differences that are permitted.
#[derive(Debug, Default)]
pub struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    /// Reads the rows.
    ///
    /// # Errors
    ///
    /// A row has another form, or docs/guide/differences.md does not have it.
    pub fn read() -> Result<Self> {
        let rows = Self::parse(&fs::read_to_string(root().join(FILE))?)?;
        let page = fs::read_to_string(root().join(PAGE))?;
        for row in &rows.rows {
            if !page.contains(&format!("| [{}](", row.name)) {
                return Err(format!("{FILE}: {PAGE} has no row {}", row.name).into());
            }
        }
        Ok(rows)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut rows = Vec::new();
        for block in text.split("\n\n") {
            rows.extend(Row::parse(block)?);
        }
        Ok(Self { rows })
    }

    /// Returns the name of the row that permits a difference of a program.
    pub fn permits(&self, difference: &Difference, program: &Program) -> Option<&str> {
        let (original, ottla) = (without_number(&difference.original), without_number(&difference.ottla));
        let text = program.text();
        let is_permitted = |row: &&Row| row.permits(original, ottla) && row.suits(difference, &text);
        let row = self.rows.iter().find(is_permitted)?;
        Some(&row.name)
    }

    /// Returns the names of all rows, each with 0 uses.
    pub fn unused(&self) -> BTreeMap<String, usize> {
        self.rows.iter().map(|row| (row.name.clone(), 0)).collect()
    }
}

/// True if a line matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
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
    use super::*;

    fn transcript(lines: &[&str]) -> Transcript {
        Transcript::of(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn first_difference_counts_and_main_before_callbacks() {
        let a = transcript(&["dr_cb|x", "main|1 ok f -> 0", "main|2 ok f -> 0"]);
        let b = transcript(&["dr_cb|y", "main|1 ok f -> 0", "main|2 no f -> 1"]);
        let Outcome::Differs(difference) = compare(&a, &b) else { panic!("the same") };
        assert_eq!(difference.class(), ("ok f -> 0".to_owned(), "no f -> 1".to_owned()));
        assert_eq!(compare(&a, &a), Outcome::Same);
    }

    #[test]
    fn crash_of_the_original_alone_is_not_a_difference() {
        let crashed =
            transcript(&["main|1 ok f -> 0", "main|CRASH thread 0 in 2 g", "main|ended by signal 11"]);
        let survived = transcript(&["main|1 ok f -> 0", "main|2 no g -> 1", "main|end"]);
        assert!(matches!(compare(&crashed, &survived), Outcome::OriginalFails(_)));
        assert!(matches!(compare(&survived, &crashed), Outcome::Differs(_)));
        let different = transcript(&["main|1 no f -> 1", "main|end"]);
        assert!(matches!(compare(&crashed, &different), Outcome::Differs(_)));
    }

    #[test]
    fn row_permits_lines_that_match_its_patterns() {
        let rows = Rows::parse("# text\nrow\n- ok f -> *\n+ no f -> _INVALID_ARG*\n").unwrap();
        let none = Program::default();
        let difference = |original: &str, ottla: &str| Difference {
            stream: "main".into(),
            original: original.into(),
            ottla: ottla.into(),
        };
        assert_eq!(rows.permits(&difference("7 ok f -> 1", "7 no f -> _INVALID_ARG"), &none), Some("row"));
        assert_eq!(rows.permits(&difference("7 ok g -> 1", "7 no f -> _INVALID_ARG"), &none), None);
        assert!(Rows::parse("row\n- a\n").is_err());
    }

    #[test]
    fn row_permits_words_that_are_missing_or_others() {
        let rows = Rows::parse("row\n- ok f -> *\n+ without _STATE _FAIL\n").unwrap();
        let permits = |original: &str, ottla: &str| {
            let lines = (original.into(), ottla.into());
            let difference = Difference { stream: "main".into(), original: lines.0, ottla: lines.1 };
            rows.permits(&difference, &Program::default()).is_some()
        };
        assert!(permits("7 ok f -> list 2 a b", "7 ok f -> list 2 a _STATE b"));
        assert!(permits("7 ok f -> list 1 a _FAIL", "7 ok f -> list 1 a _STATE"));
        assert!(!permits("7 ok f -> list 1 a", "7 ok f -> list 1 b _STATE"));
    }

    #[test]
    fn row_permits_words_that_ottla_adds_or_replaces() {
        let rows =
            Rows::parse("row\n- ok f -> *\n+ also _FAIL\n\nrow\n- ok g -> *\n+ _STATE for _FAIL\n").unwrap();
        let permits = |original: &str, ottla: &str| {
            let lines = (original.into(), ottla.into());
            let difference = Difference { stream: "main".into(), original: lines.0, ottla: lines.1 };
            rows.permits(&difference, &Program::default()).is_some()
        };
        assert!(permits("7 ok f -> list 2 a b", "7 ok f -> list 2 a _FAIL b"));
        assert!(!permits("7 ok f -> list 1 a _FAIL", "7 ok f -> list 1 a"), "the other way round");
        assert!(permits("7 ok g -> list 1 a _FAIL", "7 ok g -> list 1 a _STATE"));
        assert!(!permits("7 ok g -> list 1 a _STATE", "7 ok g -> list 1 a _FAIL"));
        assert!(!permits("7 ok g -> list 1 a _FAIL", "7 ok g -> list 1 b _STATE"));
    }

    #[test]
    fn row_permits_programs_that_have_its_steps() {
        let rows = "row\nif f * -1\nwith g *\n- ok f -> 0\n+ no f -> 1\n";
        let rows = Rows::parse(rows).unwrap();
        let permits = |program: &str| {
            let lines = ("2 ok f -> 0".into(), "2 no f -> 1".into());
            let difference = Difference { stream: "main".into(), original: lines.0, ottla: lines.1 };
            rows.permits(&difference, &Program::parse(program).unwrap()).is_some()
        };
        assert!(permits("a = g 1\nb = f a -1\n"));
        assert!(permits("h\nf a -1\nin cb\n  g 1\n"));
        assert!(!permits("g 1\nf a 0\n"), "another argument");
        assert!(!permits("h 1\nf a -1\n"), "g is missing");
    }

    #[test]
    fn rows_are_those_of_the_page() {
        Rows::read().unwrap();
    }
}
