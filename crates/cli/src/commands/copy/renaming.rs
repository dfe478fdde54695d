//! The names that copied topics get.

use ottla_sorted::{SortedMap, SortedSet};
use regex_automata::meta::Regex;
use regex_automata::util::interpolate;

use crate::failure::{Failure, Outcome};

/// How the names of topics change.
#[derive(Clone, Debug)]
pub enum Renaming {
    /// They stay.
    Same,
    /// A name in which `{topic}` stands for that of the source.
    Pattern(String),
    /// Regular expressions and what replaces the part that matches; the first one that matches counts.
    Rules(Vec<(Regex, String)>),
}

impl Renaming {
    /// Reads `--to-topic` or the values of `--rename`.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] if a rule has no `=` or is not a regular expression.
    pub fn parse(to_topic: Option<&str>, rules: &[String]) -> Outcome<Renaming> {
        if let Some(pattern) = to_topic {
            return Ok(Renaming::Pattern(pattern.to_owned()));
        }
        if rules.is_empty() {
            return Ok(Renaming::Same);
        }
        let rule = |rule: &String| {
            let wrong = |why: &str| {
                Failure::Usage(format!(
                    "--rename {rule}: {why}; write PATTERN=REPLACEMENT, such as '^(.*)$=$1.copy'"
                ))
            };
            let (pattern, replacement) = rule.split_once('=').ok_or_else(|| wrong("\"=\" is missing"))?;
            let regex = Regex::new(pattern).map_err(|error| wrong(&error.to_string()))?;
            Ok((regex, replacement.to_owned()))
        };
        Ok(Renaming::Rules(rules.iter().map(rule).collect::<Outcome<_>>()?))
    }

    fn rename(&self, topic: &str) -> String {
        match self {
            Renaming::Same => topic.to_owned(),
            Renaming::Pattern(pattern) => pattern.replace("{topic}", topic),
            Renaming::Rules(rules) => {
                let renamed =
                    rules.iter().find_map(|(regex, replacement)| replaced(regex, replacement, topic));
                renamed.unwrap_or_else(|| topic.to_owned())
            }
        }
    }

    /// Returns the target of each topic. In one cluster, topics that are targets themselves are not copied.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] if a topic would be copied to itself, or two to one: their progress could not be told apart.
    pub fn targets(&self, topics: &[String], is_same_cluster: bool) -> Outcome<SortedMap<String, String>> {
        let mut targets: SortedMap<String, String> =
            topics.iter().map(|topic| (topic.clone(), self.rename(topic))).collect();
        if is_same_cluster && topics.len() > 1 {
            let names: SortedSet<String> =
                targets.iter().filter(|(from, to)| from != to).map(|(_, to)| to.clone()).collect();
            targets.retain(|topic, _| !names.contains(topic));
        }
        let mut taken: SortedMap<&str, &str> = SortedMap::new();
        for (topic, target) in &targets {
            if is_same_cluster && topic == target {
                return Err(Failure::Usage(format!(
                    "topic \"{topic}\" would be copied to itself: add --to-topic or --rename, or name another cluster with --to"
                )));
            }
            if let Some(other) = taken.insert(target, topic) {
                return Err(Failure::Usage(format!(
                    "topics \"{other}\" and \"{topic}\" would both be copied to \"{target}\": use {{topic}} in --to-topic"
                )));
            }
        }
        Ok(targets)
    }
}

fn replaced(regex: &Regex, replacement: &str, topic: &str) -> Option<String> {
    let mut captures = regex.create_captures();
    regex.captures(topic, &mut captures);
    let found = captures.get_match()?;
    let mut name = topic[..found.start()].to_owned();
    let append = |group: usize, name: &mut String| {
        if let Some(span) = captures.get_group(group) {
            name.push_str(&topic[span.range()]);
        }
    };
    let pattern = found.pattern();
    interpolate::string(replacement, append, |name| captures.group_info().to_index(pattern, name), &mut name);
    name.push_str(&topic[found.end()..]);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(renaming: &Renaming, topics: &[&str], is_same: bool) -> Outcome<Vec<String>> {
        let topics: Vec<String> = topics.iter().map(|topic| (*topic).to_owned()).collect();
        Ok(renaming.targets(&topics, is_same)?.into_iter().map(|(from, to)| format!("{from}>{to}")).collect())
    }

    #[test]
    fn names_follow_the_pattern_or_the_first_rule() {
        let pattern = Renaming::parse(Some("{topic}.copy"), &[]).unwrap();
        assert_eq!(targets(&pattern, &["a", "b"], true), Ok(vec!["a>a.copy".into(), "b>b.copy".into()]));
        let rules = Renaming::parse(None, &["^prod-(.*)$=test-$1".into(), "x=y".into()]).unwrap();
        assert_eq!(
            targets(&rules, &["prod-a", "axb", "other"], false),
            Ok(vec!["axb>ayb".into(), "other>other".into(), "prod-a>test-a".into()])
        );
    }

    #[test]
    fn ambiguous_and_circular_targets_are_refused() {
        let same = Renaming::parse(None, &[]).unwrap();
        assert!(targets(&same, &["a"], false).is_ok());
        assert!(matches!(targets(&same, &["a"], true), Err(Failure::Usage(_))));
        let one = Renaming::parse(Some("all"), &[]).unwrap();
        assert!(matches!(targets(&one, &["a", "b"], false), Err(Failure::Usage(_))));
        let copy = Renaming::parse(Some("{topic}.copy"), &[]).unwrap();
        assert_eq!(targets(&copy, &["a", "a.copy"], true), Ok(vec!["a>a.copy".into()]), "a copy of a copy");
        assert!(
            Renaming::parse(None, &["x".into()]).is_err() && Renaming::parse(None, &["(=x".into()]).is_err()
        );
    }
}
