//! Rebalances as messages: the application learns of each change of its assignment, and decides when it takes effect.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use ottla_core::{
    cluster::command::Command,
    error::{Error, Result},
    event::{Event, EventQueue, PollOverdue},
    fetch::{position::Offset, queue::FetchQueue},
    group::{
        GroupCommand,
        rebalance::RebalanceAnswer,
        shared::{Answers, GroupSink, RebalanceEvent, RebalanceKind},
    },
    lock::Mutex,
    offsets::committed::{CommitResult, GroupOffset},
    waiters::{WaitPlace, Waiter, Waiters},
};
use ottla_net::clock;
use ottla_protocol::vocabulary::TopicPartition;

use super::{Consumer, listener::RebalanceListener};
use crate::{
    interceptors::{Chain, ConsumerInterceptor},
    wait::wait_for,
};

/// The rebalances that the application has to answer.
pub(super) struct Questions {
    state: Mutex<State>,
    events: Arc<EventQueue>,
    /// The listener, unless it is being called.
    pub(super) listener: Mutex<Option<Box<dyn RebalanceListener>>>,
    pub(super) has_listener: AtomicBool,
    interceptors: Arc<Chain<dyn ConsumerInterceptor>>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of [`Rebalances`] that the application has.
    takers: usize,
    queue: VecDeque<RebalanceEvent>,
    /// The warning that the application does not poll, until a receiver takes it.
    overdue: Option<PollOverdue>,
    /// The number of the last event.
    last: u64,
    /// The number of the last event that the application, or the library for it, answered.
    answered: u64,
    /// The number of calls and futures that wait for the next event.
    waiting: usize,
    wakers: Waiters,
}

impl Questions {
    pub(super) fn new(events: Arc<EventQueue>, interceptors: Arc<Chain<dyn ConsumerInterceptor>>) -> Self {
        Self {
            state: Mutex::default(),
            events,
            listener: Mutex::default(),
            has_listener: AtomicBool::new(false),
            interceptors,
        }
    }

    /// Returns the next event; `None` once the library answers by itself again.
    pub(super) fn poll(
        self: &Arc<Self>,
        waiter: &mut Waiter<Self>,
        context: &Context<'_>,
    ) -> Poll<Option<RebalanceEvent>> {
        let number = waiter.number_at(self);
        let mut state = self.state.lock();
        if let Some(event) = state.queue.pop_front() {
            return Poll::Ready(Some(event));
        }
        if state.takers == 0 && !self.has_listener.load(Ordering::Acquire) {
            return Poll::Ready(None);
        }
        let old = state.wakers.register(number, context.waker());
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl WaitPlace for Questions {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.state.lock().wakers)
    }
}

impl Questions {
    /// Sets the listener, which answers rebalances from now on.
    pub(super) fn set_listener(&self, listener: Box<dyn RebalanceListener>) {
        let old = self.listener.lock().replace(listener);
        self.has_listener.store(true, Ordering::Release);
        drop(old);
    }

    /// Returns true if the application can be expected to answer: it has a listener, waits for the next event, or took the
    /// last one and has not answered it.
    pub(super) fn has_attentive_application(&self) -> bool {
        let state = self.state.lock();
        let is_receiving =
            state.takers > 0 && (state.waiting > 0 || state.queue.is_empty() && state.last > state.answered);
        is_receiving || self.has_listener.load(Ordering::Acquire)
    }

    /// Leaves an event for a receiver that does not wait for it, instead of earlier ones: the library answers it.
    fn announce(&self, event: Option<RebalanceEvent>) {
        let mut state = self.state.lock();
        let has_receiver = state.takers > 0;
        state.queue.clear();
        state.queue.extend(event.filter(|_| has_receiver));
    }

    /// Takes the number of the event without an answer. Registers for the next event.
    pub(super) fn take_unanswered(
        self: &Arc<Self>,
        waiter: &mut Waiter<Self>,
        context: &Context<'_>,
    ) -> Option<u64> {
        waiter.register(self, context.waker());
        let mut state = self.state.lock();
        let is_unanswered = state.last > state.answered;
        state.answered = state.last;
        is_unanswered.then_some(state.last)
    }

    fn take_overdue(&self) -> Option<PollOverdue> {
        self.state.lock().overdue.take()
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions").field("state", &*self.state.lock()).finish_non_exhaustive()
    }
}

impl GroupSink for Questions {
    fn answers(&self) -> Answers {
        let is_asking = self.state.lock().takers > 0 || self.has_listener.load(Ordering::Acquire);
        if is_asking { Answers::ApplicationWithDeadline } else { Answers::Library }
    }

    fn rebalance(&self, event: RebalanceEvent) {
        let wakers = {
            let mut state = self.state.lock();
            // An event that the application has not taken ends when the next one comes.
            state.queue.clear();
            state.last = event.number;
            state.queue.push_back(event);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn committed(&self, offsets: &[GroupOffset], outcome: &CommitResult) {
        self.interceptors.on_commit(offsets, outcome);
    }

    fn error(&self, error: Error) {
        self.events.push(Event::Error(error));
    }

    fn poll_overdue(&self, since: Duration, limit: Duration) {
        let overdue = PollOverdue::new(since, limit);
        let wakers = {
            let mut state = self.state.lock();
            state.overdue = Some(overdue.clone());
            std::mem::take(&mut state.wakers)
        };
        self.events.push(Event::PollOverdue(overdue));
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// The rebalances of a consumer, one after the other. See [`Consumer::rebalances`].
pub struct Rebalances {
    consumer: Consumer,
}

impl Rebalances {
    /// Returns the next rebalance, or `None` after `timeout` and once the consumer is closed.
    pub fn next(&self, timeout: Duration) -> Option<Rebalance> {
        wait_for(self.next_async(), timeout).flatten()
    }

    /// Returns the next rebalance; `None` once the consumer is closed.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, no rebalance was taken.
    pub fn next_async(&self) -> impl Future<Output = Option<Rebalance>> + Send + use<> {
        let mut wait = Wait::new(&self.consumer);
        poll_fn(move |context| {
            let event = wait.poll(context);
            wait.set_waiting(event.is_pending());
            event.map(|event| Some(Rebalance::new(wait.consumer.clone(), event?)))
        })
    }

    /// Returns the next rebalance or warning, or `None` after `timeout` and once the consumer is closed.
    pub fn next_event(&self, timeout: Duration) -> Option<GroupEvent> {
        wait_for(self.next_event_async(), timeout).flatten()
    }

    /// Returns the next rebalance or warning; `None` once the consumer is closed.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is ready, nothing was taken.
    pub fn next_event_async(&self) -> impl Future<Output = Option<GroupEvent>> + Send + use<> {
        let mut wait = Wait::new(&self.consumer);
        poll_fn(move |context| {
            // The check of the warning follows the registration for the next event.
            let event = wait.poll(context);
            let questions = wait.questions();
            let polled = match (event, questions.take_overdue()) {
                (Poll::Ready(Some(event)), overdue) => {
                    questions.state.lock().overdue = overdue;
                    Poll::Ready(Some(GroupEvent::Rebalance(Rebalance::new(wait.consumer.clone(), event))))
                }
                (_, Some(overdue)) => Poll::Ready(Some(GroupEvent::PollOverdue(overdue))),
                (Poll::Ready(None), None) => Poll::Ready(None),
                (Poll::Pending, None) => Poll::Pending,
            };
            wait.set_waiting(polled.is_pending());
            polled
        })
    }
}

/// A call or future that may wait for the next event.
struct Wait {
    consumer: Consumer,
    is_waiting: bool,
    next: Waiter<Questions>,
    end: Waiter<FetchQueue>,
}

impl Wait {
    fn new(consumer: &Consumer) -> Self {
        let (next, end) = (Waiter::default(), Waiter::default());
        Self { consumer: consumer.clone(), is_waiting: false, next, end }
    }

    /// Returns the next event; `None` once the consumer is closed.
    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<RebalanceEvent>> {
        let inner = &self.consumer.inner;
        let is_open = inner.shared.queue.register_end(&mut self.end, context.waker());
        match inner.subscription.questions().poll(&mut self.next, context) {
            Poll::Pending if !is_open => Poll::Ready(None),
            event => event,
        }
    }

    fn questions(&self) -> &Arc<Questions> {
        self.consumer.inner.subscription.questions()
    }

    fn set_waiting(&mut self, is_waiting: bool) {
        if is_waiting == self.is_waiting {
            return;
        }
        self.is_waiting = is_waiting;
        let mut state = self.questions().state.lock();
        state.waiting = if is_waiting { state.waiting + 1 } else { state.waiting.saturating_sub(1) };
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.set_waiting(false);
    }
}

/// Without another [`Rebalances`] the library answers by itself from now on, the outstanding rebalance included.
impl Drop for Rebalances {
    fn drop(&mut self) {
        let is_last = {
            let mut state = self.consumer.inner.subscription.questions().state.lock();
            state.takers = state.takers.saturating_sub(1);
            state.takers == 0
        };
        if is_last {
            self.consumer.stop_asking();
        }
    }
}

impl fmt::Debug for Rebalances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebalances").field("consumer", &self.consumer).finish_non_exhaustive()
    }
}

/// What [`Rebalances::next_event`] returns.
#[derive(Debug)]
#[non_exhaustive]
pub enum GroupEvent {
    /// The assignment changes.
    Rebalance(Rebalance),
    /// The application has not polled for half of `max.poll.interval.ms`; again after four fifths. After the rest of it the
    /// consumer leaves its group, and its partitions are lost.
    PollOverdue(PollOverdue),
}

/// A change of the assignment that takes effect when this is accepted or dropped.
///
/// Until then no records of any assigned partition are returned, and the consumer stays a member of its group. While
/// partitions are [revoked](RebalanceKind::Revoke) the application can still commit their offsets.
#[must_use = "a rebalance that is dropped is accepted"]
pub struct Rebalance {
    consumer: Consumer,
    event: RebalanceEvent,
}

impl Rebalance {
    pub(super) const fn new(consumer: Consumer, event: RebalanceEvent) -> Self {
        Self { consumer, event }
    }

    /// Returns the kind of change.
    pub const fn kind(&self) -> RebalanceKind {
        self.event.kind
    }

    /// Returns the partitions that the consumer gets or gives up.
    pub fn partitions(&self) -> &[TopicPartition] {
        &self.event.partitions
    }

    /// Returns the time that is left for the answer. Afterwards the library accepts the change by itself.
    pub fn time_left(&self) -> Duration {
        self.event.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_since(clock::now()))
    }

    /// Accepts the change. New partitions start at their committed offsets.
    pub fn accept(self) {}

    /// Accepts the change; these of the new partitions start at the given offsets. An answer after the deadline has no
    /// effect.
    ///
    /// Error: an offset is invalid; the change is accepted without offsets.
    pub fn accept_from(self, offsets: &[(impl AsRef<str>, i32, Offset)]) -> Result<()> {
        let offsets = self.consumer.checked(offsets)?;
        // The second answer, of `drop`, finds no question.
        self.consumer.answer(self.event.number, offsets);
        Ok(())
    }
}

impl Drop for Rebalance {
    fn drop(&mut self) {
        self.consumer.answer(self.event.number, Vec::new());
    }
}

impl fmt::Debug for Rebalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebalance").field("event", &self.event).finish_non_exhaustive()
    }
}

impl Consumer {
    /// Takes part in the rebalances of the consumer's group: from now on, each change of the assignment waits until the
    /// application accepts it. [`Consumer::set_rebalance_listener`] is the alternative with callbacks. After several calls each rebalance comes to one of the receivers.
    ///
    /// The answer may come from any thread, and takes effect without a poll. It has a deadline, half of
    /// `max.poll.interval.ms`. [`Consumer::close`] gives a receiver that waits for the next rebalance half of its timeout for
    /// the answer. Otherwise it accepts the revocation, which the receiver returns afterwards.
    pub fn rebalances(&self) -> Rebalances {
        let subscription = &self.inner.subscription;
        subscription.questions().state.lock().takers += 1;
        subscription.group().set_sink(Arc::clone(subscription.questions()) as _);
        Rebalances { consumer: self.clone() }
    }

    /// Leaves the revocation by [`Consumer::close`] for a receiver that does not wait for it.
    pub(super) fn announce_revocation(&self) {
        let partitions = self.assignment();
        let protocol = self.inner.subscription.group().view().protocol;
        let event = protocol.filter(|_| !partitions.is_empty()).map(|protocol| RebalanceEvent {
            // No question has this number: the answer has no effect.
            number: 0,
            kind: RebalanceKind::Revoke,
            partitions,
            protocol,
            deadline: Some(clock::now()),
        });
        self.inner.subscription.questions().announce(event);
    }

    /// Makes the library answer rebalances, the outstanding one included.
    pub(super) fn stop_asking(&self) {
        let questions = self.inner.subscription.questions();
        questions.state.lock().queue.clear();
        self.answer_by_library();
    }

    /// Like [`Consumer::stop_asking`]; receivers return the last event even so.
    pub(super) fn answer_by_library(&self) {
        let (last, wakers) = {
            let mut state = self.inner.subscription.questions().state.lock();
            state.takers = 0;
            self.inner.subscription.questions().has_listener.store(false, Ordering::Release);
            (state.last, std::mem::take(&mut state.wakers))
        };
        wakers.into_iter().for_each(Waker::wake);
        if last > 0 {
            self.answer(last, Vec::new());
        }
    }

    pub(super) fn answer(&self, number: u64, offsets: Vec<(TopicPartition, Offset)>) {
        {
            let mut state = self.inner.subscription.questions().state.lock();
            state.answered = state.answered.max(number);
        }
        let answer = RebalanceAnswer::Accepted(number, offsets);
        // A closed consumer has answered already.
        let _ = self.inner.client.command(Command::Group(GroupCommand::Answer(answer)));
    }
}
