//! The receiving half of a broker actor: the partitions that the broker leads, its fetch session, and the one Fetch in
//! flight.
//!
//! The fetcher sends the next Fetch as soon as the last response is queued, while the application is still reading. It
//! stops if a partition has reached its queue limit: a long poll that leaves out the full partition would delay that
//! partition. The application's thread wakes the fetcher when half of the queued records are consumed.
//!
//! # Pitfalls
//!
//! - A fetch session may be given up while a Fetch is in flight, for example when the first partition of another topic
//!   arrives. The response is still used, or its records would be fetched twice
//!   (`topic_added_during_a_fetch_keeps_its_response`).

mod damage;
mod pacing;
mod responses;
mod slots;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, atomic::Ordering},
};

use ottla_protocol::{
    api::ApiKey,
    uuid::Uuid,
    vocabulary::{LeaderEpoch, NodeId, TopicPartition},
};
use ottla_sorted::SortedMap;

use self::{
    pacing::RESPONSE_BYTES,
    slots::{Choice, TopicSlots},
};
use super::message::{FetchMessage, FetchReport};
use super::{
    request::{FIRST_WITH_SESSIONS, FIRST_WITH_TOPIC_IDS, FetchRequestBuilder},
    session::FetchSession,
    shared::ConsumerShared,
};
use crate::{
    connection::{Connection, buffer::BufferPool, inflight::RequestTag},
    contract::half::HalfOutput,
    error::{Error, ErrorKind},
    machine::{Instant, earliest},
    repeats::Repeats,
    rng::Rng,
    stats::{BrokerStatistics, Statistics},
    wake::WakeHandle,
};

/// The receiving half of one broker actor.
pub struct Fetcher {
    shared: Arc<ConsumerShared>,
    /// The broker's ID, if it is known.
    broker_id: Option<NodeId>,
    buffers: BufferPool,
    wake: WakeHandle,
    topics: SortedMap<Arc<str>, TopicSlots>,
    ids: SortedMap<Uuid, Arc<str>>,
    partitions: usize,
    session: FetchSession,
    /// True if the last response asked the client to throttle.
    was_throttled: bool,
    /// The time at which the Fetch in flight was sent.
    in_flight: Option<Instant>,
    /// The memory that is reserved for the Fetch in flight, in bytes; 0 without a ceiling.
    reserved: usize,
    /// The number of responses that were decoded under a ceiling.
    turn: usize,
    /// The target size of a response, in bytes.
    response_bytes: usize,
    /// The rotation of the partitions from request to request, so that no partition is always last.
    rotation: usize,
    /// Partitions that started again at their ends while the broker kept them in its session: the next response leaves them out
    /// if they have no news.
    kept_at_end: Vec<TopicPartition>,
    /// The end of the back-off or throttle; no Fetch is sent before.
    backoff_until: Option<Instant>,
    /// The number of responses that came early and returned nothing, less those that the broker waited with.
    early_responses: u32,
    unsupported_reported: bool,
    /// Refused requests.
    refusals: Repeats,
    outputs: VecDeque<HalfOutput<FetchReport>>,
    rng: Rng,
}

impl Fetcher {
    /// Creates a fetcher without partitions; `wake` wakes the broker actor.
    pub fn new(
        shared: Arc<ConsumerShared>,
        broker_id: Option<NodeId>,
        buffers: BufferPool,
        wake: WakeHandle,
        rng: Rng,
    ) -> Self {
        Self {
            shared,
            broker_id,
            buffers,
            wake,
            topics: SortedMap::new(),
            ids: SortedMap::new(),
            partitions: 0,
            session: FetchSession::default(),
            was_throttled: false,
            in_flight: None,
            reserved: 0,
            turn: 0,
            response_bytes: RESPONSE_BYTES,
            rotation: 0,
            kept_at_end: Vec::new(),
            backoff_until: None,
            early_responses: 0,
            unsupported_reported: false,
            refusals: Repeats::of_warnings(),
            outputs: VecDeque::new(),
            rng,
        }
    }

    /// Sets the broker's ID once it is known.
    pub const fn set_broker_id(&mut self, id: NodeId) {
        self.broker_id = Some(id);
    }

    /// Handles a message from the cluster actor.
    pub fn handle_message(&mut self, _now: Instant, message: FetchMessage) {
        match message {
            FetchMessage::Adopt(partition) => self.adopt(partition),
            FetchMessage::Release(TopicPartition { topic, partition }) => {
                if let Some(slot) = self.remove(&topic, partition) {
                    self.report(FetchReport::Released(slot.partition));
                }
            }
        }
    }

    /// Adds the fetcher's statistics to a snapshot.
    pub fn add_statistics(
        &self,
        statistics: &mut Statistics,
        broker: &mut BrokerStatistics,
        node: Option<NodeId>,
    ) {
        for (topic, slots) in &self.topics {
            for (index, slot) in &slots.partitions {
                let entry = statistics.partition(topic, *index);
                entry.broker = i64::from(NodeId::to_wire(node));
                entry.leader_epoch = i64::from(LeaderEpoch::to_wire(slot.partition.leader_epoch));
                entry.next_offset = slot.partition.offset;
                if let Some(end) = slot.partition.reported_end {
                    entry.eof_offset = end;
                }
                if entry.fetch_state == "none" {
                    entry.fetch_state = "active";
                }
                broker.toppars.push(TopicPartition::new(Arc::clone(topic), *index));
            }
        }
    }

    /// Handles a new connection, which has no fetch session yet.
    pub fn handle_connected(&mut self, _now: Instant) {
        self.session.restart();
    }

    /// Handles the loss of the Fetch in flight with its connection.
    pub fn handle_lost(&mut self, _now: Instant, _error: &Error) {
        self.in_flight = None;
        self.free_reserved();
        self.session.restart();
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.backoff_until.is_some_and(|until| until <= now) {
            self.backoff_until = None;
        }
        for slot in self.slots_mut() {
            if slot.retry_at.is_some_and(|at| at <= now) {
                slot.retry_at = None;
            }
        }
    }

    /// Returns the time at which to call [`Fetcher::handle_timeout`].
    pub fn poll_timeout(&self, connection: &Connection) -> Option<Instant> {
        if self.in_flight.is_some() || !connection.is_ready() {
            return None;
        }
        let retry = self.slots().filter_map(|slot| slot.retry_at).min();
        earliest(self.backoff_until, retry)
    }

    /// Returns true if there are partitions to fetch, so that the fetcher needs a connection.
    pub fn wants_connection(&self) -> bool {
        self.in_flight.is_some()
            || self.slots().any(|slot| !slot.partition.handle.is_paused() && !slot.partition.is_stale())
    }

    /// Sends the next Fetch, unless one is in flight or the queue is full.
    pub fn pump(&mut self, now: Instant, connection: &mut Connection) {
        // While a Fetch is in flight, partitions that become due cause no wake-up.
        self.handle_timeout(now);
        self.slots_mut().for_each(|slot| slot.restart_at_damage());
        if self.in_flight.is_some()
            || self.partitions == 0
            || self.backoff_until.is_some()
            || !connection.is_ready()
        {
            return;
        }
        let requested = match self.choose() {
            Choice::Nothing => return,
            Choice::Full => return self.delay_while_full(now),
            Choice::Partitions(requested) => requested,
        };
        let Some(newest) = connection.versions().pick_any(ApiKey::Fetch) else {
            if !std::mem::replace(&mut self.unsupported_reported, true) {
                let error = Error::new(ErrorKind::UnsupportedVersion, "").with_api("Fetch");
                self.shared.report(error.with_peer(connection.name()));
            }
            return;
        };
        let Some(share) = self.ask_for_room() else { return self.delay_while_full(now) };
        // A request names either all topics by ID or all by name.
        let by_id = newest >= FIRST_WITH_TOPIC_IDS && self.topics.values().all(|topic| !topic.id.is_zero());
        let version = if by_id { newest } else { newest.min(FIRST_WITH_TOPIC_IDS - 1) };
        self.session.use_topic_ids(by_id);
        if version < FIRST_WITH_SESSIONS {
            self.session.restart();
        }
        let settings = &self.shared.settings;
        let target_bytes = i32::try_from(share.min(self.response_bytes)).unwrap_or(i32::MAX);
        let max_bytes = settings.fetch_max_bytes.min(target_bytes).max(1);
        let timeout = settings.response_timeout + settings.fetch_wait_max;
        let head = if version < FIRST_WITH_SESSIONS { (0, -1) } else { self.session.head() };
        let mut builder = FetchRequestBuilder::new(settings, head, max_bytes);
        self.fill(&mut builder, &requested, by_id);
        let request = builder.finish();
        let sent = connection.send(now, ApiKey::Fetch, version, RequestTag::Fetch, timeout, |out| {
            request.encode(version, out)
        });
        match sent {
            Ok(()) => {
                self.session.note_asked();
                self.in_flight = Some(now);
            }
            Err(error) => {
                self.session.restart();
                self.free_reserved();
                self.back_off(now + self.shared.settings.fetch_error_backoff);
                self.report_refusal(now, error);
            }
        }
    }

    /// Returns the size that a response may have, or `None` if no memory is left for it now. Under a ceiling half of what is reserved
    /// is for the records that are decompressed.
    fn ask_for_room(&mut self) -> Option<usize> {
        let fetchers = self.shared.fetchers.load(Ordering::Relaxed).max(1);
        if self.shared.settings.max_memory.is_none() {
            let room = self.shared.queue.room(&self.wake);
            return (room > 0).then(|| room / fetchers);
        }
        let reserved =
            self.shared.queue.reserve(self.response_bytes.saturating_mul(2), fetchers, &self.wake)?;
        self.reserved = reserved;
        Some(reserved / 2)
    }

    /// Gives back the memory of a Fetch that has no response.
    fn free_reserved(&mut self) {
        self.shared.queue.settle(Vec::new(), std::mem::take(&mut self.reserved));
    }

    /// Reports an error of a whole request, which may repeat with each request.
    fn report_refusal(&mut self, now: Instant, error: Error) {
        if let Some(error) = self.refusals.admit(now, error) {
            self.shared.report(error);
        }
    }

    /// Returns the next output for the broker actor.
    pub fn poll_output(&mut self) -> Option<HalfOutput<FetchReport>> {
        self.outputs.pop_front()
    }

    fn report(&mut self, report: FetchReport) {
        self.outputs.push_back(report.into());
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        self.free_reserved();
        if self.partitions > 0 {
            self.shared.fetchers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher")
            .field("partitions", &self.partitions)
            .field("session", &self.session)
            .field("in_flight", &self.in_flight.is_some())
            .finish_non_exhaustive()
    }
}
