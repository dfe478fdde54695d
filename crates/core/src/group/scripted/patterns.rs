//! Subscriptions to patterns, and to topics that do not exist.

use super::*;
use crate::group::GroupProtocol;

impl Script {
    /// A consumer without metadata that subscribes to these entries.
    pub(super) fn subscribed(protocol: GroupProtocol, entries: &[&str]) -> Self {
        let settings = ConsumerSettings { group_id: Some("g".into()), ..ConsumerSettings::default() };
        let shared = Arc::new(ConsumerShared::new(settings));
        let of_group = GroupSettings {
            assignors: vec![Assignor::Range.into()],
            group_protocol: protocol,
            ..GroupSettings::with_defaults("g")
        };
        let mut script = Self {
            now: START,
            group: Group::new(Arc::clone(&shared), of_group, Rng::from_seed(1)),
            shared,
            metadata: Metadata::default(),
            requests: Vec::new(),
            fetch: Vec::new(),
            commits: Vec::new(),
            metadata_requests: 0,
            committer: Committer::Nobody,
            application_commits: false,
        };
        script.group.handle_command(START, subscribe(entries));
        script.settle();
        script
    }

    fn list(&mut self, names: &[&str]) {
        let names: Vec<Arc<str>> = names.iter().map(|name| Arc::from(*name)).collect();
        self.group.handle_all_topics(self.now, &names);
        self.settle();
    }

    fn needs_all_topics(&self) -> bool {
        self.group.needs_all_topics()
    }

    fn joining_topics(&self) -> Vec<String> {
        self.joining().topics.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn classic_member_joins_with_the_topics_that_its_pattern_matches() {
    let mut script = Script::subscribed(GroupProtocol::Classic, &["^a", "z"]);
    assert!(script.sent().is_empty(), "the topics are not known");
    assert!(script.needs_all_topics() && script.metadata_requests == 1);
    assert!(script.handle_metadata(&[]), "a response without all topics is not enough");
    script.list(&["a1", "a2", "b"]);
    assert_eq!(script.joining_topics(), ["a1", "a2", "z"]);
    assert!(script.needs_all_topics(), "topics may be created later");
}

#[test]
fn classic_member_joins_again_when_matching_topics_come_and_go() {
    let mut script = Script::subscribed(GroupProtocol::Classic, &["^a"]);
    script.list(&["a1", "b"]);
    script.join("other", &[]);
    script.sync(&[("a1", 0)]);
    script.list(&["a1", "b", "c"]);
    assert!(script.sent().is_empty(), "no matching topic was added");
    script.take_fetch();
    script.list(&["a1", "a2"]);
    assert_eq!(script.take_fetch(), ["stop [a1 [0]]"]);
    assert_eq!(script.joining_topics(), ["a1", "a2"]);
    script.join("other", &[]);
    script.sync(&[("a1", 0), ("a2", 0)]);
    script.list(&["a1"]);
    assert!(script.sent().is_empty(), "the broker may be behind");
    script.list(&["a1"]);
    assert_eq!(script.joining_topics(), ["a1"]);
}

#[test]
fn consumer_whose_pattern_matches_nothing_joins_when_a_topic_is_created() {
    let mut script = Script::subscribed(GroupProtocol::Classic, &["^a"]);
    script.list(&["b"]);
    assert!(script.sent().is_empty());
    script.list(&["b", "a"]);
    assert_eq!(script.joining_topics(), ["a"]);
}

#[test]
fn pattern_that_the_coordinator_matches_differently_is_reported_once() {
    let mut script = Script::subscribed(GroupProtocol::Consumer, &["^a", "^b.*"]);
    assert_eq!(script.sent(), ["ConsumerGroupHeartbeat"], "it does not wait for the topics");
    assert!(script.needs_all_topics());
    for _ in 0..3 {
        script.list(&["a", "ab", "bc"]);
    }
    let events = script.take_fetch();
    let warnings: Vec<_> = events.iter().filter(|event| event.starts_with("event")).collect();
    assert!(
        warnings.len() == 1 && warnings[0].contains("`^a`") && warnings[0].contains("`ab`"),
        "{events:?}"
    );
    assert!(!script.needs_all_topics(), "the coordinator finds new topics");
    script.group.handle_command(script.now, subscribe(&["a"]));
    assert!(!script.needs_all_topics());
}

#[test]
fn unsubscribed_consumer_needs_no_list_of_topics() {
    let mut script = Script::subscribed(GroupProtocol::Classic, &["^a"]);
    let (done, _waiting) = completion();
    script.group.handle_command(script.now, GroupCommand::Unsubscribe(done));
    script.settle();
    assert!(!script.needs_all_topics());
    script.list(&["a"]);
    assert!(script.sent().is_empty());
}

#[test]
fn consumer_without_a_topic_that_exists_does_not_join() {
    let mut script = Script::subscribed(GroupProtocol::Classic, &["a", "b"]);
    assert!(script.sent().is_empty() && script.metadata_requests == 1);
    assert_eq!(interest(&script.group), [Arc::from("a"), Arc::from("b")].into(), "metadata describe them");
    for is_requested_again in [true, true, false] {
        let incomplete = script.handle_metadata(&[("c", 1)]);
        assert_eq!(incomplete, is_requested_again, "the response may belong to an earlier request");
        assert!(script.sent().is_empty());
    }
    script.handle_metadata(&[("b", 1), ("c", 1)]);
    assert_eq!(script.joining_topics(), ["a", "b"]);
    script.join("other", &[]);
    script.sync(&[("b", 0)]);
    script.handle_metadata(&[("c", 1)]);
    assert!(script.sent().is_empty(), "a member stays one");

    let mut script = Script::subscribed(GroupProtocol::Classic, &["^a", "z"]);
    script.list(&["b"]);
    assert!(script.sent().is_empty());
    script.list(&["b", "z"]);
    assert_eq!(script.joining_topics(), ["z"]);
}

#[test]
fn consumer_that_waits_for_its_topics_can_be_unsubscribed() {
    let mut script = Script::subscribed(GroupProtocol::Classic, &["a"]);
    let (done, waiting) = completion();
    script.group.handle_command(script.now, GroupCommand::Unsubscribe(done));
    script.settle();
    assert!(waiting.try_take().is_some());
    script.handle_metadata(&[("a", 1)]);
    assert!(script.sent().is_empty());
}
