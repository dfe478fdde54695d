//! Messages whose processing may fail: in the order of each key, again after a back-off, and at last as dead letters.
//!
//! ```text
//!            offer                    fail                      back-off is over
//!  fetched ─────────► with a worker ───────► waiting ─────────────────────────► with a worker
//!     │ its key             │                   │ after the last attempt
//!     ▼ is busy             ▼ finish            ▼            is written
//!   behind ◄──────── the key's next      dead letter ───────────────────► the key's next
//! ```
//!
//! A key of a partition is busy from the first attempt of a message until it is finished or written as a dead letter, so that
//! its next message waits, and messages of other keys do not. Messages without a key wait for no other. The machine has no clock and
//! does no I/O; `M` is the message.
//!
//! # Pitfalls
//!
//! - A later message of a key that is delivered between two attempts of an earlier one would undo the order of the key
//!   (`later_message_of_a_key_waits_for_the_retries_of_an_earlier_one`).
//! - A dead letter that is not written must not release its key, or its message would be lost
//!   (`dead_letter_that_is_not_written_is_due_again`).

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::{Entry, SortedMap};

use crate::machine::Instant;

/// How often and when a message that failed is processed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    attempts: u32,
    backoff: Duration,
    backoff_max: Duration,
}

/// The longest back-off, which no clock overflows by.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// The longest text of an error that is kept, in bytes.
const ERROR_BYTES: usize = 1000;

/// Five attempts, with back-offs from 100 ms to 10 s.
impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, backoff: Duration::from_millis(100), backoff_max: Duration::from_secs(10) }
    }
}

impl RetryPolicy {
    /// Returns the default: five attempts, with back-offs from 100 ms to 10 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how often a message is processed at most, the first time included; at least once.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Sets the time between the first and the second attempt. It doubles with each further one, up to `max`.
    #[must_use]
    pub fn backoff(mut self, first: Duration, max: Duration) -> Self {
        (self.backoff, self.backoff_max) = (first, max);
        self
    }

    /// Returns the back-off after so many failures.
    fn wait(&self, failures: u32) -> Duration {
        let factor = 1 << failures.saturating_sub(1).min(20);
        self.backoff.saturating_mul(factor).min(self.backoff_max.max(self.backoff)).min(LONGEST)
    }
}

/// A key of a partition.
pub type Lane = Arc<(TopicPartition, Box<[u8]>)>;

/// One attempt to process a message.
#[derive(Debug)]
pub struct Attempt<M> {
    /// The message.
    pub message: M,
    /// The number of the attempt; the first is 1.
    pub number: u32,
    /// Why the last attempt failed.
    pub error: Option<String>,
    lane: Option<Lane>,
    /// How often it could not be written as a dead letter.
    unwritten: u32,
}

/// What is to be done with a message now.
#[derive(Debug)]
pub enum Due<M> {
    /// Process it.
    Attempt(Attempt<M>),
    /// Write it as a dead letter: the last attempt has failed.
    DeadLetter(Attempt<M>),
}

/// The messages that are not finished, except those with a worker.
#[derive(Debug)]
pub struct Retries<M> {
    policy: RetryPolicy,
    /// The messages behind an earlier one of their key. A key is here while it is busy.
    behind: SortedMap<Lane, VecDeque<M>>,
    /// Messages that failed, by the time at which they are due.
    waiting: SortedMap<(Instant, u64), Due<M>>,
    /// Messages whose key became free.
    ready: VecDeque<Attempt<M>>,
    last: u64,
}

impl<M> Retries<M> {
    /// Creates the machine without messages.
    pub const fn new(policy: RetryPolicy) -> Self {
        Self { policy, behind: SortedMap::new(), waiting: SortedMap::new(), ready: VecDeque::new(), last: 0 }
    }

    /// Takes over the next message of its partition, in the order of the log. Returns its first attempt, unless an earlier message
    /// of its key is not finished.
    pub fn offer(&mut self, lane: Option<Lane>, message: M) -> Option<Attempt<M>> {
        if let Some(lane) = &lane {
            match self.behind.entry(Arc::clone(lane)) {
                Entry::Occupied(mut busy) => {
                    busy.get_mut().push_back(message);
                    return None;
                }
                Entry::Vacant(free) => {
                    free.insert(VecDeque::new());
                }
            }
        }
        Some(Attempt { message, number: 1, error: None, lane, unwritten: 0 })
    }

    /// A message is finished, written as a dead letter, or not of the consumer any more. The next one of its key is due. Returns
    /// the message.
    pub fn finish(&mut self, attempt: Attempt<M>) -> M {
        let Attempt { message, lane, .. } = attempt;
        if let Some(lane) = lane {
            match self.behind.get_mut(&lane).and_then(VecDeque::pop_front) {
                Some(message) => {
                    let lane = Some(lane);
                    self.ready.push_back(Attempt { message, number: 1, error: None, lane, unwritten: 0 });
                }
                None => drop(self.behind.remove(&lane)),
            }
        }
        message
    }

    /// An attempt failed. Returns the time until the next one; `None` after the last, when it is a dead letter.
    pub fn fail(&mut self, now: Instant, mut attempt: Attempt<M>, error: &str) -> Option<Duration> {
        let end = (0..=error.len().min(ERROR_BYTES)).rev().find(|end| error.is_char_boundary(*end));
        attempt.error = Some(error[..end.unwrap_or(0)].to_owned());
        if attempt.number >= self.policy.attempts {
            self.wait_until(now, Due::DeadLetter(attempt));
            return None;
        }
        let wait = self.policy.wait(attempt.number);
        attempt.number += 1;
        self.wait_until(now + wait, Due::Attempt(attempt));
        Some(wait)
    }

    /// A dead letter was not written. It is due again after a back-off.
    pub fn fail_dead_letter(&mut self, now: Instant, mut attempt: Attempt<M>) {
        attempt.unwritten = attempt.unwritten.saturating_add(1);
        let wait = self.policy.wait(attempt.unwritten);
        self.wait_until(now + wait, Due::DeadLetter(attempt));
    }

    /// Returns the next message that is due.
    pub fn take(&mut self, now: Instant) -> Option<Due<M>> {
        if let Some(attempt) = self.ready.pop_front() {
            return Some(Due::Attempt(attempt));
        }
        let (&(at, number), _) = self.waiting.first_key_value()?;
        if at > now { None } else { self.waiting.remove(&(at, number)) }
    }

    /// Returns when a message is due; a time in the past if one is.
    pub fn next_due(&self) -> Option<Instant> {
        if self.ready.is_empty() {
            self.waiting.first_key_value().map(|((at, _), _)| *at)
        } else {
            Some(Instant::ZERO)
        }
    }

    fn wait_until(&mut self, at: Instant, due: Due<M>) {
        self.last += 1;
        self.waiting.insert((at, self.last), due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn lane(key: &str) -> Option<Lane> {
        Some(Arc::new((TopicPartition::new("t", 0), key.as_bytes().into())))
    }

    fn policy(attempts: u32) -> RetryPolicy {
        RetryPolicy::new().attempts(attempts).backoff(millis(100), millis(300))
    }

    /// Takes a message that must be processed now.
    fn attempt(retries: &mut Retries<u32>, now: u64) -> Attempt<u32> {
        match retries.take(at(now)) {
            Some(Due::Attempt(attempt)) => attempt,
            other => panic!("{other:?} at {now} ms"),
        }
    }

    #[test]
    fn each_attempt_waits_longer_and_the_last_one_makes_a_dead_letter() {
        let mut retries = Retries::new(policy(5));
        let mut next = retries.offer(None, 7).unwrap();
        let mut now = 0;
        for (number, wait) in [(1, 100), (2, 200), (3, 300), (4, 300)] {
            assert_eq!(next.number, number);
            assert_eq!(retries.fail(at(now), next, "bad"), Some(millis(wait)));
            assert!(retries.take(at(now + wait - 1)).is_none());
            now += wait;
            assert_eq!(retries.next_due(), Some(at(now)));
            next = attempt(&mut retries, now);
            assert_eq!((next.message, next.error.as_deref()), (7, Some("bad")));
        }
        assert_eq!(retries.fail(at(now), next, "worse"), None);
        let Some(Due::DeadLetter(dead)) = retries.take(at(now)) else { panic!("no dead letter") };
        assert_eq!((dead.message, dead.number, dead.error.as_deref()), (7, 5, Some("worse")));
        retries.finish(dead);
        assert_eq!(retries.next_due(), None);
    }

    #[test]
    fn later_message_of_a_key_waits_for_the_retries_of_an_earlier_one() {
        let mut retries = Retries::new(policy(2));
        let first = retries.offer(lane("a"), 1).unwrap();
        assert!(retries.offer(lane("a"), 2).is_none(), "its key is busy");
        let other = retries.offer(lane("b"), 3).expect("another key");
        let without = retries.offer(None, 4).expect("no key");
        assert_eq!(retries.fail(at(0), first, "bad"), Some(millis(100)));
        assert!(retries.offer(lane("a"), 5).is_none(), "its key is busy while it waits");
        assert_eq!([retries.finish(other), retries.finish(without)], [3, 4]);
        assert!(retries.take(at(99)).is_none());
        let again = attempt(&mut retries, 100);
        assert_eq!((again.message, again.number), (1, 2));
        assert!(retries.take(at(1_000_000)).is_none());
        retries.finish(again);
        let second = attempt(&mut retries, 100);
        assert_eq!((second.message, second.number), (2, 1));
        retries.finish(second);
        let third = attempt(&mut retries, 100);
        assert_eq!(retries.finish(third), 5);
        assert!(retries.behind.is_empty() && retries.offer(lane("a"), 6).is_some());
    }

    #[test]
    fn dead_letter_that_is_not_written_is_due_again() {
        let mut retries = Retries::new(policy(1));
        let only = retries.offer(lane("a"), 1).unwrap();
        assert!(retries.offer(lane("a"), 2).is_none());
        assert_eq!(retries.fail(at(5), only, "bad"), None);
        let mut now = 5;
        for wait in [100, 200, 300] {
            let Some(Due::DeadLetter(dead)) = retries.take(at(now)) else { panic!("no dead letter") };
            retries.fail_dead_letter(at(now), dead);
            assert!(retries.take(at(now + wait - 1)).is_none(), "not before, and not the next of the key");
            now += wait;
        }
        let Some(Due::DeadLetter(dead)) = retries.take(at(now)) else { panic!("no dead letter") };
        retries.finish(dead);
        assert_eq!(attempt(&mut retries, now).message, 2);
    }

    #[test]
    fn error_text_is_cut_between_characters_and_policies_have_bounds() {
        let mut retries = Retries::new(RetryPolicy::new().attempts(0).backoff(Duration::MAX, Duration::ZERO));
        let only = retries.offer(None, 1).unwrap();
        assert_eq!(retries.fail(at(0), only, &"ü".repeat(1000)), None, "one attempt at least");
        let Some(Due::DeadLetter(dead)) = retries.take(at(0)) else { panic!("no dead letter") };
        assert_eq!(dead.error.as_deref().map(str::len), Some(1000));
        retries.fail_dead_letter(at(0), dead);
        assert!(retries.next_due().is_some_and(|due| due > at(1_000_000)), "the clock does not overflow");
    }

    /// Workers finish and fail at random. Each key's messages are finished in order, and each exactly once.
    #[test]
    fn every_schedule_finishes_each_key_in_order() {
        for seed in 0..500 {
            let mut rng = Rng::from_seed(seed);
            let mut retries = Retries::new(policy(3));
            let (mut with_workers, mut done): (Vec<Attempt<u32>>, Vec<u32>) = (Vec::new(), Vec::new());
            let (mut offered, mut now) = (0, 0);
            while done.len() < 60 {
                now += rng.below(80);
                if offered < 60 && rng.chance(1, 2) {
                    let key = ["a", "b", "c"][offered as usize % 3];
                    with_workers.extend(retries.offer(lane(key), offered));
                    offered += 1;
                }
                match retries.take(at(now)) {
                    Some(Due::Attempt(attempt)) => with_workers.push(attempt),
                    Some(Due::DeadLetter(dead)) if rng.chance(1, 2) => {
                        retries.fail_dead_letter(at(now), dead)
                    }
                    Some(Due::DeadLetter(dead)) => done.push(retries.finish(dead)),
                    None => {}
                }
                if !with_workers.is_empty() {
                    let place = rng.below(with_workers.len() as u64) as usize;
                    let attempt = with_workers.swap_remove(place);
                    if rng.chance(1, 2) {
                        done.push(retries.finish(attempt));
                    } else {
                        retries.fail(at(now), attempt, "bad");
                    }
                }
            }
            for key in 0..3 {
                let of_key: Vec<u32> = done.iter().copied().filter(|message| message % 3 == key).collect();
                assert!(of_key.is_sorted() && of_key.len() == 20, "seed {seed}: {of_key:?}");
            }
            assert!(retries.behind.is_empty() && retries.next_due().is_none(), "seed {seed}");
        }
    }
}
