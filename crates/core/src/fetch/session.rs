//! The fetch session, which a broker keeps between fetches (KIP-227): after the first request the client sends only
//! changes.
//!
//! # Pitfalls
//!
//! - A fetch session that is given up while a Fetch is in flight must not be resumed by its response: the broker would
//!   keep responding for partitions that were removed
//!   (`session_closed_during_a_request_is_not_resumed`).
//! - A broker leaves out partitions without news, also if the consumer has sought one of them to its end. The end, which must be
//!   reported then, is that of the last response that named it, even if nothing else of that response was used
//!   (`end_is_reported_again_after_a_seek_to_it`, `end_is_reported_after_a_seek_during_a_request`).

use ottla_protocol::{error_code::ErrorCode, uuid::Uuid, vocabulary::TopicPartition};

/// One broker's fetch session.
///
/// ```text
///            full request           response with id        response
///   Fresh ───────────────► asked ──────────────────► id, 1 ───────► id, 2 ...
///     ▲                                                │ session error, connection lost,
///     └────────────────────────────────────────────────┘ or another request version
/// ```
#[derive(Debug, Default)]
pub(crate) struct FetchSession {
    id: i32,
    epoch: i32,
    generation: u64,
    /// The generation of the request in flight.
    asked: u64,
    with_topic_ids: Option<bool>,
    forgotten: Vec<ForgottenPartition>,
}

/// A partition that the broker has to remove from the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForgottenPartition {
    pub(crate) key: TopicPartition,
    pub(crate) topic_id: Uuid,
    /// Its end as the broker has reported it in the fetch session.
    pub(crate) end: Option<i64>,
}

/// The meaning of a response for the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionVerdict {
    /// The session continues.
    Good,
    /// The broker dropped the session: send a full request at once.
    Restart,
    /// The broker refused the whole request.
    Refused(ErrorCode),
}

impl FetchSession {
    /// Returns the generation, which changes when the broker's session is no longer valid.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns true if the next request names every partition.
    pub(crate) const fn is_full(&self) -> bool {
        self.id == 0
    }

    /// Notes that a request is sent.
    pub(crate) const fn note_asked(&mut self) {
        self.asked = self.generation;
    }

    /// Returns the generation of the last request, which its response belongs to.
    pub(crate) const fn asked(&self) -> u64 {
        self.asked
    }

    /// Returns the session's ID and epoch for the next request.
    pub(crate) const fn head(&self) -> (i32, i32) {
        (self.id, self.epoch)
    }

    /// Chooses whether the next request names topics by ID or by name; a change requires a new session.
    pub(crate) fn use_topic_ids(&mut self, with_topic_ids: bool) {
        if self.with_topic_ids.is_some_and(|before| before != with_topic_ids) {
            self.restart();
        }
        self.with_topic_ids = Some(with_topic_ids);
    }

    /// Starts a new session.
    pub(crate) fn restart(&mut self) {
        self.id = 0;
        self.epoch = 0;
        self.generation += 1;
        self.forgotten.clear();
    }

    /// Removes a partition that the broker has in the session, or that a request in flight adds to it.
    pub(crate) fn forget(&mut self, partition: ForgottenPartition) {
        self.forgotten.push(partition);
    }

    /// Notes the end of a partition that starts again, or is to be removed: the broker reports it only once.
    pub(crate) fn note_end(&mut self, topic: &str, partition: i32, end: i64) {
        let mut gone = self.forgotten.iter_mut();
        if let Some(gone) = gone.find(|gone| gone.key.partition == partition && *gone.key.topic == *topic) {
            gone.end = Some(end);
        }
    }

    /// Takes the partitions that the next request has to forget.
    pub(crate) fn take_forgotten(&mut self) -> Vec<ForgottenPartition> {
        std::mem::take(&mut self.forgotten)
    }

    /// Handles the error code and the session ID of a response.
    pub(crate) fn handle_response(&mut self, code: ErrorCode, session_id: i32) -> SessionVerdict {
        match code {
            // The client discarded its fetch session after the request; the broker's one has partitions that are no
            // longer fetched.
            ErrorCode::NONE if self.asked != self.generation => SessionVerdict::Good,
            ErrorCode::NONE => {
                if self.is_full() {
                    // A broker without room for another session returns 0: then every request is a full one.
                    self.id = session_id.max(0);
                    self.epoch = i32::from(self.id > 0);
                    if self.id == 0 {
                        self.restart();
                    }
                } else {
                    self.epoch = self.epoch.checked_add(1).unwrap_or(1);
                }
                SessionVerdict::Good
            }
            ErrorCode::FETCH_SESSION_ID_NOT_FOUND
            | ErrorCode::INVALID_FETCH_SESSION_EPOCH
            | ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR
                if !self.is_full() || self.asked != self.generation =>
            {
                self.restart();
                SessionVerdict::Restart
            }
            code => {
                self.restart();
                SessionVerdict::Refused(code)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_counts_the_requests_of_a_session() {
        let mut session = FetchSession::default();
        assert_eq!(session.head(), (0, 0));
        assert_eq!(session.handle_response(ErrorCode::NONE, 77), SessionVerdict::Good);
        assert_eq!(session.head(), (77, 1));
        session.handle_response(ErrorCode::NONE, 77);
        assert_eq!(session.head(), (77, 2));
        session.epoch = i32::MAX;
        session.handle_response(ErrorCode::NONE, 77);
        assert_eq!(session.head(), (77, 1), "the epoch starts again at 1");
    }

    #[test]
    fn partition_that_leaves_a_new_session_is_forgotten_by_the_broker() {
        let mut session = FetchSession::default();
        let gone = ForgottenPartition { key: TopicPartition::new("t", 3), topic_id: Uuid::ZERO, end: None };
        session.forget(gone.clone());
        session.handle_response(ErrorCode::NONE, 77);
        assert_eq!(session.take_forgotten(), [gone], "the broker has it in session 77");
    }

    #[test]
    fn session_closed_during_a_request_is_not_resumed() {
        let mut session = FetchSession::default();
        session.note_asked();
        session.restart();
        assert_eq!(session.handle_response(ErrorCode::NONE, 77), SessionVerdict::Good);
        assert!(session.is_full(), "the next request names everything");
        session.note_asked();
        session.handle_response(ErrorCode::NONE, 78);
        assert_eq!(session.head(), (78, 1));
        session.note_asked();
        session.restart();
        let verdict = session.handle_response(ErrorCode::INVALID_FETCH_SESSION_EPOCH, 0);
        assert_eq!(verdict, SessionVerdict::Restart, "not a word of it to the application");
    }

    #[test]
    fn a_forgotten_session_starts_afresh() {
        let mut session = FetchSession::default();
        session.handle_response(ErrorCode::NONE, 77);
        let before = session.generation();
        let verdict = session.handle_response(ErrorCode::FETCH_SESSION_ID_NOT_FOUND, 0);
        assert_eq!(verdict, SessionVerdict::Restart);
        assert!(session.is_full() && session.generation() != before);
        session.note_asked();
        assert_eq!(
            session.handle_response(ErrorCode::INVALID_FETCH_SESSION_EPOCH, 0),
            SessionVerdict::Refused(ErrorCode::INVALID_FETCH_SESSION_EPOCH),
            "a broker that refuses even a new session is not asked in a loop"
        );
    }

    #[test]
    fn broker_without_session_cache_room_gets_full_fetches() {
        let mut session = FetchSession::default();
        let before = session.generation();
        session.handle_response(ErrorCode::NONE, 0);
        assert!(session.is_full() && session.generation() != before);
    }

    #[test]
    fn names_and_ids_do_not_mix_in_one_session() {
        let mut session = FetchSession::default();
        session.use_topic_ids(true);
        session.handle_response(ErrorCode::NONE, 5);
        session.use_topic_ids(true);
        assert_eq!(session.head(), (5, 1));
        session.use_topic_ids(false);
        assert_eq!(session.head(), (0, 0));
    }
}
