//! The contract of every machine in this crate. Read it first.
//!
//! A machine is a plain struct with `&mut self`. It has no socket, no thread, no clock and no randomness of the
//! operating system: bytes come in and go out as slices, time is an argument, and random numbers come from a seeded
//! [`Rng`](crate::rng::Rng) that the caller passes in. Every driver (threads and epoll in `ottla-net`, virtual time in
//! `ottla-sim`, a script in a unit test) sees the same behaviour.
//!
//! Every machine has the same kinds of method:
//!
//! ```text
//! fn handle_x(&mut self, now: Instant, input: X);        something happened: bytes, a response, messages from a peer
//! fn command(&mut self, now: Instant, ..) -> Result<..>; the application asks
//! fn handle_timeout(&mut self, now: Instant);            spurious calls do nothing
//! fn poll_timeout(&self) -> Option<Instant>;             when to call handle_timeout
//! fn poll_output(&mut self) -> Option<Output>;           drain until None
//! ```
//!
//! This is a convention, not a trait: inputs and outputs stay concrete types that a text search finds.
//!
//! Rules that follow from it: the order of outputs is deterministic, every queue has a documented bound, and no
//! callback of the application runs inside a machine.

pub use ottla_protocol::time::Instant;

/// Returns the earlier of two optional deadlines.
pub fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
