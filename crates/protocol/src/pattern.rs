//! Regular expressions that a peer or an application sends: names of topics, transactional IDs, properties of clients.
//!
//! Brokers use RE2, which matches in linear time. So does this module, and it bounds the memory as well: of the pattern's
//! text, of the compiled pattern, and of what a search needs.
//!
//! # Pitfalls
//!
//! - A search needs memory for each state of the compiled pattern times its groups. So groups don't capture
//!   (`memory_of_a_search_does_not_grow_with_groups`).
//! - Names are ASCII, so classes such as `\w` are ASCII, as in RE2, and `.` is a byte. A pattern with other characters is
//!   compiled for Unicode, without classes that need Unicode's tables (`pattern_with_other_characters_is_accepted`).

use std::fmt;

use regex_automata::{meta, nfa::thompson::WhichCaptures, util::syntax};

/// The maximum length of a pattern, in bytes: that of a string in Kafka's protocol.
const MAX_TEXT: usize = i16::MAX as usize;
/// The maximum size of a compiled pattern, in bytes: a few characters can request any number of repetitions. A search needs
/// about twice as much.
const MAX_SIZE: usize = 1 << 20;
/// The maximum number of groups of a pattern whose groups are wanted.
const MAX_GROUPS: usize = 100;

/// A compiled regular expression of bounded size.
#[derive(Clone)]
pub struct Pattern(meta::Regex);

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A line for each state would follow.
        f.debug_struct("Pattern").finish_non_exhaustive()
    }
}

impl Pattern {
    /// Compiles a pattern that is found anywhere in a text.
    ///
    /// # Errors
    ///
    /// The pattern is not a regular expression, or is too large; the error says which.
    pub fn anywhere(text: &str) -> Result<Self, String> {
        compile(text, WhichCaptures::Implicit).map(Self)
    }

    /// Compiles a pattern that must match a whole text.
    ///
    /// # Errors
    ///
    /// The pattern is not a regular expression, or is too large; the error says which.
    pub fn whole(text: &str) -> Result<Self, String> {
        compile_whole(text, WhichCaptures::Implicit).map(Self)
    }

    /// Returns true if the text matches.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// A compiled regular expression that must match a whole text and whose groups are wanted.
#[derive(Clone, Debug)]
pub struct GroupPattern(meta::Regex);

impl GroupPattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// The pattern is not a regular expression, is too large, or has more than 100 groups.
    pub fn whole(text: &str) -> Result<Self, String> {
        // Counts the groups before anything is compiled with them.
        let groups = compile_whole(text, WhichCaptures::All)?;
        match groups.captures_len() {
            0..=MAX_GROUPS => Ok(Self(groups)),
            count => Err(format!("it has {count} groups, and the maximum is {MAX_GROUPS}")),
        }
    }

    /// Returns the groups of a text that matches; the first one is the text. A group that takes no part is empty.
    #[must_use]
    pub fn groups(&self, text: &str) -> Option<Vec<String>> {
        let mut found = self.0.create_captures();
        self.0.captures(text, &mut found);
        let group = |span: Option<regex_automata::Span>| {
            let bytes = span.map_or(&[][..], |span| &text.as_bytes()[span.range()]);
            String::from_utf8_lossy(bytes).into_owned()
        };
        found.is_match().then(|| found.iter().map(group).collect())
    }
}

fn compile_whole(text: &str, captures: WhichCaptures) -> Result<meta::Regex, String> {
    // Compiles the bare text, too: the added parentheses must not balance a `)(`.
    compile(text, WhichCaptures::None)?;
    compile(&format!("^(?:{text})$"), captures)
}

fn compile(text: &str, captures: WhichCaptures) -> Result<meta::Regex, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("it has {} bytes, and the maximum is {MAX_TEXT}", text.len()));
    }
    let limits =
        meta::Config::new().which_captures(captures).nfa_size_limit(Some(MAX_SIZE)).utf8_empty(false);
    let syntax = syntax::Config::new().unicode(!text.is_ascii()).utf8(false);
    meta::Regex::builder().configure(limits).syntax(syntax).build(text).map_err(|error| reason(&error))
}

/// Returns the error as one line.
fn reason(error: &meta::BuildError) -> String {
    match (error.size_limit(), error.syntax_error()) {
        (Some(limit), _) => format!("its compiled form is larger than {limit} bytes"),
        // The lines before the last one show the pattern.
        (None, Some(error)) => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
        (None, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names_or_parts_of_them() {
        for (pattern, name, anywhere, whole) in [
            ("a|b", "xa", true, false),
            ("a|b", "b", true, true),
            ("^a.*", "ab", true, true),
            (r"\w+-\d+", "orders-17", true, true),
            (r"\w+", "ü", false, false),
            (".*", "Ü\u{1F980}", true, true),
            ("(?i)ORDERS", "orders", true, true),
            ("", "a", true, false),
            (r"\bx\b", "a-x", true, false),
        ] {
            assert_eq!(Pattern::anywhere(pattern).unwrap().is_match(name), anywhere, "{pattern} in {name}");
            assert_eq!(Pattern::whole(pattern).unwrap().is_match(name), whole, "{pattern} is {name}");
        }
    }

    #[test]
    fn pattern_with_other_characters_is_accepted() {
        assert!(Pattern::whole("ü[äö].").unwrap().is_match("üöß"));
        assert!(Pattern::whole("ü").unwrap().0.memory_usage() < 10_000);
    }

    #[test]
    fn what_is_no_pattern_is_refused_in_one_line() {
        for wrong in ["a(", "a)(b", "[", "*", "a{2,1}", "\\", "(?P<a>x)(?P<a>y)", r"(?=a)", r"(a)\1"] {
            let error = Pattern::whole(wrong).unwrap_err();
            assert!(!error.is_empty() && error.lines().count() == 1, "{wrong}: {error}");
        }
        assert_eq!(Pattern::whole("a(").unwrap_err(), "unclosed group");
    }

    #[test]
    fn pattern_that_is_too_large_is_refused() {
        for large in ["(a{1000}){1000}", "((x{1000}){1000}){1000}", "[a-z]{1000000}", &"a".repeat(40_000)] {
            let error = Pattern::whole(large).unwrap_err();
            assert!(error.contains("larger than") || error.contains("maximum"), "{error}");
        }
        assert!(Pattern::whole(&"(".repeat(10_000)).is_err());
        assert!(Pattern::whole(&format!("{}{}", "(".repeat(10_000), ")".repeat(10_000))).is_err());
        let names: Vec<String> = (0..1500).map(|number| format!("topic-{number}")).collect();
        assert!(Pattern::whole(&names.join("|")).unwrap().is_match("topic-1499"));
    }

    #[test]
    fn groups_are_returned_and_their_number_is_limited() {
        let pattern = GroupPattern::whole("CN=([^,]*)(,.*)?").unwrap();
        assert_eq!(pattern.groups("CN=ü").unwrap(), ["CN=ü", "ü", ""]);
        assert_eq!(pattern.groups("OU=a"), None);
        assert!(GroupPattern::whole(&"()".repeat(200)).unwrap_err().contains("maximum is 100"));
    }
}
