//! Detection of truncated logs: the manager asks a new leader whether it has the records that were read (KIP-320).

use std::sync::Arc;

use ottla_protocol::vocabulary::{LeaderEpoch, TopicPartition};

use super::{
    super::{
        deliver::ConsumerEvent,
        epochs::{CheckId, EpochOutcome},
        partition::PartitionConsumer,
        position::Offset,
        queue::Item,
    },
    FetchManager,
    entry::WaitFor,
};
use crate::{
    config::OffsetReset,
    contract::part::Urgency,
    error::{Error, ErrorKind},
    machine::Instant,
};

impl FetchManager {
    /// Handles a new leader's response: where the epoch of the last record that was read ended.
    pub(super) fn handle_check(&mut self, now: Instant, id: CheckId, response: &EpochOutcome) {
        let Some(key) = self.check_keys.remove(&id) else { return };
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let Some(partition) = entry.finish_check(id) else { return };
        match *response {
            EpochOutcome::End { epoch, offset } if offset < partition.offset => {
                self.handle_truncation(now, &key, Some((epoch, offset)));
            }
            EpochOutcome::Unknown => self.handle_truncation(now, &key, None),
            EpochOutcome::Later { refresh } => {
                if refresh {
                    entry.wait_for(WaitFor::Metadata);
                    self.need_metadata(Urgency::Soon);
                }
                let at = now + self.shared.settings.retry_backoff;
                self.back_off(key, at);
            }
            EpochOutcome::End { .. } | EpochOutcome::NoResponse => {
                partition.checked_epoch = partition.leader_epoch;
                self.unplaced.insert(key);
            }
        }
    }

    /// Handles a log that was truncated below the position: `end` is the newest epoch that it still has, and where that
    /// ended.
    pub(super) fn handle_truncation(
        &mut self,
        now: Instant,
        key: &TopicPartition,
        end: Option<(LeaderEpoch, i64)>,
    ) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some((partition, _)) = entry.waiting() else { return };
        let (fetched, leader_epoch) = (partition.offset, partition.leader_epoch);
        // If the application meanwhile chose another position, its command is in flight and counts.
        let Some((version, handed_out)) = self.shared.queue.outdate_version(&entry.handle, entry.version)
        else {
            return;
        };
        entry.version = version;
        let reset = self.shared.auto_offset_reset(&key.topic);
        let position = handed_out.unwrap_or(fetched).min(fetched);
        let divergence = end.map(|(_, offset)| offset);
        let is_read = divergence.is_none_or(|divergence| divergence < position);
        if is_read && reset == OffsetReset::Error {
            let found = match divergence {
                Some(offset) => format!("from offset {offset} on the records are others now"),
                None => "the leader knows no record of that time".to_owned(),
            };
            if divergence.is_none() {
                self.shared.queue.set_position(&entry.handle, version, position);
            }
            let detail = format!("read up to offset {position}, but {found}; assign or seek to go on");
            return self.give_up(key, Error::new(ErrorKind::LogTruncated, detail));
        }
        if is_read {
            let TopicPartition { topic, partition } = key.clone();
            let event = ConsumerEvent::LogTruncated { topic, partition, position, divergence };
            self.shared.queue.push([Item::Note { handle: Arc::clone(&entry.handle), version, event }]);
        }
        match end {
            Some((epoch, offset)) => {
                let offset = offset.min(position);
                let mut partition = PartitionConsumer::new(Arc::clone(&entry.handle), version, offset);
                partition.position_epoch = Some(epoch);
                partition.leader_epoch = leader_epoch;
                partition.checked_epoch = leader_epoch;
                self.shared.queue.set_position(&entry.handle, version, offset);
                entry.start_at(Box::new(partition));
                self.unplaced.insert(key.clone());
            }
            None => {
                let position = self.shared.reset_position(now, &key.topic).unwrap_or(Offset::Beginning);
                self.resolve(now, key, position);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            super::{KnownEpochs, deliver::Records, message::FetchReport},
            scripted::{NOW, Script, epoch, metadata},
        },
        *,
    };

    #[test]
    fn new_leader_is_asked_for_truncation() {
        let mut script = Script::reading_from(5);
        let mut partition = script.back(17);
        partition.position_epoch = epoch(2);
        partition.checked_epoch = epoch(3);
        script.manager.handle_report(NOW, FetchReport::Released(partition));
        assert_eq!(script.wants(), ["adopt 1 from 17 version 1"], "the same leader, the same epoch");
        script.metadata = metadata(2);
        script.metadata.topics.get_mut("t").unwrap().partitions[0].leader_epoch = LeaderEpoch::from_wire(4);
        let mut partition = script.back(17);
        partition.position_epoch = epoch(2);
        partition.checked_epoch = epoch(3);
        script.manager.handle_report(NOW, FetchReport::NotLeader(partition));
        assert_eq!(script.wants(), ["OffsetForLeaderEpoch Node(2)"]);
        let seek = script.shared.seek("t", 0, Offset::At(0), None).unwrap();
        script.manager.handle_command(NOW, seek);
        assert_eq!(script.wants(), ["adopt 2 from 0 version 2"], "a seek does not wait for the response");
    }

    #[test]
    fn leader_is_asked_for_the_record_before_a_known_epoch() {
        let key = TopicPartition::new("t", 0);
        let epochs: KnownEpochs = epoch(3).map(|epoch| (key.clone(), epoch)).into_iter().collect();
        let mut script = Script::new(OffsetReset::Beginning);
        for command in script.shared.assign(&[(key, Offset::At(5))]) {
            script.manager.handle_command(NOW, command.with_epochs(&epochs));
        }
        assert_eq!(script.wants(), ["OffsetForLeaderEpoch Node(1)"], "the leader's epoch is the same");
        let seek = script.shared.seek("t", 0, Offset::At(0), None).unwrap();
        script.manager.handle_command(NOW, seek);
        assert_eq!(script.wants(), ["adopt 1 from 0 version 2"], "nothing is known of the epoch");
        let seek = script.shared.seek("t", 0, Offset::At(9), None).unwrap();
        script.manager.handle_command(NOW, seek.with_epochs(&epochs));
        assert_eq!(script.wants(), ["release 1"]);
        let returned = script.back(3);
        script.manager.handle_report(NOW, FetchReport::Released(returned));
        assert_eq!(script.wants(), ["OffsetForLeaderEpoch Node(1)"]);
        let seek = script.shared.seek("t", 0, Offset::End, None).unwrap();
        script.manager.handle_command(NOW, seek.with_epochs(&epochs));
        assert_eq!(script.wants(), ["ListOffsets Node(1)"], "an offset that is looked up has its own epoch");
    }

    #[test]
    fn truncated_log_is_reported_and_reading_continues_if_reset_allows() {
        for (reset, reported, wants) in [
            (OffsetReset::Beginning, None, vec!["adopt 1 from 12 version 2"]),
            (OffsetReset::Error, Some(ErrorKind::LogTruncated), vec![]),
        ] {
            let mut script = Script::new(reset);
            script.assign(0, Offset::At(5));
            script.wants();
            let partition = script.back(17);
            script.shared.queue.set_position(&partition.handle, partition.version, 15);
            script.manager.handle_report(NOW, FetchReport::Diverged(partition, epoch(2).unwrap(), 12));
            assert_eq!(script.wants(), wants);
            let mut records = Records::default();
            script.shared.queue.take(usize::MAX, &mut records);
            match (records.events(), reported) {
                (
                    [
                        ConsumerEvent::LogTruncated {
                            position: 15, divergence: Some(12), partition: 0, ..
                        },
                    ],
                    None,
                ) => {}
                ([ConsumerEvent::Error(error)], Some(kind)) => {
                    assert_eq!(error.kind(), kind);
                    assert!(error.to_string().contains("from offset 12 on"), "{error}");
                }
                other => panic!("{other:?}"),
            }
        }
        // Prefetched records that were not read are fetched again without an event.
        let mut script = Script::new(OffsetReset::Error);
        script.assign(0, Offset::At(5));
        script.wants();
        let partition = script.back(17);
        script.manager.handle_report(NOW, FetchReport::Diverged(partition, epoch(2).unwrap(), 12));
        assert_eq!(script.wants(), ["adopt 1 from 5 version 2"]);
        assert_eq!(script.errors(), []);
    }

    #[test]
    fn seek_survives_a_truncation_that_is_reported_meanwhile() {
        let mut script = Script::new(OffsetReset::Beginning);
        script.assign(0, Offset::At(5));
        script.wants();
        let stale = script.back(17);
        let seek = script.shared.seek("t", 0, Offset::At(90), None).unwrap();
        script.manager.handle_command(NOW, seek);
        assert_eq!(script.wants(), ["release 1"]);
        script.manager.handle_report(NOW, FetchReport::Diverged(stale, epoch(2).unwrap(), 12));
        assert_eq!(script.wants(), ["adopt 1 from 90 version 2"]);
        assert!(script.errors().is_empty());
    }
}
