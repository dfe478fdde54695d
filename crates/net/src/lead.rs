//! Waiting threads in the place of the I/O thread: one at a time, the leader, polls beside the I/O thread.
//!
//! ```text
//!   waiting thread   takes the lead ──► Leading ──(epoll_wait returns)──► runs the machines ──► leaves
//!   waker                                  └─ wake ─► Woken: calls the leader back, out of epoll_wait
//!   I/O thread       epoll_wait, as always: the last to begin to poll is the first to be woken;
//!                    while a leader polls it does not begin to, but stands by
//! ```
//!
//! The kernel gives an event to one of the threads that poll, on Linux to the one that came last. So the leader gets what it
//! waits for, the I/O thread goes on sleeping, and whatever a leader leaves undone falls to the I/O thread. Nothing depends on the order:
//! whichever thread gets an event handles it, and an I/O thread that gets the call for a leader passes it on.
//!
//! The leader is called back by the wake-up of the I/O thread, because a descriptor of its own would need a second one to poll.

use std::{sync::Arc, time::Duration};

#[cfg(not(ottla_loom))]
use ottla_core::lock::{Condvar, MutexGuard};
use ottla_core::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    wake::WakeHandle,
};

#[cfg(ottla_loom)]
use loom::sync::{Condvar, MutexGuard};

/// The lead of one I/O thread's poll.
pub struct Lead {
    state: Mutex<State>,
    /// The leader has left its poll, or the I/O thread is woken.
    changed: Condvar,
    /// The leader is to stop polling.
    is_called: AtomicBool,
    /// Wakes one thread that polls.
    waker: WakeHandle,
}

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    /// The leader polls.
    is_polling: bool,
    /// The I/O thread has been woken since its last turn.
    is_woken: bool,
    /// The I/O thread stands by, and polls again after a notification.
    stands_by: bool,
}

/// The time after which an I/O thread that stands by looks again.
const LONGEST: Duration = Duration::from_secs(1);

/// What a waiting thread is woken by while it may lead.
pub struct Sleeper {
    state: AtomicU8,
    leads: Mutex<Option<Arc<Lead>>>,
}

/// The lead, until it is dropped.
#[derive(Debug)]
pub struct Leading<'a>(&'a Lead);

const AWAKE: u8 = 0;
const LEADING: u8 = 1;
const WOKEN: u8 = 2;

impl Lead {
    /// Creates a lead of threads of which `waker` wakes one.
    pub fn new(waker: WakeHandle) -> Self {
        let (state, changed) = (Mutex::new(State::default()), Condvar::new());
        Self { state, changed, is_called: AtomicBool::new(false), waker }
    }

    /// Takes the lead, if no other thread has it.
    fn take(&self) -> Option<Leading<'_>> {
        let mut state = self.state.lock();
        if state.is_taken {
            return None;
        }
        (state.is_taken, state.is_polling) = (true, true);
        // What is left of a call for an earlier leader.
        self.is_called.store(false, Ordering::SeqCst);
        Some(Leading(self))
    }

    /// Calls the leader back.
    fn call(&self) {
        self.is_called.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    /// Notes that the leader does not poll any more.
    fn end_poll(&self) {
        let stands_by = {
            let mut state = self.state.lock();
            self.is_called.store(false, Ordering::SeqCst);
            state.is_polling = false;
            std::mem::take(&mut state.stands_by)
        };
        if stands_by {
            self.changed.notify_all();
        }
    }

    /// Wakes the I/O thread.
    pub fn wake_io_thread(&self) {
        let stands_by = {
            let mut state = self.state.lock();
            state.is_woken = true;
            std::mem::take(&mut state.stands_by)
        };
        if stands_by {
            self.changed.notify_all();
        } else {
            self.waker.wake();
        }
    }

    /// Notes that the I/O thread begins a turn, which sees what it was woken for.
    pub fn begin_turn(&self) {
        self.state.lock().is_woken = false;
    }

    /// Has the I/O thread wait until the leader has left its poll, which would get no events once the I/O thread polled, or until it is
    /// woken. Returns false if no leader polls.
    pub fn stand_by(&self, timeout: Option<Duration>) -> bool {
        let mut state = self.state.lock();
        if !state.is_polling {
            return false;
        }
        if !state.is_woken {
            state.stands_by = true;
            let mut state = wait(&self.changed, state, timeout.unwrap_or(LONGEST).min(LONGEST));
            state.stands_by = false;
        }
        true
    }

    /// Passes a call on that the I/O thread may have got. It stands by next, so that the leader gets the wake-up.
    pub fn pass_on(&self) {
        if self.is_called.load(Ordering::SeqCst) {
            self.waker.wake();
        }
    }
}

/// Waits for a notification, for at most this time.
#[cfg(not(ottla_loom))]
fn wait<'a>(changed: &Condvar, mut state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
    changed.wait_for(&mut state, most);
    state
}

#[cfg(ottla_loom)]
fn wait<'a>(changed: &Condvar, state: MutexGuard<'a, State>, _most: Duration) -> MutexGuard<'a, State> {
    changed.wait(state).unwrap()
}

impl Sleeper {
    /// Forgets wake-ups from before the next check of what the thread waits for.
    pub fn begin(&self) {
        self.state.swap(AWAKE, Ordering::SeqCst);
    }

    /// Ends the thread's poll, or prevents its next one.
    pub fn wake(&self) {
        if self.state.swap(WOKEN, Ordering::SeqCst) == LEADING {
            let leads = self.leads.lock().clone();
            if let Some(lead) = leads {
                lead.call();
            }
        }
    }

    /// Takes the lead and calls `poll`, which may block, unless the thread was woken since [`Sleeper::begin`]. Returns its result
    /// with the lead, or `None` if another thread leads.
    pub fn sleep<'a, R>(
        &self,
        lead: &'a Arc<Lead>,
        poll: impl FnOnce() -> R,
    ) -> Option<(Option<R>, Leading<'a>)> {
        let leading = lead.take()?;
        *self.leads.lock() = Some(Arc::clone(lead));
        let may_block = self.state.swap(LEADING, Ordering::SeqCst) != WOKEN;
        let result = may_block.then(poll);
        self.state.swap(AWAKE, Ordering::SeqCst);
        *self.leads.lock() = None;
        lead.end_poll();
        Some((result, leading))
    }
}

impl Default for Sleeper {
    fn default() -> Self {
        Self { state: AtomicU8::new(AWAKE), leads: Mutex::new(None) }
    }
}

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        (state.is_taken, state.is_polling) = (false, false);
    }
}

impl std::fmt::Debug for Lead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lead").field("is_called", &self.is_called).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Sleeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sleeper").field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(all(test, ottla_loom))]
mod models {
    //! Models of a waiting thread that polls beside the I/O thread; see the models of [`mailbox`](crate::mailbox).

    use loom::{sync::atomic::AtomicUsize, thread::spawn as start};
    use ottla_core::wake::Wake;

    use super::*;
    use crate::{
        eventfd::{Eventfd, model},
        mailbox::{Mailbox, Message},
    };

    fn waker(eventfd: &Arc<Eventfd>) -> WakeHandle {
        WakeHandle::new(Arc::clone(eventfd) as Arc<dyn Wake>)
    }

    /// Catches a leader that does not look for earlier wake-ups, a wake-up that does not call the leader, and a call that the I/O
    /// thread keeps to itself.
    #[test]
    fn leader_that_is_woken_leaves_its_poll() {
        model(|| {
            let eventfd = Arc::<Eventfd>::default();
            let lead = Arc::new(Lead::new(waker(&eventfd)));
            let sleeper = Arc::new(Sleeper::default());
            let result = Arc::new(AtomicBool::new(false));
            let is_over = Arc::new(AtomicBool::new(false));
            let io_thread = {
                let (eventfd, lead, is_over) =
                    (Arc::clone(&eventfd), Arc::clone(&lead), Arc::clone(&is_over));
                start(move || {
                    while !is_over.load(Ordering::SeqCst) {
                        lead.begin_turn();
                        if !lead.stand_by(None) {
                            eventfd.wait(true);
                        }
                        lead.pass_on();
                    }
                })
            };
            let waking = {
                let (sleeper, result) = (Arc::clone(&sleeper), Arc::clone(&result));
                start(move || {
                    result.store(true, Ordering::SeqCst);
                    sleeper.wake();
                })
            };
            loop {
                sleeper.begin();
                if result.load(Ordering::SeqCst) {
                    break;
                }
                drop(sleeper.sleep(&lead, || eventfd.wait(true)));
            }
            waking.join().unwrap();
            is_over.store(true, Ordering::SeqCst);
            eventfd.wake();
            io_thread.join().unwrap();
        });
    }

    /// Catches a leader that reads the inbox without taking over its wake-ups, or that takes them over after it has read.
    #[test]
    fn message_is_read_by_the_leader_or_by_the_io_thread() {
        model(|| {
            let eventfd = Arc::<Eventfd>::default();
            let mailbox = Arc::new(Mailbox::new(waker(&eventfd)));
            let came = Arc::new(AtomicUsize::new(0));
            let note = {
                let (came, eventfd) = (Arc::clone(&came), Arc::clone(&eventfd));
                move |messages: &mut Vec<Message>| {
                    let count = messages.drain(..).count();
                    // The last one is announced to the other thread.
                    if count > 0 && came.fetch_add(count, Ordering::SeqCst) + count == 2 {
                        eventfd.wake();
                    }
                }
            };
            let io_thread = {
                let (mailbox, eventfd) = (Arc::clone(&mailbox), Arc::clone(&eventfd));
                let (came, note) = (Arc::clone(&came), note.clone());
                start(move || {
                    let mut messages = Vec::new();
                    loop {
                        mailbox.take(&mut messages);
                        note(&mut messages);
                        if came.load(Ordering::SeqCst) == 2 {
                            return;
                        }
                        mailbox
                            .sleep(|may_block| {
                                eventfd.wait(may_block);
                                Ok(())
                            })
                            .unwrap();
                    }
                })
            };
            let sender = {
                let mailbox = Arc::clone(&mailbox);
                start(move || {
                    mailbox.post(Message::Stop);
                    mailbox.post(Message::Stop);
                })
            };
            let mut messages = Vec::new();
            // The leader takes an event that is there, and is gone afterwards.
            if eventfd.wait(false) {
                loop {
                    mailbox.claim();
                    mailbox.take(&mut messages);
                    note(&mut messages);
                    if mailbox.claim() {
                        break;
                    }
                }
                if came.load(Ordering::SeqCst) == 2 {
                    eventfd.wake();
                }
            }
            sender.join().unwrap();
            io_thread.join().unwrap();
        });
    }
}
