//! Closing a consumer: it serves the last rebalances, commits and leaves the group.
//!
//! # Pitfalls
//!
//! - Another thread may poll the consumer meanwhile. Its poll waits at the queue of the close, and takes entries of it.
//!   A wake-up that one of the waiters takes may not reach the close, so the close waits for a signal, which wakes all
//!   (`closing.c`).
//! - An application that hands rebalances to another thread, as event loops do, may close instead of responding. Waiting
//!   for its response to new partitions would only end with the time limit (`closing.c`).

use std::{
    ffi::c_int,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ottla::Consumer;
use ottla_core::{
    cluster::command::Command, completion::completion, fetch::position::Offset, group::GroupCommand,
};

use super::{
    assign::{Change, change_assignment},
    state::Phase,
};
use crate::{
    client::{handle::Client, op::Op, queue::Queue},
    consume::consumer::group_consumer_of,
    ffi::{
        argument::Ref,
        codes::{RespErr, code},
        error::ErrorObject,
        export, task,
    },
};
use ottla_core::group::departure::GroupMembershipOperation;

/// The time limit for the last commit of a consumer without a subscription.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for the last commit and for leaving, after the application has responded.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(12);
/// The time that the application may take to respond to a rebalance in addition to the session timeout.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);

impl Client {
    /// Closes the consumer: serves the application's callbacks, commits and leaves the group.
    fn close_group(&self, consumer: &Consumer) {
        let queue = Queue::new();
        queue.set_client(self.object());
        let is_done = Arc::new(AtomicBool::new(false));
        let (flag, signalled) = (Arc::clone(&is_done), Arc::clone(&queue));
        self.begin_close_to(consumer, &queue, move || {
            flag.store(true, Ordering::Release);
            signalled.signal();
        });
        self.serve_until_closed(consumer, &queue, &is_done);
        // The outcomes of the last commits.
        self.serve_rest(&queue);
        self.end_close(consumer);
        self.serve_rest(&queue);
        // Polls of other threads that wait here return.
        queue.clear();
    }

    /// Serves the entries of the queue until the consumer has left the group, or the time limit has passed.
    fn serve_until_closed(&self, consumer: &Consumer, queue: &Arc<Queue>, is_done: &AtomicBool) {
        let session = self.property("session.timeout.ms").and_then(|value| value.parse().ok());
        let session = Duration::from_millis(session.unwrap_or(45_000));
        let mut until = Instant::now() + session + ANSWER_MARGIN;
        let mut is_forced = false;
        loop {
            let seen = queue.signals();
            if is_done.load(Ordering::Acquire) {
                return;
            }
            if let Some(op) = queue.pop_now() {
                self.serve_closing(op);
            } else if Instant::now() < until {
                queue.wait_signal(seen, Some(until));
            } else if is_forced {
                return;
            } else {
                // The application did not respond: no further entries are delivered, and its partitions go to other
                // members.
                is_forced = true;
                until = Instant::now() + LEAVE_TIMEOUT;
                let _ = change_assignment(self, consumer, Change::Nothing);
            }
        }
    }

    /// Serves the remaining entries of the queue of a close.
    fn serve_rest(&self, queue: &Queue) {
        while let Some(op) = queue.pop_now() {
            self.serve_closing(op);
        }
    }

    /// Serves what waits in the consumer's own queue: the outcomes of commits reach the application's callbacks.
    fn serve_own(&self) {
        let Some(own) = self.consumer_queue() else { return };
        let queue = Queue::new();
        queue.set_client(self.object());
        own.forward(Some(Arc::clone(&queue)));
        self.serve_rest(&queue);
        own.forward(None);
    }

    /// Serves an entry while the consumer closes. Messages and errors of partitions are no longer needed.
    fn serve_closing(&self, op: Op) {
        if !matches!(op, Op::Message(_)) {
            self.serve(op);
        }
    }

    /// Redirects the consumer's entries to this queue, and leaves the group. Calls `when_left`, possibly on an I/O
    /// thread, when that is done.
    fn begin_close_to(
        &self,
        consumer: &Consumer,
        queue: &Arc<Queue>,
        when_left: impl FnOnce() + Send + 'static,
    ) {
        if let Some(own) = self.consumer_queue() {
            own.forward(Some(Arc::clone(queue)));
        }
        self.membership().subscription.lock().clear();
        let (done, left) = completion();
        consumer
            .handle()
            .command(Command::Group(GroupCommand::Close(GroupMembershipOperation::Default, done)));
        self.answer_for_close(true);
        task::spawn(async move {
            // Without a result, the client has ended.
            left.await;
            when_left();
        });
    }

    fn end_close(&self, consumer: &Consumer) {
        self.offsets().forget_all();
        let _ = consumer.assign(&[] as &[(&str, i32, Offset)]);
        if let Some(own) = self.consumer_queue() {
            own.forward(None);
        }
        self.set_closed();
    }

    /// Notes that the consumer is closed. Polls of other threads return; they may be on the way between queues.
    fn set_closed(&self) {
        self.membership().end_close();
        self.consumer_queue().into_iter().chain([self.main()]).for_each(|queue| queue.end_waiting());
    }

    /// Closes a consumer whose partitions the application assigned: there is no group to leave.
    fn close_assigned(&self, consumer: &Consumer) {
        self.commit_before_leaving(consumer, COMMIT_TIMEOUT);
        self.serve_own();
        self.offsets().forget_all();
        let _ = consumer.assign(&[] as &[(&str, i32, Offset)]);
        self.set_closed();
    }

    /// Closes the consumer of a client that is being destroyed, unless it is closed already, or is being closed: the time
    /// limits of a close apply once.
    pub(crate) fn close_for_destroy(&self, consumer: &Consumer, last_commit: Duration) {
        if self.fatal().is_some() {
            return;
        }
        let is_active = self.membership().is_active(consumer);
        match self.membership().begin_close() {
            Ok(()) if is_active => self.close_group(consumer),
            Ok(()) => {
                self.commit_before_leaving(consumer, last_commit);
                self.serve_own();
            }
            Err(_) => {}
        }
    }
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_consumer_close(rk: Ref<Client>) -> RespErr {
        let (client, consumer) = match group_consumer_of(rk) {
            Ok(both) => both,
            Err(code) => return code,
        };
        if client.fatal().is_some() {
            return code::_FATAL;
        }
        match client.membership().begin_close() {
            Ok(()) if client.membership().is_active(consumer) => {
                // A callback may destroy the client.
                let held = client.weak().upgrade();
                client.close_group(consumer);
                drop(held);
                code::NO_ERROR
            }
            Ok(()) => {
                client.close_assigned(consumer);
                code::NO_ERROR
            }
            Err(Phase::Closing) => code::_IN_PROGRESS,
            Err(_) => code::_DESTROY,
        }
    }
);

export!(
    #[on(rk, std::ptr::null_mut())]
    fn rd_kafka_consumer_close_queue(rk: Ref<Client>, rkqu: Ref<Queue>) -> *mut ErrorObject {
        let refused = |code: RespErr, text: &str| ErrorObject::new(code, text).into_raw();
        let Some(queue) = rkqu.counted() else {
            return refused(code::_INVALID_ARG, "pass a queue for the events of the group");
        };
        let (client, consumer) = match group_consumer_of(rk) {
            Ok(both) => both,
            Err(code) => return refused(code, "only a consumer with a `group.id` can be closed"),
        };
        if let Some((cause, text)) = client.fatal() {
            return ErrorObject::fatal(cause, text).into_raw();
        }
        match client.membership().begin_close() {
            Ok(()) if client.membership().is_active(consumer) => {
                let (me, signalled) = (client.weak(), Arc::clone(&queue));
                client.begin_close_to(consumer, &queue, move || {
                    if let Some(client) = me.upgrade()
                        && let Some(consumer) = client.consumer()
                    {
                        client.end_close(consumer);
                    }
                    signalled.signal();
                });
                std::ptr::null_mut()
            }
            Ok(()) => {
                client.close_assigned(consumer);
                std::ptr::null_mut()
            }
            Err(Phase::Closing) => refused(code::_IN_PROGRESS, "the consumer is being closed"),
            Err(_) => refused(code::_DESTROY, "the consumer is closed"),
        }
    }
);

export!(
    #[local(0)]
    fn rd_kafka_consumer_closed(rk: Ref<Client>) -> c_int {
        rk.get().is_some_and(|client| client.membership().phase() == Phase::Closed).into()
    }
);
