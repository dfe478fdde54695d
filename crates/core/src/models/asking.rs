//! Commands of the application to the cluster actor, and the results that it waits for.

use std::{future::Future, pin::pin, sync::Arc, task::Waker};

use loom::thread::spawn as start;

use super::{Sleep, model};
use crate::{
    cluster::{
        command::{Command, CommandQueue},
        reminders::Reminder,
    },
    completion::completion,
    error::{Error, ErrorKind},
    event::{Event, EventQueue},
    machine::Instant,
    produce::report::{Delivered, PersistenceStatus, TrackedOutcome, Tracker},
    waiters::Waiter,
};

/// Detects a `push` that wakes the actor before the command is in the queue.
#[test]
fn every_command_reaches_the_owner() {
    model(|| {
        let sleep = Sleep::new();
        let (queue, reader) = CommandQueue::new(sleep.handle());
        let askers = [0, 1].map(|_| {
            let queue = Arc::clone(&queue);
            start(move || queue.push(Command::Flush))
        });
        let mut came = 0;
        while came < 2 {
            sleep.sleep();
            while reader.pop().is_some() {
                came += 1;
            }
        }
        askers.into_iter().for_each(|asker| assert!(asker.join().unwrap()));
    });
}

/// Detects a `push` that looks whether the queue is closed and appends the command under two locks, and a `close` that
/// leaves the queued commands.
#[test]
fn command_ends_when_its_reader_does() {
    model(|| {
        let (queue, reader) = CommandQueue::new(Sleep::new().handle());
        let closer = start(move || drop(reader));
        let (done, waiting) = completion();
        queue.push(Command::Remind(Reminder { at: Instant::ZERO, done }));
        let mut waiting = pin!(waiting);
        assert_eq!(Sleep::new().wait(|context| waiting.as_mut().poll(context)), None);
        closer.join().unwrap();
    });
}

/// Detects a completion whose drop wakes the receiver without setting the final state under the lock.
#[test]
fn completion_or_its_drop_wakes_the_waiter() {
    for completes in [true, false] {
        model(move || {
            let (completion, waiting) = completion();
            let waiter = start(move || {
                let mut waiting = pin!(waiting);
                Sleep::new().wait(|context| waiting.as_mut().poll(context))
            });
            if completes {
                completion.complete(5);
            } else {
                drop(completion);
            }
            assert_eq!(waiter.join().unwrap(), completes.then_some(5));
        });
    }
}

/// Detects a `poll` or a `forward` that checks and registers under two separate locks.
#[test]
fn late_record_of_a_batch_gets_its_report() {
    model(|| {
        let (batch, own) = (Arc::<Tracker>::default(), Arc::<Tracker>::default());
        let waiter = {
            let own = Arc::clone(&own);
            start(move || {
                let mut waiter = Waiter::default();
                Sleep::new().wait(|context| own.poll(0, &mut waiter, context))
            })
        };
        let sender = {
            let batch = Arc::clone(&batch);
            start(move || {
                let delivered = Delivered { base_offset: Some(7), log_append_time: None };
                let status = PersistenceStatus::Persisted;
                batch.complete(0..3, TrackedOutcome { partition: 1, outcome: Ok(delivered), status });
            })
        };
        batch.forward(2, &own);
        assert_eq!(waiter.join().unwrap().outcome.unwrap().base_offset, Some(9));
        sender.join().unwrap();
    });
}

/// Detects a `push` that takes the wakers before it appends the event.
#[test]
fn event_wakes_registered_waiter() {
    model(|| {
        let events = Arc::new(EventQueue::default());
        let reporter = {
            let events = Arc::clone(&events);
            start(move || events.push(Event::Error(Error::new(ErrorKind::TimedOut, ""))))
        };
        let mut waiter = Waiter::default();
        Sleep::new().wait(|context| {
            events.register(&mut waiter, context.waker());
            events.pop().map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        });
        reporter.join().unwrap();
    });
}

/// Detects a waiter whose drop removes the waker of another one.
#[test]
fn end_of_a_wait_leaves_the_wake_up_of_another() {
    model(|| {
        let events = Arc::new(EventQueue::default());
        let passing = {
            let events = Arc::clone(&events);
            start(move || {
                events.register(&mut Waiter::default(), Waker::noop());
            })
        };
        let reporter = {
            let events = Arc::clone(&events);
            start(move || events.push(Event::Error(Error::new(ErrorKind::TimedOut, ""))))
        };
        let mut waiter = Waiter::default();
        Sleep::new().wait(|context| {
            events.register(&mut waiter, context.waker());
            events.pop().map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        });
        reporter.join().unwrap();
        passing.join().unwrap();
    });
}
