//! Finds, caches and forgets the coordinators of groups and transactional IDs.
//!
//! ```text
//!                 a request needs it                 found
//!   (no entry) ─────────────────────► Needed ──► Asked ─────► Known(node)
//!                                       ▲          │              │
//!                                       └─ BackingOff ◄──────────────┘ NOT_COORDINATOR, connection lost
//!                                          back-off
//! ```
//!
//! All keys that are needed at the same time share one FindCoordinator request (version 4 and later; one request per
//! key before that). At most one request is in flight.
//!
//! # Pitfalls
//!
//! - Several requests to the same coordinator may all fail with NOT_COORDINATOR. Only the first failure invalidates the
//!   entry: [`Coordinators::invalidate`] names the node that failed, and a node that was found since stays
//!   (`second_refusal_of_a_former_coordinator_changes_nothing`).
//! - NOT_COORDINATOR is not a failure of the lookup: the backoff grows with failed lookups and restarts with each
//!   coordinator that responds (`lookups_back_off_until_a_coordinator_is_found`).

use std::time::Duration;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse},
    primitive::Reader,
    vocabulary::NodeId,
};
use ottla_sorted::SortedMap;

use crate::{
    backoff::Backoff,
    connection::Response,
    contract::{
        metadata::Node,
        route::{Coordinator, CoordinatorKey, CoordinatorKind, RoutedRequest},
    },
    error::{Error, ErrorKind},
    machine::Instant,
    rng::Rng,
    states::See,
};

/// The first version that looks up several keys at once (KIP-699).
const FIRST_WITH_BATCHES: i16 = 4;

/// The coordinators that the client looked up.
#[derive(Debug)]
pub(crate) struct Coordinators {
    entries: SortedMap<CoordinatorKey, Entry>,
    /// The keys of the request in flight.
    asked: Vec<CoordinatorKey>,
    timeout: Duration,
    backoff: (Duration, Duration),
    rng: Rng,
}

#[derive(Debug)]
struct Entry {
    state: State,
    backoff: Backoff,
    /// The error of the last lookup.
    last_error: Option<Error>,
}

/// The state of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// A lookup is needed.
    Needed,
    /// The request is in flight.
    Asked,
    /// The lookup is repeated at this time.
    BackingOff(Instant),
    /// Found.
    Known(Coordinator),
}

impl Coordinators {
    /// Shows the states of the lookups.
    pub(super) fn states(&self, see: &mut See<'_>) {
        for (number, entry) in self.entries.values().enumerate() {
            see("coordinator", number as u64, &entry.state);
        }
    }

    /// Creates the cache; lookups back off from `backoff.0` to `backoff.1`.
    pub(crate) const fn new(timeout: Duration, backoff: (Duration, Duration), rng: Rng) -> Self {
        Self { entries: SortedMap::new(), asked: Vec::new(), timeout, backoff, rng }
    }

    /// Returns the coordinator; requests a lookup if it is unknown.
    pub(crate) fn find(&mut self, key: &CoordinatorKey) -> Option<Coordinator> {
        if let Some(entry) = self.entries.get(key) {
            return match &entry.state {
                State::Known(coordinator) => Some(coordinator.clone()),
                _ => None,
            };
        }
        let backoff = Backoff::new(self.backoff.0, self.backoff.1);
        let entry = Entry { state: State::Needed, backoff, last_error: None };
        self.entries.insert(key.clone(), entry);
        None
    }

    /// Returns the error of a request whose deadline passed before its coordinator was found.
    pub(crate) fn late(&self, key: &CoordinatorKey) -> Error {
        let cause = self.entries.get(key).and_then(|entry| entry.last_error.as_ref());
        let cause = cause.map_or_else(String::new, |error| format!("; {}", error.as_cause()));
        Error::new(ErrorKind::TimedOut, format!("the coordinator of {key:?} was not found in time{cause}"))
    }

    /// Invalidates the entry of `key`, because the node `failed` is not its coordinator or can't be reached. Does
    /// nothing if another node was found since.
    pub(crate) fn invalidate(&mut self, now: Instant, key: &CoordinatorKey, failed: NodeId) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if let State::Known(coordinator) = &entry.state
            && failed == coordinator.node
        {
            entry.state = State::BackingOff(now + entry.backoff.next(&mut self.rng));
        }
    }

    /// Looks all known coordinators up again: their addresses lead elsewhere.
    pub(crate) fn forget_all(&mut self) {
        for entry in self.entries.values_mut() {
            if matches!(entry.state, State::Known(_)) {
                entry.state = State::Needed;
            }
        }
    }

    /// Resets the backoff after the coordinator responded without an error of its own.
    pub(crate) fn confirm(&mut self, key: &CoordinatorKey) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.backoff.reset();
        }
    }

    /// Repeats the lookups whose backoff is over.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        for entry in self.entries.values_mut() {
            if matches!(entry.state, State::BackingOff(until) if until <= now) {
                entry.state = State::Needed;
            }
        }
    }

    /// Returns when to call [`Coordinators::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let backoff = self.entries.values().filter_map(|entry| match entry.state {
            State::BackingOff(until) => Some(until),
            _ => None,
        });
        backoff.min()
    }

    /// Returns the next lookup, if one is needed and none is in flight. It goes to any broker.
    pub(crate) fn poll_request(&mut self) -> Option<RoutedRequest> {
        if !self.asked.is_empty() {
            return None;
        }
        // A request looks up one kind of coordinator.
        let kind = self.entries.iter().find(|(_, entry)| entry.state == State::Needed)?.0.kind;
        for (key, entry) in &mut self.entries {
            if entry.state == State::Needed && key.kind == kind {
                entry.state = State::Asked;
                self.asked.push(key.clone());
            }
        }
        Some(self.request(kind))
    }

    /// Handles the response to a lookup, or its error. Returns the keys whose lookup fails permanently, each with the
    /// error for its requests.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        result: Result<Response, Error>,
    ) -> Vec<(CoordinatorKey, Error)> {
        let asked = std::mem::take(&mut self.asked);
        let response = result.and_then(|response| {
            FindCoordinatorResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))
        });
        let mut failed = Vec::new();
        for (index, key) in asked.into_iter().enumerate() {
            let outcome = response.as_ref().map(|response| found(response, &key, index));
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            match outcome {
                Ok(Some(Ok(coordinator))) => {
                    entry.state = State::Known(coordinator);
                    entry.last_error = None;
                }
                // A request to a broker without batches contained the first key only.
                Ok(None) if index > 0 => entry.state = State::Needed,
                outcome => {
                    let error = match outcome {
                        Ok(Some(Err(error))) => error,
                        Ok(_) => Error::new(ErrorKind::BadResponse, "the response leaves the key out"),
                        Err(error) => error.clone(),
                    };
                    let error = error.with_api(ApiKey::FindCoordinator.name());
                    if is_final(&error) {
                        self.entries.remove(&key);
                        failed.push((key, error));
                    } else {
                        entry.state = State::BackingOff(now + entry.backoff.next(&mut self.rng));
                        entry.last_error = Some(error);
                    }
                }
            }
        }
        failed
    }

    fn request(&self, kind: CoordinatorKind) -> RoutedRequest {
        let ids: Vec<String> = self.asked.iter().map(|key| key.id.to_string()).collect();
        let encode = Box::new(move |version, out: &mut Vec<u8>| {
            let mut request = FindCoordinatorRequest::default();
            if version >= FIRST_WITH_BATCHES {
                request.coordinator_keys.clone_from(&ids);
            } else {
                request.key = ids.first().cloned().unwrap_or_default();
            }
            if version >= 1 {
                request.key_type = kind as i8;
            }
            request.encode(version, out)
        });
        let api = ApiKey::FindCoordinator;
        let first = if kind == CoordinatorKind::Group { *api.versions().start() } else { 1 };
        RoutedRequest { api, versions: first..=*api.versions().end(), timeout: self.timeout, encode }
    }
}

/// Returns the coordinator of a key, or the error; `None` if the response omits the key.
fn found(
    response: &FindCoordinatorResponse,
    key: &CoordinatorKey,
    index: usize,
) -> Option<Result<Coordinator, Error>> {
    let (code, node, host, port, message) = if response.coordinators.is_empty() {
        if index > 0 {
            return None;
        }
        let FindCoordinatorResponse { error_code, node_id, host, port, error_message, .. } = response;
        (*error_code, *node_id, host, *port, error_message)
    } else {
        let found = response.coordinators.iter().find(|found| *found.key == *key.id)?;
        (found.error_code, found.node_id, &found.host, found.port, &found.error_message)
    };
    if code != ErrorCode::NONE {
        return Some(Err(Error::broker(code, message.as_deref())));
    }
    let coordinator = Node::new(host, port, None)
        .zip(NodeId::from_wire(node))
        .map(|(Node { host, port, .. }, node)| Coordinator { node, host, port });
    let invalid = || {
        let detail =
            format!("it names node {node} at `{host}:{port}` as the coordinator, which is not an address");
        Error::new(ErrorKind::BadResponse, detail)
    };
    Some(coordinator.ok_or_else(invalid))
}

/// Returns true if a repeated lookup would fail the same way.
fn is_final(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Broker(code) => !code.is_retriable(),
        kind => matches!(kind, ErrorKind::UnsupportedVersion | ErrorKind::Bug | ErrorKind::Closed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    };

    const NOW: Instant = Instant::from_nanos(1_000_000_000);
    const SHORT: Duration = Duration::from_millis(100);

    fn coordinators() -> Coordinators {
        Coordinators::new(Duration::from_secs(30), (SHORT, Duration::from_secs(1)), Rng::from_seed(1))
    }

    fn key(id: &str) -> CoordinatorKey {
        CoordinatorKey::group(id)
    }

    /// A response that names a node, or an error, for each key.
    fn response(found: &[(&str, ErrorCode, i32)]) -> Result<Response, Error> {
        use ottla_protocol::generated::find_coordinator::response::Coordinator;
        let coordinators = found.iter().map(|(key, error_code, node_id)| Coordinator {
            key: (*key).to_owned(),
            error_code: *error_code,
            node_id: *node_id,
            host: "host".to_owned(),
            port: 9092,
            ..Coordinator::default()
        });
        let response = FindCoordinatorResponse { coordinators: coordinators.collect(), ..Default::default() };
        let mut bytes = Vec::new();
        response.encode(4, &mut bytes).expect("it can be encoded");
        let request = InFlight {
            correlation_id: 1,
            api: ApiKey::FindCoordinator,
            version: 4,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(Vec::new()),
            expects_response: true,
            queued_at: NOW,
            written_at: NOW,
            timeout: Duration::from_secs(30),
        };
        Ok(Response { request, frame: Frame { len: bytes.len(), bytes }, body: 0 })
    }

    /// The keys of the next request, as a version with batches or without asks for them.
    fn asked(coordinators: &mut Coordinators, version: i16) -> Option<Vec<String>> {
        let request = coordinators.poll_request()?;
        let mut bytes = Vec::new();
        (request.encode)(version, &mut bytes).expect("it can be encoded");
        let request = FindCoordinatorRequest::decode(&mut Reader::new(&bytes), version).expect("a request");
        Some(if version >= FIRST_WITH_BATCHES { request.coordinator_keys } else { vec![request.key] })
    }

    #[test]
    fn coordinators_requested_together_share_a_lookup() {
        let mut coordinators = coordinators();
        assert_eq!(coordinators.find(&key("a")), None);
        assert_eq!(coordinators.find(&key("b")), None);
        assert_eq!(asked(&mut coordinators, 4), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(asked(&mut coordinators, 4), None, "one lookup is in flight");
        let found = response(&[("b", ErrorCode::NONE, 2), ("a", ErrorCode::NONE, 1)]);
        assert!(coordinators.handle_response(NOW, found).is_empty());
        let nodes = ["a", "b"].map(|id| coordinators.find(&key(id)).map(|found| found.node.get()));
        assert_eq!(nodes, [Some(1), Some(2)]);
    }

    #[test]
    fn old_broker_is_asked_for_one_key_after_the_other() {
        let mut coordinators = coordinators();
        coordinators.find(&key("a"));
        coordinators.find(&key("b"));
        assert_eq!(asked(&mut coordinators, 3), Some(vec!["a".to_owned()]));
        let mut first = response(&[]).expect("a response");
        let body =
            FindCoordinatorResponse { node_id: 1, host: "host".into(), port: 9092, ..Default::default() };
        let mut bytes = Vec::new();
        body.encode(3, &mut bytes).expect("it can be encoded");
        first.request.version = 3;
        first.frame = Frame { len: bytes.len(), bytes };
        coordinators.handle_response(NOW, Ok(first));
        assert_eq!(coordinators.find(&key("a")).map(|found| found.node.get()), Some(1));
        assert_eq!(asked(&mut coordinators, 3), Some(vec!["b".to_owned()]));
    }

    #[test]
    fn second_refusal_of_a_former_coordinator_changes_nothing() {
        let mut coordinators = coordinators();
        coordinators.find(&key("a"));
        coordinators.poll_request();
        coordinators.handle_response(NOW, response(&[("a", ErrorCode::NONE, 1)]));
        coordinators.invalidate(NOW, &key("a"), NodeId::from_wire(1).unwrap());
        assert_eq!(coordinators.find(&key("a")), None);
        let later = coordinators.poll_timeout().expect("it is looked up again");
        coordinators.handle_timeout(later);
        coordinators.poll_request();
        coordinators.handle_response(later, response(&[("a", ErrorCode::NONE, 2)]));
        coordinators.invalidate(later, &key("a"), NodeId::from_wire(1).unwrap());
        assert_eq!(coordinators.find(&key("a")).map(|found| found.node.get()), Some(2));
    }

    #[test]
    fn lookups_back_off_until_a_coordinator_is_found() {
        let mut coordinators = coordinators();
        coordinators.find(&key("a"));
        let mut now = NOW;
        let mut waits = Vec::new();
        for _ in 0..4 {
            assert!(coordinators.poll_request().is_some());
            let busy = response(&[("a", ErrorCode::COORDINATOR_NOT_AVAILABLE, -1)]);
            assert!(coordinators.handle_response(now, busy).is_empty());
            let next = coordinators.poll_timeout().expect("it is looked up again");
            waits.push(next - now);
            now = next;
            coordinators.handle_timeout(now);
        }
        assert!(waits[0] <= SHORT * 12 / 10 && waits[3] >= SHORT * 5, "{waits:?}");
        assert!(coordinators.late(&key("a")).to_string().contains("COORDINATOR_NOT_AVAILABLE"));
    }

    #[test]
    fn refusal_for_good_is_reported_and_forgotten() {
        let mut coordinators = coordinators();
        coordinators.find(&key("a"));
        coordinators.poll_request();
        let refused = response(&[("a", ErrorCode::GROUP_AUTHORIZATION_FAILED, -1)]);
        let failed = coordinators.handle_response(NOW, refused);
        assert_eq!(failed[0].1.kind(), ErrorKind::Broker(ErrorCode::GROUP_AUTHORIZATION_FAILED));
        coordinators.find(&key("a"));
        assert!(coordinators.poll_request().is_some(), "the next request asks again");
    }

    #[test]
    fn coordinator_without_an_address_is_not_believed() {
        let mut coordinators = coordinators();
        coordinators.find(&key("a"));
        coordinators.poll_request();
        coordinators.handle_response(NOW, response(&[("a", ErrorCode::NONE, -1)]));
        assert_eq!(coordinators.find(&key("a")), None);
        assert!(coordinators.late(&key("a")).to_string().contains("not an address"));
    }
}
