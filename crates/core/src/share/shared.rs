//! The state that the application's threads share with the actors of a share consumer: acquired records for the
//! application, and its acknowledgements.
//!
//! ```text
//!  broker actor ── push ──► queue ── take ──► application
//!       ▲                                        │ marks records
//!       └── take_submissions ◄── inbox of the session ◄── submit
//!  broker actor ── settle ──► outcome: a commit that waits, or the queue of outcomes
//! ```
//!
//! A broker actor fetches on demand: records in the queue would use up their acquisition lock. Each poll allows one fetch
//! per broker, so that all leaders are fetched in parallel, and a thread that waits in a poll allows them until it returns.
//!
//! # Pitfalls
//!
//! - A poll takes the records of one leader while several respond. A leader whose records still wait in the queue is not
//!   fetched from: more and more of them would wait until their locks end (`leader_with_queued_records_is_not_fetched_from`).
//! - A broker actor that is woken before the poll has submitted its acknowledgements and taken its records sends two requests
//!   instead of one. A poll wakes after that (`poll_wakes_after_it_has_taken_records`). For the same reason a leader whose queued
//!   records a poll takes is fetched from by the next poll (`leader_is_asked_by_the_poll_after_the_one_that_took_its_records`).

use std::{collections::VecDeque, fmt, sync::Arc, task::Waker, time::Duration};

use ottla_protocol::{error_code::ErrorCode, vocabulary::TopicPartition};
use ottla_sorted::SortedMap;

use super::{
    acknowledgement::{AcknowledgeType, AcknowledgedRange, Verdict},
    acquired::{AcquiredRecords, Renewal},
    settings::ShareSettings,
    ticket::CommitTicket,
};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
    stats::{ConsumerStatistics, Purpose, Statistics, Window, idle::IdleTime},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    waiters::{WaitPlace, Waiter, Waiters},
    wake::WakeHandle,
};

/// The number of events and of outcomes that are kept for an application that does not take them.
const MAX_KEPT: usize = 10_000;

/// Identifies a share session of this client: one incarnation on one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub(crate) u64);

/// The shared state of a share consumer.
pub struct ShareShared {
    /// The settings.
    pub settings: ShareSettings,
    state: Mutex<State>,
    /// The number of polls so far.
    polls: AtomicU64,
    /// The time of the last poll, in nanoseconds.
    polled_at: AtomicU64,
    /// The number of threads that block in a poll.
    blocked: AtomicUsize,
    /// True if the member left because the application does not poll.
    is_expired: AtomicBool,
    /// The number of broker actors with partitions, which share the budget.
    pub(crate) fetchers: AtomicUsize,
    /// The time that the application waits in polls.
    pub idle: IdleTime,
    /// The number of records whose acknowledgement was sent.
    acknowledged: AtomicU64,
    /// The number of received records, and their bytes.
    received: AtomicU64,
    received_bytes: AtomicU64,
    /// The number of acknowledgements of the application without an outcome.
    unsettled: AtomicUsize,
    /// The number of times that locks needed attention before their time.
    attentions: AtomicU64,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<AcquiredRecords>>,
    queued_bytes: usize,
    events: VecDeque<ShareEvent>,
    outcomes: VecDeque<AcknowledgeOutcome>,
    sessions: SortedMap<SessionId, Session>,
    last_session: u64,
    /// Broker actors to wake when the application polls.
    idle: Vec<WakeHandle>,
    /// A poll has begun, and has not woken broker actors.
    is_polling: bool,
    /// The number of times that the idle broker actors were woken.
    wakeups: u64,
    wakers: Waiters,
    /// The error after which the consumer can't continue.
    fatal: Option<Error>,
    /// From one poll to the next, in milliseconds.
    between_polls: Window,
    is_closed: bool,
}

#[derive(Debug)]
struct Session {
    wake: WakeHandle,
    inbox: Vec<Submission>,
    /// The inbox has acknowledgements of a poll that has not woken the broker actor.
    is_behind: bool,
    /// The poll that last took records of the session.
    taken_by: u64,
}

/// When a submission wakes the broker actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waking {
    Now,
    /// Once the poll that submits has taken records.
    WithPoll,
}

/// An event of a share consumer that belongs to no record.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ShareEvent {
    /// An error. The consumer goes on.
    Error(Error),
    /// The locks on records that the application has are about to end: two thirds of their time have passed. Records that are
    /// acknowledged too late are delivered twice.
    LockExpiring(LockedRecords),
    /// The locks on records that the application has have ended: the records go to other members.
    LockExpired(LockedRecords),
}

/// Records of one partition that the application has and has not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockedRecords {
    /// The partition.
    pub partition: TopicPartition,
    /// The offsets, as ranges with both ends included.
    pub offsets: Vec<(i64, i64)>,
    /// The time until the lock ends.
    pub remaining: Duration,
}

/// The outcome of acknowledgements of one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct AcknowledgeOutcome {
    /// The partition.
    pub partition: TopicPartition,
    /// The acknowledged offsets, as ranges with both ends included.
    pub offsets: Vec<(i64, i64)>,
    /// An error means that the broker delivers the records again, except after a lost response, which leaves that open.
    pub result: Result<(), Error>,
}

/// Acknowledgements of one partition for the broker.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub(crate) records: Arc<AcquiredRecords>,
    /// Ascending ranges.
    pub(crate) ranges: Vec<AcknowledgedRange>,
    pub(crate) reply: Reply,
}

/// The receiver of an outcome.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// The queue of outcomes.
    Queue,
    /// A commit that waits.
    Ticket(Arc<CommitTicket>),
    /// A commit that waits, and the queue of outcomes.
    Both(Arc<CommitTicket>),
    /// No receiver: the client itself has acknowledged.
    Unreported,
}

/// A broker actor's knowledge of the application's polls.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    /// The number of polls at its last fetch.
    served: u64,
    /// The number of wake-ups at which it registered for the next one.
    registered: Option<u64>,
}

/// Whether a broker may fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchPermit {
    /// The application does not ask for records.
    Denied,
    /// A fetch may return this number of bytes.
    Bytes(usize),
}

impl ShareShared {
    /// Creates the state of a consumer without records.
    pub fn new(settings: ShareSettings) -> Self {
        Self {
            settings,
            state: Mutex::default(),
            polls: AtomicU64::new(0),
            polled_at: AtomicU64::new(0),
            blocked: AtomicUsize::new(0),
            is_expired: AtomicBool::new(false),
            fetchers: AtomicUsize::new(0),
            idle: IdleTime::new(),
            acknowledged: AtomicU64::new(0),
            received: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            unsettled: AtomicUsize::new(0),
            attentions: AtomicU64::new(0),
        }
    }

    // ---- the application

    /// The application polls: every broker may fetch once, from the next [`ShareShared::take`] on. Returns true if the member
    /// left because of missing polls, so that [`ShareCommand::Polled`](super::ShareCommand::Polled) must notify it.
    pub fn note_poll(&self, now: Instant) -> bool {
        let before = self.polled_at.fetch_max(now.as_nanos(), Ordering::Relaxed);
        self.polls.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state.lock();
        state.is_polling = true;
        if before > 0 {
            state.between_polls.record(now.as_nanos().saturating_sub(before) / 1_000_000);
        }
        drop(state);
        self.is_expired.load(Ordering::Relaxed) && self.is_expired.swap(false, Ordering::AcqRel)
    }

    /// A thread begins to block in a poll.
    pub fn begin_blocking(&self, now: Instant) {
        self.idle.begin(now);
        self.blocked.fetch_add(1, Ordering::SeqCst);
        self.wake_idle();
    }

    /// Wakes the broker actors that wait for a poll.
    fn wake_idle(&self) {
        let wakes = self.state.lock().take_wakes();
        wakes.iter().for_each(WakeHandle::wake);
    }

    /// A thread no longer blocks in a poll.
    pub fn end_blocking(&self, now: Instant) {
        self.idle.end(now);
        self.polled_at.fetch_max(now.as_nanos(), Ordering::Relaxed);
        self.blocked.fetch_sub(1, Ordering::SeqCst);
    }

    /// Takes queued records, until there are `enough`; with a strict limit not more. A record that is to be handed out alone
    /// comes alone, once all acknowledgements so far have an outcome. Records whose locks have ended are left out.
    ///
    /// It wakes the broker actors that may fetch now, or have acknowledgements of the poll. The thread that takes does not count
    /// as blocked any more.
    pub fn take(&self, now: Instant, enough: usize, into: &mut Vec<Arc<AcquiredRecords>>) {
        let is_strict = self.settings.is_strict;
        let mut state = self.state.lock();
        let (mut count, mut has_taken) = (0, false);
        while count < enough
            && let Some(next) = state.queue.front()
        {
            let is_expired = next.lock_until() <= now;
            if !is_expired && next.is_single() && (count > 0 || self.unsettled.load(Ordering::SeqCst) > 0) {
                break;
            }
            if !is_expired && is_strict && count > 0 && count + next.len() > enough {
                break;
            }
            let Some(records) = state.queue.pop_front() else { break };
            state.queued_bytes -= records.bytes();
            has_taken = true;
            if is_expired && !records.is_empty() {
                continue;
            }
            if let Some(session) = state.sessions.get_mut(&records.origin.session) {
                session.taken_by = self.polls.load(Ordering::SeqCst);
            }
            count += records.len().max(1);
            records.set_handed_out();
            let is_single = records.is_single();
            into.push(records);
            if is_single {
                break;
            }
        }
        // Brokers that were not asked because of these records may fetch now.
        let wakes = if has_taken || state.is_polling { state.take_wakes() } else { Vec::new() };
        drop(state);
        wakes.iter().for_each(WakeHandle::wake);
    }

    /// Releases a record at this time; the broker actor holds its lock until then.
    pub fn release_at(&self, records: &Arc<AcquiredRecords>, offset: i64, at: Instant) -> Result<(), Error> {
        records.release_at(offset, at)?;
        self.attentions.fetch_add(1, Ordering::SeqCst);
        let wake =
            self.state.lock().sessions.get(&records.origin.session).map(|session| session.wake.clone());
        match wake {
            Some(wake) => wake.wake(),
            None => self.fail_releases(records, records.collect_all_delayed(), &session_lost()),
        }
        Ok(())
    }

    /// Delivers the outcome of releases with a delay that can't take place.
    pub(crate) fn fail_releases(
        &self,
        records: &Arc<AcquiredRecords>,
        ranges: Vec<AcknowledgedRange>,
        error: &Error,
    ) {
        if ranges.is_empty() {
            return;
        }
        self.note_submitted();
        let submission = Submission { records: Arc::clone(records), ranges, reply: Reply::Queue };
        self.settle(submission, Err(error.clone()), None);
    }

    /// Takes the oldest event.
    pub fn take_event(&self) -> Option<ShareEvent> {
        self.state.lock().events.pop_front()
    }

    /// Takes the outcomes of acknowledgements for which no commit waits.
    pub fn take_outcomes(&self) -> Vec<AcknowledgeOutcome> {
        self.state.lock().outcomes.drain(..).collect()
    }

    /// Returns the error after which the consumer can't continue.
    pub fn fatal(&self) -> Option<Error> {
        self.state.lock().fatal.clone()
    }

    /// Wakes `waker` when there are records, events or outcomes, or when the consumer is closed. To be called before the
    /// check for them.
    pub fn register(self: &Arc<Self>, waiter: &mut Waiter<Self>, waker: &Waker) {
        waiter.register(self, waker);
    }

    /// Returns true if there are events or outcomes of acknowledgements.
    pub fn has_news(&self) -> bool {
        let state = self.state.lock();
        !state.events.is_empty() || !state.outcomes.is_empty()
    }

    /// Closes the queue, and wakes the threads that wait for it.
    pub fn close(&self) {
        let (wakers, dropped) = {
            let mut state = self.state.lock();
            state.is_closed = true;
            state.queued_bytes = 0;
            (std::mem::take(&mut state.wakers), std::mem::take(&mut state.queue))
        };
        wakers.into_iter().for_each(Waker::wake);
        drop(dropped);
    }

    /// Returns true after [`ShareShared::close`].
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Sends the collected verdicts of `records` to the session that acquired them. The outcome goes to `reply`.
    /// Returns whether there are any.
    pub(crate) fn submit(&self, records: &Arc<AcquiredRecords>, reply: &Reply, waking: Waking) -> bool {
        let ranges = records.collect();
        if ranges.is_empty() {
            return false;
        }
        if let Reply::Ticket(ticket) | Reply::Both(ticket) = reply {
            ticket.add(records.partition());
        }
        let submission = Submission { records: Arc::clone(records), ranges, reply: reply.clone() };
        self.note_submitted();
        let refused = {
            let mut state = self.state.lock();
            match state.sessions.get_mut(&records.origin.session) {
                Some(session) => {
                    session.inbox.push(submission);
                    match waking {
                        Waking::Now => session.wake.wake(),
                        Waking::WithPoll => session.is_behind = true,
                    }
                    None
                }
                None => Some(submission),
            }
        };
        if let Some(submission) = refused {
            self.settle(submission, Err(session_lost()), None);
        }
        true
    }

    // ---- the broker actors

    /// Begins a session whose broker actor `wake` wakes.
    pub(crate) fn begin_session(&self, wake: &WakeHandle) -> SessionId {
        let mut state = self.state.lock();
        state.last_session += 1;
        let id = SessionId(state.last_session);
        state
            .sessions
            .insert(id, Session { wake: wake.clone(), inbox: Vec::new(), is_behind: false, taken_by: 0 });
        id
    }

    /// Ends a session, and drops its queued records, which the broker delivers again. Returns the acknowledgements that the
    /// broker actor has not taken.
    pub(crate) fn end_session(&self, id: SessionId) -> Vec<Submission> {
        let session = self.state.lock().sessions.remove(&id);
        self.drop_queued(|records| records.origin.session == id);
        session.map(|session| session.inbox).unwrap_or_default()
    }

    /// Drops queued records that are not acquired any more. Those that only report damage stay.
    pub(crate) fn drop_queued(&self, is_void: impl Fn(&AcquiredRecords) -> bool) {
        let dropped: VecDeque<_> = {
            let mut state = self.state.lock();
            let queue = std::mem::take(&mut state.queue);
            let (dropped, kept): (VecDeque<_>, VecDeque<_>) =
                queue.into_iter().partition(|records| !records.is_empty() && is_void(records));
            state.queue = kept;
            state.queued_bytes -= dropped.iter().map(|records| records.bytes()).sum::<usize>();
            dropped
        };
        // A poll that waits for more records than the dropped ones fetches again.
        if !dropped.is_empty() {
            self.wake_idle();
        }
    }

    /// Delivers an outcome of a part of a submission, whose rest gets another one.
    pub(crate) fn settle_part(&self, of: &Submission, ranges: Vec<AcknowledgedRange>, error: Error) {
        if let Reply::Ticket(ticket) | Reply::Both(ticket) = &of.reply {
            ticket.add(of.records.partition());
        }
        if !matches!(of.reply, Reply::Unreported) {
            self.note_submitted();
        }
        self.settle(Submission { ranges, ..of.clone() }, Err(error), None);
    }

    /// Returns true while a thread waits in a poll.
    pub(crate) fn is_blocking(&self) -> bool {
        self.blocked.load(Ordering::SeqCst) > 0
    }

    /// Takes the acknowledgements of a session.
    pub(crate) fn take_submissions(&self, id: SessionId) -> Vec<Submission> {
        let mut state = self.state.lock();
        state.sessions.get_mut(&id).map(|session| std::mem::take(&mut session.inbox)).unwrap_or_default()
    }

    /// Returns whether the broker of a session may fetch. If not, the next poll wakes `wake`.
    pub(crate) fn permit(
        &self,
        demand: &mut Demand,
        session: Option<SessionId>,
        wake: &WakeHandle,
    ) -> FetchPermit {
        let mut state = self.state.lock();
        let polls = self.polls.load(Ordering::SeqCst);
        // Records in the queue end the polls that wait: what is fetched beyond them would hold up acknowledgements.
        let is_waiting = self.is_blocking() && state.queue.is_empty();
        // Records that are handed out alone come one by one: the locks of more of them would end in the queue.
        let has_single = state.queue.back().is_some_and(|records| records.is_single());
        let is_of = |records: &Arc<AcquiredRecords>| Some(records.origin.session) == session;
        let has_queued = state.queue.iter().any(|records| is_of(records) && !records.is_empty());
        // The next poll has the acknowledgements of what this one took.
        let taken_by = session.and_then(|id| state.sessions.get(&id)).map_or(0, |session| session.taken_by);
        let is_due = demand.served != polls && taken_by != polls;
        let is_asked = (is_waiting || is_due) && !has_single && !has_queued;
        let budget = usize::try_from(self.settings.fetch_max_bytes).unwrap_or(0);
        let room = budget.saturating_sub(state.queued_bytes);
        if !is_asked || room == 0 || state.is_closed {
            if demand.registered != Some(state.wakeups) {
                demand.registered = Some(state.wakeups);
                state.idle.push(wake.clone());
            }
            return FetchPermit::Denied;
        }
        demand.served = polls;
        FetchPermit::Bytes((room / self.fetchers.load(Ordering::Relaxed).max(1)).max(1))
    }

    /// Appends acquired records.
    pub(crate) fn push(&self, records: impl IntoIterator<Item = Arc<AcquiredRecords>>) {
        let wakers = {
            let mut state = self.state.lock();
            for records in records {
                if !state.is_closed {
                    self.received.fetch_add(records.len() as u64, Ordering::Relaxed);
                    self.received_bytes.fetch_add(records.bytes() as u64, Ordering::Relaxed);
                    state.queued_bytes += records.bytes();
                    state.queue.push_back(records);
                }
            }
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Reports an error to the application.
    pub(crate) fn report(&self, error: Error) {
        self.report_event(ShareEvent::Error(error));
    }

    /// Reports an event to the application.
    pub(crate) fn report_event(&self, event: ShareEvent) {
        self.notify(|state| {
            if state.events.len() == MAX_KEPT {
                state.events.pop_front();
            }
            state.events.push_back(event);
        });
    }

    /// Counts an acknowledgement of the application whose outcome is awaited.
    pub(crate) fn note_submitted(&self) {
        self.unsettled.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the number of times that locks needed attention before their time.
    pub(crate) fn attentions(&self) -> u64 {
        self.attentions.load(Ordering::SeqCst)
    }

    /// Reports the error after which the consumer can't continue.
    pub(crate) fn fail(&self, error: Error) {
        self.notify(|state| {
            state.fatal.get_or_insert(error);
        });
    }

    /// Delivers the outcome of acknowledgements. `lock_until` is the new end of renewed locks.
    pub(crate) fn settle(
        &self,
        submission: Submission,
        result: Result<(), Error>,
        lock_until: Option<Instant>,
    ) {
        let Submission { records, ranges, reply } = submission;
        // A broker chooses the size of gaps: only renewed ranges are bounded by the number of records.
        let renews = Verdict::Of(AcknowledgeType::Renew);
        let renewal = match (&result, lock_until) {
            (Ok(()), Some(until)) => Renewal::Until(until),
            (Err(error), _) if error.kind() == ErrorKind::UnsupportedVersion => Renewal::Unchanged,
            _ => Renewal::Lost,
        };
        let mut ended = Vec::new();
        for range in ranges.iter().filter(|range| range.verdict == renews) {
            ended.extend(records.handle_renewed(range, renewal));
            self.attentions.fetch_add(1, Ordering::SeqCst);
        }
        if let Err(error) = &result {
            self.fail_releases(&records, ended, error);
        }
        let is_reported = !matches!(reply, Reply::Unreported);
        if matches!(reply, Reply::Queue | Reply::Both(_)) {
            let offsets = ranges.iter().map(|range| (range.first, range.last)).collect();
            let partition = records.partition().clone();
            let outcome = AcknowledgeOutcome { partition, offsets, result: result.clone() };
            self.notify(|state| {
                if state.outcomes.len() == MAX_KEPT {
                    state.outcomes.pop_front();
                }
                state.outcomes.push_back(outcome);
            });
        }
        if let Reply::Ticket(ticket) | Reply::Both(ticket) = reply {
            ticket.settle(records.partition(), result);
        }
        // A record that is handed out alone waits for this.
        if is_reported && self.unsettled.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.notify(|_| {});
        }
    }

    fn notify(&self, change: impl FnOnce(&mut State)) {
        let wakers = {
            let mut state = self.state.lock();
            change(&mut state);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Counts records whose acknowledgement is sent.
    pub(crate) fn count_acknowledged(&self, ranges: &[AcknowledgedRange]) {
        let records = ranges.iter().map(|range| range.last.abs_diff(range.first).saturating_add(1));
        self.acknowledged.fetch_add(records.fold(0, u64::saturating_add), Ordering::Relaxed);
    }

    /// Adds the counters to a snapshot of the statistics.
    pub(crate) fn add_statistics(&self, now: Instant, purpose: Purpose, statistics: &mut Statistics) {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed).cast_signed();
        if purpose == Purpose::Push {
            statistics.rxmsgs = number(&self.received);
            statistics.rxmsg_bytes = number(&self.received_bytes);
        }
        statistics.consumer = Some(ConsumerStatistics {
            poll_idle: i64::try_from(self.idle.total(now).as_micros()).unwrap_or(i64::MAX),
            time_between_polls: self.state.lock().between_polls.snapshot(purpose),
            acknowledgements: number(&self.acknowledged),
            max_lag: -1,
            ..ConsumerStatistics::default()
        });
    }

    /// Returns the time of the last poll: `now` while a thread blocks in one.
    pub(crate) fn last_poll(&self, now: Instant) -> Instant {
        if self.blocked.load(Ordering::Acquire) > 0 {
            return now;
        }
        Instant::from_nanos(self.polled_at.load(Ordering::Acquire))
    }

    pub(crate) fn set_expired(&self, is_expired: bool) {
        self.is_expired.store(is_expired, Ordering::Release);
    }
}

impl State {
    /// Takes the broker actors that wait for a poll, or have not noticed its acknowledgements.
    fn take_wakes(&mut self) -> Vec<WakeHandle> {
        self.wakeups += 1;
        self.is_polling = false;
        let mut wakes = std::mem::take(&mut self.idle);
        for session in self.sessions.values_mut() {
            if std::mem::take(&mut session.is_behind) {
                wakes.push(session.wake.clone());
            }
        }
        wakes
    }
}

/// Returns the outcome of acknowledgements whose session has ended.
pub(crate) fn session_lost() -> Error {
    let detail =
        "the share session in which the records were acquired has ended; the broker delivers them again";
    Error::broker(ErrorCode::SHARE_SESSION_NOT_FOUND, Some(detail))
}

/// Returns the outcome of acknowledgements of an earlier delivery of records.
pub(crate) fn lock_lost() -> Error {
    let detail = "the lock on the record has ended, and the broker has delivered it again";
    Error::broker(ErrorCode::INVALID_RECORD_STATE, Some(detail))
}

/// Returns the outcome of acknowledgements of records whose partition has another leader now.
pub(crate) fn leader_moved() -> Error {
    let detail = "the partition has another leader than the broker that delivered the records; they are delivered again";
    Error::broker(ErrorCode::NOT_LEADER_OR_FOLLOWER, Some(detail))
}

impl WaitPlace for ShareShared {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.state.lock().wakers)
    }
}

/// Returns the outcome of acknowledgements that a closed client did not send.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Closed, "")
}

impl fmt::Debug for ShareShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareShared").field("settings", &self.settings).finish_non_exhaustive()
    }
}
