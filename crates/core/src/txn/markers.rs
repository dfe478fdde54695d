//! The wait between two transactions: after EndTxn the coordinator writes a marker to each partition, and until it is done, it
//! refuses the producer's next transaction with CONCURRENT_TRANSACTIONS.
//!
//! With the older protocol that costs a repetition of AddPartitionsToTxn. With the newer one it is expensive: a leader that gets
//! the first batch of the next transaction too early asks the coordinator again after 20 ms
//! (`add.partitions.to.txn.retry.backoff.ms`), and responds then. So the first request of a transaction waits as long as markers
//! took before, which is a few milliseconds. An application whose transactions take longer never waits.

use std::time::Duration;

use crate::machine::Instant;

/// The change of the wait after a request that came too early, and after one in time: one in twenty comes too early.
const LONGER: Duration = Duration::from_millis(2);
const SHORTER: Duration = Duration::from_micros(100);
/// A longer wait would not be better than that of the leader.
const LONGEST: Duration = Duration::from_millis(15);
/// The response to a batch that came too early takes this much longer than that to EndTxn, at least.
const LATE: Duration = Duration::from_millis(18);
/// After this number of requests in a row that waited for the longest time in vain, the delay has another cause.
const VAIN: u32 = 3;
/// The number of transactions after which it is tried again.
const PAUSE: u32 = 100;

/// The estimate of the time that markers take.
#[derive(Debug, Default)]
pub(super) struct MarkerWait {
    wait: Duration,
    /// When the response to EndTxn came, and the time that it took.
    ended: Option<(Instant, Duration)>,
    in_vain: u32,
    /// The number of transactions that do not wait.
    pause: u32,
}

impl MarkerWait {
    /// The coordinator has ended the transaction; its response took this long.
    pub(super) fn note_end(&mut self, now: Instant, took: Duration) {
        self.ended = Some((now, took));
    }

    /// Returns when the first request of the next transaction may be sent.
    pub(super) fn opens_at(&self) -> Option<Instant> {
        let wait = if self.pause > 0 { Duration::ZERO } else { self.wait };
        self.ended.filter(|_| !wait.is_zero()).map(|(at, _)| at + wait)
    }

    /// Handles the response to the first batch of a transaction, which was sent at `sent`; `None`: it was refused.
    pub(super) fn learn_from_batch(&mut self, sent: Instant, took: Option<Duration>) {
        let Some((_, reference)) = self.ended else { return };
        self.learn(sent, took.is_none_or(|took| took >= reference + LATE));
    }

    /// Handles the first request of a transaction, which was sent at `sent`.
    pub(super) fn learn(&mut self, sent: Instant, was_early: bool) {
        let Some((ended_at, _)) = self.ended.take() else { return };
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        let gap = sent.saturating_since(ended_at);
        if !was_early {
            self.in_vain = 0;
            // A later request says nothing about a shorter wait.
            if gap <= self.wait + LONGER {
                self.wait = self.wait.saturating_sub(SHORTER);
            }
        } else if gap >= LONGEST {
            self.in_vain += 1;
            if self.in_vain >= VAIN {
                *self = Self { pause: PAUSE, ..Self::default() };
            }
        } else {
            self.wait = (self.wait.max(gap) + LONGER).min(LONGEST);
        }
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn start() -> Instant {
        Instant::from_nanos(1_000_000_000)
    }

    /// Runs transactions whose markers take this long; returns the number of first batches that came too early, and the waits.
    fn run(wait: &mut MarkerWait, transactions: u32, markers: Duration, think: Duration) -> (u32, Duration) {
        let (mut early, mut waited) = (0, Duration::ZERO);
        for _ in 0..transactions {
            let ended = start();
            wait.note_end(ended, 2 * MILLI);
            let sent = wait.opens_at().map_or(ended + think, |at| at.max(ended + think));
            waited += sent - ended;
            let is_early = sent - ended < markers;
            early += u32::from(is_early);
            wait.learn_from_batch(sent, Some(if is_early { 22 * MILLI } else { 2 * MILLI }));
        }
        (early, waited / transactions)
    }

    #[test]
    fn first_batches_wait_as_long_as_markers_take() {
        let mut wait = MarkerWait::default();
        assert_eq!(run(&mut wait, 3, 5 * MILLI, Duration::ZERO).0, 3, "it learns");
        let (early, waited) = run(&mut wait, 1000, 5 * MILLI, Duration::ZERO);
        assert!((30..80).contains(&early), "{early} of 1000 came too early");
        assert!(waited > 5 * MILLI && waited < 7 * MILLI, "{waited:?}");
        // The markers become faster.
        run(&mut wait, 100, MILLI, Duration::ZERO);
        assert!(run(&mut wait, 1000, MILLI, Duration::ZERO).1 < 3 * MILLI);
    }

    #[test]
    fn slow_application_never_waits() {
        let mut wait = MarkerWait::default();
        assert_eq!(run(&mut wait, 100, 5 * MILLI, 6 * MILLI), (0, 6 * MILLI));
    }

    #[test]
    fn delay_with_another_cause_ends_the_wait() {
        let mut wait = MarkerWait::default();
        let (early, waited) = run(&mut wait, 1000, Duration::MAX, Duration::ZERO);
        assert_eq!(early, 1000);
        assert!(waited < 2 * MILLI, "{waited:?}");
    }

    #[test]
    fn slow_network_is_no_reason_to_wait() {
        let mut wait = MarkerWait::default();
        for _ in 0..10 {
            wait.note_end(start(), 100 * MILLI);
            wait.learn_from_batch(start(), Some(105 * MILLI));
            assert_eq!(wait.opens_at(), None);
        }
    }
}
