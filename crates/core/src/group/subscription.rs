//! The subscription of an application: names of topics, and patterns of names.
//!
//! An entry that begins with `^` is a regular expression. A classic member matches it against the names of all topics, and
//! joins again when topics come and go. In the consumer protocol the coordinator matches it.
//!
//! # Pitfalls
//!
//! - A classic pattern is searched in a name, so that `^a` matches `ab`; the coordinator of the consumer protocol matches
//!   whole names (`pattern_that_the_protocols_match_differently_is_named`).
//! - A broker with old metadata may list fewer topics. A topic that matched is given up only when two lists in a row lack
//!   it (`topic_that_one_list_lacks_is_kept`).

use std::sync::Arc;

use ottla_protocol::pattern::Pattern;
use ottla_sorted::{SortedMap, SortedSet};

use crate::error::{Error, ErrorKind};

/// The entries that a consumer subscribes to.
#[derive(Clone, Debug, Default)]
pub struct SubscribedTopics {
    names: SortedSet<Arc<str>>,
    patterns: SortedMap<Arc<str>, TopicPattern>,
}

/// A regular expression, with the meanings of both protocols.
#[derive(Clone, Debug)]
struct TopicPattern {
    /// The classic meaning: it is found anywhere in the name.
    search: Pattern,
    /// The meaning of the consumer protocol: it matches the whole name.
    whole: Pattern,
}

impl SubscribedTopics {
    /// Parses the entries. Error: a pattern that is not a regular expression, or is too large.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let mut topics = Self::default();
        for entry in entries {
            if entry.starts_with('^') {
                topics.patterns.insert(Arc::from(entry), TopicPattern::new(entry)?);
            } else {
                topics.names.insert(Arc::from(entry));
            }
        }
        Ok(topics)
    }

    /// Returns the entries that are names.
    pub(super) const fn names(&self) -> &SortedSet<Arc<str>> {
        &self.names
    }

    /// Returns true if there is no entry.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.patterns.is_empty()
    }

    /// Returns true if there are patterns.
    pub(super) fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// Returns the patterns as one regular expression for the coordinator.
    pub(super) fn server_pattern(&self) -> Option<String> {
        let patterns: Vec<&str> = self.patterns.keys().map(|pattern| &**pattern).collect();
        match patterns[..] {
            [] => None,
            [only] => Some(only.to_owned()),
            _ => Some(format!("(?:{})", patterns.join(")|(?:"))),
        }
    }

    /// Returns true if a classic member consumes a topic of this name because of a pattern.
    fn matches(&self, name: &str) -> bool {
        self.patterns.values().any(|pattern| pattern.search.is_match(name))
    }

    /// Returns the patterns that the two protocols match differently, each with the first topic concerned.
    pub(super) fn differences<'a>(&self, topics: &'a [Arc<str>]) -> Vec<(&str, &'a Arc<str>)> {
        let differs = |pattern: &TopicPattern, name: &str| {
            pattern.search.is_match(name) != pattern.whole.is_match(name)
        };
        let found = self.patterns.iter().filter_map(|(text, pattern)| {
            Some((&**text, topics.iter().find(|name| differs(pattern, name))?))
        });
        found.collect()
    }
}

impl FromIterator<Arc<str>> for SubscribedTopics {
    /// Collects names only.
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(names: I) -> Self {
        Self { names: names.into_iter().collect(), patterns: SortedMap::new() }
    }
}

impl TopicPattern {
    fn new(text: &str) -> Result<Self, Error> {
        let invalid = |error: String| {
            let shown: String = text.chars().take(100).collect();
            let detail = format!(
                "the subscription `{shown}` begins with ^, and is not a regular expression: {error}; correct it, or remove \
                 the ^ to subscribe to one topic"
            );
            Error::new(ErrorKind::InvalidArgument, detail)
        };
        Ok(Self {
            search: Pattern::anywhere(text).map_err(invalid)?,
            whole: Pattern::whole(text).map_err(invalid)?,
        })
    }
}

/// The topics that the patterns of a classic member match.
#[derive(Debug, Default)]
pub(super) struct MatchedTopics {
    /// Each topic, and whether the last list of all topics lacked it.
    topics: SortedMap<Arc<str>, bool>,
}

impl MatchedTopics {
    /// Adopts a list of all topics of the cluster.
    pub(super) fn update(&mut self, subscription: &SubscribedTopics, all: &[Arc<str>]) {
        self.topics.retain(|name, was_missing| {
            let is_missing = !all.contains(name);
            let stays = subscription.matches(name) && !(is_missing && *was_missing);
            *was_missing = is_missing;
            stays
        });
        let matching = all.iter().filter(|name| subscription.matches(name));
        self.topics.extend(matching.map(|name| (Arc::clone(name), false)));
    }

    /// Returns the matched topics and those that the subscription names.
    pub(super) fn with_names(&self, subscription: &SubscribedTopics) -> SortedSet<Arc<str>> {
        self.topics.keys().chain(&subscription.names).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &[&str]) -> SubscribedTopics {
        SubscribedTopics::parse(entries.iter().copied()).expect("it is valid")
    }

    fn names(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    #[test]
    fn entries_that_begin_with_a_caret_are_patterns() {
        let topics = parse(&["^a.*", "b", "b.*"]);
        assert_eq!(topics.names().iter().map(|name| &**name).collect::<Vec<_>>(), ["b", "b.*"]);
        assert!(topics.has_patterns() && !topics.is_empty());
        assert!(!parse(&["b"]).has_patterns());
        for bad in ["^[", "^(", "^a{2,1}", "^(a{1000}){1000}"] {
            let error = SubscribedTopics::parse([bad]).expect_err(bad);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn classic_member_consumes_matching_and_named_topics() {
        let subscription = parse(&["^a", "^c$", "z"]);
        let mut matched = MatchedTopics::default();
        matched.update(&subscription, &names(&["a", "ab", "ba", "c", "cc", "y"]));
        assert_eq!(matched.with_names(&subscription), names(&["a", "ab", "c", "z"]).into_iter().collect());
    }

    #[test]
    fn topic_that_one_list_lacks_is_kept() {
        let subscription = parse(&["^a"]);
        let mut matched = MatchedTopics::default();
        for (all, expected) in
            [(&["a1", "a2"][..], 2), (&["a1"], 2), (&["a1", "a2"], 2), (&["a1"], 2), (&["a1"], 1), (&[], 1)]
        {
            matched.update(&subscription, &names(all));
            assert_eq!(matched.with_names(&subscription).len(), expected, "{all:?}");
        }
        matched.update(&parse(&["^b"]), &names(&["a1"]));
        assert!(matched.with_names(&parse(&["^b"])).is_empty(), "another subscription does not keep it");
    }

    #[test]
    fn coordinator_gets_one_pattern() {
        assert_eq!(parse(&["a"]).server_pattern(), None);
        assert_eq!(parse(&["^a.*", "b"]).server_pattern().as_deref(), Some("^a.*"));
        assert_eq!(parse(&["^a|b", "^c"]).server_pattern().as_deref(), Some("(?:^a|b)|(?:^c)"));
    }

    #[test]
    fn pattern_that_the_protocols_match_differently_is_named() {
        let all = names(&["a", "ab", "c"]);
        let subscription = parse(&["^a", "^c.*"]);
        assert_eq!(subscription.differences(&all), [("^a", &Arc::from("ab"))]);
        assert!(parse(&["^a.*", "^c$"]).differences(&all).is_empty());
    }
}
