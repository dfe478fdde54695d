//! Gives partitions to broker actors, and takes them back.

use std::time::Duration;

use ottla_protocol::vocabulary::{NodeId, TopicPartition};

use super::{
    super::{
        epochs::EpochQuestion,
        message::{FetchMessage, FetchReport},
        partition::PartitionConsumer,
    },
    FetchManager,
    entry::{Entry, Replica, Return, WaitFor, leader},
};
use crate::{
    contract::{
        metadata::{Metadata, TopicError},
        part::Urgency,
    },
    machine::Instant,
};

/// The minimum duration of reading from a closer replica. With the first metadata after it the consumer returns to the
/// leader, because racks and replicas change.
const REPLICA_LEASE: Duration = Duration::from_secs(300);
/// The number of consecutive leaders that may refuse a partition and name another leader before the manager waits for
/// newer metadata: the brokers of a broken cluster may refer clients to each other endlessly.
const LEADERS_FOLLOWED_AT_ONCE: u32 = 2;

impl FetchManager {
    /// Handles a message from a broker actor.
    pub fn handle_report(&mut self, now: Instant, report: FetchReport) {
        match report {
            FetchReport::Released(partition) => {
                self.take_back(partition, WaitFor::Leader, None);
            }
            FetchReport::NotLeader(partition) => self.handle_not_leader(now, partition),
            FetchReport::UnknownEpoch(partition) => self.handle_unknown_epoch(now, partition),
            FetchReport::ReadFrom(partition, node) => {
                self.take_back(partition, WaitFor::Leader, Some(Replica { node, since: now }));
            }
            FetchReport::OutOfRange(partition) => self.handle_out_of_range(now, partition),
            FetchReport::Diverged(partition, epoch, offset) => {
                let key = partition.handle.key().clone();
                if self.take_back(partition, WaitFor::Leader, None) == Return::Current {
                    self.unplaced.remove(&key);
                    self.handle_truncation(now, &key, Some((epoch, offset)));
                }
            }
        }
    }

    /// A node cannot be reached: partitions that are read there because it is closer are read from their leaders again.
    pub fn handle_unreachable(&mut self, node: NodeId) {
        let mut released = Vec::new();
        for (key, entry) in &mut self.entries {
            if entry.replica.take_if(|replica| replica.node == node).is_some()
                && entry.fetched_at() == Some(node)
            {
                entry.ask_back();
                released.push(key.clone());
            }
        }
        released.iter().for_each(|key| self.release(node, key));
    }

    /// Moves partitions as newer metadata says. Returns true if some have no leader.
    pub(super) fn follow_metadata(
        &mut self,
        now: Instant,
        metadata: &Metadata,
        errors: &[TopicError],
    ) -> bool {
        let mut incomplete = false;
        let (mut resets, mut released) = (Vec::new(), Vec::new());
        for (key, entry) in &mut self.entries {
            if entry.is_stopped() {
                continue;
            }
            entry.replica.take_if(|replica| now - replica.since >= REPLICA_LEASE);
            let Some((target, epoch)) = entry.node(metadata) else {
                incomplete = true;
                if let Some(error) = entry.why_no_leader(now, metadata, errors)
                    && entry.reported.replace(error.kind()) != Some(error.kind())
                {
                    self.shared.report_for(&entry.handle, entry.version(), error);
                }
                continue;
            };
            if entry.handle_known_leader(target, epoch) {
                self.unplaced.insert(key.clone());
            }
            match (entry.handle_metadata(), entry.fetched_at()) {
                (Some(WaitFor::MetadataThenReset), _) => resets.push(key.clone()),
                (Some(_), _) => {
                    self.unplaced.insert(key.clone());
                }
                (None, Some(node)) if node != target => {
                    entry.ask_back();
                    released.push((node, key.clone()));
                }
                (None, _) => entry.reported = None,
            }
        }
        released.iter().for_each(|(node, key)| self.release(*node, key));
        resets.iter().for_each(|key| self.reset(now, key));
        incomplete
    }

    /// Moves a partition to a leader that a broker named (KIP-951).
    pub(super) fn follow_new_leader(&mut self, key: &TopicPartition, metadata: &Metadata) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some((target, _)) = entry.node(metadata) else { return };
        if let Some((_, WaitFor::Metadata | WaitFor::MetadataThenReset)) = entry.waiting() {
            self.refused.insert(key.clone());
        } else if entry.fetched_at().is_some_and(|node| node != target)
            && let Some(node) = entry.ask_back()
        {
            self.release(node, key);
        }
    }

    /// Gives partitions that were refused to their new leaders without newer metadata, if those are known.
    pub(super) fn reconsider_refused(&mut self, metadata: &Metadata) {
        for key in std::mem::take(&mut self.refused) {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            if let Some((partition, WaitFor::Metadata)) = entry.waiting()
                && partition.refusals <= LEADERS_FOLLOWED_AT_ONCE
                && let Some((node, epoch)) = leader(&key, metadata)
                && epoch > partition.leader_epoch
            {
                // Placed in any case.
                let _has_ended = entry.handle_known_leader(node, epoch);
                entry.wait_for(WaitFor::Leader);
                self.unplaced.insert(key);
            }
        }
    }

    /// Gives a partition that is ready to its leader. Returns false if the leader is unknown.
    pub(super) fn place(&mut self, key: &TopicPartition, metadata: &Metadata) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return true };
        if entry.ready().is_none() {
            return true;
        }
        let (Some((node, epoch)), Some((leader, _))) = (entry.node(metadata), leader(key, metadata)) else {
            entry.wait_for(WaitFor::Metadata);
            return false;
        };
        let Some(partition) = entry.ready() else { return true };
        partition.leader_epoch = epoch;
        partition.topic_id = metadata.topics.get(&key.topic).map(|topic| topic.id).unwrap_or_default();
        self.shared.set_topic_id(&partition.handle, partition.topic_id);
        if let Some(position_epoch) = partition.position_epoch
            && partition.checked_epoch < epoch
        {
            let question = EpochQuestion { key: key.clone(), leader_epoch: epoch, position_epoch };
            let id = self.checks.start(leader, question);
            entry.start_check(id);
            self.check_keys.insert(id, key.clone());
            return true;
        }
        partition.checked_epoch = epoch;
        if let Some(partition) = entry.hand_over(node) {
            self.fetched_from.insert(node);
            self.send(node, FetchMessage::Adopt(partition));
        }
        true
    }

    /// Takes a partition back from its broker actor.
    pub(super) fn take_back(
        &mut self,
        partition: Box<PartitionConsumer>,
        wait: WaitFor,
        replica: Option<Replica>,
    ) -> Return {
        let key = partition.handle.key().clone();
        let Some(entry) = self.entries.get_mut(&key) else { return Return::Forget };
        let meaning = entry.take_back(partition, wait);
        if meaning == Return::Forget {
            self.entries.remove(&key);
            return meaning;
        }
        entry.replica = replica;
        // A broker actor whose broker refused the partition asked for newer metadata.
        if matches!(entry.waiting(), Some((_, WaitFor::Leader))) {
            self.unplaced.insert(key);
        }
        meaning
    }

    /// A broker does not lead the partition, or not any more. The same broker is not asked again before the back-off has
    /// passed, unless it leads in a newer epoch.
    fn handle_not_leader(&mut self, now: Instant, partition: Box<PartitionConsumer>) {
        let key = partition.handle.key().clone();
        self.refused.insert(key.clone());
        let node = self.entries.get(&key).and_then(Entry::fetched_at);
        self.take_back(partition, WaitFor::Metadata, None);
        if let Some(node) = node
            && let Some(entry) = self.entries.get_mut(&key)
        {
            let until = now + self.shared.settings.fetch_error_backoff;
            if entry.start_back_off_from(node, until) {
                self.delayed.insert((until, key));
            }
        }
    }

    /// A broker does not know the leader epoch of the request: it is behind, or the epoch is of a topic that was deleted.
    /// Newer metadata has the current epoch; the same broker gets time to learn it.
    fn handle_unknown_epoch(&mut self, now: Instant, partition: Box<PartitionConsumer>) {
        let key = partition.handle.key().clone();
        self.take_back(partition, WaitFor::Metadata, None);
        if self.entries.get(&key).is_some_and(|entry| matches!(entry.waiting(), Some((_, WaitFor::Metadata))))
        {
            self.back_off(key, now + self.shared.settings.fetch_error_backoff);
        }
    }

    /// Notes that metadata is needed; the most urgent of several needs counts.
    pub(super) fn need_metadata(&mut self, urgency: Urgency) {
        self.metadata_need = self.metadata_need.max(Some(urgency));
    }

    /// Keeps a partition from being given to a broker actor until `at`.
    pub(super) fn back_off(&mut self, key: TopicPartition, at: Instant) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.start_back_off(at);
            self.delayed.insert((at, key));
        }
    }

    /// Ends the back-offs that are over.
    pub(super) fn end_backoffs(&mut self, now: Instant) {
        while let Some((at, _)) = self.delayed.first()
            && *at <= now
            && let Some((at, key)) = self.delayed.pop_first()
        {
            if let Some(entry) = self.entries.get_mut(&key)
                && entry.backoff_until == Some(at)
            {
                entry.end_back_off();
                self.unplaced.insert(key);
            }
        }
    }

    /// Asks the broker actor of a node to give a partition back.
    pub(super) fn release(&mut self, node: NodeId, key: &TopicPartition) {
        self.send(node, FetchMessage::Release(key.clone()));
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use ottla_protocol::{error_code::ErrorCode, vocabulary::LeaderEpoch};

    use super::{
        super::scripted::{NOW, Script, metadata},
        *,
    };
    use crate::{
        config::OffsetReset,
        contract::{
            metadata::TopicError,
            part::{Interest, MetadataChanges, Need, Needs, Part, ToNode},
        },
        error::ErrorKind,
        fetch::{FetchCommand, message::FetchReport, position::Offset},
    };

    fn node(id: i32) -> NodeId {
        NodeId::from_wire(id).unwrap()
    }

    #[test]
    fn a_partition_moves_with_its_offset_when_the_leader_changes() {
        let mut script = Script::reading_from(5);
        script.metadata = metadata(2);
        assert!(!script.see_metadata(NOW));
        assert_eq!(script.wants(), ["release 1"], "it has one owner at a time");
        let partition = script.back(17);
        script.manager.handle_report(NOW, FetchReport::Released(partition));
        assert_eq!(script.wants(), ["adopt 2 from 17 version 1"]);
    }

    #[test]
    fn a_partition_that_its_leader_refused_waits_for_newer_metadata() {
        let mut script = Script::reading_from(5);
        let partition = script.back(6);
        script.manager.handle_report(NOW, FetchReport::NotLeader(partition));
        assert!(script.wants().is_empty(), "not back and forth with the same metadata");
        script.metadata = metadata(2);
        script.see_metadata(NOW);
        assert_eq!(script.wants(), ["adopt 2 from 6 version 1"]);
    }

    #[test]
    fn leader_that_refused_is_asked_again_after_the_fetch_back_off() {
        let mut script = Script::reading_from(5);
        let partition = script.back(6);
        script.manager.handle_report(NOW, FetchReport::NotLeader(partition));
        for _ in 0..3 {
            script.see_metadata(NOW);
            assert_eq!(script.wants(), [""; 0], "newer metadata name the same leader");
        }
        let later = script.manager.poll_timeout().expect("it is tried again");
        assert_eq!(later, NOW + script.shared.settings.fetch_error_backoff);
        script.manager.handle_timeout(later, None);
        assert_eq!(script.wants(), ["adopt 1 from 6 version 1"]);

        let partition = script.back(7);
        script.manager.handle_report(NOW, FetchReport::NotLeader(partition));
        script.metadata.topics.get_mut("t").unwrap().partitions[0].leader_epoch = LeaderEpoch::from_wire(4);
        script.see_metadata(NOW);
        assert_eq!(script.wants(), ["adopt 1 from 7 version 1"], "it was elected again");
    }

    #[test]
    fn new_leader_is_asked_although_metadata_named_the_old_one_before() {
        for is_elected_again in [false, true] {
            let mut script = Script::reading_from(5);
            let partition = script.back(6);
            script.manager.handle_report(NOW, FetchReport::NotLeader(partition));
            script.see_metadata(NOW);
            assert_eq!(script.wants(), [""; 0], "the leader that refused");
            let mut newer = metadata(if is_elected_again { 1 } else { 2 });
            newer.topics.get_mut("t").unwrap().partitions[0].leader_epoch = LeaderEpoch::from_wire(4);
            script.metadata = newer;
            script.see_metadata(NOW);
            let expected =
                if is_elected_again { "adopt 1 from 6 version 1" } else { "adopt 2 from 6 version 1" };
            assert_eq!(script.wants(), [expected]);
            let later = NOW + script.shared.settings.fetch_error_backoff;
            script.manager.handle_timeout(later, None);
            assert_eq!(script.wants(), [""; 0], "the back-off has ended before");
        }
    }

    #[test]
    fn unknown_leader_epoch_is_replaced_from_newer_metadata() {
        let mut script = Script::reading_from(5);
        let partition = script.back(6);
        script.manager.handle_report(NOW, FetchReport::UnknownEpoch(partition));
        script.metadata.topics.get_mut("t").unwrap().partitions[0].leader_epoch = None;
        script.see_metadata(NOW);
        assert!(script.wants().is_empty(), "the broker gets time to learn of the epoch");
        let later = script.manager.poll_timeout().expect("it is tried again");
        assert_eq!(later, NOW + script.shared.settings.fetch_error_backoff);
        script.manager.handle_timeout(later, None);
        script.manager.advance(later, &script.metadata);
        match script.manager.poll_need() {
            Some(Need::Tell(ToNode { node: to, message: FetchMessage::Adopt(partition) }))
                if to == node(1) =>
            {
                assert_eq!((partition.offset, partition.leader_epoch), (6, None), "the same leader");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn known_new_leader_is_followed_at_once_but_not_endlessly() {
        let mut script = Script::reading_from(5);
        let key = TopicPartition::new("t", 0);
        for (leader, epoch, refusals, goes) in
            [(2, 4, 1, true), (1, 5, 2, true), (2, 6, 3, false), (2, 6, 3, false)]
        {
            script.metadata = metadata(leader);
            script.metadata.topics.get_mut("t").unwrap().partitions[0].leader_epoch =
                LeaderEpoch::from_wire(epoch);
            let mut partition = script.back(6);
            partition.leader_epoch = LeaderEpoch::from_wire(epoch - 1);
            partition.refusals = refusals;
            script.manager.handle_report(NOW, FetchReport::NotLeader(partition));
            script.manager.handle_new_leader(&key, &script.metadata);
            assert_eq!(!script.wants().is_empty(), goes, "epoch {epoch}");
        }
        script.see_metadata(NOW);
        assert_eq!(script.wants(), ["adopt 2 from 6 version 1"], "metadata is asked for with a back-off");
    }

    #[test]
    fn unknown_topic_is_reported_once_and_read_when_it_appears() {
        let mut script = Script::new(OffsetReset::End);
        script.metadata.topics.clear();
        script.assign(0, Offset::At(0));
        assert_eq!(script.wants(), ["refresh"]);
        let error = TopicError { name: Arc::from("t"), code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
        let known = script.metadata.clone();
        let changes = MetadataChanges { errors: vec![error], recreated: Vec::new() };
        for seconds in [0, 2, 4] {
            let now = NOW + Duration::from_secs(seconds);
            assert!(script.manager.handle_metadata(now, &known, &changes));
            assert_eq!(script.wants(), Vec::<String>::new(), "the cluster's owner asks again by itself");
        }
        assert_eq!(script.errors(), [ErrorKind::UnknownTopic]);
        script.metadata = metadata(1);
        script.see_metadata(NOW);
        assert_eq!(script.wants(), ["adopt 1 from 0 version 1"]);
    }

    #[test]
    fn a_closer_replica_is_read_from_until_something_speaks_against_it() {
        let mut script = Script::reading_from(5);
        let partition = script.back(5);
        script.manager.handle_report(NOW, FetchReport::ReadFrom(partition, node(2)));
        assert_eq!(script.wants(), ["adopt 2 from 5 version 1"]);
        script.see_metadata(NOW);
        assert!(script.wants().is_empty(), "that it does not lead is not a reason to leave");
        let almost = NOW + (REPLICA_LEASE - Duration::from_millis(1));
        script.see_metadata(almost);
        assert!(script.wants().is_empty(), "its time is not over");
        let partition = script.back(9);
        script.manager.handle_report(NOW, FetchReport::OutOfRange(partition));
        assert_eq!(script.wants(), ["adopt 1 from 9 version 1"], "the leader knows better");
    }

    #[test]
    fn preferred_replica_is_checked_again_with_the_leader() {
        let mut script = Script::reading_from(5);
        let partition = script.back(5);
        script.manager.handle_report(NOW, FetchReport::ReadFrom(partition, node(2)));
        assert_eq!(script.wants(), ["adopt 2 from 5 version 1"]);
        script.see_metadata(NOW + REPLICA_LEASE);
        assert_eq!(script.wants(), ["release 2"]);
        let partition = script.back(8);
        script.manager.handle_report(NOW, FetchReport::Released(partition));
        assert_eq!(script.wants(), ["adopt 1 from 8 version 1"]);
    }

    #[test]
    fn partition_bouncing_between_leader_and_replica_backs_off() {
        let mut script = Script::reading_from(5);
        for round in 0..2 {
            let partition = script.back(5);
            script.manager.handle_report(NOW, FetchReport::ReadFrom(partition, node(2)));
            assert_eq!(script.wants(), ["adopt 2 from 5 version 1"]);
            let partition = script.back(5);
            script.manager.handle_report(NOW, FetchReport::OutOfRange(partition));
            let wants: &[&str] = if round == 0 { &["adopt 1 from 5 version 1"] } else { &[] };
            assert_eq!(script.wants(), wants, "round {round}");
        }
        let at = script.manager.poll_timeout().expect("it is looked at again");
        assert_eq!(at, NOW + script.shared.settings.fetch_error_backoff);
        script.manager.handle_timeout(at, None);
        assert_eq!(script.wants(), ["adopt 1 from 5 version 1"]);
    }

    #[test]
    fn a_closer_replica_that_cannot_be_reached_is_left_for_the_leader() {
        let mut script = Script::reading_from(5);
        let partition = script.back(5);
        script.manager.handle_report(NOW, FetchReport::ReadFrom(partition, node(2)));
        assert_eq!(script.wants(), ["adopt 2 from 5 version 1"]);
        script.manager.handle_unreachable(node(1));
        assert!(script.wants().is_empty(), "the leader is not asked for anything");
        script.manager.handle_unreachable(node(2));
        assert_eq!(script.wants(), ["release 2"], "although the metadata still list it");
        let partition = script.back(7);
        script.manager.handle_report(NOW, FetchReport::Released(partition));
        assert_eq!(script.wants(), ["adopt 1 from 7 version 1"]);
        script.manager.handle_unreachable(node(1));
        assert!(script.wants().is_empty(), "a leader is waited for");
    }

    #[test]
    fn named_topic_is_requested_until_metadata_reports_it() {
        let mut script = Script::new(OffsetReset::End);
        script.manager.handle_command(NOW, FetchCommand::Topic(Arc::from("new")));
        assert_eq!(script.wants(), ["refresh"]);
        let is_requested = |script: &Script| {
            let mut interest = Interest::default();
            script.manager.add_topics(&mut interest);
            interest.used.contains("new")
        };
        let mut changes = MetadataChanges { errors: Vec::new(), recreated: Vec::new() };
        assert!(script.manager.handle_metadata(NOW, &metadata(1), &changes), "an older response");
        assert!(is_requested(&script));
        let code = ErrorCode::LEADER_NOT_AVAILABLE;
        changes.errors.push(TopicError { name: Arc::from("new"), code });
        assert!(!script.manager.handle_metadata(NOW, &metadata(1), &changes), "it is being created");
        assert!(!is_requested(&script));
    }
}
