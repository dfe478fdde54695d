//! Long files and long functions.

use super::{Found, Source};

/// The maximum number of lines of a file.
const LONGEST_FILE: usize = 700;
/// The maximum number of lines of a function.
const LONGEST_FUNCTION: usize = 90;

/// Files that consist of a table, which may be longer.
const TABLES: [&str; 1] = ["crates/core/src/config/table/"];

/// Finds files above the limit, except tests and tables.
pub fn files(sources: &[Source]) -> Found {
    let long = sources.iter().filter(|source| !source.is_test()).filter_map(|source| {
        let lines = source.text.lines().count();
        let is_table = TABLES.iter().any(|table| source.path.starts_with(table));
        (lines > LONGEST_FILE && !is_table).then(|| format!("{}: {lines} lines", source.path))
    });
    Found::count(long.collect())
}

/// Finds functions above the limit. The sources are formatted, so a function ends at the first brace with the same
/// indentation.
pub fn functions(sources: &[Source]) -> Found {
    let mut places = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let lines: Vec<&str> = source.production().collect();
        for (at, line) in lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let Some(name) = function_name(line.trim_start()) else { continue };
            let end = lines[at..].iter().position(|line| *line == format!("{}}}", " ".repeat(indent)));
            let has_body = lines[at..].iter().find(|line| line.ends_with('{') || line.ends_with(';'));
            if let Some(length) = end.filter(|_| has_body.is_some_and(|line| line.ends_with('{')))
                && length + 1 > LONGEST_FUNCTION
            {
                places.push(format!("{}:{}: {name}: {} lines", source.path, at + 1, length + 1));
            }
        }
    }
    Found::count(places)
}

/// Returns the name of the function whose definition starts in this line.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_definition = before.split_whitespace().all(|word| {
        ["const", "async", "unsafe", "extern", "\"C\""].contains(&word) || word.starts_with("pub")
    });
    let name = after.split(['(', '<']).next()?;
    (is_definition && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_function_is_found_and_short_one_is_not() {
        let body = "    a();\n".repeat(90);
        let text = format!("pub(crate) fn long() {{\n{body}}}\n\nfn short() {{\n    b();\n}}\n");
        let found = functions(&[Source { path: "a.rs".to_owned(), text }]);
        assert_eq!(found.places, ["a.rs:1: long: 92 lines"]);
    }

    #[test]
    fn comment_that_mentions_fn_is_not_a_function() {
        assert_eq!(function_name("// the fn that"), None);
        assert_eq!(function_name("pub const fn a<T>("), Some("a"));
    }
}
