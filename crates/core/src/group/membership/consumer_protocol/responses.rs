//! The responses to heartbeats, and the errors instead of them.

use std::time::Duration;

use ottla_protocol::{
    error_code::ErrorCode, generated::consumer_group_heartbeat::ConsumerGroupHeartbeatResponse,
    vocabulary::Generation,
};

use super::{
    super::{
        classic::{Step, Term},
        heartbeat::JOINS,
        heartbeat_rules::{has_moved, heartbeat_interval, is_permanent, retry_wait},
    },
    API, ConsumerMember, LEAVES_FOR_A_WHILE, State, new_member_id,
};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
};

impl ConsumerMember {
    /// Handles the response to a heartbeat that was sent at `sent`, or the error instead of one. Returns true if the
    /// coordinator moved.
    pub(in crate::group) fn handle_heartbeat(
        &mut self,
        now: Instant,
        term: Term,
        result: Result<(Instant, ConsumerGroupHeartbeatResponse), Error>,
    ) -> bool {
        if term != self.term {
            return false;
        }
        let code = result.as_ref().map_or(ErrorCode::NONE, |(_, response)| response.error_code);
        match self.state {
            State::Leaving(_) => {
                self.state = State::Unsubscribed;
                self.steps.push_back(Step::Left);
            }
            State::Releasing => self.handle_released(now, result),
            State::Joining(_) | State::Reconciling | State::Acknowledging | State::Stable => {
                let contents = self.heartbeat.in_flight.take();
                match result {
                    Ok((sent, response)) if !code.is_error() => {
                        self.heartbeat.acknowledged = contents;
                        self.handle_acknowledged(now, sent, response);
                    }
                    Ok((_, response)) => {
                        self.heartbeat.acknowledged = None;
                        self.handle_refused(now, code, response.error_message.as_deref());
                    }
                    Err(error) => {
                        self.heartbeat.acknowledged = None;
                        self.retry(now, error);
                    }
                }
            }
            State::Unsubscribed | State::Fenced(_) | State::Expired { .. } | State::Failed => {}
        }
        has_moved(code)
    }

    fn handle_acknowledged(&mut self, now: Instant, sent: Instant, response: ConsumerGroupHeartbeatResponse) {
        let epoch = Generation::from_wire(response.member_epoch).filter(|epoch| epoch.get() > 0);
        let replaced =
            response.assignment.as_ref().map_or(Ok(false), |assigned| self.target.replace(assigned));
        let problem = match (epoch, replaced) {
            (Some(epoch), Ok(has_withdrawn)) if Some(epoch) >= self.epoch => {
                self.heartbeat.checked.take_if(|_| self.epoch != Some(epoch));
                self.epoch = Some(epoch);
                self.heartbeat.is_awaited |= has_withdrawn;
                None
            }
            (_, Err(number)) => Some(format!("an assignment of partition {number}")),
            _ => Some(format!(
                "member epoch {} after {}",
                response.member_epoch,
                self.epoch.map_or(JOINS, Generation::get)
            )),
        };
        if let Some(problem) = problem {
            let detail = format!("the coordinator returned {problem}; the member joins the group again");
            self.report(Error::new(ErrorKind::BadResponse, detail).with_api(API));
            let wait = self.backoff.next(&mut self.rng);
            return self.lose(now + wait);
        }
        if let Some(id) = response.member_id.filter(|id| !id.is_empty()) {
            self.member_id = id;
        }
        self.id_is_confirmed = true;
        self.backoff.reset();
        self.reported = None;
        if response.assignment.is_some() {
            self.names.backoff.reset();
            self.names.not_before = now;
        }
        if !self.stop_waiting() {
            self.withdrawal_ends.get_or_insert(sent + self.settings.max_poll_interval);
        }
        self.is_changed |= response.assignment.is_some() || self.goal.is_none();
        self.heartbeat.interval = heartbeat_interval(response.heartbeat_interval_ms);
        self.heartbeat.schedule(sent, !self.target.is_empty());
        self.heartbeat.not_before = now;
        match self.state {
            State::Acknowledging if self.heartbeat.must_report => {}
            State::Joining(_) | State::Acknowledging => self.state = State::Stable,
            _ => {}
        }
        // Even while the application answers the rebalance before: it may take longer than the coordinator waits.
        self.heartbeat.must_report |= self.heartbeat.is_awaited && self.target.covers(&self.contents().held);
        // The application may have changed the subscription meanwhile.
        self.heartbeat.must_report |=
            self.heartbeat.acknowledged.as_ref().is_some_and(|known| known.subscription != self.subscription);
    }

    fn handle_refused(&mut self, now: Instant, code: ErrorCode, message: Option<&str>) {
        let error = Error::broker(code, message).with_api(API);
        match code {
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_MEMBER_EPOCH => self.handle_fenced(now),
            // The group was deleted, or its offsets topic lost it. A member that joins gets this for another reason.
            ErrorCode::GROUP_ID_NOT_FOUND if self.epoch.is_some() => self.handle_fenced(now),
            ErrorCode::UNRELEASED_INSTANCE_ID if self.id_is_confirmed || self.backoff.failures() > 0 => {
                self.release();
            }
            ErrorCode::FENCED_INSTANCE_ID | ErrorCode::UNRELEASED_INSTANCE_ID => {
                self.fail(self.held_elsewhere(code))
            }
            ErrorCode::TOPIC_AUTHORIZATION_FAILED => {
                self.report(error);
                self.back_off(now, self.heartbeat.interval);
            }
            code if is_permanent(code) => self.fail(error),
            _ => self.retry(now, error),
        }
    }

    /// Handles the end of the membership: the member joins again, at once the first time, with the same ID. If the
    /// coordinator refuses even that, the member takes another ID: some versions do not admit a known one again.
    fn handle_fenced(&mut self, now: Instant) {
        let wait = self.backoff.next(&mut self.rng);
        let was_member = self.epoch.is_some();
        if !was_member {
            self.member_id = new_member_id(&mut self.rng);
            self.id_is_confirmed = false;
        }
        let is_first = was_member && self.backoff.failures() == 1;
        self.lose(if is_first { now } else { now + wait });
    }

    /// Gives the instance ID back, because the coordinator may have given it to this member before.
    fn release(&mut self) {
        self.end_membership();
        self.state = State::Releasing;
        self.send_leave(LEAVES_FOR_A_WHILE);
    }

    fn handle_released(
        &mut self,
        now: Instant,
        result: Result<(Instant, ConsumerGroupHeartbeatResponse), Error>,
    ) {
        let wait = self.backoff.next(&mut self.rng);
        self.id_is_confirmed = false;
        self.state = State::Joining(now + wait);
        match result {
            Ok((_, response)) => match response.error_code {
                // The session that held the instance ID may have ended meanwhile: then no member has it.
                ErrorCode::NONE | ErrorCode::UNKNOWN_MEMBER_ID => self.state = State::Joining(now),
                code if has_moved(code) || code.is_retriable() => self.id_is_confirmed = true,
                _ => self.fail(self.held_elsewhere(ErrorCode::UNRELEASED_INSTANCE_ID)),
            },
            // The next join finds out.
            Err(_) => self.id_is_confirmed = true,
        }
    }

    fn held_elsewhere(&self, code: ErrorCode) -> Error {
        let instance = self.settings.instance_id.as_deref().unwrap_or_default();
        let detail = format!(
            "another member of group \"{}\" uses group.instance.id \"{instance}\"; give each member an ID of its own, or \
             wait until the session of a member that stopped without leaving has ended",
            self.settings.group_id
        );
        Error::broker(code, Some(&detail)).with_api(API)
    }

    /// Repeats a heartbeat after a back-off; at once if the coordinator moved. Errors that do not resolve by themselves
    /// are reported to the application.
    fn retry(&mut self, now: Instant, error: Error) {
        if error.kind() == ErrorKind::UnsupportedVersion {
            let detail = "the group's coordinator does not support this use of `group.protocol=consumer`, which needs \
                          Kafka 4.0; set `group.protocol=classic`, or upgrade the brokers";
            return self.fail(Error::new(ErrorKind::UnsupportedVersion, detail).with_api(API));
        }
        if matches!(error.kind(), ErrorKind::Bug | ErrorKind::Closed) {
            return self.fail(error);
        }
        let wait = retry_wait(&error, &mut self.backoff, &mut self.rng);
        if !error.is_retriable() {
            self.report(error.with_next_attempt(wait));
        }
        self.back_off(now, wait);
    }

    fn back_off(&mut self, now: Instant, wait: Duration) {
        let at = now + wait;
        self.heartbeat.not_before = at;
        self.heartbeat.next = Some(at);
        if matches!(self.state, State::Joining(_)) {
            self.state = State::Joining(at);
        }
    }
}
