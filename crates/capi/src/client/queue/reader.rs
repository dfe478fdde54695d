//! The reader of a queue: the one thread that takes records from the consumer and converts them to messages. It holds
//! no lock meanwhile, because a corrupt record wakes other queues and a new topic is logged, and both call the
//! application.

use std::sync::{Arc, Weak};

use ottla::Consumer;
use ottla_core::fetch::deliver::{PieceWalk, Records};

use super::{
    Queue,
    state::{Read, State},
};
use crate::{
    client::{handle::Client, topic::Topic},
    consume::fetched::{OpenSlab, Walk},
};

/// Ends the reading, also if it panics.
struct Reading<'a> {
    queue: &'a Queue,
    found: bool,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.queue.state.with(self.found, State::end_reading);
        if self.found {
            self.queue.changed.notify_all();
        }
    }
}

impl Queue {
    /// Reads for the queue, whose reader this thread is. Returns false if there is nothing; the queue will be
    /// signalled. With `is_collecting`, the call has messages behind which it advances positions at its end.
    pub(super) fn read(self: &Arc<Self>, client: &Client, consumer: &Consumer, is_collecting: bool) -> bool {
        if self.is_for_messages() {
            consumer.note_group_poll();
        }
        // If this thread panics, another one has to check.
        let mut reading = Reading { queue: self, found: true };
        reading.found = self.open_walk(client, consumer, is_collecting)
            || self.state.with((), State::has_events)
            || self.pull(consumer);
        reading.found
    }

    /// Converts the next records that were taken to messages. Returns false if there are none.
    fn open_walk(&self, client: &Client, consumer: &Consumer, is_collecting: bool) -> bool {
        while let Some(walk) = self.state.with((), State::next_walk) {
            match walk {
                Walk::Leave(slab, None) => drop(slab),
                Walk::Leave(slab, Some(_)) => {
                    if let Some(rest) = slab.rest() {
                        set_aside(consumer, rest);
                    }
                }
                Walk::SetAside(walk) => set_aside(consumer, walk),
                Walk::Stale(walk) => drop(walk),
                Walk::Open(walk) => {
                    if self.open(client, consumer, walk, is_collecting) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Converts the next records of a walk to messages. Returns false if there are none.
    fn open(&self, client: &Client, consumer: &Consumer, mut walk: PieceWalk, is_collecting: bool) -> bool {
        let fetched = Arc::clone(walk.fetched());
        let Ok(topic) = client.topic(fetched.topic(), None) else { return false };
        let Some(slab) = OpenSlab::of(&mut walk, Topic::object(topic)) else {
            if !is_collecting {
                fetched.set_position(fetched.next_offset(), fetched.last_epoch());
            }
            return false;
        };
        client.note_consumed(consumer, fetched.topic(), fetched.partition());
        drop(self.state.with(Read::Opened(slab, walk), State::keep));
        true
    }

    /// Takes records for this queue from the consumer. Returns false if there are none; the queue will be signalled.
    fn pull(self: &Arc<Self>, consumer: &Consumer) -> bool {
        let mut routes = Vec::new();
        self.collect_routes(&mut routes, 0);
        for route in &routes {
            let mut records = Records::default();
            consumer.core().queue.take_route(*route, 1, &mut records);
            if !records.is_empty() || records.piece_count() > 0 {
                drop(self.state.with(Read::Taken(records), State::keep));
                return true;
            }
        }
        let waker = self.waker();
        // The second check finds what arrived after the first one.
        let records = &consumer.core().queue;
        let mut waiter = self.records.lock();
        let is_registered = routes.iter().all(|route| records.register_route(*route, &mut waiter, &waker));
        drop(waiter);
        !is_registered && !consumer.is_closed()
    }

    /// Returns the routes of this queue and of those that are forwarded to it. One queue is locked at a time.
    fn collect_routes(&self, routes: &mut Vec<u64>, depth: usize) {
        routes.push(self.route);
        if depth <= 16 {
            for feeder in self.state.with((), State::feeders).iter().filter_map(Weak::upgrade) {
                feeder.collect_routes(routes, depth + 1);
            }
        }
    }
}

/// Returns the remaining records of a paused partition to the consumer.
fn set_aside(consumer: &Consumer, walk: PieceWalk) {
    if let Some(rest) = walk.rest() {
        consumer.core().queue.set_aside(rest);
    }
}
