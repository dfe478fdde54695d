//! Comments, string literals and documents that need decoding, and test names that are too long.

use super::{Found, Source};

/// Words and phrases that no comment uses. A standard term says the same at first reading.
const PHRASES: [&str; 74] = [
    "anew",
    "made again",
    "is told",
    "are told",
    "was told",
    "were told",
    "be told",
    "been told",
    "tells",
    "tell",
    "whoever",
    "whose turn",
    "to and fro",
    "under way",
    "nobody",
    "somebody",
    "everybody",
    "anybody",
    "for ever",
    "on its way",
    "on their way",
    "gone on",
    "left alone",
    "holds back",
    "held back",
    "so many",
    "so long as it",
    "without a word",
    "wants to know",
    "is none",
    "patience",
    "made it anew",
    "is said to",
    "are said to",
    "was said to",
    "makes no sense",
    "make no sense",
    "nonsense",
    "went on",
    "hear of",
    "hears of",
    "heard of",
    "asks whether",
    "who waits",
    "who asks",
    "who has",
    "those who",
    "what becomes of",
    "became of",
    "owed",
    "lets go",
    "mended",
    "taken for",
    "such a",
    "so long",
    "themselves alone",
    "from time to time",
    "on the spot",
    "to be had",
    "sees to it",
    "writes down",
    "whom",
    "graves",
    "bury",
    "witness",
    "chronicle",
    "of its own accord",
    "has become of",
    "away with",
    "for want of",
    "in vain",
    "hands out",
    "is over",
    "are over",
];

/// How a comment doesn't begin: a riddle that the rest of the sentence solves.
const BEGINNINGS: [&str; 12] = [
    "Who ",
    "Whoever ",
    "Whose ",
    "Whatever ",
    "What ",
    "So many ",
    "So long ",
    "Such a ",
    "Whether ",
    "Why ",
    "Those of ",
    "That ",
];

/// The fewest words of a comment that counts.
const FEWEST_WORDS: usize = 8;
/// The fewest words of a string literal that counts.
const FEWEST_WORDS_OF_TEXT: usize = 5;
/// The longest name of a test.
const LONGEST_TEST_NAME: usize = 70;

/// Comments that match a pattern, in percent of all.
pub fn riddles(sources: &[Source]) -> Found {
    matching(sources, FEWEST_WORDS, |source| comments(&source.text))
}

/// String literals that match a pattern, in percent of all: error texts, log lines, help, reasons of assertions.
pub fn texts(sources: &[Source]) -> Found {
    matching(sources, FEWEST_WORDS_OF_TEXT, |source| literals(&source.text))
}

/// Paragraphs, rows and entries of documents that match a pattern, in percent of all.
pub fn documents(documents: &[Source]) -> Found {
    matching(documents, FEWEST_WORDS, |source| match source.path.rsplit('.').next() {
        Some("h") => c_comments(&source.text),
        Some("txt") => descriptions(&source.text),
        _ => paragraphs(&source.text),
    })
}

/// Texts of at least `fewest` words that match a pattern, in percent of all.
fn matching(sources: &[Source], fewest: usize, texts: fn(&Source) -> Vec<(usize, String)>) -> Found {
    let mut places = Vec::new();
    let mut all = 0;
    // The word list would find itself.
    for source in sources.iter().filter(|source| !source.path.ends_with("style/language.rs")) {
        for (line, text) in texts(source) {
            if text.split_whitespace().count() < fewest {
                continue;
            }
            all += 1;
            if let Some(pattern) = riddle(&text) {
                places.push(format!("{}:{line}: [{}] {text}", source.path, pattern.trim()));
            }
        }
    }
    Found { value: 100.0 * places.len() as f64 / f64::from(all.max(1)), places }
}

/// Test functions with names that are too long.
pub fn long_test_names(sources: &[Source]) -> Found {
    let mut places = Vec::new();
    for source in sources {
        let mut is_test = false;
        for (at, line) in source.text.lines().enumerate() {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn ")) {
                let name = rest.split('(').next().unwrap_or_default();
                if is_test && name.len() > LONGEST_TEST_NAME {
                    places.push(format!("{}:{}: {name}", source.path, at + 1));
                }
                is_test = false;
            } else if line.starts_with("#[test]") {
                is_test = true;
            }
        }
    }
    Found::count(places)
}

/// Lines of production code with this text.
pub fn occurrences(sources: &[Source], text: &str) -> Found {
    let mut places = Vec::new();
    for source in sources.iter().filter(|source| !source.path.starts_with("xtask/") && !source.is_test()) {
        for (at, line) in source.production().enumerate() {
            if line.contains(text) {
                places.push(format!("{}:{}: {}", source.path, at + 1, line.trim()));
            }
        }
    }
    Found::count(places)
}

/// The first pattern that a comment matches.
fn riddle(comment: &str) -> Option<&'static str> {
    if let Some(beginning) = BEGINNINGS.iter().find(|beginning| comment.starts_with(**beginning)) {
        return Some(beginning);
    }
    let lower = comment.to_lowercase();
    PHRASES.into_iter().find(|phrase| {
        lower.match_indices(phrase).any(|(at, _)| {
            let is_border =
                |it: Option<char>| it.is_none_or(|it| !it.is_alphanumeric() && it != '_' && it != '`');
            is_border(lower[..at].chars().next_back()) && is_border(lower[at + phrase.len()..].chars().next())
        })
    })
}

/// The comments of a source: each run of comment lines as one text, with the line where it begins.
fn comments(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut last = None;
    for (at, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let comment = comment.trim_start_matches(['/', '!']).trim();
        match found.last_mut().filter(|_| last == Some(at)) {
            Some((_, block)) => *block = format!("{block} {comment}"),
            None => found.push((at + 1, comment.to_owned())),
        }
        last = Some(at + 1);
    }
    found
}

/// The string literals of a Rust source, each with the line where it begins. A line break behind a backslash and the blanks
/// after it do not count, as in Rust.
fn literals(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut literal: Option<(usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        let mut rest = if literal.is_some() { line.trim_start() } else { line };
        if literal.is_none() && rest.trim_start().starts_with("//") {
            continue;
        }
        loop {
            let mut chars = rest.char_indices();
            let Some((begins, text)) = &mut literal else {
                // A quote in a character literal begins no string.
                let Some(quote) = rest
                    .match_indices('"')
                    .map(|(quote, _)| quote)
                    .find(|quote| !(rest[..*quote].ends_with('\'') || rest[..*quote].ends_with("'\\")))
                else {
                    break;
                };
                literal = Some((at + 1, String::new()));
                rest = &rest[quote + 1..];
                continue;
            };
            let mut ends = None;
            while let Some((place, c)) = chars.next() {
                match c {
                    '\\' => match chars.next() {
                        Some((_, 'n' | 't')) | None => text.push(' '),
                        Some((_, escaped)) => text.push(escaped),
                    },
                    '"' => {
                        ends = Some(place + 1);
                        break;
                    }
                    c => text.push(c),
                }
            }
            let Some(end) = ends else { break };
            found.push((*begins, std::mem::take(text)));
            literal = None;
            rest = &rest[end..];
        }
    }
    found
}

/// The paragraphs of a page, each with the line where it begins. Rows of a table and items of a list count as paragraphs;
/// blocks of code do not count.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut is_code, mut continues) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            (is_code, continues) = (!is_code, false);
            continue;
        }
        let begins = ["|", "- ", "* ", "#"].iter().any(|mark| line.starts_with(mark));
        let content = line.trim_matches(['|', '-', '*', '#', ' ']);
        match found.last_mut().filter(|_| continues && !begins) {
            _ if is_code || content.is_empty() => continues = false,
            Some((_, paragraph)) => *paragraph = format!("{paragraph} {content}"),
            None => {
                found.push((at + 1, content.to_owned()));
                continues = true;
            }
        }
    }
    found
}

/// The comments of a C header, each with the line where it begins.
fn c_comments(text: &str) -> Vec<(usize, String)> {
    let begins = text.match_indices("/*").map(|(begin, _)| begin);
    let comments = begins.filter_map(|begin| {
        let comment = text[begin..].split("*/").next()?;
        let lines = comment.lines().map(|line| line.trim().trim_matches(['/', '*']).trim());
        Some((text[..begin].lines().count(), lines.collect::<Vec<_>>().join(" ").trim().to_owned()))
    });
    comments.collect()
}

/// The descriptions in `functions.txt`, which stand behind the prototypes, each with its line.
fn descriptions(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with("  ") && !line.ends_with(';'));
    lines.map(|(at, line)| (at + 1, line.trim_matches(['!', ' ']).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_read_across_lines_and_escapes() {
        let text = "f('\"', \"one \\\"two\\\" \\\n    three\", \"four\");\n// \"no\"\nlet x = \"five\";\n";
        let expected = [(1, "one \"two\"  three"), (2, "four"), (4, "five")];
        assert_eq!(literals(text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn paragraphs_are_rows_items_and_runs_of_lines() {
        let text = "# Title\n\nOne\ntwo.\n\n| a | b |\n```\ncode\n```\n- item\n  goes on\n";
        let expected = [(1, "Title"), (3, "One two."), (6, "a | b"), (10, "item goes on")];
        assert_eq!(paragraphs(text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn c_interface_is_read_without_its_prototypes() {
        let header = "int a;\n  /** One\n   *  two. */\nint b;\n";
        assert_eq!(c_comments(header), [(2, "One two.".to_owned())]);
        let table = "complete rdkafka.h\n  int a(void);\n  Returns a.\n  ! more\n";
        assert_eq!(descriptions(table), [(3, "Returns a.".to_owned()), (4, "more".to_owned())]);
    }

    #[test]
    fn adjacent_comment_lines_are_one_comment() {
        let text = "/// One\n/// two.\nfn a() {}\n// three\n";
        assert_eq!(comments(text), [(1, "One two.".to_owned()), (4, "three".to_owned())]);
    }

    #[test]
    fn phrases_match_whole_words_only() {
        assert_eq!(riddle("The topic was made anew."), Some("anew"));
        assert_eq!(riddle("What is told to all brokers"), Some("What "));
        assert_eq!(riddle("Satellites and intelligence"), None);
    }

    #[test]
    fn only_names_of_tests_are_measured() {
        let long = "a".repeat(71);
        let text = format!("fn {long}() {{}}\n#[test]\nfn {long}() {{}}\n");
        let found = long_test_names(&[Source { path: "a.rs".to_owned(), text }]);
        assert_eq!(found.places.len(), 1);
    }
}
