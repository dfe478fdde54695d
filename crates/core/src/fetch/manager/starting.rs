//! Starts and stops partitions, and finds their offsets.

use std::sync::Arc;

use ottla_protocol::vocabulary::{LeaderEpoch, TopicPartition};

use super::{
    super::{
        Start,
        partition::{PartitionConsumer, PartitionHandle},
        position::{Offset, Resolution, Step},
    },
    FetchManager,
    entry::{Detached, Entry, Search},
};
use crate::{
    config::OffsetReset,
    contract::part::Urgency,
    error::{Error, ErrorKind},
    machine::Instant,
};

impl FetchManager {
    /// Starts a partition from another position, whatever it did before.
    pub(super) fn start(&mut self, now: Instant, start: Start) {
        let Start { handle, version, from, epoch, done } = start;
        let key = handle.key().clone();
        let mut entry = Entry::new(handle, version, done, now);
        if let Some(mut old) = self.entries.remove(&key) {
            let detached = old.detach();
            entry = old.replaced_by(entry);
            self.undo(&key, &detached);
        }
        self.unplaced.remove(&key);
        self.entries.insert(key.clone(), entry);
        match (from, epoch) {
            // An offset that has to be found first brings an epoch of its own.
            (Offset::At(_), Some(_)) => {
                let (resolution, step) = Resolution::begin(from, self.shared.auto_offset_reset(&key.topic));
                self.take_step(now, &key, resolution, step, epoch);
            }
            _ => self.resolve(now, &key, from),
        }
    }

    /// Stops a partition.
    pub(super) fn stop(&mut self, handle: &Arc<PartitionHandle>) {
        let key = handle.key();
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.done = None;
        let detached = entry.detach();
        if entry.stop() {
            self.entries.remove(key);
        }
        self.unplaced.remove(key);
        self.undo(key, &detached);
    }

    /// Finds the offset of a position.
    pub(super) fn resolve(&mut self, now: Instant, key: &TopicPartition, position: Offset) {
        if position == Offset::Committed {
            return self.load(key);
        }
        self.find(now, key, position);
    }

    /// Finds the committed offset.
    fn load(&mut self, key: &TopicPartition) {
        let Some(committed) = &mut self.committed else {
            let detail =
                "there is no committed offset without group.id; set it, or start from another position";
            return self.give_up(key, Error::new(ErrorKind::InvalidArgument, detail));
        };
        if let Some(entry) = self.entries.get_mut(key) {
            let id = committed.start(key.clone());
            entry.start_search(Search::Loading(id));
            self.question_keys.insert(id, key.clone());
            // The leader is needed next: both requests go out at the same time.
            self.need_metadata(Urgency::Now);
        }
    }

    /// Queries the leader for the offset of a position; without a committed offset, of that of `auto.offset.reset`.
    pub(super) fn find(&mut self, now: Instant, key: &TopicPartition, position: Offset) {
        let reset = self.shared.auto_offset_reset(&key.topic);
        let position = match (position, self.shared.reset_position(now, &key.topic)) {
            (Offset::Committed, Some(position)) => position,
            (position, _) => position,
        };
        let (resolution, step) = Resolution::begin(position, reset);
        self.take_step(now, key, resolution, step, None);
    }

    /// Takes the next step of a search. `epoch` is the leader epoch that came with the offset.
    pub(super) fn take_step(
        &mut self,
        now: Instant,
        key: &TopicPartition,
        resolution: Resolution,
        step: Step,
        epoch: Option<LeaderEpoch>,
    ) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match step {
            Step::Known(offset) => {
                let is_listed = matches!(entry.search(), Some(Search::Resolving(..)));
                let mut partition =
                    PartitionConsumer::new(Arc::clone(&entry.handle), entry.version(), offset);
                partition.position_epoch = epoch;
                // A leader that returned the offset has it.
                partition.checked_epoch = epoch.filter(|_| is_listed);
                entry.start_at(Box::new(partition));
                self.shared.queue.set_position(&entry.handle, entry.version(), offset);
                if let Some(done) = entry.done.take() {
                    done.complete(Ok(offset));
                }
                self.unplaced.insert(key.clone());
            }
            Step::Ask(spec) => {
                let id = self.lookups.start(now, key.clone(), spec, None);
                self.lookup_keys.insert(id, key.clone());
                entry.start_search(Search::Resolving(resolution, id));
            }
            Step::Nowhere => {
                let error = Error::new(ErrorKind::OffsetReset, "no offset is committed");
                self.give_up(key, error);
            }
        }
    }

    /// Reports that there is no offset to go on from.
    pub(super) fn give_up(&mut self, key: &TopicPartition, error: Error) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.give_up();
        let error = error.with_partition(&*key.topic, key.partition);
        match entry.done.take() {
            Some(done) => done.complete(Err(error)),
            None => self.shared.report_for(&entry.handle, entry.version(), error),
        }
    }

    /// Reports that a partition has no position and that `auto.offset.reset` forbids to choose one, before the cause is
    /// reported: applications that set `error` wait for this error. A seek that waits gets the cause alone.
    pub(super) fn report_no_reset(&self, key: &TopicPartition, cause: &Error) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.done.is_none() && self.shared.auto_offset_reset(&key.topic) == OffsetReset::Error {
            let detail = format!("failed to query the logical offset: {cause}");
            let error = Error::new(ErrorKind::OffsetReset, detail).with_partition(&*key.topic, key.partition);
            self.shared.report_for(&entry.handle, entry.version(), error);
        }
    }

    /// Ends what was done for an entry before it was detached.
    pub(super) fn undo(&mut self, key: &TopicPartition, detached: &Detached) {
        if let Some(node) = detached.release_from {
            self.release(node, key);
        }
        match detached.search {
            Some(Search::Resolving(_, id)) => {
                self.lookups.cancel(id);
                self.lookup_keys.remove(&id);
            }
            Some(Search::Loading(id)) => {
                self.question_keys.remove(&id);
                if let Some(committed) = &mut self.committed {
                    committed.cancel(id);
                }
            }
            None => {}
        }
        if let Some(id) = detached.check {
            self.check_keys.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use ottla_protocol::error_code::ErrorCode;

    use super::{
        super::scripted::{NOW, Script},
        *,
    };
    use crate::{
        completion::completion,
        config::IsolationLevel,
        contract::part::{Interest, Need, Needs, Part},
        fetch::message::FetchReport,
    };

    #[test]
    fn known_offset_needs_no_lookup_and_logical_offset_does() {
        let mut script = Script::new(OffsetReset::End);
        script.assign(0, Offset::At(5));
        assert_eq!(script.wants(), ["adopt 1 from 5 version 1"]);
        script.assign(0, Offset::Beginning);
        assert_eq!(script.wants(), ["release 1", "ListOffsets Node(1)"]);
    }

    #[test]
    fn read_committed_consumer_gets_offsets_without_transactions() {
        let mut script = Script::new(OffsetReset::End);
        assert_eq!(script.shared.settings.isolation_level, IsolationLevel::ReadCommitted);
        script.assign(0, Offset::Beginning);
        script.manager.advance(NOW, &script.metadata);
        let Some(Need::Request { request, .. }) = script.manager.poll_need() else {
            panic!("the leader is asked");
        };
        for version in [0, 1, 2, 11] {
            assert_eq!((request.encode)(version, &mut Vec::new()), Ok(()), "version {version}");
        }
    }

    #[test]
    fn seek_restarts_once_the_broker_returns_the_partition() {
        let mut script = Script::reading_from(5);
        let (done, waiting) = completion();
        let seek = script.shared.seek("t", 0, Offset::At(90), Some(done)).unwrap();
        let stale = script.back(7);
        script.manager.handle_command(NOW, seek);
        assert_eq!(waiting.try_take(), Some(Ok(90)));
        assert_eq!(script.wants(), ["release 1"]);
        script.manager.handle_report(NOW, FetchReport::Released(stale));
        assert_eq!(script.wants(), ["adopt 1 from 90 version 2"]);
    }

    #[test]
    fn refused_lookup_is_an_offset_reset_error_where_resets_are_errors() {
        for (policy, reported) in
            [(OffsetReset::Error, vec![ErrorKind::OffsetReset]), (OffsetReset::End, vec![])]
        {
            let mut script = Script::new(policy);
            script.assign(0, Offset::Beginning);
            assert_eq!(script.wants(), ["ListOffsets Node(1)"]);
            let refused = Error::broker(ErrorCode::TOPIC_AUTHORIZATION_FAILED, None);
            let id = *script.manager.lookup_keys.keys().next().unwrap();
            script.manager.lookups.refuse(id, refused.clone());
            script.manager.advance(NOW, &script.metadata);
            let errors: Vec<ErrorKind> = reported.into_iter().chain([refused.kind()]).collect();
            assert_eq!(script.errors(), errors, "{policy:?}");
        }
    }

    #[test]
    fn partition_stopped_in_transit_is_forgotten_on_return() {
        let mut script = Script::reading_from(5);
        let partition = script.back(6);
        let stop = script.shared.incremental_unassign(&[TopicPartition::new("t", 0)]).unwrap();
        script.manager.handle_command(NOW, stop);
        assert_eq!(script.wants(), ["release 1"]);
        script.manager.handle_report(NOW, FetchReport::Released(partition));
        assert!(script.wants().is_empty());
        let mut topics = Interest::default();
        script.manager.add_topics(&mut topics);
        assert!(topics.used.is_empty());
    }
}
