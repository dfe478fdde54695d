//! Polls: pass the entries of a queue to the application, by its callbacks, as messages or as events.

use std::{ffi::c_int, ptr, sync::Arc, time::Instant};

use ottla::Consumer;

use super::{
    Queue,
    state::{Next, Places, Ready, State, Waited},
};
use crate::{
    client::{
        event::Event,
        handle::Client,
        interceptors::kind,
        op::{Op, wants},
        yielding::take_yield,
    },
    consume::{
        event_message::take_later,
        settle::{forget_starts, note_starts, settle},
    },
    ffi::{
        boundary::{Blamed, is_inherited},
        cancel::Uncancelled,
        codes::code,
        time::{PollTimeout, deadline, past},
        types::{event_type, rd_kafka_message_t},
    },
};

impl Queue {
    /// Returns the client that the queue belongs to, if it still exists.
    pub(crate) fn client(&self) -> Option<Arc<Client>> {
        self.owner()?.downcast()
    }

    /// Wakes the polls that wait where the entries end up, and notifies the application. The end of a consumer ends waits only:
    /// there is nothing to be polled.
    pub(super) fn wake_polls(self: &Arc<Self>) {
        let (end, client) = (self.end(), self.client());
        if client.as_ref().and_then(|client| client.consumer()).is_some_and(Consumer::is_closed) {
            drop(end.state.with(false, State::signal));
            end.changed.notify_all();
        } else {
            end.signal();
        }
    }

    /// Serves entries by callbacks: waits for the first one, and takes those that are available then.
    pub(crate) fn serve(self: &Arc<Self>, client: &Client, timeout_ms: c_int) -> c_int {
        let mut served = 0;
        let mut until = if timeout_ms == 0 { Some(past()) } else { deadline(timeout_ms) };
        while let Some(op) = self.pop(until) {
            until = Some(past());
            served += 1;
            if op.is_refusal() {
                continue;
            }
            if let Some(rest) = client.serve(op) {
                self.end().push_front(rest);
                break;
            }
            if take_yield() || client.is_closing() {
                break;
            }
        }
        served
    }

    /// Returns the next record or error of a partition as a message. Waits until the timeout, and serves other entries
    /// meanwhile.
    pub(crate) fn pop_message(
        self: &Arc<Self>,
        client: &Client,
        timeout: &mut PollTimeout,
    ) -> Option<*mut rd_kafka_message_t> {
        if !client.interceptors().has(kind::CONSUME)
            && let Some(message) = self.state.with((), State::next_ready)
        {
            return Some(message);
        }
        let _uncancelled = Uncancelled::begin();
        let mut one = [ptr::null_mut()];
        (self.pop_messages(client, timeout, &mut one, false) == 1).then_some(one[0])
    }

    /// Fills `into` with messages, and returns their number. Waits for the first one until the timeout; with `all`, for
    /// all.
    pub(crate) fn pop_messages(
        self: &Arc<Self>,
        client: &Client,
        timeout: &mut PollTimeout,
        into: &mut [*mut rd_kafka_message_t],
        all: bool,
    ) -> usize {
        if !client.interceptors().has(kind::CONSUME) {
            return self.take_messages(client, timeout, into, all);
        }
        // A callback may destroy the client.
        let held = client.weak().upgrade();
        // Positions advance behind the interceptors, which may commit: the application has no message yet.
        let count = self.collect_messages(client, timeout, into, 0, all, true);
        let kept = Self::intercepted(client, &mut into[..count]);
        drop(held);
        kept
    }

    #[inline]
    fn take_messages(
        self: &Arc<Self>,
        client: &Client,
        timeout: &mut PollTimeout,
        into: &mut [*mut rd_kafka_message_t],
        all: bool,
    ) -> usize {
        let ready = self.state.with(Ready(into), State::take_ready);
        if ready == into.len() { ready } else { self.wait_for_messages(client, timeout, into, ready, all) }
    }

    /// Fills `into` from `count` on, and does the work that this needs. A call that collects messages until all slots are
    /// filled takes some time, so that the last step is to drop what is out of date by then.
    #[cold]
    fn wait_for_messages(
        self: &Arc<Self>,
        client: &Client,
        timeout: &mut PollTimeout,
        into: &mut [*mut rd_kafka_message_t],
        count: usize,
        all: bool,
    ) -> usize {
        if !all {
            return self.collect_messages(client, timeout, into, count, all, false);
        }
        // A callback or another thread may destroy the client.
        let held = client.weak().upgrade();
        let collected = self.collect_messages(client, timeout, into, count, all, true);
        let kept = Self::settled(client, &mut into[..collected]);
        drop(held);
        kept
    }

    /// Passes messages to the interceptors before the positions advance behind them; returns the number of those that are left.
    fn intercepted(client: &Client, messages: &mut [*mut rd_kafka_message_t]) -> usize {
        forget_starts(client, messages);
        messages.iter().for_each(|message| client.intercept_consumed(*message));
        let kept = Self::settled(client, messages);
        note_starts(client, &messages[..kept]);
        kept
    }

    /// Advances the positions behind messages, drops those that are out of date, and returns the number of the others.
    fn settled(client: &Client, messages: &mut [*mut rd_kafka_message_t]) -> usize {
        match client.consumer() {
            Some(consumer) => settle(client, consumer, messages),
            None => messages.len(),
        }
    }

    /// Reads from the consumer, serves entries, and waits. With `settles`, the caller advances the positions.
    fn collect_messages(
        self: &Arc<Self>,
        client: &Client,
        timeout: &mut PollTimeout,
        into: &mut [*mut rd_kafka_message_t],
        mut count: usize,
        all: bool,
        settles: bool,
    ) -> usize {
        let consumer = client.consumer();
        // A callback or another thread may destroy the client.
        let mut held = None;
        let began = self.state.with((), State::since);
        // The queue where entries end up, once this one is known to be forwarded.
        let mut end: Option<Arc<Self>> = None;
        loop {
            let is_end = end.is_some();
            let queue = end.as_ref().unwrap_or(self);
            let places = Places {
                into: &mut into[count..],
                is_batch: settles,
                as_events: false,
                is_end,
                is_without_consumer: consumer.is_none(),
            };
            let (taken, next) = queue.state.with(places, State::take);
            count += taken;
            if !matches!(next, Next::Full | Next::Forwarded) && held.is_none() {
                held = client.weak().upgrade();
            }
            let seen = match next {
                Next::Full | Next::Nothing => return count,
                Next::Forwarded => {
                    end = Some(self.end());
                    continue;
                }
                // The callback may revoke partitions, so messages that were taken before are returned first.
                Next::Op(op @ Op::Rebalance(_)) if count > 0 => {
                    queue.push_front(op);
                    return count;
                }
                Next::Op(op) => {
                    // The duration of callbacks counts against the timeout.
                    timeout.until();
                    if let Some(rest) = client.serve(op) {
                        queue.push_front(rest);
                        return count;
                    }
                    if take_yield() || client.is_closing() {
                        return count;
                    }
                    continue;
                }
                Next::Event(event) => {
                    if let Some(op) = client.op_of(event) {
                        queue.push_front(op);
                    }
                    continue;
                }
                Next::Read(seen) => match consumer {
                    Some(consumer) if queue.read(client, consumer, settles && count > 0) => continue,
                    _ => seen,
                },
                Next::Wait(seen) => seen,
            };
            if count > 0 && !all
                || self.state.with(began, State::is_returned)
                || queue.wait_as_poll(client, seen, timeout.until()) != Waited::Signalled
            {
                return count;
            }
            // The queue may be forwarded elsewhere by now.
            end = None;
        }
    }

    /// Waits for a signal. The application counts as polling for `max.poll.interval.ms` meanwhile if messages arrive
    /// here.
    fn wait_as_poll(self: &Arc<Self>, client: &Client, seen: u64, until: Option<Instant>) -> Waited {
        let _polling = self.is_for_messages().then(|| client.begin_poll());
        self.wait(seen, until)
    }

    /// Returns the next entry as an event.
    pub(crate) fn pop_event(self: &Arc<Self>, client: &Client, timeout_ms: c_int) -> Option<Event> {
        let until = if timeout_ms == 0 { Some(past()) } else { deadline(timeout_ms) };
        let Some(consumer) = client.consumer() else {
            while let Some(op) = self.pop(until) {
                match op {
                    op if op.is_refusal() => {}
                    op @ Op::Call(_) => drop(client.serve(op)),
                    op => return Some(Event::of(op)),
                }
            }
            return None;
        };
        let began = self.state.with((), State::since);
        let mut queue = self.end();
        loop {
            let mut one = [ptr::null_mut()];
            let places = Places {
                into: &mut one,
                is_batch: true,
                as_events: true,
                is_end: true,
                is_without_consumer: false,
            };
            let seen = match queue.state.with(places, State::take).1 {
                Next::Full => return Some(Event::of_fetched(one[0], take_later(client, one[0]))),
                // Rebalances are events only if the application enabled that.
                Next::Op(op @ Op::Rebalance(_)) if !wants(client.conf().events, event_type::REBALANCE) => {
                    client.serve(op);
                    continue;
                }
                Next::Op(op @ Op::Call(_)) => {
                    client.serve(op);
                    continue;
                }
                Next::Op(op) if op.is_refusal() => continue,
                Next::Op(op) => {
                    if let Op::Rebalance(rebalance) = &op {
                        client.note_rebalance_event(rebalance);
                    }
                    return Some(Event::of(op).explain_fatal(|| client.fatal()));
                }
                Next::Event(event) => {
                    if let Some(op) = client.op_of(event) {
                        return Some(Event::of(op));
                    }
                    continue;
                }
                Next::Read(seen) if queue.read(client, consumer, false) => {
                    let _ = seen;
                    continue;
                }
                Next::Read(seen) | Next::Wait(seen) => seen,
                Next::Nothing | Next::Forwarded => return None,
            };
            if self.state.with(began, State::is_returned)
                || queue.wait_as_poll(client, seen, until) != Waited::Signalled
            {
                return None;
            }
            queue = self.end();
        }
    }
}

impl Blamed for *const Queue {
    fn is_inherited(self) -> bool {
        // SAFETY: NULL or a handle, as the header demands.
        unsafe { is_inherited(self) }
    }

    fn blame(self, text: &str) {
        // SAFETY: as for a client.
        if let Some(client) = unsafe { Queue::of(self) }.and_then(|queue| queue.client()) {
            client.set_fatal(code::_FAIL, text);
        }
    }
}
