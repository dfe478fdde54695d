//! The state that the application's threads share with the member: events on their way to the application, and what is known
//! of the membership.

use std::{collections::VecDeque, fmt, sync::Arc, task::Waker};

use super::{
    news::{StreamsEvent, StreamsMembership},
    settings::StreamsSettings,
};
use crate::{
    error::Error,
    sync::Mutex,
    waiters::{WaitPlace, Waiter, Waiters},
};

/// The number of errors that are kept for an application that does not take them. Other events are few: a revocation waits for
/// its acknowledgement.
const MAX_ERRORS: usize = 1_000;

/// The shared state of a member of a streams group.
pub struct StreamsShared {
    /// The settings.
    pub settings: StreamsSettings,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: VecDeque<StreamsEvent>,
    membership: StreamsMembership,
    /// The error after which the member can't continue.
    fatal: Option<Error>,
    is_closed: bool,
    wakers: Waiters,
}

impl StreamsShared {
    /// Creates the state of a member that has not joined.
    pub fn new(settings: StreamsSettings) -> Self {
        Self { settings, state: Mutex::new(State::default()) }
    }

    /// Takes the oldest event.
    pub fn take_event(&self) -> Option<StreamsEvent> {
        self.state.lock().events.pop_front()
    }

    /// Returns what is known of the membership.
    pub fn membership(&self) -> StreamsMembership {
        self.state.lock().membership.clone()
    }

    /// Returns the error after which the member can't continue.
    pub fn fatal(&self) -> Option<Error> {
        self.state.lock().fatal.clone()
    }

    /// Returns true after [`StreamsShared::close`].
    pub fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Wakes `waker` at the next event, and when the member is closed. To be called before the check for them.
    pub fn register(self: &Arc<Self>, waiter: &mut Waiter<Self>, waker: &Waker) {
        waiter.register(self, waker);
    }

    /// Closes the queue of events, and wakes the threads that wait for them.
    pub fn close(&self) {
        self.notify(|state| state.is_closed = true);
    }

    /// Appends an event.
    pub(super) fn push(&self, event: StreamsEvent) {
        self.notify(|state| {
            let is_error = |event: &StreamsEvent| matches!(event, StreamsEvent::Error(_));
            if is_error(&event) && state.events.iter().filter(|event| is_error(event)).count() >= MAX_ERRORS {
                return;
            }
            // The application needs only the last one of these.
            match &event {
                StreamsEvent::Status(_) => {
                    state.events.retain(|event| !matches!(event, StreamsEvent::Status(_)))
                }
                StreamsEvent::Endpoints(_) => {
                    state.events.retain(|event| !matches!(event, StreamsEvent::Endpoints(_)));
                }
                _ => {}
            }
            state.events.push_back(event);
        });
    }

    /// Reports the error after which the member can't continue.
    pub(super) fn fail(&self, error: Error) {
        self.notify(|state| {
            state.fatal.get_or_insert(error);
        });
    }

    pub(super) fn set_membership(&self, membership: StreamsMembership) {
        self.state.lock().membership = membership;
    }

    fn notify(&self, change: impl FnOnce(&mut State)) {
        let wakers = {
            let mut state = self.state.lock();
            change(&mut state);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl WaitPlace for StreamsShared {
    fn with_waiters<R>(&self, act: impl FnOnce(&mut Waiters) -> R) -> R {
        act(&mut self.state.lock().wakers)
    }
}

impl fmt::Debug for StreamsShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamsShared").field("settings", &self.settings).finish_non_exhaustive()
    }
}
