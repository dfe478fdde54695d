//! What a thread of the application does for the I/O threads in the middle of a call, instead of waking them.
//!
//! A thread that sends a record and then waits for its delivery may as well write the request itself ([`InCaller`]). Whether it
//! will wait is known in a call that does both; of the others its habits tell it ([`notes_send`], [`notes_wait`]). A wrong guess
//! costs the thread the time of a request, and delays nothing.

use std::cell::{Cell, RefCell};

use crate::driver::{Driver, Drivers};

/// While this exists, wake-ups of the I/O threads by this thread are put off. Its drop does the I/O threads' work, or wakes them.
#[derive(Debug)]
pub struct InCaller<'a> {
    drivers: &'a Drivers,
    before: PutOff,
}

/// The I/O threads, numbered in succession, whose wake-ups this thread puts off, and those that it has put off.
#[derive(Clone, Copy, Debug, Default)]
struct PutOff {
    first: u64,
    count: u64,
    owed: u64,
}

/// What the application's thread has done last.
#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    sends_since_wait: u8,
    /// The number of waits in a row with one send before each.
    streak: u8,
}

thread_local! {
    static PUT_OFF: Cell<PutOff> = const { Cell::new(PutOff { first: 0, count: 0, owed: 0 }) };
    static HABIT: Cell<Habit> = const { Cell::new(Habit { sends_since_wait: 0, streak: 0 }) };
    /// The I/O thread that this thread is, or whose machines it runs.
    static RUNS: Cell<Option<u64>> = const { Cell::new(None) };
    static LEADS: Cell<bool> = const { Cell::new(false) };
    static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
}

/// A call of a function of the application.
pub type Call = Box<dyn FnOnce() + Send>;

/// The waits with one send before each after which a send expects the next one.
const STREAK: u8 = 2;

impl PutOff {
    fn of(drivers: &Drivers) -> Self {
        Self { first: drivers.first_number(), count: drivers.count(), owed: 0 }
    }

    /// Returns the bit of an I/O thread, if its wake-ups are put off.
    const fn bit(self, number: u64) -> Option<u64> {
        match number.checked_sub(self.first) {
            Some(index) if index < self.count => Some(1 << index),
            _ => None,
        }
    }
}

impl<'a> InCaller<'a> {
    /// Begins to put off the wake-ups of these I/O threads.
    pub fn begin(drivers: &'a Drivers) -> Self {
        let before = PUT_OFF.replace(PutOff::of(drivers));
        Self { drivers, before }
    }
}

impl Drop for InCaller<'_> {
    fn drop(&mut self) {
        let owed = PUT_OFF.replace(self.before);
        for driver in self.drivers.iter() {
            if owed.bit(driver.number()).is_some_and(|bit| owed.owed & bit != 0) {
                driver.run_here();
            }
        }
    }
}

/// Notes that this thread owes an I/O thread a wake-up. Returns false if it is to be woken now.
pub fn owes(number: u64) -> bool {
    let Ok(put_off) = PUT_OFF.try_with(Cell::get) else { return false };
    let Some(bit) = put_off.bit(number) else { return false };
    PUT_OFF.set(PutOff { owed: put_off.owed | bit, ..put_off });
    true
}

/// Runs machines on a thread of the application. Meanwhile [`call_out`] puts calls off; they are returned.
pub fn leading(driver: &Driver, run: impl FnOnce()) -> Vec<Call> {
    struct Restore(PutOff, bool, Option<u64>);
    impl Drop for Restore {
        fn drop(&mut self) {
            PUT_OFF.set(self.0);
            LEADS.set(self.1);
            RUNS.set(self.2);
        }
    }
    let put_off = PUT_OFF.replace(PutOff { first: driver.number(), count: 1, owed: 0 });
    let restore = Restore(put_off, LEADS.replace(true), RUNS.replace(Some(driver.number())));
    run();
    drop(restore);
    CALLS.take()
}

/// Calls a function of the application: at once, or on the I/O thread if this thread runs machines in its place, which may be
/// those of another client, and holds their lock.
pub fn call_out(call: impl FnOnce() + Send + 'static) {
    if LEADS.try_with(Cell::get).unwrap_or(false) {
        CALLS.with_borrow_mut(|calls| calls.push(Box::new(call)));
    } else {
        call();
    }
}

/// Notes that this thread is an I/O thread.
pub fn begin_io_thread(number: u64) {
    RUNS.set(Some(number));
}

/// Returns the number of the I/O thread whose machines run on this thread.
pub fn running() -> Option<u64> {
    RUNS.try_with(Cell::get).ok().flatten()
}

/// Notes that this thread sends a record. Returns true if it is expected to wait next.
pub fn notes_send() -> bool {
    let mut habit = HABIT.get();
    habit.sends_since_wait = habit.sends_since_wait.saturating_add(1);
    if habit.sends_since_wait > 1 {
        habit.streak = 0;
    }
    HABIT.set(habit);
    habit.streak >= STREAK
}

/// Notes that this thread waits.
pub fn notes_wait() {
    let Habit { sends_since_wait, streak } = HABIT.get();
    let streak = match sends_since_wait {
        0 => streak,
        1 => streak.saturating_add(1),
        _ => 0,
    };
    HABIT.set(Habit { sends_since_wait: 0, streak });
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use mio::Events;
    use ottla_core::contract::broker::BrokerKey;

    use super::*;
    use crate::{mailbox::Message, runtime::ClientId};

    /// A message for an actor that does not exist.
    fn message() -> Message {
        Message::BrokerDone(ClientId::default(), BrokerKey(0))
    }

    #[test]
    fn sleeping_io_thread_is_not_woken_for_what_the_caller_does() {
        let (driver, mut poll) = Driver::new(Drivers::reserve(1)).unwrap();
        let drivers = Drivers::new(vec![Arc::clone(&driver)]);
        let mut events = Events::with_capacity(4);
        let slept = driver.mailbox().sleep(|_| {
            let in_caller = InCaller::begin(&drivers);
            driver.mailbox().post(message());
            drop(in_caller);
            assert!(driver.mailbox().claim(), "the caller has handled the message");
            poll.poll(&mut events, Some(Duration::ZERO))?;
            assert!(events.is_empty());
            driver.mailbox().post(message());
            poll.poll(&mut events, Some(Duration::ZERO))?;
            assert!(!events.is_empty());
            Ok(())
        });
        slept.unwrap();
    }

    #[test]
    fn function_of_the_application_is_not_called_by_a_thread_that_leads() {
        let (driver, _poll) = Driver::new(Drivers::reserve(1)).unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let call = || {
            let calls = Arc::clone(&calls);
            call_out(move || {
                calls.fetch_add(1, Ordering::Relaxed);
            });
        };
        let put_off = leading(&driver, || {
            assert_eq!(running(), Some(driver.number()));
            call();
        });
        assert_eq!((put_off.len(), calls.load(Ordering::Relaxed), running()), (1, 0, None));
        call();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn send_expects_a_wait_after_two_that_were_followed_by_one() {
        let send_and_wait = || {
            let expects = notes_send();
            notes_wait();
            expects
        };
        notes_wait();
        assert_eq!([(); 4].map(|()| send_and_wait()), [false, false, true, true]);
        assert!(notes_send(), "the habit of sending one");
        assert!(!notes_send(), "two in a row end it");
        notes_wait();
        assert!(!send_and_wait());
    }
}
