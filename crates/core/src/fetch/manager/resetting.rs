//! Offsets that do not exist: out of range, or of a topic that was recreated.

use std::sync::Arc;

use ottla_protocol::vocabulary::TopicPartition;

use super::{
    super::{deliver::ConsumerEvent, partition::PartitionConsumer, queue::Item},
    FetchManager,
    entry::{Return, WaitFor},
};
use crate::{
    config::{OffsetReset, TopicRecreatePolicy},
    contract::part::Urgency,
    error::{Error, ErrorKind},
    event::RecreatedTopic,
    machine::Instant,
};

impl FetchManager {
    /// Handles a topic that was deleted and recreated: no offset of the old one may be used, and none of its records is
    /// delivered any more.
    pub(super) fn handle_recreated(&mut self, now: Instant, topic: &RecreatedTopic) {
        let keys: Vec<_> = self.entries.keys().filter(|key| key.topic == topic.name).cloned().collect();
        for key in keys {
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| !entry.is_stopped()) else {
                continue;
            };
            // If the application meanwhile chose another position, its command is in flight and counts.
            let Some(version) = self.shared.begin_topic(&entry.handle, entry.version, topic.new_id) else {
                continue;
            };
            entry.version = version;
            entry.replica = None;
            entry.reported = None;
            entry.end_back_off();
            let detached = entry.detach();
            self.unplaced.remove(&key);
            self.undo(&key, &detached);
            let settings = &self.shared.settings;
            match (settings.topic_recreate, self.shared.reset_position(now, &key.topic)) {
                (TopicRecreatePolicy::Reset, Some(position)) => self.resolve(now, &key, position),
                (TopicRecreatePolicy::Reset, None) => {
                    let detail = "the topic was deleted and recreated; its offsets mean nothing any more";
                    self.give_up(&key, Error::new(ErrorKind::OffsetReset, detail));
                }
                (TopicRecreatePolicy::Error, _) => {
                    let detail = "its offsets mean nothing any more; assign or seek to go on, or set \
                                  topic.recreate.policy=reset and auto.offset.reset";
                    self.give_up(&key, Error::new(ErrorKind::TopicRecreated, detail));
                }
            }
        }
    }

    /// Handles a broker's response that a partition has no such offset.
    pub(super) fn handle_out_of_range(&mut self, now: Instant, partition: Box<PartitionConsumer>) {
        let key = partition.handle.key().clone();
        // A follower may not have the offset yet, or not any more: the leader decides.
        let at_follower = self.entries.get(&key).is_some_and(|entry| entry.replica.is_some());
        let may_be_another_topic = !partition.by_id && !partition.topic_id.is_zero();
        let (was_fetched, offset) = (partition.was_fetched, partition.offset);
        if self.take_back(partition, WaitFor::Leader, None) != Return::Current {
            return;
        }
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if at_follower {
            // The leader and the follower may send the partition back and forth.
            if entry.missing_at_replica.replace(offset) == Some(offset) {
                self.back_off(key, now + self.shared.settings.fetch_error_backoff);
            }
            return;
        }
        self.unplaced.remove(&key);
        // The broker contradicts itself: it returned this offset when the position was reset.
        let wait = entry.was_reset && !was_fetched;
        if may_be_another_topic {
            entry.wait_for(WaitFor::MetadataThenReset);
            self.need_metadata(if wait { Urgency::Soon } else { Urgency::Now });
        } else {
            self.reset(now, &key);
        }
        if wait {
            self.back_off(key, now + self.shared.settings.fetch_error_backoff);
        }
    }

    /// Goes on from the position of `auto.offset.reset`.
    pub(super) fn reset(&mut self, now: Instant, key: &TopicPartition) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some((partition, _)) = entry.waiting() else { return };
        let offset = partition.offset;
        entry.was_reset = true;
        let to = self.shared.auto_offset_reset(&key.topic);
        if to != OffsetReset::Error {
            let TopicPartition { topic, partition } = key.clone();
            let event = ConsumerEvent::OffsetReset { topic, partition, offset, to };
            let (handle, version) = (Arc::clone(&entry.handle), entry.version());
            self.shared.queue.push([Item::Note { handle, version, event }]);
        }
        match self.shared.reset_position(now, &key.topic) {
            Some(position) => self.resolve(now, key, position),
            None => {
                let error = Error::new(ErrorKind::OffsetReset, format!("offset {offset} is out of range"));
                self.give_up(key, error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ottla_protocol::uuid::Uuid;

    use super::{
        super::{
            super::{
                message::FetchReport, partition::StoredOffset, position::Offset, settings::ConsumerSettings,
                shared::ConsumerShared,
            },
            scripted::{NOW, Script},
        },
        *,
    };
    use crate::{contract::part::Part, offsets::committed::GroupOffset, wall_clock::WallClock};

    #[test]
    fn a_broker_that_contradicts_itself_about_offsets_is_not_asked_in_a_loop() {
        let mut script = Script::new(OffsetReset::Error);
        script.assign(0, Offset::At(5));
        script.wants();
        let entry = script.manager.entries.values_mut().next().unwrap();
        entry.was_reset = true;
        let mut partition = script.back(5);
        partition.topic_id = Uuid([1; 16]);
        script.manager.handle_report(NOW, FetchReport::OutOfRange(partition));
        assert_eq!(script.wants(), ["refresh soon"], "it may be another topic by now");
        assert!(script.manager.poll_timeout().is_some_and(|at| at > NOW));
    }

    #[test]
    fn a_duration_is_counted_back_from_the_time_of_the_reset() {
        let hour = Duration::from_secs(3600);
        let unix_nanos = |now: Instant| now.as_nanos() + 1_700_000_000_000_000_000;
        let shared = ConsumerShared::new(ConsumerSettings {
            auto_offset_reset: OffsetReset::of("by_duration:PT1H"),
            wall_clock: WallClock::new(unix_nanos),
            ..ConsumerSettings::default()
        });
        for (later, expected) in [(0, 1_699_996_401_000), (60, 1_699_996_461_000)] {
            let now = NOW + Duration::from_secs(later);
            assert_eq!(shared.reset_position(now, "t"), Some(Offset::Timestamp(expected)));
        }
        let mut script = Script::new(OffsetReset::Since(hour));
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(5);
        script.manager.handle_report(NOW, FetchReport::OutOfRange(partition));
        assert_eq!(script.wants(), ["ListOffsets Node(1)"]);
        assert_eq!(script.shared.reset_position(NOW, "t"), Some(Offset::Timestamp(0)), "before 1970");
    }

    #[test]
    fn offset_out_of_range_is_reset_or_reported() {
        let mut script = Script::new(OffsetReset::Beginning);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(5);
        script.manager.handle_report(NOW, FetchReport::OutOfRange(partition));
        assert_eq!(script.wants(), ["ListOffsets Node(1)"]);

        let mut script = Script::new(OffsetReset::Error);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(5);
        script.manager.handle_report(NOW, FetchReport::OutOfRange(partition));
        assert!(script.wants().is_empty());
        assert_eq!(script.errors(), [ErrorKind::OffsetReset]);
    }

    #[test]
    fn recreated_topic_is_not_read_from_the_old_offset() {
        let recreated = RecreatedTopic { name: Arc::from("t"), old_id: Uuid([1; 16]), new_id: Uuid([2; 16]) };
        let (error, reset) = (TopicRecreatePolicy::Error, TopicRecreatePolicy::Reset);
        for (policy, to, wants, reported) in [
            (error, OffsetReset::Beginning, vec!["release 1"], vec![ErrorKind::TopicRecreated]),
            (reset, OffsetReset::Beginning, vec!["release 1", "ListOffsets Node(1)"], vec![]),
            (reset, OffsetReset::Error, vec!["release 1"], vec![ErrorKind::OffsetReset]),
        ] {
            let mut script = Script::new(to);
            let settings = ConsumerSettings { topic_recreate: policy, ..script.shared.settings.clone() };
            script.shared = Arc::new(ConsumerShared::new(settings));
            script.manager = FetchManager::new(Arc::clone(&script.shared));
            script.assign(0, Offset::At(5));
            script.wants();
            let stale = script.back(9);
            script.manager.handle_recreated(NOW, &recreated);
            assert_eq!(script.wants(), wants);
            script.manager.handle_report(NOW, FetchReport::Released(stale));
            assert_eq!(script.wants(), Vec::<String>::new(), "the old offset is forgotten");
            assert_eq!(script.errors(), reported);
            let seek = script.shared.seek("t", 0, Offset::At(0), None).unwrap();
            script.manager.handle_command(NOW, seek);
            assert_eq!(script.wants(), ["adopt 1 from 0 version 3"]);
        }
    }

    #[test]
    fn offsets_of_the_old_topic_are_not_committed_for_the_new_one() {
        let mut script = Script::new(OffsetReset::Beginning);
        script.assign(0, Offset::At(5));
        script.wants();
        let handle = script.shared.partition("t", 0).unwrap();
        let stored = StoredOffset { offset: 90, leader_epoch: None, metadata: String::new() };
        script.shared.store_offset("t", 0, stored, None).unwrap();
        handle.set_committed(80, None);
        assert_eq!(script.shared.all_offsets_to_commit().len(), 1);
        let recreated = RecreatedTopic { name: Arc::from("t"), old_id: Uuid([1; 16]), new_id: Uuid([2; 16]) };
        script.manager.handle_recreated(NOW, &recreated);
        assert_eq!(script.shared.all_offsets_to_commit(), []);
        assert_eq!(handle.committed(), None);
    }

    #[test]
    fn offset_to_commit_has_the_id_of_the_topic_that_is_consumed() {
        let (old_id, new_id) = (Uuid([1; 16]), Uuid([2; 16]));
        let mut script = Script::new(OffsetReset::Beginning);
        let set_id = |script: &mut Script, id| {
            script.metadata.topics.values_mut().for_each(|topic| topic.id = id);
        };
        set_id(&mut script, old_id);
        script.assign(0, Offset::At(5));
        script.wants();
        let stored = |offset| StoredOffset { offset, leader_epoch: None, metadata: String::new() };
        assert_eq!(script.shared.store_offset("t", 0, stored(90), None), Ok(Some(old_id)));
        let ids = |script: &Script| -> Vec<_> {
            script
                .shared
                .all_offsets_to_commit()
                .iter()
                .map(|offset| (offset.offset, offset.topic_id))
                .collect()
        };
        assert_eq!(ids(&script), [(90, Some(old_id))]);
        let mut by_application = [GroupOffset::new("t", 0, 7), GroupOffset::new("u", 0, 7)];
        script.shared.add_topic_ids(&mut by_application);
        assert_eq!(by_application.map(|offset| offset.topic_id), [Some(old_id), None]);
        script.manager.handle_recreated(NOW, &RecreatedTopic { name: Arc::from("t"), old_id, new_id });
        set_id(&mut script, new_id);
        script.wants();
        assert_eq!(ids(&script), []);
        script.shared.store_offset("t", 0, stored(3), None).unwrap();
        assert_eq!(ids(&script), [(3, Some(new_id))]);
    }

    #[test]
    fn seek_during_recreation_of_the_topic_keeps_no_offset_of_the_old_one() {
        let (old_id, new_id) = (Uuid([1; 16]), Uuid([2; 16]));
        let mut script = Script::new(OffsetReset::Beginning);
        script.assign(0, Offset::At(5));
        script.wants();
        let handle = script.shared.partition("t", 0).unwrap();
        let of_records = handle.version();
        let stored = StoredOffset { offset: 90, leader_epoch: None, metadata: String::new() };
        script.shared.store_offset("t", 0, stored, None).unwrap();
        let seek = script.shared.seek("t", 0, Offset::At(0), None).unwrap();
        script.manager.handle_recreated(NOW, &RecreatedTopic { name: Arc::from("t"), old_id, new_id });
        script.manager.handle_command(NOW, seek);
        assert!(!handle.is_of_current_topic(of_records), "records of the old topic are not committed");
        assert_eq!(script.shared.all_offsets_to_commit(), []);
    }

    #[test]
    fn seek_during_recreation_of_the_topic_is_kept() {
        let mut script = Script::new(OffsetReset::Beginning);
        script.assign(0, Offset::At(5));
        script.wants();
        let seek = script.shared.seek("t", 0, Offset::At(0), None).unwrap();
        let new_id = Uuid([2; 16]);
        let recreated = RecreatedTopic { name: Arc::from("t"), old_id: Uuid([1; 16]), new_id };
        script.manager.handle_recreated(NOW, &recreated);
        script.manager.handle_command(NOW, seek);
        assert_eq!(script.wants(), ["release 1"]);
        let stale = script.back(9);
        script.manager.handle_report(NOW, FetchReport::Released(stale));
        assert_eq!(script.wants(), ["adopt 1 from 0 version 2"]);
    }
}
