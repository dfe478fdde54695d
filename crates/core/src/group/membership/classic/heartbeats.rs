//! Heartbeat: the session of a member, and what the responses say about its membership.

use ottla_protocol::{error_code::ErrorCode, generated::heartbeat::HeartbeatResponse};

use super::{ClassicMember, Heartbeat, State, Term, has_moved};
use crate::{error::Error, machine::Instant};

impl ClassicMember {
    /// Handles the response to a heartbeat that was sent at `sent`, or the error instead of one. Returns true if the
    /// coordinator moved.
    pub(in crate::group) fn handle_heartbeat(
        &mut self,
        now: Instant,
        term: Term,
        result: Result<(Instant, HeartbeatResponse), Error>,
    ) -> bool {
        if term != self.term || self.generation.is_none() {
            self.handle_late_heartbeat(now, term, &result);
            return false;
        }
        let (sent, response) = match result {
            Ok(response) => response,
            Err(error) => {
                self.retry_heartbeat(now, error);
                return false;
            }
        };
        self.heartbeat.next = Some(sent + self.settings.heartbeat_interval);
        let is_rebalancing = !matches!(self.state, State::Stable);
        let code = response.error_code;
        match code {
            ErrorCode::NONE => {
                self.extend_session(sent);
                self.backoff.reset();
            }
            ErrorCode::REBALANCE_IN_PROGRESS => {
                self.extend_session(sent);
                if !is_rebalancing {
                    self.begin_rebalance(now, "the group is rebalancing");
                }
            }
            // The join in progress has begun the member's next generation, or the member has missed one. In the first case
            // the response to JoinGroup comes before that to another heartbeat.
            ErrorCode::ILLEGAL_GENERATION if matches!(self.state, State::Joining) => {
                let was_refused = std::mem::replace(&mut self.heartbeat.was_refused, true);
                if was_refused && self.is_assigned {
                    self.lose(now, "the group began a generation without the member");
                } else {
                    self.extend_session(sent);
                }
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.member_id.clear();
                self.lose(now, "the coordinator does not know the member");
            }
            ErrorCode::ILLEGAL_GENERATION => self.lose(now, "the member missed a rebalance"),
            ErrorCode::FENCED_INSTANCE_ID => self.fence("Heartbeat"),
            code => self.retry_heartbeat(now, Error::broker(code, None).with_api("Heartbeat")),
        }
        has_moved(code)
    }

    /// Handles the response to a heartbeat that was in flight when the member joined again. If the coordinator did not know
    /// the member then, others may have its partitions, although the coordinator admits it under the same ID.
    fn handle_late_heartbeat(
        &mut self,
        now: Instant,
        term: Term,
        result: &Result<(Instant, HeartbeatResponse), Error>,
    ) {
        let is_before =
            self.unanswered.as_ref().is_some_and(|join| join.before == term && join.until.is_none());
        let is_unknown =
            result.as_ref().is_ok_and(|(_, response)| response.error_code == ErrorCode::UNKNOWN_MEMBER_ID);
        if is_before && is_unknown && self.is_assigned && matches!(self.state, State::Joining) {
            self.lose(now, "the coordinator did not know the member before it joined");
        }
    }

    /// Sends a heartbeat at once: the response to another request casts doubt on the membership. If the heartbeat before
    /// removed no doubt, the next one is brought forward by half an interval at most.
    pub(in crate::group) fn check_membership(&mut self, now: Instant) {
        let earliest = self.heartbeat.checked.map_or(now, |at| at + self.settings.heartbeat_interval / 2);
        if let Some(next) = self.heartbeat.next.as_mut().filter(|next| now < **next) {
            *next = (*next).min(earliest.max(now));
            self.heartbeat.checked = Some(*next);
        }
    }

    fn retry_heartbeat(&mut self, now: Instant, error: Error) {
        let wait = self.backoff.next(&mut self.rng);
        if !error.is_retriable() {
            self.report(error.with_next_attempt(wait));
        }
        self.heartbeat.next = Some(now + wait);
    }

    pub(super) fn begin_session(&mut self, now: Instant) {
        self.heartbeat = Heartbeat {
            next: Some(now + self.settings.heartbeat_interval),
            session_ends: Some(now + self.settings.session_timeout),
            checked: None,
            was_refused: false,
        };
    }

    fn extend_session(&mut self, sent: Instant) {
        let ends = sent + self.settings.session_timeout;
        self.heartbeat.session_ends = self.heartbeat.session_ends.max(Some(ends));
    }
}
