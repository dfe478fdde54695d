//! The topics that the group's members subscribe to, as metadata describes them.

use std::{sync::Arc, time::Duration};

use ottla_protocol::{error_code::ErrorCode, vocabulary::NodeId};
use ottla_sorted::{SortedMap, SortedSet};

use super::assignor::TopicTable;
use crate::{
    contract::{
        metadata::{Metadata, TopicError, TopicMetadata},
        part::MetadataChanges,
    },
    error::Error,
    machine::Instant,
};

/// The topics without metadata, and the state of the leader's metadata requests for them.
#[derive(Debug, Default)]
pub(super) struct GroupTopics {
    /// The topics that brokers reported as unusable, with the last reason.
    unusable: SortedMap<Arc<str>, ErrorCode>,
    /// The subscribed topics that do not exist.
    missing: SortedMap<Arc<str>, Missing>,
    /// The number of metadata responses since the leader asked for unknown topics; `None` if it did not ask.
    responses: Option<u32>,
    /// The number of metadata responses since the subscription that do not mention all of its topics.
    unmentioned: u32,
    /// The number of consecutive metadata responses that contradict the assigned topics without adding partitions.
    doubts: u32,
}

/// A subscribed topic that does not exist, or that was created a moment ago.
#[derive(Debug)]
struct Missing {
    since: Instant,
    is_reported: bool,
}

/// The consequences of a metadata response for the subscribed topics.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TopicNews {
    /// The errors of topics that were not reported before.
    pub(super) errors: Vec<Error>,
    /// True if a missing topic may be about to become known.
    pub(super) is_incomplete: bool,
}

/// The time after which a missing topic is reported. librdkafka reports it with the first metadata, whatever
/// `topic.metadata.propagation.max.ms` is, but its members take longer until they have metadata.
const REPORTED_AFTER: Duration = Duration::from_secs(1);
/// The number of metadata responses after which a topic that is neither described nor reported as unusable counts as
/// missing. The first response may have been sent before the leader requested the topic.
const ENOUGH_RESPONSES: u32 = 2;
/// The number of consecutive metadata responses after which a smaller or missing topic is believed: a broker may be
/// behind.
const ENOUGH_DOUBTS: u32 = 2;

/// A change of the assigned topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopicChange {
    /// The topics did not change.
    None,
    /// The topics may have changed; newer metadata has to confirm it.
    Doubtful,
    /// There are unassigned partitions, or assigned partitions no longer exist.
    Certain,
}

impl GroupTopics {
    /// Handles a metadata response. A missing topic in `subscribed` may have been created a moment ago: brokers learn of it
    /// one after the other, within the time `propagation`. It is reported after a short time.
    pub(super) fn handle_metadata(
        &mut self,
        now: Instant,
        metadata: &Metadata,
        changes: &MetadataChanges,
        subscribed: &SortedSet<Arc<str>>,
        propagation: Duration,
    ) -> TopicNews {
        if let Some(responses) = &mut self.responses {
            *responses += 1;
        }
        self.unusable.retain(|name, _| usable(metadata, name).is_none());
        let unusable = &self.unusable;
        self.missing.retain(|name, _| subscribed.contains(name) && unusable.contains_key(name));
        let mut news = TopicNews::default();
        for TopicError { name, code } in &changes.errors {
            let is_new = self.unusable.insert(Arc::clone(name), *code) != Some(*code);
            if !subscribed.contains(name) {
                continue;
            }
            let must_report = match *code {
                // A topic that was just created has no leader for a moment.
                ErrorCode::LEADER_NOT_AVAILABLE => false,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                    let new = Missing { since: now, is_reported: false };
                    let missing = self.missing.entry(Arc::clone(name)).or_insert(new);
                    let missing_for = now.saturating_since(missing.since);
                    news.is_incomplete |= missing_for < propagation;
                    let must_report = missing_for >= propagation.min(REPORTED_AFTER) && !missing.is_reported;
                    missing.is_reported |= must_report;
                    must_report
                }
                _ => {
                    self.missing.remove(name);
                    is_new
                }
            };
            if must_report {
                let detail = "the consumer subscribes to a topic that it can't use; it gets the topic's partitions as \
                              soon as it can";
                news.errors.push(Error::broker(*code, Some(detail)).with_topic(&**name));
            }
        }
        news
    }

    /// Notes that the consumer subscribes to other topics.
    pub(super) const fn begin_subscription(&mut self) {
        self.unmentioned = 0;
    }

    /// Returns true if another metadata response is needed: this one may have been requested before the subscription. A
    /// topic that no response mentions is hidden.
    pub(super) fn miss(&mut self, metadata: &Metadata, names: &SortedSet<Arc<str>>) -> bool {
        let is_known = |name: &Arc<str>| usable(metadata, name).is_some() || self.unusable.contains_key(name);
        if names.iter().all(is_known) {
            return false;
        }
        self.unmentioned += 1;
        self.unmentioned <= ENOUGH_RESPONSES
    }

    /// Returns the topics as the leader assigns them, or `None` while some of them are unknown. A topic that does not
    /// exist has no partitions. Sets `ask` if another metadata request is needed.
    pub(super) fn tables(
        &mut self,
        metadata: &Metadata,
        names: &SortedSet<Arc<str>>,
        ask: &mut bool,
    ) -> Option<SortedMap<Arc<str>, TopicTable>> {
        let is_known = |name: &Arc<str>| usable(metadata, name).is_some() || self.unusable.contains_key(name);
        let waited = self.responses.is_some_and(|responses| responses >= ENOUGH_RESPONSES);
        if !waited && !names.iter().all(is_known) {
            // Another request follows the first response, which may belong to an earlier request.
            *ask = self.responses.is_none_or(|responses| responses == 1);
            self.responses.get_or_insert(0);
            return None;
        }
        self.responses = None;
        self.doubts = 0;
        Some(names.iter().map(|name| (Arc::clone(name), table(metadata, name))).collect())
    }

    /// Compares the assigned topics with newer metadata.
    pub(super) fn compare(
        &mut self,
        metadata: &Metadata,
        assigned: &SortedMap<Arc<str>, TopicTable>,
    ) -> TopicChange {
        let mut change = TopicChange::None;
        for (name, known) in assigned {
            let current = table(metadata, name);
            if current.partitions() > known.partitions() {
                return TopicChange::Certain;
            }
            if current != *known {
                change = TopicChange::Doubtful;
            }
        }
        self.doubts = if change == TopicChange::None { 0 } else { self.doubts + 1 };
        if self.doubts >= ENOUGH_DOUBTS { TopicChange::Certain } else { change }
    }
}

/// Returns true if one of these topics exists.
pub(super) fn any_exists(metadata: &Metadata, names: &SortedSet<Arc<str>>) -> bool {
    names.iter().any(|name| usable(metadata, name).is_some())
}

/// Returns a topic that exists.
fn usable<'a>(metadata: &'a Metadata, name: &Arc<str>) -> Option<&'a TopicMetadata> {
    metadata.topics.get(name).filter(|topic| !topic.gone && !topic.partitions.is_empty())
}

/// Returns a topic's partitions with the racks of their replicas; none if the topic does not exist.
fn table(metadata: &Metadata, name: &Arc<str>) -> TopicTable {
    let Some(topic) = usable(metadata, name) else { return TopicTable::default() };
    let rack = |node: &NodeId| metadata.nodes.get(node)?.rack.as_deref().map(Arc::from);
    let racks = topic.partitions.iter().map(|partition| partition.replicas.iter().filter_map(rack).collect());
    TopicTable { racks: racks.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::metadata::{Node, PartitionMetadata};

    fn metadata(topics: &[(&str, usize)]) -> Metadata {
        let partition = PartitionMetadata {
            replicas: [1, 2].into_iter().filter_map(NodeId::from_wire).collect(),
            ..PartitionMetadata::default()
        };
        let topic =
            |count| TopicMetadata { partitions: vec![partition.clone(); count], ..Default::default() };
        let node = |rack: Option<&str>| Node { host: "h".into(), port: 1, rack: rack.map(Into::into) };
        Metadata {
            nodes: [(1, node(Some("r"))), (2, node(None))]
                .into_iter()
                .filter_map(|(id, node)| Some((NodeId::from_wire(id)?, node)))
                .collect(),
            topics: topics.iter().map(|(name, count)| (Arc::from(*name), topic(*count))).collect(),
            ..Metadata::default()
        }
    }

    fn names(names: &[&str]) -> SortedSet<Arc<str>> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    /// Handles a response with the topics of `metadata` and these errors, without a wait for missing topics.
    fn handle(
        topics: &mut GroupTopics,
        metadata: &Metadata,
        errors: &MetadataChanges,
        subscribed: &SortedSet<Arc<str>>,
    ) -> Vec<Error> {
        topics.handle_metadata(NOW, metadata, errors, subscribed, Duration::ZERO).errors
    }

    fn errors(name: &str, code: ErrorCode) -> MetadataChanges {
        MetadataChanges { errors: vec![TopicError { name: name.into(), code }], ..Default::default() }
    }

    #[test]
    fn leader_waits_until_each_topic_is_known_or_refused() {
        let mut topics = GroupTopics::default();
        let (known, requested) = (metadata(&[("a", 2)]), names(&["a", "b"]));
        let mut ask = false;
        assert_eq!(topics.tables(&known, &requested, &mut ask), None);
        assert!(ask);
        let gone = errors("b", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        assert_eq!(handle(&mut topics, &known, &gone, &requested).len(), 1);
        let tables = topics.tables(&known, &requested, &mut false).expect("both are known");
        let counts: Vec<usize> = tables.values().map(TopicTable::partitions).collect();
        assert_eq!(counts, [2, 0]);
        assert_eq!(tables["a"].racks[0], [Arc::from("r")].into(), "one of the replicas has a rack");
        assert_eq!(handle(&mut topics, &known, &gone, &requested), [], "each change is reported once");
    }

    #[test]
    fn topic_that_is_missing_or_not_authorised_is_reported_once_per_change() {
        let (mut topics, none) = (GroupTopics::default(), metadata(&[]));
        let requested = names(&["a"]);
        for code in [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ErrorCode::TOPIC_AUTHORIZATION_FAILED] {
            let reported = handle(&mut topics, &none, &errors("a", code), &requested);
            assert_eq!(reported.len(), 1, "{code}");
            assert_eq!(reported[0].kind(), crate::error::ErrorKind::Broker(code));
            assert!(reported[0].to_string().starts_with("a: "), "{}", reported[0]);
            assert_eq!(handle(&mut topics, &none, &errors("a", code), &requested), []);
        }
        // It exists for a while, and is reported again.
        let nothing = MetadataChanges::default();
        assert_eq!(handle(&mut topics, &metadata(&[("a", 1)]), &nothing, &requested), []);
        let gone = errors("a", ErrorCode::TOPIC_AUTHORIZATION_FAILED);
        assert_eq!(handle(&mut topics, &none, &gone, &requested).len(), 1);
        let of_others = errors("b", ErrorCode::TOPIC_AUTHORIZATION_FAILED);
        assert_eq!(handle(&mut topics, &none, &of_others, &requested), [], "only another member wants it");
    }

    #[test]
    fn new_topic_that_brokers_do_not_know_yet_is_no_error() {
        let (mut topics, none, requested) = (GroupTopics::default(), metadata(&[]), names(&["a"]));
        let unknown = errors("a", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        let propagation = Duration::from_secs(30);
        let mut after = |millis, metadata: &Metadata, changes: &MetadataChanges| {
            let now = NOW + Duration::from_millis(millis);
            let news = topics.handle_metadata(now, metadata, changes, &requested, propagation);
            (news.errors.len(), news.is_incomplete)
        };
        assert_eq!(after(0, &none, &unknown), (0, true), "it is requested again soon");
        assert_eq!(after(900, &none, &unknown), (0, true));
        assert_eq!(after(950, &metadata(&[("a", 1)]), &MetadataChanges::default()), (0, false));
        assert_eq!(after(2_000, &none, &unknown), (0, true), "it was there in between");
        assert_eq!(after(3_100, &none, &unknown), (1, true));
        assert_eq!(after(20_000, &none, &unknown), (0, true), "it is reported once");
        assert_eq!(
            after(32_000, &none, &unknown),
            (0, false),
            "it is not requested at short intervals for ever"
        );
    }

    #[test]
    fn topic_that_no_response_mentions_does_not_stop_the_leader() {
        let mut topics = GroupTopics::default();
        let (known, requested) = (metadata(&[]), names(&["hidden"]));
        for expected in [true, true] {
            let mut ask = false;
            assert_eq!(topics.tables(&known, &requested, &mut ask), None);
            assert_eq!(ask, expected);
            handle(&mut topics, &known, &MetadataChanges::default(), &requested);
        }
        assert!(topics.tables(&known, &requested, &mut false).is_some());
    }

    #[test]
    fn new_partitions_count_at_once_and_missing_ones_when_confirmed() {
        let mut topics = GroupTopics::default();
        let assigned =
            topics.tables(&metadata(&[("a", 2)]), &names(&["a"]), &mut false).expect("it is known");
        assert_eq!(topics.compare(&metadata(&[("a", 2)]), &assigned), TopicChange::None);
        assert_eq!(topics.compare(&metadata(&[("a", 3)]), &assigned), TopicChange::Certain);
        assert_eq!(topics.compare(&metadata(&[("a", 1)]), &assigned), TopicChange::Doubtful);
        assert_eq!(topics.compare(&metadata(&[("a", 2)]), &assigned), TopicChange::None);
        assert_eq!(topics.compare(&metadata(&[]), &assigned), TopicChange::Doubtful);
        assert_eq!(topics.compare(&metadata(&[]), &assigned), TopicChange::Certain);
    }

    #[test]
    fn replica_in_another_rack_is_a_change_without_a_new_leader() {
        let mut topics = GroupTopics::default();
        let before = metadata(&[("a", 2)]);
        let assigned = topics.tables(&before, &names(&["a"]), &mut false).expect("it is known");
        let mut moved = before.clone();
        moved.topics.get_mut("a").unwrap().partitions[1].replicas.remove(0);
        assert_eq!(topics.compare(&moved, &assigned), TopicChange::Doubtful);
        assert_eq!(topics.compare(&moved, &assigned), TopicChange::Certain);
        let mut renamed = before;
        renamed.nodes.values_mut().for_each(|node| node.rack = Some("s".into()));
        assert_eq!(topics.compare(&renamed, &assigned), TopicChange::Certain);
    }
}
