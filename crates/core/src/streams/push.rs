//! The push of the topology's description: StreamsGroupTopologyDescriptionUpdate (KIP-1331).
//!
//! ```text
//!           a heartbeat's response asks          sent
//!   Idle ───────────────────────────────► Due ◄───────► InFlight ──► Idle: stored or refused
//!                                          └─ lost, moved: again after a back-off
//! ```
//!
//! The coordinator asks one member, once: it asks nobody for half a minute or longer after that. So the member repeats a request
//! whose response is lost, and forgets the question only with its membership.

use std::time::Duration;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::streams_group_topology_description_update::{
        StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse,
    },
    primitive::Reader,
};

use super::settings::StreamsSettings;
use crate::{
    backoff::Backoff,
    connection::Response,
    contract::route::RoutedRequest,
    error::{Error, ErrorKind},
    group::{has_moved, retry_wait},
    machine::Instant,
    rng::Rng,
    states::See,
};

const API: &str = "StreamsGroupTopologyDescriptionUpdate";

/// The push of the topology's description, for one member.
#[derive(Debug)]
pub(super) struct DescriptionPush {
    state: State,
    /// The number of the last request. Responses to earlier ones are ignored.
    number: u64,
    backoff: Backoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// The coordinator asked; the next attempt is at this time.
    Due(Instant),
    InFlight,
}

/// What follows from the response to a push.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The coordinator is another node.
    pub has_moved: bool,
    /// The error to report to the application.
    pub error: Option<Error>,
}

impl DescriptionPush {
    /// Shows the state.
    pub(super) fn states(&self, see: &mut See<'_>) {
        see("description of a topology", 0, &self.state);
    }

    pub(super) const fn new((first, longest): (Duration, Duration)) -> Self {
        Self { state: State::Idle, number: 0, backoff: Backoff::new(first, longest) }
    }

    /// Returns true if the coordinator has asked for the description and does not have it yet.
    pub(super) fn is_wanted(&self) -> bool {
        self.state != State::Idle
    }

    /// The coordinator asks for the description.
    pub(super) fn ask(&mut self, now: Instant) {
        if self.state == State::Idle {
            self.state = State::Due(now);
        }
    }

    /// Forgets the question: the membership in which the coordinator asked has ended.
    pub(super) fn forget(&mut self) {
        self.state = State::Idle;
        self.number += 1;
        self.backoff.reset();
    }

    /// Returns the time of the next attempt. Without a description there is none.
    pub(super) fn poll_timeout(&self, settings: &StreamsSettings) -> Option<Instant> {
        match self.state {
            State::Due(at) if settings.description.is_some() => Some(at),
            _ => None,
        }
    }

    /// Returns the request that is due, with its number.
    pub(super) fn poll_request(
        &mut self,
        now: Instant,
        settings: &StreamsSettings,
        member_id: &str,
    ) -> Option<(RoutedRequest, u64)> {
        let description = settings.description.as_ref()?;
        if !matches!(self.state, State::Due(at) if at <= now) {
            return None;
        }
        self.state = State::InFlight;
        self.number += 1;
        let request = StreamsGroupTopologyDescriptionUpdateRequest {
            group_id: settings.group_id.to_string(),
            member_id: member_id.to_owned(),
            topology_epoch: settings.topology.epoch,
            topology_description: description.to_request(),
        };
        Some((routed(request, settings.request_timeout), self.number))
    }

    /// Handles the response to a push, or the error instead of one.
    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        rng: &mut Rng,
        number: u64,
        result: Result<StreamsGroupTopologyDescriptionUpdateResponse, Error>,
    ) -> Outcome {
        if self.state != State::InFlight || number != self.number {
            return Outcome::default();
        }
        let error = match result {
            Ok(response) if response.error_code.is_error() => {
                Error::broker(response.error_code, response.error_message.as_deref()).with_api(API)
            }
            Ok(_) => {
                self.forget();
                return Outcome::default();
            }
            Err(error) => error,
        };
        let has_moved = matches!(error.kind(), ErrorKind::Broker(code) if has_moved(code));
        if is_transient(&error) {
            self.state = State::Due(now + retry_wait(&error, &mut self.backoff, rng));
            return Outcome { has_moved, error: None };
        }
        self.forget();
        // The next heartbeat meets these, too, and reports them.
        let is_of_membership = matches!(
            error.kind(),
            ErrorKind::Broker(ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::GROUP_ID_NOT_FOUND)
        );
        Outcome { has_moved, error: Some(error).filter(|_| !is_of_membership) }
    }
}

/// Returns true if the same request may succeed later. The coordinator itself decides when its plug-in is tried again.
fn is_transient(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Broker(code) => code == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS || has_moved(code),
        ErrorKind::UnsupportedVersion
        | ErrorKind::InvalidArgument
        | ErrorKind::BadResponse
        | ErrorKind::Bug
        | ErrorKind::Closed => false,
        _ => true,
    }
}

/// Decodes the response to a push.
pub(super) fn decode(response: Response) -> Result<StreamsGroupTopologyDescriptionUpdateResponse, Error> {
    let version = response.request.version;
    let decoded =
        StreamsGroupTopologyDescriptionUpdateResponse::decode(&mut Reader::new(response.body()), version);
    decoded.map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()).with_api(API))
}

/// Returns a push as the cluster actor sends it.
pub(crate) fn routed(
    request: StreamsGroupTopologyDescriptionUpdateRequest,
    timeout: Duration,
) -> RoutedRequest {
    let api = ApiKey::StreamsGroupTopologyDescriptionUpdate;
    let encode = Box::new(move |version, out: &mut Vec<u8>| request.encode(version, out));
    RoutedRequest { api, versions: api.versions(), timeout, encode }
}
