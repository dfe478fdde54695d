//! Patterns of topic names, as `topic.blacklist` has them.

use std::{fmt, sync::Arc};

use regex_lite::Regex;

/// Regular expressions; a name matches if any of them is found in it.
#[derive(Clone, Debug, Default)]
pub struct TopicPatterns(Arc<[Regex]>);

impl TopicPatterns {
    /// Reads patterns that are separated by commas; a pattern that is none is an error that names it.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let patterns = text.split(',').filter(|pattern| !pattern.is_empty()).map(|pattern| {
            Regex::new(pattern)
                .map_err(|error| BadPattern { pattern: pattern.to_owned(), reason: error.to_string() })
        });
        Ok(Self(patterns.collect::<Result<_, _>>()?))
    }

    /// Whether a topic's name matches.
    pub fn matches(&self, topic: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(topic))
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What is no regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    pattern: String,
    reason: String,
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "regular expressions, separated by commas; \"{}\" is none: {}", self.pattern, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_found_anywhere_in_a_name_unless_it_says_where() {
        let patterns = TopicPatterns::parse("^hidden,secret$,b.g").unwrap();
        let names = ["hidden", "hidden-1", "not-hidden", "a.secret", "secret.a", "xbigx", "Hidden"];
        let matching: Vec<_> = names.into_iter().filter(|name| patterns.matches(name)).collect();
        assert_eq!(matching, ["hidden", "hidden-1", "a.secret", "xbigx"]);
        assert!(TopicPatterns::parse("").unwrap().is_empty());
        assert!(!TopicPatterns::parse(",").unwrap().matches("a"), "nothing is no pattern");
    }

    #[test]
    fn what_is_no_regular_expression_is_named() {
        for bad in ["[", "a,(", "*", "a\\,b"] {
            let error = TopicPatterns::parse(bad).unwrap_err().to_string();
            let pattern = bad.rsplit(',').find(|part| Regex::new(part).is_err()).unwrap();
            assert!(error.contains(&format!("\"{pattern}\" is none: ")), "{error}");
        }
    }
}
