//! The signals that ask a command to end: SIGINT (Ctrl-C) and SIGTERM.
//!
//! The first signal sets a flag, which the command checks: it flushes, prints its summary and ends. The second signal
//! ends the process at once, as if it were not caught. The handlers are also necessary in a process with the ID 1, for
//! which the kernel ignores signals without a handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::{Failure, Outcome};

/// Whether SIGINT or SIGTERM arrived since [`Interrupt::catch`].
#[derive(Clone, Debug)]
pub struct Interrupt {
    /// The number of the signal; 0 before one arrived.
    signal: Arc<AtomicUsize>,
}

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
        Ok(Interrupt { signal })
    }

    /// True once a signal arrived.
    pub fn is_requested(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }

    /// Error: a signal arrived, and the command ends early.
    pub fn check(&self) -> Outcome {
        match self.signal.load(Ordering::SeqCst) {
            0 => Ok(()),
            number => Err(Failure::Interrupted(number as u8)),
        }
    }
}
