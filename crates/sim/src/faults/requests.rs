//! Faults of requests: rejected, delayed, throttled, without a response, or with a corrupted one.

use std::time::Duration;

use ottla_core::{machine::Instant, rng::Rng};
use ottla_embedded_broker::{Fault, FaultAction};
use ottla_protocol::{api::ApiKey, error_code::ErrorCode};

use super::{FaultKind, Heal, Strike, topic_name};
use crate::{knobs::Knobs, world::World};

/// Transient errors.
const SOME_ERRORS: [(ApiKey, &[ErrorCode]); 4] = [
    (
        ApiKey::Fetch,
        &[
            ErrorCode::NOT_LEADER_OR_FOLLOWER,
            ErrorCode::FENCED_LEADER_EPOCH,
            ErrorCode::UNKNOWN_LEADER_EPOCH,
            ErrorCode::KAFKA_STORAGE_ERROR,
            ErrorCode::OFFSET_NOT_AVAILABLE,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode::UNKNOWN_SERVER_ERROR,
        ],
    ),
    (
        ApiKey::ListOffsets,
        &[
            ErrorCode::NOT_LEADER_OR_FOLLOWER,
            ErrorCode::LEADER_NOT_AVAILABLE,
            ErrorCode::OFFSET_NOT_AVAILABLE,
            ErrorCode::UNKNOWN_LEADER_EPOCH,
        ],
    ),
    (ApiKey::Metadata, &[ErrorCode::LEADER_NOT_AVAILABLE]),
    (
        ApiKey::InitProducerId,
        &[
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode::CONCURRENT_TRANSACTIONS,
            ErrorCode::REQUEST_TIMED_OUT,
        ],
    ),
];

/// Errors after which a batch fails, or is not sent again unchanged.
const SOME_VERDICTS: [ErrorCode; 6] = [
    ErrorCode::MESSAGE_TOO_LARGE,
    ErrorCode::INVALID_RECORD,
    ErrorCode::TOPIC_AUTHORIZATION_FAILED,
    ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode::UNKNOWN_PRODUCER_ID,
    ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND,
];

impl Strike<'_> {
    /// Injects a fault of these kinds; returns false if it is of another kind.
    pub(super) fn strike_requests(&mut self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::RejectProduce => self.reject_produce(),
            FaultKind::LoseProduceResponse => self.lose_produce_response(),
            FaultKind::DisturbRequest => self.disturb_request(),
            FaultKind::RejectRequest => self.reject_request(),
            FaultKind::RejectEveryRequest => self.reject_every_request(),
            _ => return false,
        }
        true
    }

    /// Rejects some Produce requests.
    fn reject_produce(&mut self) {
        let (now, topic) = (self.world.now, self.topic.clone());
        let codes = [
            ErrorCode::NOT_LEADER_OR_FOLLOWER,
            ErrorCode::NOT_ENOUGH_REPLICAS,
            ErrorCode::KAFKA_STORAGE_ERROR,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode::REQUEST_TIMED_OUT,
            ErrorCode::CORRUPT_MESSAGE,
        ];
        let code = codes[self.rng.below(codes.len() as u64) as usize];
        self.world.trace.note(now, format_args!("Produce to {topic} will be rejected with {}", code.name()));
        let times = 1 + self.rng.below(3) as u32;
        let fault = Fault::new(FaultAction::Error(code)).api(ApiKey::Produce).topic(&topic).times(times);
        self.world.cluster.control().inject(fault);
    }

    /// Loses the response to a Produce request.
    fn lose_produce_response(&mut self) {
        let now = self.world.now;
        self.world.trace.note(now, format_args!("the next Produce response is lost"));
        let fault = Fault::new(FaultAction::LoseResponse).api(ApiKey::Produce).times(1);
        self.world.cluster.control().inject(fault);
    }

    /// Delays, throttles, drops or corrupts the response to a request of any API.
    fn disturb_request(&mut self) {
        let (now, for_a_while) = (self.world.now, self.for_a_while);
        let actions = [
            FaultAction::Delay(for_a_while),
            FaultAction::CloseConnection,
            FaultAction::Throttle(for_a_while),
            FaultAction::NeverRespond,
            FaultAction::TruncateResponse(self.rng.below(20) as usize),
            FaultAction::ShiftCorrelationId(1),
        ];
        let action = actions[self.rng.below(actions.len() as u64) as usize].clone();
        if matches!(action, FaultAction::TruncateResponse(_) | FaultAction::ShiftCorrelationId(_)) {
            self.world.wire.expect_spoiled_responses();
        }
        self.world.trace.note(now, format_args!("some request will meet {action:?}"));
        self.world.cluster.control().inject(Fault::new(action).skip(self.rng.below(4) as u32).times(1));
    }

    /// Rejects some requests of any API.
    fn reject_request(&mut self) {
        let (now, topic) = (self.world.now, self.topic.clone());
        let (api, codes) = SOME_ERRORS[self.rng.below(SOME_ERRORS.len() as u64) as usize];
        let code = codes[self.rng.below(codes.len() as u64) as usize];
        let mut fault = Fault::new(FaultAction::Error(code)).api(api).times(1 + self.rng.below(3) as u32);
        if api != ApiKey::InitProducerId {
            fault = fault.topic(&topic);
        }
        self.world
            .trace
            .note(now, format_args!("{} about {topic} will be rejected with {}", api.name(), code.name()));
        self.world.cluster.control().inject(fault);
    }

    /// Rejects every request of an API for some time.
    fn reject_every_request(&mut self) {
        let (now, until) = (self.world.now, self.until);
        let (api, code) = [
            (ApiKey::InitProducerId, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
            (ApiKey::InitProducerId, ErrorCode::NOT_COORDINATOR),
            (ApiKey::ListOffsets, ErrorCode::LEADER_NOT_AVAILABLE),
            (ApiKey::Fetch, ErrorCode::NOT_LEADER_OR_FOLLOWER),
            (ApiKey::Produce, ErrorCode::NOT_LEADER_OR_FOLLOWER),
        ][self.rng.below(5) as usize];
        self.world.trace.note(now, format_args!("every {} is rejected with {}", api.name(), code.name()));
        self.world.cluster.control().inject(Fault::new(FaultAction::Error(code)).api(api));
        self.heals.push((until, Heal::Refusals));
    }
}

/// Loses responses to Produce: either all that are in transit to a producer, while its requests still arrive for some
/// time, or some more one by one, so that the response to the retry is lost, too.
pub(super) fn lose_responses(knobs: &Knobs, world: &mut World, rng: &mut Rng) {
    let client = rng.below(u64::from(knobs.producers)) as usize;
    if rng.chance(1, 2) {
        world.lose_responses_to(client, Duration::from_millis(10 + rng.below(500)));
    }
    let (done, lost) = (rng.below(6) as u32, rng.below(5) as u32);
    if lost > 0 {
        world
            .trace
            .note(world.now, format_args!("{done} requests to Produce get responses, {lost} more do not"));
        let fault = Fault::new(FaultAction::LoseResponse).api(ApiKey::Produce).skip(done).times(lost);
        world.cluster.control().inject(fault);
    }
    if rng.chance(1, 4) {
        let code = SOME_VERDICTS[rng.below(SOME_VERDICTS.len() as u64) as usize];
        world.trace.note(world.now, format_args!("a batch will be rejected with {}", code.name()));
        let fault = Fault::new(FaultAction::Error(code)).api(ApiKey::Produce).topic(&topic_name(0));
        world.cluster.control().inject(fault.skip(rng.below(4) as u32).times(1));
    }
}

/// Rejects InitProducerId for some time; returns the end of the fault and the time of it.
pub fn refuse_identities(world: &mut World, duration: Duration) -> (Instant, Heal) {
    world.trace.note(world.now, format_args!("no producer gets a producer ID for {duration:?}"));
    let refusal = FaultAction::Error(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    world.cluster.control().inject(Fault::new(refusal).api(ApiKey::InitProducerId));
    (world.now + duration, Heal::Refusals)
}
