//! The responses to requests for offsets and epochs.

use super::{
    super::position::{Offset, Resolution, Step},
    FetchManager,
    entry::{Entry, Search},
};
use crate::{
    connection::Response,
    contract::part::FetchRequest,
    error::Error,
    machine::Instant,
    offsets::{
        committed::{CommittedOffset, CommittedOffsets, QuestionId},
        list_offsets::{ListedOffset, LookupId},
    },
};

impl FetchManager {
    /// Handles the response to a request, or the error instead of one. Returns true if the group's coordinator moved.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        request: FetchRequest,
        result: Result<Response, Error>,
    ) -> bool {
        let mut coordinator_lost = false;
        match (request, &mut self.committed) {
            (FetchRequest::Offsets(number), _) => self.lookups.handle_response(now, number, result),
            (FetchRequest::Epochs(number), _) => self.checks.handle_response(number, result),
            (FetchRequest::Committed(number), Some(committed)) => {
                coordinator_lost = committed.handle_response(now, number, result);
                while let Some(offset) = committed.poll_committed() {
                    if let Ok(handle) = self.shared.partition(&offset.topic, offset.partition) {
                        handle.set_committed(offset.offset, offset.leader_epoch);
                    }
                }
            }
            (FetchRequest::Committed(_), None) => {}
        }
        self.handle_finished(now);
        coordinator_lost
    }

    /// Takes the results of lookups, questions and checks that ended.
    pub(super) fn handle_finished(&mut self, now: Instant) {
        while let Some((id, result)) = self.lookups.poll_finished() {
            self.handle_listed(now, id, result);
        }
        while let Some((id, result)) = self.committed.as_mut().and_then(CommittedOffsets::poll_finished) {
            self.handle_committed(now, id, result);
        }
        while let Some((id, response)) = self.checks.poll_finished() {
            self.handle_check(now, id, &response);
        }
    }

    /// Handles the offset that a leader returned.
    fn handle_listed(&mut self, now: Instant, id: LookupId, result: Result<ListedOffset, Error>) {
        let Some(key) = self.lookup_keys.remove(&id) else { return };
        let Some(Search::Resolving(mut resolution, current)) = self.entries.get(&key).and_then(Entry::search)
        else {
            return;
        };
        if current != id {
            return;
        }
        match result {
            Ok(listed) => {
                let step = resolution.handle_offset(listed.offset);
                // The epoch is that of the returned offset: a tail starts elsewhere.
                let known = listed.offset.map(Step::Known);
                let epoch = listed.leader_epoch.filter(|_| known.as_ref() == Some(&step));
                self.take_step(now, &key, resolution, step, epoch);
            }
            Err(error) => {
                self.report_no_reset(&key, &error);
                self.give_up(&key, error);
            }
        }
    }

    /// Handles the offset that the group's coordinator returned.
    fn handle_committed(
        &mut self,
        now: Instant,
        id: QuestionId,
        result: Result<Option<CommittedOffset>, Error>,
    ) {
        let Some(key) = self.question_keys.remove(&id) else { return };
        if self.entries.get(&key).and_then(Entry::search) != Some(Search::Loading(id)) {
            return;
        }
        match result {
            Ok(Some(CommittedOffset { offset, leader_epoch })) => {
                if let Ok(handle) = self.shared.partition(&key.topic, key.partition) {
                    handle.set_committed(offset, leader_epoch);
                }
                let reset = self.shared.auto_offset_reset(&key.topic);
                let (resolution, step) = Resolution::begin(Offset::At(offset), reset);
                self.take_step(now, &key, resolution, step, leader_epoch);
            }
            Ok(None) => self.find(now, &key, Offset::Committed),
            Err(error) => self.give_up(&key, error),
        }
    }
}
