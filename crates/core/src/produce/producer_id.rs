//! The idempotent producer's ID and epoch (KIP-98, KIP-360), requested from the cluster once. After a gap in a
//! partition's sequence numbers the client raises the epoch without a request: the broker then rejects a batch of the
//! old epoch that is still in flight, which a new ID would not achieve.
//!
//! # Pitfalls
//!
//! - Sequence numbers wrap to zero, not to a negative number (`sequences_wrap_to_zero`).

use std::time::Duration;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
    primitive::Reader,
};

use crate::{
    backoff::Backoff,
    connection::Response,
    contract::route::RoutedRequest,
    error::{Error, ErrorKind, Result},
    machine::Instant,
    rng::Rng,
    states::See,
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
};

/// The ID that the cluster assigned to the producer, and its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdentity {
    /// The producer's id.
    pub id: i64,
    /// The epoch, which each renewal raises.
    pub epoch: i16,
}

/// The identity, shared with the broker actors.
#[derive(Debug)]
pub struct SharedIdentity {
    id: AtomicI64,
    /// Renewals in the upper bits, the epoch in the lower 16: changes with every renewal.
    version: AtomicU64,
}

impl Default for SharedIdentity {
    fn default() -> Self {
        Self { id: AtomicI64::new(-1), version: AtomicU64::new(0) }
    }
}

impl SharedIdentity {
    /// Returns the current identity, if the cluster assigned one.
    pub fn get(&self) -> Option<ProducerIdentity> {
        loop {
            let before = self.version.load(Ordering::Acquire);
            let id = self.id.load(Ordering::Acquire);
            if self.version.load(Ordering::Acquire) == before {
                return (before != 0 && id >= 0)
                    .then_some(ProducerIdentity { id, epoch: before as u16 as i16 });
            }
        }
    }

    /// Returns the number of times the identity was assigned or renewed.
    pub fn renewals(&self) -> u64 {
        self.version.load(Ordering::Acquire) >> 16
    }

    /// Forgets the identity: senders wait for the next one.
    pub(crate) fn clear(&self) {
        self.id.store(-1, Ordering::Release);
    }

    pub(crate) fn set(&self, identity: ProducerIdentity) {
        let renewals = (self.version.load(Ordering::Acquire) >> 16) + 1;
        // Readers in between see an ID of -1, or a version that changes during their read.
        self.id.store(-1, Ordering::Release);
        self.version.store((renewals << 16) | u64::from(identity.epoch as u16), Ordering::Release);
        self.id.store(identity.id, Ordering::Release);
    }
}

/// Requests and renews the identity. The cluster actor owns it.
///
/// ```text
///   Needed ── request ──► Asking ── response ──► Known ──┐ a partition needs
///     ▲                     │ retriable            │ ▲   │ a higher epoch
///     └──── back-off ◄──────┘ ◄── epochs used up ──┘ └───┘
/// ```
#[derive(Debug)]
pub struct ProducerId {
    state: State,
    /// The time at which it became known, or was lost.
    since: Option<Instant>,
    backoff: Backoff,
    /// The last reported error, so that it is reported once.
    reported: Option<ErrorKind>,
    /// The number of responses in a row without support for InitProducerId.
    unsupported: u32,
}

/// The number of responses in a row without support for InitProducerId after which the producer fails.
const UNSUPPORTED_RESPONSES: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Needed { at: Instant },
    Asking,
    Known(ProducerIdentity),
}

/// The meaning of a response.
#[derive(Debug)]
pub enum ProducerIdOutcome {
    /// The identity is known: notify the broker actors.
    Known,
    /// The request will be repeated. The error, if any, may be permanent and is reported to the application.
    Later(Option<Error>),
    /// The request can't succeed.
    Fatal(Error),
}

impl ProducerId {
    /// Creates the state without an identity.
    pub const fn new(retry_backoff: Duration, retry_backoff_max: Duration) -> Self {
        Self {
            state: State::Needed { at: Instant::ZERO },
            since: None,
            backoff: Backoff::new(retry_backoff, retry_backoff_max),
            reported: None,
            unsupported: 0,
        }
    }

    /// Shows the state.
    pub(crate) fn states(&self, see: &mut See<'_>) {
        see("producer ID", 0, &self.state);
    }

    /// Returns when the identity became known or was requested again; `None` before the first one.
    pub const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Renews the identity because a partition can't continue with `identity`. Returns true if this call renewed it;
    /// does nothing if it was renewed before.
    pub fn renew(&mut self, now: Instant, identity: ProducerIdentity, shared: &SharedIdentity) -> bool {
        if self.state != State::Known(identity) {
            return false;
        }
        match identity.epoch.checked_add(1) {
            Some(epoch) => {
                let identity = ProducerIdentity { epoch, ..identity };
                self.state = State::Known(identity);
                shared.set(identity);
                true
            }
            None => {
                self.since = Some(now);
                self.state = State::Needed { at: now };
                false
            }
        }
    }

    /// Returns the request to send, if one is due.
    pub(crate) fn poll_request(&mut self, now: Instant, timeout: Duration) -> Option<RoutedRequest> {
        match self.state {
            State::Needed { at } if at <= now => {}
            _ => return None,
        }
        self.state = State::Asking;
        Some(RoutedRequest {
            api: ApiKey::InitProducerId,
            versions: ApiKey::InitProducerId.versions(),
            timeout,
            encode: Box::new(|version, out| {
                // The producer has no identity, or one whose epochs are used up: it gets a new ID.
                InitProducerIdRequest {
                    transactional_id: None,
                    transaction_timeout_ms: i32::MAX,
                    producer_id: -1,
                    producer_epoch: -1,
                    ..InitProducerIdRequest::default()
                }
                .encode(version, out)
            }),
        })
    }

    /// Returns when a request is due.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Needed { at } => Some(at),
            State::Asking | State::Known(_) => None,
        }
    }

    /// Handles the cluster's response.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        result: Result<Response>,
        shared: &SharedIdentity,
        rng: &mut Rng,
    ) -> ProducerIdOutcome {
        let response = result.and_then(|response| {
            InitProducerIdResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))
        });
        if response.is_ok() {
            self.unsupported = 0;
        }
        let (code, error) = match response {
            Ok(response)
                if response.error_code == ErrorCode::NONE
                    && response.producer_id >= 0
                    && response.producer_epoch >= 0 =>
            {
                let identity = ProducerIdentity { id: response.producer_id, epoch: response.producer_epoch };
                self.state = State::Known(identity);
                self.since = Some(now);
                self.backoff.reset();
                self.reported = None;
                shared.set(identity);
                return ProducerIdOutcome::Known;
            }
            Ok(response) if response.error_code == ErrorCode::NONE => {
                let (id, epoch) = (response.producer_id, response.producer_epoch);
                let detail = format!("it gave the producer id {id} with epoch {epoch}, which are none");
                (ErrorCode::NONE, Error::new(ErrorKind::BadResponse, detail))
            }
            Ok(response) => (response.error_code, Error::broker(response.error_code, None)),
            Err(error) if error.kind() == ErrorKind::UnsupportedVersion => {
                // The API versions are requested again meanwhile: one wrong response does not end a producer.
                self.unsupported += 1;
                if self.unsupported < UNSUPPORTED_RESPONSES {
                    self.state = State::Needed { at: now + self.backoff.next(rng) };
                    return ProducerIdOutcome::Later(None);
                }
                let detail = "enable.idempotence needs brokers of version 0.11 or newer; set it to false";
                return ProducerIdOutcome::Fatal(
                    Error::new(ErrorKind::UnsupportedVersion, detail).with_api("InitProducerId"),
                );
            }
            Err(error) => (ErrorCode::NONE, error),
        };
        if matches!(
            code,
            ErrorCode::CLUSTER_AUTHORIZATION_FAILED | ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        ) {
            let detail =
                "enable.idempotence needs the right IDEMPOTENT_WRITE on the cluster, or WRITE on a topic";
            return ProducerIdOutcome::Fatal(Error::broker(code, Some(detail)).with_api("InitProducerId"));
        }
        // Connection errors are reported to the application separately.
        let reported = match error.kind() {
            ErrorKind::Broker(code) if !code.is_retriable() => Some(error),
            ErrorKind::BadResponse => Some(error),
            _ => None,
        };
        let reported = reported.filter(|error| self.reported.replace(error.kind()) != Some(error.kind()));
        let wait = self.backoff.next(rng);
        self.state = State::Needed { at: now + wait };
        let reported = reported.map(|error| error.with_api("InitProducerId").with_next_attempt(wait));
        ProducerIdOutcome::Later(reported)
    }
}

/// Returns the sequence number `count` places after `sequence`; it wraps to 0 after `i32::MAX`.
pub const fn sequence_after(sequence: i32, count: u32) -> i32 {
    ((sequence as u32).wrapping_add(count) & i32::MAX as u32) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    };

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(sequence_after(0, 10), 10);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 1, 5), 3);
    }

    /// Handles a response when the epochs of the producer ID are used up.
    fn respond(id: &mut ProducerId, response: &InitProducerIdResponse) -> ProducerIdOutcome {
        let mut bytes = Vec::new();
        response.encode(4, &mut bytes).unwrap();
        let request = InFlight {
            correlation_id: 1,
            api: ApiKey::InitProducerId,
            version: 4,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(Vec::new()),
            expects_response: true,
            queued_at: Instant::ZERO,
            written_at: Instant::ZERO,
            timeout: Duration::ZERO,
        };
        let response = Response { request, frame: Frame { len: bytes.len(), bytes }, body: 0 };
        id.state = State::Asking;
        let shared = SharedIdentity::default();
        let response = id.handle_response(Instant::ZERO, Ok(response), &shared, &mut Rng::from_seed(1));
        assert_eq!(shared.get().is_some(), matches!(response, ProducerIdOutcome::Known));
        response
    }

    fn producer_id() -> ProducerId {
        ProducerId::new(Duration::from_millis(100), Duration::from_secs(1))
    }

    #[test]
    fn init_producer_id_error_is_fatal_or_retried_and_reported_if_it_lasts() {
        for error_code in ErrorCode::all().filter(|code| code.is_error()) {
            let mut id = producer_id();
            let refusal = InitProducerIdResponse { error_code, ..Default::default() };
            match respond(&mut id, &refusal) {
                ProducerIdOutcome::Known => panic!("{error_code}"),
                ProducerIdOutcome::Fatal(error) => {
                    assert!(error_code.name().ends_with("AUTHORIZATION_FAILED"), "{error}");
                    assert!(error.to_string().contains(error_code.name()), "{error}");
                }
                ProducerIdOutcome::Later(reported) => {
                    assert_eq!(reported.is_none(), error_code.is_retriable(), "{error_code}");
                    assert!(reported.is_none_or(|error| error.kind() == ErrorKind::Broker(error_code)));
                    assert!(id.poll_timeout() >= Some(Instant::ZERO + Duration::from_millis(50)));
                    let again = respond(&mut id, &refusal);
                    assert!(matches!(again, ProducerIdOutcome::Later(None)), "reported once: {again:?}");
                }
            }
        }
    }

    #[test]
    fn a_producer_ends_only_when_brokers_repeat_that_they_have_no_ids() {
        let (mut id, shared) = (producer_id(), SharedIdentity::default());
        let refuse = |id: &mut ProducerId| {
            let error = Error::new(ErrorKind::UnsupportedVersion, "");
            id.handle_response(Instant::ZERO, Err(error), &shared, &mut Rng::from_seed(1))
        };
        for _ in 0..5 {
            assert!(matches!(refuse(&mut id), ProducerIdOutcome::Later(None)));
            assert!(id.poll_timeout() >= Some(Instant::ZERO + Duration::from_millis(50)));
            assert!(matches!(refuse(&mut id), ProducerIdOutcome::Later(None)));
            respond(&mut id, &InitProducerIdResponse::default());
        }
        assert!(matches!(refuse(&mut id), ProducerIdOutcome::Later(None)));
        assert!(matches!(refuse(&mut id), ProducerIdOutcome::Later(None)));
        let ProducerIdOutcome::Fatal(error) = refuse(&mut id) else { panic!("it has no broker that can") };
        assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    }

    #[test]
    fn an_id_or_an_epoch_below_0_is_none() {
        for (invalid_producer_id, producer_epoch) in [(-1, 0), (7, -1), (i64::MIN, i16::MIN)] {
            let mut id = producer_id();
            let response = InitProducerIdResponse {
                producer_id: invalid_producer_id,
                producer_epoch,
                ..Default::default()
            };
            let ProducerIdOutcome::Later(Some(error)) = respond(&mut id, &response) else {
                panic!("an error")
            };
            assert_eq!(error.kind(), ErrorKind::BadResponse);
            assert!(error.to_string().contains(&invalid_producer_id.to_string()), "{error}");
        }
    }

    #[test]
    fn a_renewed_identity_replaces_the_old_one() {
        let shared = SharedIdentity::default();
        assert_eq!(shared.get(), None);
        shared.set(ProducerIdentity { id: 0, epoch: 0 });
        assert_eq!(shared.get(), Some(ProducerIdentity { id: 0, epoch: 0 }));
        shared.set(ProducerIdentity { id: 9, epoch: 3 });
        assert_eq!(shared.get(), Some(ProducerIdentity { id: 9, epoch: 3 }));
    }

    #[test]
    fn only_the_identity_in_use_is_renewed() {
        let mut id = ProducerId::new(Duration::from_millis(1), Duration::from_millis(1));
        id.state = State::Known(ProducerIdentity { id: 5, epoch: 1 });
        let shared = SharedIdentity::default();
        assert!(!id.renew(Instant::ZERO, ProducerIdentity { id: 5, epoch: 0 }, &shared), "renewed already");
        assert!(id.renew(Instant::ZERO, ProducerIdentity { id: 5, epoch: 1 }, &shared));
        assert_eq!(shared.get(), Some(ProducerIdentity { id: 5, epoch: 2 }));
        id.state = State::Known(ProducerIdentity { id: 5, epoch: i16::MAX });
        assert!(!id.renew(Instant::ZERO, ProducerIdentity { id: 5, epoch: i16::MAX }, &shared));
        let request = id.poll_request(Instant::ZERO, Duration::from_secs(1)).expect("a request is due");
        for version in request.versions {
            let mut bytes = Vec::new();
            (request.encode)(version, &mut bytes).expect("it can be encoded");
            let sent = InitProducerIdRequest::decode(&mut Reader::new(&bytes), version).expect("a request");
            assert_eq!(
                (sent.producer_id, sent.producer_epoch),
                (-1, -1),
                "a used-up ID is not asked for again"
            );
        }
        assert!(id.poll_request(Instant::ZERO, Duration::from_secs(1)).is_none(), "one at a time");
    }
}
