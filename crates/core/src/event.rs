//! What a client tells the application besides answers and records: errors that belong to no call.

use std::{collections::VecDeque, task::Waker};

use crate::{
    cluster::metadata::RecreatedTopic,
    error::Error,
    sync::{
        Mutex,
        atomic::{AtomicI32, Ordering},
    },
};

/// Something that the application may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A connection failed, or a broker misbehaves. The client goes on by itself.
    Error(Error),
    /// The producer can't go on; every further `send` answers this error.
    Fatal(Error),
    /// No broker can be reached at the moment. The client goes on trying.
    AllBrokersDown(Error),
    /// A topic was deleted and made anew under its old name. Offsets and sequence numbers of the old one mean nothing.
    TopicRecreated(RecreatedTopic),
    /// A broker asked the client to hold back, or no longer does.
    Throttled(Throttle),
}

/// How long a broker asked the client to hold back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// The broker's host and port.
    pub broker: String,
    /// Its id, if it has told.
    pub node_id: Option<i32>,
    /// How long; zero when it is over.
    pub millis: u32,
}

/// Events on their way to the application. At most [`EventQueue::LIMIT`]: when nobody reads, the oldest are dropped.
/// And what the cluster said last of itself and its controller, for those who don't want to ask.
#[derive(Debug)]
pub struct EventQueue {
    state: Mutex<State>,
    controller_id: AtomicI32,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self { state: Mutex::default(), controller_id: AtomicI32::new(-1) }
    }
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    wakers: Vec<Waker>,
    cluster_id: Option<String>,
}

impl EventQueue {
    /// How many events are kept.
    pub const LIMIT: usize = 1000;

    /// Appends an event.
    pub fn push(&self, event: Event) {
        let wakers = {
            let mut state = self.state.lock();
            if state.events.len() == Self::LIMIT {
                state.events.pop_front();
            }
            state.events.push_back(event);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes the oldest event.
    pub fn pop(&self) -> Option<Event> {
        self.state.lock().events.pop_front()
    }

    /// The controller, as the last metadata named it; `None` while there was none.
    pub fn controller_id(&self) -> Option<i32> {
        Some(self.controller_id.load(Ordering::Relaxed)).filter(|id| *id >= 0)
    }

    /// Somebody was told who the controller is, or that it is not known: -1.
    pub fn set_controller_id(&self, id: i32) {
        self.controller_id.store(id, Ordering::Relaxed);
    }

    /// The cluster's id, as metadata named it; `None` while none did.
    pub fn cluster_id(&self) -> Option<String> {
        self.state.lock().cluster_id.clone()
    }

    /// Somebody was told the cluster's id.
    pub fn set_cluster_id(&self, id: Option<&str>) {
        let mut state = self.state.lock();
        if id.is_some() && state.cluster_id.as_deref() != id {
            state.cluster_id = id.map(str::to_owned);
        }
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.state.lock().events.len()
    }

    /// True if no event waits.
    pub fn is_empty(&self) -> bool {
        self.state.lock().events.is_empty()
    }

    /// Asks to be woken by the next event.
    /// True if none waits already.
    pub fn register(&self, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        if !state.wakers.iter().any(|known| known.will_wake(waker)) {
            state.wakers.push(waker.clone());
        }
        state.events.is_empty()
    }
}
