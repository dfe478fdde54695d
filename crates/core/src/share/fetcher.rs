//! The share half of a broker actor: the share partitions that the broker leads, the share session of the connection, and
//! the one request in flight.
//!
//! ```text
//!                    acknowledgements wait   │ the application asks for records
//!   ─────────────────────────────────────────┼──────────────────────────────────────────────
//!   ShareAcknowledge                         │ no, or a commit waits for them, or they renew locks
//!   ShareFetch with them, without a wait     │ yes
//!   ShareFetch that waits at the broker      │ yes, and there are none; not for long, or not at all, while it has records
//! ```
//!
//! # Pitfalls
//!
//! - A broker handles one request of a session at a time. An acknowledgement that waits behind a ShareFetch would take
//!   up to `fetch.wait.max.ms`, so that a fetch with acknowledgements does not wait
//!   (`fetch_with_acknowledgements_does_not_wait`).
//! - The broker releases all acquired records when the connection or the session ends. Acknowledgements of an earlier
//!   session are reported as lost at once and never sent
//!   (`acknowledgements_of_an_ended_session_are_reported_as_lost`).
//! - Records that were acquired before the leader moved are not acquired any more, even if it has come back
//!   (`records_from_before_a_leader_move_are_not_acknowledged`). They are not handed out either
//!   (`queued_records_end_with_their_session_or_leader`).
//! - A record whose lock has ended may come to the same member again. The broker would take an acknowledgement of the
//!   earlier delivery for one of the later (`acknowledgement_of_an_earlier_delivery_is_not_sent`).

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ottla_protocol::{
    api::ApiKey,
    generated::{
        share_acknowledge::{self, ShareAcknowledgeRequest},
        share_fetch::{self, ShareFetchRequest},
    },
    uuid::Uuid,
    vocabulary::{NodeId, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    acknowledgement::{AcknowledgeType, AcknowledgedRange, Verdict},
    message::{ShareMessage, ShareReport},
    session::{ENDS, Head, PartitionId, ShareSession},
    shared::{Demand, FetchPermit, Reply, ShareShared, Submission, closed, leader_moved, session_lost},
    upkeep::Upkeep,
};
use crate::{
    backoff::Backoff,
    connection::{Connection, buffer::BufferPool, inflight::RequestTag},
    contract::half::HalfOutput,
    error::{Error, ErrorKind},
    fetch::partition::PartitionHandle,
    machine::{Instant, earliest},
    repeats::Repeats,
    rng::Rng,
    states::{See, number_of},
    wake::WakeHandle,
};

/// The share half of one broker actor.
pub struct ShareFetcher {
    pub(super) shared: Arc<ShareShared>,
    pub(super) buffers: BufferPool,
    wake: WakeHandle,
    member: Arc<str>,
    pub(super) node: Option<NodeId>,
    pub(super) partitions: SortedMap<PartitionId, Slot>,
    ids: SortedMap<TopicPartition, PartitionId>,
    last_stay: u64,
    pub(super) session: ShareSession,
    demand: Demand,
    /// The locks of the session's records.
    pub(super) upkeep: Upkeep,
    /// The acknowledgements of the session that are not sent.
    pub(super) pending: Vec<Submission>,
    pub(super) in_flight: Option<InFlightShare>,
    /// The node to report the end of the session for.
    ending: Option<NodeId>,
    /// No request is sent before this time.
    pub(super) backoff_until: Option<Instant>,
    pub(super) backoff: Backoff,
    pub(super) refusals: Repeats,
    pub(super) outputs: VecDeque<HalfOutput<ShareReport>>,
    pub(super) rng: Rng,
}

/// A share partition of this broker.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) handle: Arc<PartitionHandle>,
    pub(super) stay: u64,
    pub(super) state: SlotState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    Fetched,
    /// The broker refused the partition; it is fetched again after this time.
    RefusedUntil(Instant),
    /// The partition is no longer assigned, but its records may still be acknowledged.
    Unassigned,
}

/// The request in flight.
#[derive(Debug)]
pub(super) struct InFlightShare {
    pub(super) kind: ShareRequestKind,
    pub(super) submissions: Vec<Submission>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShareRequestKind {
    Fetch,
    Acknowledge,
    /// The request that ends the session.
    End,
}

impl ShareFetcher {
    /// Shows the states of the share partitions.
    pub(crate) fn states(&self, see: &mut See<'_>) {
        for ((topic_id, partition), slot) in self.partitions.iter() {
            see("share partition", number_of(&(topic_id.0, partition)), &slot.state);
        }
    }

    /// Creates a fetcher without partitions; `wake` wakes the broker actor.
    pub fn new(shared: Arc<ShareShared>, buffers: BufferPool, wake: WakeHandle, rng: Rng) -> Self {
        let (first, longest) = shared.settings.backoff;
        Self {
            shared,
            buffers,
            wake,
            member: Arc::from(""),
            node: None,
            partitions: SortedMap::new(),
            ids: SortedMap::new(),
            last_stay: 0,
            session: ShareSession::default(),
            demand: Demand::default(),
            upkeep: Upkeep::default(),
            pending: Vec::new(),
            in_flight: None,
            ending: None,
            backoff_until: None,
            backoff: Backoff::new(first, longest),
            refusals: Repeats::of_warnings(),
            outputs: VecDeque::new(),
            rng,
        }
    }

    /// Handles a message from the cluster actor.
    pub fn handle_message(&mut self, message: ShareMessage) {
        match message {
            ShareMessage::Adopt { node, member, handle, topic_id } => {
                self.node = Some(node);
                self.member = member;
                self.adopt(handle, topic_id);
            }
            ShareMessage::Forget(key) => {
                if let Some(slot) = self.ids.get(&key).and_then(|id| self.partitions.get_mut(id)) {
                    slot.state = SlotState::Unassigned;
                }
            }
            ShareMessage::LeaderMoved(key) => self.remove(&key),
            ShareMessage::End(node) => {
                self.ending = Some(node);
                self.partitions.values_mut().for_each(|slot| slot.state = SlotState::Unassigned);
            }
        }
    }

    fn adopt(&mut self, handle: Arc<PartitionHandle>, topic_id: Uuid) {
        let key = handle.key().clone();
        let id = (topic_id, key.partition);
        if self.ids.get(&key).is_some_and(|known| *known != id) {
            self.remove(&key);
        }
        self.ids.insert(key, id);
        if let Some(slot) = self.partitions.get_mut(&id) {
            slot.state = SlotState::Fetched;
            return;
        }
        self.last_stay += 1;
        if self.partitions.is_empty() {
            self.shared.fetchers.fetch_add(1, Ordering::Relaxed);
        }
        self.partitions.insert(id, Slot { handle, stay: self.last_stay, state: SlotState::Fetched });
    }

    fn remove(&mut self, key: &TopicPartition) {
        let removed = self.ids.remove(key).and_then(|id| self.partitions.remove(&id));
        let Some(removed) = removed else { return };
        self.void_stay(removed.stay);
        if self.partitions.is_empty() {
            self.shared.fetchers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Voids the records that were acquired from a partition so far: its leader moved.
    pub(super) fn begin_stay(&mut self, id: PartitionId) {
        if let Some(slot) = self.partitions.get_mut(&id) {
            self.last_stay += 1;
            let stay = std::mem::replace(&mut slot.stay, self.last_stay);
            self.void_stay(stay);
        }
    }

    /// Drops queued records of a stay that has ended.
    fn void_stay(&self, stay: u64) {
        let Some(session) = self.session.id() else { return };
        self.shared.drop_queued(|records| records.origin.session == session && records.origin.stay == stay);
    }

    /// Handles the loss of the request in flight with its connection.
    pub fn handle_lost(&mut self, _now: Instant, error: &Error) {
        let error = error.clone().with_api("ShareAcknowledge");
        let lost = self.in_flight.take();
        lost.into_iter().flat_map(|lost| lost.submissions).for_each(|submission| {
            self.shared.settle(submission, Err(error.clone()), None);
        });
        self.end_session(&session_lost());
    }

    /// Handles the loss of the connection, with which the session ends.
    pub fn handle_disconnected(&mut self) {
        self.end_session(&session_lost());
    }

    /// Ends the session. Its acknowledgements that were not sent get this error.
    pub(super) fn end_session(&mut self, error: &Error) {
        let Some(id) = self.session.end() else { return };
        let unsent = std::mem::take(&mut self.pending);
        for submission in unsent.into_iter().chain(self.shared.end_session(id)) {
            self.shared.settle(submission, Err(error.clone()), None);
        }
        // A release that misses this finds no session.
        self.upkeep.end(&self.shared, error);
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.backoff_until.is_some_and(|until| until <= now) {
            self.backoff_until = None;
        }
        for slot in self.partitions.values_mut() {
            if matches!(slot.state, SlotState::RefusedUntil(until) if until <= now) {
                slot.state = SlotState::Fetched;
            }
        }
    }

    /// Returns the time at which to call [`ShareFetcher::handle_timeout`].
    pub fn poll_timeout(&self, connection: &Connection) -> Option<Instant> {
        if self.in_flight.is_some() || !connection.is_ready() {
            return None;
        }
        let refused = self.partitions.values().filter_map(|slot| match slot.state {
            SlotState::RefusedUntil(until) => Some(until),
            SlotState::Fetched | SlotState::Unassigned => None,
        });
        // Nothing is sent before the back-off has passed.
        let upkeep = self.upkeep.next().map(|at| self.backoff_until.map_or(at, |until| until.max(at)));
        earliest(earliest(self.backoff_until, refused.min()), upkeep)
    }

    /// Returns true if the fetcher needs a connection.
    pub fn wants_connection(&self) -> bool {
        self.in_flight.is_some() || self.partitions.values().any(|slot| slot.state == SlotState::Fetched)
    }

    /// Sends the next request, unless one is in flight or there is no reason for one.
    pub fn pump(&mut self, now: Instant, connection: &mut Connection) {
        self.handle_timeout(now);
        if self.in_flight.is_some() || !connection.is_ready() {
            return;
        }
        self.take_submissions(now, can_renew(connection));
        if self.ending.is_some() {
            return self.end(now, connection);
        }
        let wanted: SortedSet<PartitionId> = self.wanted().collect();
        if self.backoff_until.is_some() {
            return;
        }
        let is_urgent =
            |submission: &Submission| !matches!(submission.reply, Reply::Queue) || submission.renews();
        if self.pending.iter().any(is_urgent) {
            return self.acknowledge(now, connection);
        }
        let permit = match wanted.is_empty() {
            true => FetchPermit::Denied,
            false => self.shared.permit(&mut self.demand, self.session.id(), &self.wake),
        };
        match permit {
            FetchPermit::Bytes(bytes) => self.fetch(now, connection, &wanted, bytes),
            FetchPermit::Denied if !self.pending.is_empty() => self.acknowledge(now, connection),
            FetchPermit::Denied => {}
        }
    }

    fn wanted(&self) -> impl Iterator<Item = PartitionId> {
        let is_fetched = |slot: &Slot| slot.state == SlotState::Fetched;
        self.partitions.iter().filter(move |(_, slot)| is_fetched(slot)).map(|(id, _)| *id)
    }

    /// Takes the application's acknowledgements. Those of records that are not acquired any more fail.
    fn take_submissions(&mut self, now: Instant, can_renew: bool) {
        let Some(id) = self.session.id() else { return };
        self.pending.extend(self.shared.take_submissions(id));
        self.pending.extend(self.upkeep.run(now, &self.shared, can_renew));
        if !can_renew {
            let unsupported: Vec<_> = self.pending.extract_if(.., |submission| submission.renews()).collect();
            for submission in unsupported {
                self.shared.settle(submission, Err(no_renewals()), None);
            }
        }
        let partitions = &self.partitions;
        let is_void = |submission: &mut Submission| {
            let slot = partitions.get(&partition_id(submission));
            slot.is_none_or(|slot| slot.stay != submission.records.origin.stay)
        };
        let void: Vec<_> = self.pending.extract_if(.., is_void).collect();
        void.into_iter().for_each(|submission| self.shared.settle(submission, Err(leader_moved()), None));
        self.fail_superseded();
    }

    fn fetch(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        wanted: &SortedSet<PartitionId>,
        bytes: usize,
    ) {
        let Some(version) = self.version(ApiKey::ShareFetch, connection) else { return };
        let (submissions, ranges) = self.next_acknowledgements();
        let acknowledged = ranges.keys().copied().collect();
        let (shared, wake) = (&self.shared, &self.wake);
        let head = self.session.fetch(wanted, &acknowledged, || shared.begin_session(wake));
        let settings = &self.shared.settings;
        let wait = match () {
            () if !submissions.is_empty() => Duration::ZERO,
            () if !self.upkeep.has_open() => settings.fetch_wait_max,
            // Acknowledgements of records that the application has wait behind the fetch. A thread that waits in a poll asks
            // again and again.
            () if self.shared.is_blocking() => settings.fetch_wait_max.min(SHORT_WAIT),
            () => Duration::ZERO,
        };
        let request = ShareFetchRequest {
            max_wait_ms: i32::try_from(wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: settings.fetch_min_bytes,
            max_bytes: settings.fetch_max_bytes.min(i32::try_from(bytes).unwrap_or(i32::MAX)),
            max_records: settings.max_poll_records,
            batch_size: settings.max_poll_records,
            share_acquire_mode: i8::from(settings.is_strict && version >= FIRST_WITH_RENEWALS),
            ..fetch_request(&settings.group_id, &self.member, head, &ranges)
        };
        let timeout = settings.request_timeout + wait;
        let sent = connection.send(now, ApiKey::ShareFetch, version, RequestTag::Share, timeout, |out| {
            request.encode(version, out)
        });
        self.note_sent(now, ShareRequestKind::Fetch, submissions, sent);
    }

    fn acknowledge(&mut self, now: Instant, connection: &mut Connection) {
        let (submissions, ranges) = self.next_acknowledgements();
        if let Some(epoch) = self.session.acknowledge() {
            self.send_acknowledge(
                now,
                connection,
                ShareRequestKind::Acknowledge,
                epoch,
                (submissions, ranges),
            );
        }
    }

    /// Ends the session with a request that has all acknowledgements so far; the broker releases all other records.
    fn end(&mut self, now: Instant, connection: &mut Connection) {
        let Some(node) = self.ending else { return };
        if self.session.id().is_none() {
            return self.report_ended(node);
        }
        let next = self.next_acknowledgements();
        // Records with several acknowledgements, of which only one fits in a request: the rest comes first.
        if self.pending.is_empty() {
            self.send_acknowledge(now, connection, ShareRequestKind::End, ENDS, next);
        } else if let Some(epoch) = self.session.acknowledge() {
            self.send_acknowledge(now, connection, ShareRequestKind::Acknowledge, epoch, next);
        }
    }

    /// Reports the end of the session to the cluster actor. Nothing is known of any partition afterwards.
    pub(super) fn report_ended(&mut self, node: NodeId) {
        self.ending = None;
        self.forget_all();
        self.outputs.push_back(ShareReport::Ended(node).into());
    }

    fn send_acknowledge(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        kind: ShareRequestKind,
        epoch: i32,
        (submissions, ranges): (Vec<Submission>, SortedMap<PartitionId, Vec<AcknowledgedRange>>),
    ) {
        let renews =
            ranges.values().flatten().any(|range| range.verdict == Verdict::Of(AcknowledgeType::Renew));
        let Some(version) = self.version(ApiKey::ShareAcknowledge, connection) else {
            // The request is not sent, and its epoch is used up.
            submissions.into_iter().for_each(|submission| {
                self.shared.settle(submission, Err(unsupported().with_api("ShareAcknowledge")), None);
            });
            return self.end_session(&session_lost());
        };
        let settings = &self.shared.settings;
        let request = ShareAcknowledgeRequest {
            group_id: Some(settings.group_id.to_string()),
            member_id: Some(self.member.to_string()),
            share_session_epoch: epoch,
            is_renew_ack: renews,
            topics: acknowledged_topics(&ranges),
        };
        let timeout = settings.request_timeout;
        let api = ApiKey::ShareAcknowledge;
        let sent = connection
            .send(now, api, version, RequestTag::Share, timeout, |out| request.encode(version, out));
        self.note_sent(now, kind, submissions, sent);
    }

    fn note_sent(
        &mut self,
        now: Instant,
        kind: ShareRequestKind,
        submissions: Vec<Submission>,
        sent: Result<(), Error>,
    ) {
        match sent {
            Ok(()) => self.in_flight = Some(InFlightShare { kind, submissions }),
            Err(error) => {
                submissions.into_iter().for_each(|submission| {
                    self.shared.settle(submission, Err(error.clone()), None);
                });
                self.end_session(&session_lost());
                self.back_off(now);
                self.report_refusal(now, error);
            }
        }
    }

    /// Takes the acknowledgements of the next request. The ranges of a partition must not overlap in a request.
    fn next_acknowledgements(&mut self) -> (Vec<Submission>, SortedMap<PartitionId, Vec<AcknowledgedRange>>) {
        let mut ranges: SortedMap<PartitionId, Vec<AcknowledgedRange>> = SortedMap::new();
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        for submission in std::mem::take(&mut self.pending) {
            let known = ranges.entry(partition_id(&submission)).or_default();
            let overlaps = |new: &AcknowledgedRange| {
                let at = known.partition_point(|range: &AcknowledgedRange| range.last < new.first);
                known.get(at).is_some_and(|range| range.first <= new.last)
            };
            if submission.ranges.iter().any(overlaps) {
                left.push(submission);
                continue;
            }
            known.extend(&submission.ranges);
            known.sort_unstable_by_key(|range| range.first);
            self.shared.count_acknowledged(&submission.ranges);
            taken.push(submission);
        }
        self.pending = left;
        ranges.retain(|_, ranges| !ranges.is_empty());
        (taken, ranges)
    }

    /// Returns the newest version of an API; none is fatal.
    fn version(&mut self, api: ApiKey, connection: &Connection) -> Option<i16> {
        let version = connection.versions().pick_any(api);
        if version.is_none() && !connection.versions().is_guessed() {
            self.shared.fail(unsupported().with_api(api.name()).with_peer(connection.name()));
        }
        version
    }

    pub(super) fn back_off(&mut self, now: Instant) {
        self.backoff_until = Some(now + self.backoff.next(&mut self.rng));
    }

    /// Reports an error of a whole request, which may repeat with each request.
    pub(super) fn report_refusal(&mut self, now: Instant, error: Error) {
        if let Some(error) = self.refusals.admit(now, error) {
            self.shared.report(error);
        }
    }

    /// Returns the next output for the broker actor.
    pub fn poll_output(&mut self) -> Option<HalfOutput<ShareReport>> {
        self.outputs.pop_front()
    }

    /// Fails everything, because the broker actor ends.
    pub fn close(&mut self) {
        let lost = self.in_flight.take();
        lost.into_iter().flat_map(|lost| lost.submissions).for_each(|submission| {
            self.shared.settle(submission, Err(closed()), None);
        });
        self.end_session(&closed());
        if let Some(node) = self.ending.take() {
            self.report_ended(node);
        }
        if let Some(node) = self.node {
            self.forget_all();
            self.outputs.push_back(ShareReport::Gone(node).into());
        }
    }

    fn forget_all(&mut self) {
        self.ids.clear();
        if !std::mem::take(&mut self.partitions).is_empty() {
            self.shared.fetchers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns true while the cluster actor waits for the end of the session.
    pub(super) const fn ending(&self) -> Option<NodeId> {
        self.ending
    }

    /// Ends without a connection: there is no session whose end could be reported to the broker.
    pub fn give_up_ending(&mut self) {
        if let Some(node) = self.ending.filter(|_| self.session.id().is_none() && self.in_flight.is_none()) {
            self.report_ended(node);
        }
    }
}

/// The first version of ShareFetch and ShareAcknowledge with renewals (KIP-1222) and strict limits (KIP-1206).
const FIRST_WITH_RENEWALS: i16 = 2;
/// The longest that the fetch of a poll waits at the broker while the application has records that another of its threads may
/// acknowledge meanwhile.
const SHORT_WAIT: Duration = Duration::from_millis(100);

/// Returns true if the broker can renew locks.
fn can_renew(connection: &Connection) -> bool {
    let version = connection.versions().pick_any(ApiKey::ShareAcknowledge);
    version.is_some_and(|version| version >= FIRST_WITH_RENEWALS)
}

/// Returns the error of a renewal at a broker that has none. The record stays acquired.
fn no_renewals() -> Error {
    let detail = "the broker can't renew acquisition locks; it needs Kafka 4.2";
    Error::new(ErrorKind::UnsupportedVersion, detail).with_api("ShareAcknowledge")
}

impl Submission {
    /// Returns true if it renews a lock.
    fn renews(&self) -> bool {
        self.ranges.iter().any(|range| range.verdict == Verdict::Of(AcknowledgeType::Renew))
    }
}

/// Returns the error of a cluster without share groups.
pub(super) fn unsupported() -> Error {
    let detail = "the brokers offer no share groups; they need Kafka 4.2 and the feature `share.version` 1";
    Error::new(ErrorKind::UnsupportedVersion, detail)
}

pub(super) fn partition_id(submission: &Submission) -> PartitionId {
    (submission.records.origin.topic_id, submission.records.partition().partition)
}

/// Returns a ShareFetch with its session and acknowledgements, and without limits.
fn fetch_request(
    group: &str,
    member: &str,
    head: Head,
    ranges: &SortedMap<PartitionId, Vec<AcknowledgedRange>>,
) -> ShareFetchRequest {
    let mut request = ShareFetchRequest {
        group_id: Some(group.to_owned()),
        member_id: Some(member.to_owned()),
        share_session_epoch: head.epoch,
        ..ShareFetchRequest::default()
    };
    let named: SortedSet<PartitionId> = head.added.iter().chain(ranges.keys()).copied().collect();
    for (topic_id, partition_index) in named {
        let acknowledged = ranges.get(&(topic_id, partition_index)).into_iter().flatten();
        let partition = share_fetch::request::Partition {
            partition_index,
            acknowledgement_batches: acknowledged.map(AcknowledgedRange::in_fetch).collect(),
        };
        match request.topics.last_mut() {
            Some(topic) if topic.topic_id == topic_id => topic.partitions.push(partition),
            _ => request.topics.push(share_fetch::request::Topic { topic_id, partitions: vec![partition] }),
        }
    }
    for (topic_id, partition) in head.forgotten {
        match request.forgotten_topics_data.last_mut() {
            Some(topic) if topic.topic_id == topic_id => topic.partitions.push(partition),
            _ => request
                .forgotten_topics_data
                .push(share_fetch::request::ForgottenTopicsData { topic_id, partitions: vec![partition] }),
        }
    }
    request
}

fn acknowledged_topics(
    ranges: &SortedMap<PartitionId, Vec<AcknowledgedRange>>,
) -> Vec<share_acknowledge::request::Topic> {
    let mut topics: Vec<share_acknowledge::request::Topic> = Vec::new();
    for ((topic_id, partition_index), ranges) in ranges {
        let partition = share_acknowledge::request::Partition {
            partition_index: *partition_index,
            acknowledgement_batches: ranges.iter().map(AcknowledgedRange::in_acknowledge).collect(),
        };
        match topics.last_mut() {
            Some(topic) if topic.topic_id == *topic_id => topic.partitions.push(partition),
            _ => topics
                .push(share_acknowledge::request::Topic { topic_id: *topic_id, partitions: vec![partition] }),
        }
    }
    topics
}

impl Drop for ShareFetcher {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for ShareFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareFetcher")
            .field("partitions", &self.partitions)
            .field("session", &self.session)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

/// Returns requests of an API with everything set that a share consumer sets, and the oldest version that has it all.
#[cfg(all(test, not(ottla_loom)))]
pub(crate) fn samples(api: ApiKey, renews: bool) -> crate::contract::route::EncodeBody {
    let id = (Uuid([1; 16]), 0);
    let kind = if renews { AcknowledgeType::Renew } else { AcknowledgeType::Accept };
    let range = AcknowledgedRange { first: 0, last: 9, verdict: Verdict::Of(kind) };
    let ranges = SortedMap::from([(id, vec![range])]);
    match api {
        ApiKey::ShareFetch => {
            let ids = SortedSet::from([id]);
            let head = Head { epoch: 3, added: ids.clone(), forgotten: ids };
            let request = ShareFetchRequest {
                max_wait_ms: 500,
                min_bytes: 1,
                max_bytes: 1_000,
                max_records: 500,
                batch_size: 500,
                ..fetch_request("g", "m", head, &ranges)
            };
            Box::new(move |version, out| request.encode(version, out))
        }
        _ => {
            let request = ShareAcknowledgeRequest {
                group_id: Some("g".into()),
                member_id: Some("m".into()),
                share_session_epoch: 3,
                is_renew_ack: renews,
                topics: acknowledged_topics(&ranges),
            };
            Box::new(move |version, out| request.encode(version, out))
        }
    }
}
