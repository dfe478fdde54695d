//! Patterns of topic names, as in `topic.blacklist`.

use std::{fmt, sync::Arc};

use ottla_protocol::pattern::Pattern;

/// Regular expressions; a name matches if any of them matches a part of it.
#[derive(Clone, Debug, Default)]
pub struct TopicPatterns(Arc<[Pattern]>);

impl TopicPatterns {
    /// Parses comma-separated patterns; the error names the invalid pattern.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let patterns = text.split(',').filter(|pattern| !pattern.is_empty()).map(|pattern| {
            Pattern::anywhere(pattern).map_err(|reason| BadPattern { pattern: pattern.to_owned(), reason })
        });
        Ok(Self(patterns.collect::<Result<_, _>>()?))
    }

    /// Returns whether a topic's name matches.
    pub fn matches(&self, topic: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(topic))
    }

    /// Returns whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Error: a pattern is not a regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    pattern: String,
    reason: String,
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "regular expressions, separated by commas; \"{}\" is invalid: {}",
            self.pattern, self.reason
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_matches_anywhere_unless_anchored() {
        let patterns = TopicPatterns::parse("^hidden,secret$,b.g").unwrap();
        let names = ["hidden", "hidden-1", "not-hidden", "a.secret", "secret.a", "xbigx", "Hidden"];
        let matching: Vec<_> = names.into_iter().filter(|name| patterns.matches(name)).collect();
        assert_eq!(matching, ["hidden", "hidden-1", "a.secret", "xbigx"]);
        assert!(TopicPatterns::parse("").unwrap().is_empty());
        assert!(!TopicPatterns::parse(",").unwrap().matches("a"), "nothing is not a pattern");
    }

    #[test]
    fn invalid_regular_expression_is_named() {
        for bad in ["[", "a,(", "*", "a\\,b"] {
            let error = TopicPatterns::parse(bad).unwrap_err().to_string();
            let pattern = bad.rsplit(',').find(|part| Pattern::anywhere(part).is_err()).unwrap();
            assert!(error.contains(&format!("\"{pattern}\" is invalid: ")), "{error}");
        }
    }
}
