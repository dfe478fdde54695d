//! The idempotent producer's identity (KIP-98, KIP-360): asked of the cluster once. When some partition lost the thread,
//! the epoch is raised here, without asking: a batch of the old epoch that is still on its way somewhere is then refused
//! by the broker, which a new id would not achieve.

use std::time::Duration;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
    primitive::Reader,
};

use crate::{
    backoff::Backoff,
    broker::connection::Response,
    cluster::RoutedRequest,
    error::{Error, ErrorKind, Result},
    machine::Instant,
    mutation::{Mutant, Mutation},
    rng::Rng,
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
};

/// Who sends: the id that the cluster gave, and its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdentity {
    /// The producer's id.
    pub id: i64,
    /// Counts how often the identity was renewed.
    pub epoch: i16,
}

/// The identity where the brokers' owners can see it.
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
    /// The current identity, if the cluster gave one.
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

    /// How often the identity was given or renewed.
    pub fn renewals(&self) -> u64 {
        self.version.load(Ordering::Acquire) >> 16
    }

    pub(crate) fn set(&self, identity: ProducerIdentity) {
        let renewals = (self.version.load(Ordering::Acquire) >> 16) + 1;
        // Readers that come in between see an id of -1 or a version that changes under them.
        self.id.store(-1, Ordering::Release);
        self.version.store((renewals << 16) | u64::from(identity.epoch as u16), Ordering::Release);
        self.id.store(identity.id, Ordering::Release);
    }
}

/// Gets and renews the identity. Owned by the cluster's owner.
///
/// ```text
///   Wanted ── request ──► Asking ── answered ──► Known ──┐ a partition needs
///     ▲                     │ retriable            │ ▲   │ a higher epoch
///     └──── back-off ◄──────┘ ◄── epochs used up ──┘ └───┘
/// ```
#[derive(Debug)]
pub struct ProducerId {
    state: State,
    known: Option<ProducerIdentity>,
    /// Since when it is known, or was lost.
    since: Option<Instant>,
    backoff: Backoff,
    /// The error that was told last, so that it is told once.
    told: Option<ErrorKind>,
    mutation: Mutation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Wanted { at: Instant },
    Asking,
    Known,
}

/// What an answer means.
#[derive(Debug)]
pub enum ProducerIdAnswer {
    /// The identity is there: let the brokers look.
    Known,
    /// It will be asked for again. The application is to hear of an error that may not pass by itself.
    Later(Option<Error>),
    /// It will never be there.
    Fatal(Error),
}

impl ProducerId {
    /// Nothing is known yet.
    pub const fn new(retry_backoff: Duration, retry_backoff_max: Duration, mutation: Mutation) -> Self {
        Self {
            state: State::Wanted { at: Instant::ZERO },
            known: None,
            since: None,
            backoff: Backoff::new(retry_backoff, retry_backoff_max),
            told: None,
            mutation,
        }
    }

    /// Since when there is an identity, or since when it is asked for anew; `None` before the first one.
    pub const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// A partition that used `identity` can't go on with it. True if the identity was renewed by this; nothing happens
    /// if it was renewed before.
    pub fn renew(&mut self, now: Instant, identity: ProducerIdentity, shared: &SharedIdentity) -> bool {
        if self.state != State::Known || self.known != Some(identity) {
            return false;
        }
        match identity.epoch.checked_add(1) {
            Some(epoch) => {
                let identity = ProducerIdentity { epoch, ..identity };
                self.known = Some(identity);
                shared.set(identity);
                true
            }
            None => {
                self.known = None;
                self.since = Some(now);
                self.state = State::Wanted { at: now };
                false
            }
        }
    }

    /// The request to send, if one is due.
    pub(crate) fn poll_request(&mut self, now: Instant, timeout: Duration) -> Option<RoutedRequest> {
        match self.state {
            State::Wanted { at } if at <= now => {}
            _ => return None,
        }
        self.state = State::Asking;
        let known = self.known;
        Some(RoutedRequest {
            api: ApiKey::InitProducerId,
            versions: ApiKey::InitProducerId.versions(),
            timeout,
            encode: Box::new(move |version, out| {
                // Before version 3 the current identity can't be named: the cluster gives a new one.
                let known = known.filter(|_| version >= 3);
                InitProducerIdRequest {
                    transactional_id: None,
                    transaction_timeout_ms: i32::MAX,
                    producer_id: known.map_or(-1, |identity| identity.id),
                    producer_epoch: known.map_or(-1, |identity| identity.epoch),
                    ..InitProducerIdRequest::default()
                }
                .encode(version, out)
            }),
        })
    }

    /// When a request is due.
    pub const fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Wanted { at } => Some(at),
            State::Asking | State::Known => None,
        }
    }

    /// The cluster's answer.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        result: Result<Response>,
        shared: &SharedIdentity,
        rng: &mut Rng,
    ) -> ProducerIdAnswer {
        let answer = result.and_then(|response| {
            InitProducerIdResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))
        });
        let (code, error) = match answer {
            Ok(answer)
                if answer.error_code == ErrorCode::NONE
                    && answer.producer_id >= 0
                    && answer.producer_epoch >= 0 =>
            {
                let identity = ProducerIdentity { id: answer.producer_id, epoch: answer.producer_epoch };
                self.known = Some(identity);
                self.state = State::Known;
                self.since = Some(now);
                self.backoff.reset();
                self.told = None;
                shared.set(identity);
                return ProducerIdAnswer::Known;
            }
            Ok(answer) if answer.error_code == ErrorCode::NONE => {
                let (id, epoch) = (answer.producer_id, answer.producer_epoch);
                let detail = format!("it gave the producer id {id} with epoch {epoch}, which are none");
                (ErrorCode::NONE, Error::new(ErrorKind::BadResponse, detail))
            }
            Ok(answer) => (answer.error_code, Error::broker(answer.error_code, None)),
            Err(error) if error.kind() == ErrorKind::UnsupportedVersion => {
                let detail = "enable.idempotence needs brokers of version 0.11 or newer; set it to false";
                return ProducerIdAnswer::Fatal(
                    Error::new(ErrorKind::UnsupportedVersion, detail).with_api("InitProducerId"),
                );
            }
            Err(error) => (ErrorCode::NONE, error),
        };
        match code {
            ErrorCode::CLUSTER_AUTHORIZATION_FAILED | ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED => {
                let detail =
                    "enable.idempotence needs the right IDEMPOTENT_WRITE on the cluster, or WRITE on a topic";
                return ProducerIdAnswer::Fatal(Error::broker(code, Some(detail)).with_api("InitProducerId"));
            }
            // The identity is not known to the cluster any more: ask for a new one.
            ErrorCode::INVALID_PRODUCER_EPOCH
            | ErrorCode::PRODUCER_FENCED
            | ErrorCode::INVALID_PRODUCER_ID_MAPPING
            | ErrorCode::UNKNOWN_PRODUCER_ID => self.known = None,
            _ => {}
        }
        // Of a connection's troubles the application hears anyway.
        let told = match error.kind() {
            ErrorKind::Broker(code) if !code.is_retriable() => Some(error),
            ErrorKind::BadResponse => Some(error),
            _ => None,
        };
        let told = told.filter(|error| self.told.replace(error.kind()) != Some(error.kind()));
        let wait = self.backoff.next(rng);
        let at_once = self.mutation.is(Mutant::IdentityWithoutBackoff);
        self.state = State::Wanted { at: if at_once { now } else { now + wait } };
        let told = told.map(|error| error.with_api("InitProducerId").with_next_attempt(wait));
        ProducerIdAnswer::Later(told)
    }
}

/// The sequence number `count` places after `sequence`: they wrap to 0 after `i32::MAX`.
pub const fn sequence_after(sequence: i32, count: u32) -> i32 {
    ((sequence as u32).wrapping_add(count) & i32::MAX as u32) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::{
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    };

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(sequence_after(0, 10), 10);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 1, 5), 3);
    }

    /// What is made of an answer, by someone whose epochs are used up.
    fn answered(id: &mut ProducerId, answer: &InitProducerIdResponse) -> ProducerIdAnswer {
        let mut bytes = Vec::new();
        answer.encode(4, &mut bytes).unwrap();
        let request = InFlight {
            correlation_id: 1,
            api: ApiKey::InitProducerId,
            version: 4,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(Vec::new()),
            expects_answer: true,
            queued_at: Instant::ZERO,
            written_at: Instant::ZERO,
            timeout: Duration::ZERO,
        };
        let response = Response { request, frame: Frame { len: bytes.len(), bytes }, body: 0 };
        id.state = State::Asking;
        let shared = SharedIdentity::default();
        let answer = id.handle_answer(Instant::ZERO, Ok(response), &shared, &mut Rng::from_seed(1));
        assert_eq!(shared.get().is_some(), matches!(answer, ProducerIdAnswer::Known));
        answer
    }

    fn producer_id() -> ProducerId {
        ProducerId::new(Duration::from_millis(100), Duration::from_secs(1), Mutation::NONE)
    }

    #[test]
    fn each_error_of_init_producer_id_ends_the_producer_or_is_tried_again_and_told_unless_it_passes() {
        for error_code in ErrorCode::all().filter(|code| code.is_error()) {
            let mut id = producer_id();
            let refusal = InitProducerIdResponse { error_code, ..Default::default() };
            match answered(&mut id, &refusal) {
                ProducerIdAnswer::Known => panic!("{error_code}"),
                ProducerIdAnswer::Fatal(error) => {
                    assert!(error_code.name().ends_with("AUTHORIZATION_FAILED"), "{error}");
                    assert!(error.to_string().contains(error_code.name()), "{error}");
                }
                ProducerIdAnswer::Later(told) => {
                    assert_eq!(told.is_none(), error_code.is_retriable(), "{error_code}");
                    assert!(told.is_none_or(|error| error.kind() == ErrorKind::Broker(error_code)));
                    assert!(id.poll_timeout() >= Some(Instant::ZERO + Duration::from_millis(50)));
                    let again = answered(&mut id, &refusal);
                    assert!(matches!(again, ProducerIdAnswer::Later(None)), "told once: {again:?}");
                }
            }
        }
    }

    #[test]
    fn an_id_or_an_epoch_below_0_is_none() {
        for (producer_id_told, producer_epoch) in [(-1, 0), (7, -1), (i64::MIN, i16::MIN)] {
            let mut id = producer_id();
            let answer = InitProducerIdResponse {
                producer_id: producer_id_told,
                producer_epoch,
                ..Default::default()
            };
            let ProducerIdAnswer::Later(Some(error)) = answered(&mut id, &answer) else { panic!("told") };
            assert_eq!(error.kind(), ErrorKind::BadResponse);
            assert!(error.to_string().contains(&producer_id_told.to_string()), "{error}");
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
        let mut id = ProducerId::new(Duration::from_millis(1), Duration::from_millis(1), Mutation::NONE);
        id.state = State::Known;
        id.known = Some(ProducerIdentity { id: 5, epoch: 1 });
        let shared = SharedIdentity::default();
        assert!(!id.renew(Instant::ZERO, ProducerIdentity { id: 5, epoch: 0 }, &shared), "renewed already");
        assert!(id.renew(Instant::ZERO, ProducerIdentity { id: 5, epoch: 1 }, &shared));
        assert_eq!(shared.get(), Some(ProducerIdentity { id: 5, epoch: 2 }));
        id.known = Some(ProducerIdentity { id: 5, epoch: i16::MAX });
        assert!(!id.renew(Instant::ZERO, ProducerIdentity { id: 5, epoch: i16::MAX }, &shared));
        assert!(id.poll_request(Instant::ZERO, Duration::from_secs(1)).is_some());
        assert!(id.poll_request(Instant::ZERO, Duration::from_secs(1)).is_none(), "one at a time");
    }
}
