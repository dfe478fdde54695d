//! The offsets of a group as part of a transaction: AddOffsetsToTxn to the coordinator of the transaction, then
//! TxnOffsetCommit to the coordinator of the group. The newer protocol needs the second one only.
//!
//! # Pitfalls
//!
//! - An application with a short timeout calls again and again. The next call continues the back-off of the one that
//!   timed out (`calls_with_short_timeouts_share_one_back_off`).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{add_offsets_to_txn::AddOffsetsToTxnResponse, txn_offset_commit::TxnOffsetCommitResponse},
    primitive::Reader,
};

use super::{
    Registered, Transactions, attempt::Attempt, command::TransactionOffsets, requests::committed_offsets,
};
use crate::{
    completion::Completion,
    connection::Response,
    contract::{
        part::TransactionRequest,
        route::{CoordinatorKey, Route},
    },
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    produce::transaction::{
        api::TransactionApi,
        error::{Reaction, RequestKind, TransactionError, TransactionResult, react},
    },
};

/// A call that adds offsets to the transaction.
#[derive(Debug)]
pub(super) struct OffsetsCall {
    sent: TransactionOffsets,
    deadline: Instant,
    /// `None` after the deadline: only the response is awaited.
    done: Option<Completion<TransactionResult>>,
    step: Step,
    attempt: Attempt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    AddOffsets,
    CommitOffsets,
}

impl OffsetsCall {
    fn end(&mut self, result: TransactionResult) {
        if let Some(done) = self.done.take() {
            done.complete(result);
        }
    }
}

impl Transactions {
    pub(super) fn queue_offsets(
        &mut self,
        now: Instant,
        sent: TransactionOffsets,
        done: Completion<TransactionResult>,
    ) {
        if sent.offsets.is_empty() {
            return done.complete(Ok(()));
        }
        let step = if self.shared.is_implicit() { Step::CommitOffsets } else { Step::AddOffsets };
        let attempt = self.offsets_attempt.take().unwrap_or_else(|| Attempt::new(self.backoff));
        let deadline = now + sent.timeout;
        self.offsets.push_back(OffsetsCall { sent, deadline, done: Some(done), step, attempt });
    }

    pub(super) fn has_offsets_in_flight(&self) -> bool {
        self.offsets.iter().any(|call| call.attempt.is_in_flight())
    }

    /// Returns when a request is due, or a call times out.
    pub(super) fn offsets_due_at(&self, may_send: bool) -> Option<Instant> {
        let deadline = self.offsets.iter().filter(|call| call.done.is_some()).map(|call| call.deadline).min();
        let due = self.offsets.front().filter(|_| may_send).and_then(|call| call.attempt.due_at());
        earliest(deadline, due)
    }

    /// Ends all calls with an error. Requests in flight are still awaited.
    pub(super) fn fail_offsets(&mut self, error: &TransactionError) {
        self.offsets.iter_mut().for_each(|call| call.end(Err(error.clone())));
        self.offsets.retain(|call| call.attempt.is_in_flight());
        self.offsets_attempt = None;
    }

    /// Forgets calls that ended and have no request in flight. The next call continues their back-off.
    fn drop_ended_offsets(&mut self) {
        let is_over = |call: &OffsetsCall| call.done.is_none() && !call.attempt.is_in_flight();
        while let Some(index) = self.offsets.iter().position(is_over) {
            let Some(ended) = self.offsets.remove(index) else { return };
            match self.offsets.front_mut().filter(|next| !next.attempt.is_in_flight()) {
                Some(next) => next.attempt = ended.attempt,
                None => self.offsets_attempt = Some(ended.attempt),
            }
        }
    }

    pub(super) fn expire_offsets(&mut self, now: Instant) {
        let name = TransactionApi::SendOffsets.name_in(self.shared.names());
        for call in self.offsets.iter_mut().filter(|call| call.done.is_some() && call.deadline <= now) {
            let (count, last) = self.shared.refusals();
            let last = last
                .map_or_else(String::new, |last| format!("; {count} attempts failed, last cause: {last}"));
            let detail = format!("{name}: the brokers have not responded yet{last}");
            call.end(Err(TransactionError::Retriable(Error::new(ErrorKind::TimedOut, detail))));
        }
        self.drop_ended_offsets();
    }

    pub(super) fn send_offsets(&mut self, now: Instant) {
        let Some(identity) = self.identity.filter(|_| self.may_register()) else { return };
        let Some(call) = self.offsets.front().filter(|call| call.attempt.is_due(now)) else { return };
        let (request, route) = match call.step {
            Step::AddOffsets => {
                (self.terms.add_offsets(identity, &call.sent.group.group_id), self.coordinator())
            }
            Step::CommitOffsets => {
                let key = CoordinatorKey::group(&*call.sent.group.group_id);
                let is_implicit = self.shared.is_implicit();
                (self.terms.commit_offsets(identity, is_implicit, &call.sent), Route::Coordinator(key))
            }
        };
        if self.shared.is_implicit() {
            // The group's coordinator registers the group before it checks anything else.
            self.registered = Registered::Something;
        }
        self.start_clock(now);
        let number = self.send(route, request, TransactionRequest::Offsets);
        if let Some(call) = self.offsets.front_mut() {
            call.attempt.note_sent(number);
        }
    }

    pub(super) fn handle_offsets(
        &mut self,
        now: Instant,
        number: u64,
        result: Result<Response, Error>,
    ) -> bool {
        let Some(index) = self.offsets.iter().position(|call| call.attempt.is_response(number)) else {
            return false;
        };
        let step = self.offsets[index].step;
        let (kind, api) = match step {
            Step::AddOffsets => (RequestKind::AddOffsets, "AddOffsetsToTxn"),
            Step::CommitOffsets => (RequestKind::CommitOffsets, "TxnOffsetCommit"),
        };
        let judged = result.and_then(|response| match step {
            Step::AddOffsets => read_added(&response),
            Step::CommitOffsets => read_committed(&response, &self.offsets[index].sent),
        });
        let (reaction, error) = match judged {
            Ok(None) => (Reaction::Success, None),
            Ok(Some((reaction, error))) => (reaction, Some(error.with_api(api))),
            Err(error) => {
                let error = error.with_api(api);
                self.note_unknown(&error);
                (self.judge_lost(kind, &error), Some(error))
            }
        };
        let call = &mut self.offsets[index];
        match (reaction, error) {
            (_, None) if step == Step::AddOffsets => {
                self.registered = Registered::Something;
                call.step = Step::CommitOffsets;
                call.attempt = Attempt::new(self.backoff);
                call.attempt.repeat_now(now);
            }
            (_, None) => {
                call.end(Ok(()));
                self.offsets.remove(index);
            }
            (Reaction::Retry | Reaction::RetrySoon | Reaction::FindCoordinator, Some(error)) => {
                call.attempt.retry(now, reaction, &mut self.rng);
                self.shared.note_refusal(error);
            }
            // The response to EndTxn decides: the coordinator may have aborted the transaction, and raised the epoch.
            (Reaction::Fenced | Reaction::Fatal, Some(_))
                if call.done.is_none() && self.state.is_aborting() =>
            {
                self.offsets.remove(index);
            }
            (reaction, Some(error)) => {
                if let Some(mut call) = self.offsets.remove(index) {
                    let failed = TransactionError::Abort(error.clone());
                    self.give_up(now, reaction, error);
                    call.end(Err(self.error.clone().unwrap_or(failed)));
                }
            }
        }
        self.drop_ended_offsets();
        reaction == Reaction::FindCoordinator
    }
}

type Judged = Result<Option<(Reaction, Error)>, Error>;

fn read_added(response: &Response) -> Judged {
    let response =
        AddOffsetsToTxnResponse::decode(&mut Reader::new(response.body()), response.request.version)
            .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))?;
    let code = response.error_code;
    Ok(match react(RequestKind::AddOffsets, code) {
        Reaction::Success => None,
        reaction => Some((reaction, Error::broker(code, None))),
    })
}

/// Returns the first error of a partition that no repetition cures, or else the first one.
fn read_committed(response: &Response, sent: &TransactionOffsets) -> Judged {
    let response =
        TxnOffsetCommitResponse::decode(&mut Reader::new(response.body()), response.request.version)
            .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))?;
    let ids = sent.topic_ids();
    let results = committed_offsets(&response, &ids);
    let mut first = None;
    for offset in &sent.offsets {
        let code = results.get(&(&*offset.topic, offset.partition)).copied();
        let Some(code) = code else {
            return Err(Error::new(ErrorKind::BadResponse, "the response omits a partition"));
        };
        let reaction = react(RequestKind::CommitOffsets, code);
        if reaction == Reaction::Success {
            continue;
        }
        let is_final = !matches!(reaction, Reaction::Retry | Reaction::RetrySoon | Reaction::FindCoordinator);
        let mut error = Error::broker(code, None).with_partition(&*offset.topic, offset.partition);
        if matches!(
            code,
            ErrorCode::ILLEGAL_GENERATION
                | ErrorCode::STALE_MEMBER_EPOCH
                | ErrorCode::UNKNOWN_MEMBER_ID
                | ErrorCode::FENCED_INSTANCE_ID
        ) {
            error = error.with_detail("the group rebalanced since the consumer's metadata were taken");
        }
        if is_final {
            return Ok(Some((reaction, error)));
        }
        first.get_or_insert((reaction, error));
    }
    Ok(first)
}
