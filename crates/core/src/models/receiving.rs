//! The fetcher pushes fetched records while application threads poll, seek, pause and close.

use std::{sync::Arc, task::Poll};

use loom::thread::spawn as start;
use ottla_protocol::vocabulary::{NodeId, TopicPartition};

use super::{Sleep, model};
use crate::config::DamagedBatchPolicy;
use crate::fetch::{
    assignment::AssignmentVersion,
    deliver::{FetchedRecords, Records},
    partition::{PartitionHandle, PrefetchLimits},
    queue::{FetchQueue, Item},
};
use crate::waiters::Waiter;

const LIMITS: PrefetchLimits = PrefetchLimits { messages: 2, bytes: 20 };

struct Consumer {
    queue: Arc<FetchQueue>,
    handle: Arc<PartitionHandle>,
}

fn consumer() -> Arc<Consumer> {
    let handle = Arc::new(PartitionHandle::new(TopicPartition::new("t", 0)));
    Arc::new(Consumer { queue: Arc::new(FetchQueue::new(LIMITS, DamagedBatchPolicy::Stop, None)), handle })
}

impl Consumer {
    /// Pushes one record of ten bytes.
    fn push(&self, version: u32, next_offset: i64) {
        let handle = Arc::clone(&self.handle);
        self.queue.push([Item::Records(FetchedRecords {
            handle,
            version: AssignmentVersion::new(version),
            batches: Vec::new(),
            messages: 1,
            bytes: 10,
            next_offset,
            broker_id: NodeId::from_wire(1),
        })]);
    }

    /// Polls and sleeps until there is a result.
    fn wait(&self) -> Option<Records> {
        let mut waiter = Waiter::default();
        Sleep::new().wait(|context| self.poll(&mut waiter, context))
    }

    /// Behaves like `Consumer::poll`: takes records, registers a waker, and takes again if records arrived in between.
    fn poll(
        &self,
        waiter: &mut Waiter<FetchQueue>,
        context: &std::task::Context<'_>,
    ) -> Poll<Option<Records>> {
        loop {
            let mut records = Records::default();
            self.queue.take(1, &mut records);
            if records.piece_count() > 0 {
                return Poll::Ready(Some(records));
            }
            if self.queue.register(waiter, context.waker()) {
                return Poll::Pending;
            }
            if self.queue.is_closed() {
                return Poll::Ready(None);
            }
        }
    }
}

/// Detects a `register` that does not check for new records, and a `push` that takes the wakers before it appends.
#[test]
fn fetched_records_wake_polling_threads() {
    model(|| {
        let consumer = consumer();
        let fetcher = {
            let consumer = Arc::clone(&consumer);
            start(move || (1..=2).for_each(|offset| consumer.push(0, offset)))
        };
        for _ in 0..2 {
            assert!(consumer.wait().is_some());
        }
        fetcher.join().unwrap();
        assert_eq!(consumer.handle.position(), Some(2));
    });
}

/// Detects a `close` that sets the flag after waking, and a `register` that does not check whether the queue is closed.
#[test]
fn closing_wakes_polling_threads() {
    model(|| {
        let consumer = consumer();
        let poller = {
            let consumer = Arc::clone(&consumer);
            start(move || consumer.wait().is_none())
        };
        consumer.queue.close();
        assert!(poller.join().unwrap());
    });
}

/// Detects a `has_room` that does not check again after it set the waiting flag, and a `release` that checks the flag
/// before it returns the room. The model takes only one record, because the next `release` would hide the mistake.
#[test]
fn a_fetcher_that_waits_for_room_in_a_partition_is_woken() {
    model(|| {
        let consumer = consumer();
        let sleep = Sleep::new();
        consumer.handle.set_fetcher(Some(sleep.handle()));
        (1..=2).for_each(|offset| consumer.push(0, offset));
        let application = {
            let consumer = Arc::clone(&consumer);
            start(move || consumer.queue.take(1, &mut Records::default()))
        };
        while !consumer.handle.has_room(&LIMITS) {
            sleep.sleep();
        }
        application.join().unwrap();
    });
}

/// Detects a `room` that does not check again after it set the waiting flag, and a taker that checks for waiting
/// fetchers before it returns the room. The model takes only one record, as above. `room` may enter the list before or
/// after it sets the flag, because it checks again after both.
#[test]
fn a_fetcher_that_waits_for_the_clients_room_is_woken() {
    model(|| {
        let consumer = consumer();
        let sleep = Sleep::new();
        (1..=2).for_each(|offset| consumer.push(0, offset));
        let application = {
            let consumer = Arc::clone(&consumer);
            start(move || consumer.queue.take(1, &mut Records::default()))
        };
        while consumer.queue.room(&sleep.handle()) == 0 {
            sleep.sleep();
        }
        application.join().unwrap();
    });
}

/// Detects a version that is raised, or a position that is set, outside of the queue's lock.
#[test]
fn nothing_from_before_a_seek_comes_after_it_and_the_position_stands() {
    model(|| {
        let consumer = consumer();
        let fetcher = {
            let consumer = Arc::clone(&consumer);
            start(move || consumer.push(0, 5))
        };
        let other = {
            let consumer = Arc::clone(&consumer);
            start(move || consumer.queue.take(1, &mut Records::default()))
        };
        consumer.queue.outdate(&consumer.handle, Some(100));
        let mut records = Records::default();
        consumer.queue.take(1, &mut records);
        assert_eq!(records.piece_count(), 0);
        fetcher.join().unwrap();
        other.join().unwrap();
        consumer.queue.take(1, &mut records);
        assert_eq!(records.piece_count(), 0);
        assert_eq!(consumer.handle.position(), Some(100));
        assert_eq!(consumer.handle.queued(), (0, 0), "what vanished gave its room back once");
    });
}

/// Detects a pause that is set outside of the queue's lock, and a `resume` that wakes no thread.
#[test]
fn records_produced_while_paused_are_sent_after_resuming() {
    model(|| {
        let consumer = consumer();
        let handles = [Arc::clone(&consumer.handle)];
        let fetcher = {
            let consumer = Arc::clone(&consumer);
            start(move || consumer.push(0, 1))
        };
        let poller = {
            let consumer = Arc::clone(&consumer);
            start(move || consumer.wait().is_some())
        };
        consumer.queue.pause(&handles);
        let before = consumer.handle.position();
        assert_eq!(consumer.handle.position(), before, "nothing is handed out while it is paused");
        consumer.queue.resume(&handles);
        fetcher.join().unwrap();
        assert!(poller.join().unwrap());
    });
}
