//! The signals that ask a command to end: SIGINT (Ctrl-C) and SIGTERM.
//!
//! The first signal sets a flag, which the command checks: it flushes, prints its summary and ends. What is not done by then is
//! given up [`GRACE`] later; a thread ends a command that still waits after [`LIMIT`], whatever it waits for. The second signal
//! ends the process at once, as if it were not caught. The handlers are also necessary in a process with the ID 1, for
//! which the kernel ignores signals without a handler.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Failure, Outcome};
use crate::standard_error::note;

/// The time after the first signal in which a command can finish what it has begun.
const GRACE: Duration = Duration::from_secs(3);
/// The time after the first signal at which the process ends in any case.
const LIMIT: Duration = Duration::from_millis(4500);
/// The interval at which the thread looks for a signal.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Whether SIGINT or SIGTERM arrived since [`Interrupt::catch`].
#[derive(Clone)]
pub struct Interrupt(Arc<Shared>);

struct Shared {
    /// The number of the signal; 0 before one arrived.
    signal: Arc<AtomicUsize>,
    /// When the signal was noticed.
    noticed: OnceLock<Instant>,
    /// Says what is lost if the process ends now.
    unfinished: Mutex<Option<Unfinished>>,
    /// Wakes the threads that pause once the signal is noticed.
    pauses: (Mutex<()>, Condvar),
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interrupt").field(&self.number()).finish()
    }
}

type Unfinished = Box<dyn Fn() -> Option<String> + Send>;

impl Interrupt {
    /// Installs handlers for both signals.
    pub fn catch() -> Outcome<Interrupt> {
        let (signal, again) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let failed = |error| Failure::Failed(format!("signals can't be caught: {error}"));
        for number in [SIGINT, SIGTERM] {
            // The actions run in this order, so that the default action sees the flag of an earlier signal, not of the
            // current one.
            flag::register_conditional_default(number, Arc::clone(&again)).map_err(failed)?;
            flag::register(number, Arc::clone(&again)).map_err(failed)?;
            flag::register_usize(number, Arc::clone(&signal), number as usize).map_err(failed)?;
        }
        let interrupt = Interrupt(Arc::new(Shared {
            signal,
            noticed: OnceLock::new(),
            unfinished: Mutex::new(None),
            pauses: Default::default(),
        }));
        let watched = interrupt.clone();
        thread::Builder::new().name("signals".into()).spawn(move || watched.limit()).map_err(failed)?;
        Ok(interrupt)
    }

    /// Ends the process [`LIMIT`] after a signal, with the exit code of the signal.
    fn limit(&self) {
        while !self.is_requested() {
            thread::sleep(CHECK_INTERVAL);
        }
        self.wake_pauses();
        thread::sleep(LIMIT.saturating_sub(self.noticed().elapsed()));
        let unfinished = self.0.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = unfinished.as_ref().and_then(|unfinished| unfinished()) {
            note!("% {text}");
        }
        std::process::exit(128 + i32::try_from(self.number()).unwrap_or_default());
    }

    /// Sets what to print if the process has to end in the middle of a wait; `None` if nothing is lost.
    pub fn set_unfinished(&self, unfinished: impl Fn() -> Option<String> + Send + 'static) {
        *self.0.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(unfinished));
    }

    /// True once a signal arrived.
    pub fn is_requested(&self) -> bool {
        self.number() != 0
    }

    /// Returns how long a wait may last that would last for `wait`: a signal bounds it.
    pub fn bound(&self, wait: Duration) -> Duration {
        match self.is_requested() {
            true => wait.min(GRACE.saturating_sub(self.noticed().elapsed())),
            false => wait,
        }
    }

    /// True once the time to finish has passed after a signal.
    pub fn is_over(&self) -> bool {
        self.bound(GRACE).is_zero()
    }

    /// Waits for this time, or until a signal arrives.
    ///
    /// # Errors
    ///
    /// That of [`Interrupt::check`].
    pub fn pause(&self, time: Duration) -> Outcome {
        let (lock, woken) = &self.0.pauses;
        let pausing = lock.lock().unwrap_or_else(PoisonError::into_inner);
        drop(woken.wait_timeout_while(pausing, time, |()| !self.is_requested()));
        self.check()
    }

    fn wake_pauses(&self) {
        let (lock, woken) = &self.0.pauses;
        drop(lock.lock().unwrap_or_else(PoisonError::into_inner));
        woken.notify_all();
    }

    /// Error: a signal arrived, and the command ends early.
    pub fn check(&self) -> Outcome {
        match self.number() {
            0 => Ok(()),
            number => Err(Failure::Interrupted(number as u8)),
        }
    }

    fn number(&self) -> usize {
        self.0.signal.load(Ordering::SeqCst)
    }

    fn noticed(&self) -> Instant {
        *self.0.noticed.get_or_init(Instant::now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(signal: usize, elapsed: Duration) -> Interrupt {
        let noticed = OnceLock::new();
        if signal != 0 {
            noticed.set(Instant::now().checked_sub(elapsed).unwrap()).unwrap();
        }
        let signal = Arc::new(AtomicUsize::new(signal));
        let (unfinished, pauses) = Default::default();
        Interrupt(Arc::new(Shared { signal, noticed, unfinished, pauses }))
    }

    #[test]
    fn signal_ends_a_pause() {
        let interrupt = after(0, Duration::ZERO);
        let pausing = interrupt.clone();
        let paused = thread::spawn(move || pausing.pause(Duration::from_secs(3600)));
        interrupt.0.signal.store(2, Ordering::SeqCst);
        interrupt.wake_pauses();
        assert_eq!(paused.join().unwrap(), Err(Failure::Interrupted(2)));
        assert_eq!(after(0, Duration::ZERO).pause(Duration::ZERO), Ok(()));
    }

    #[test]
    fn signal_bounds_the_waits_that_follow() {
        let minute = Duration::from_secs(60);
        let none = after(0, Duration::ZERO);
        assert_eq!((none.bound(minute), none.is_over(), none.check()), (minute, false, Ok(())));
        let early = after(15, Duration::from_secs(1));
        assert!(early.bound(minute) <= Duration::from_secs(2) && !early.is_over());
        let late = after(15, GRACE);
        assert_eq!((late.bound(minute), late.is_over()), (Duration::ZERO, true));
        assert_eq!(late.check(), Err(Failure::Interrupted(15)));
    }
}
