//! The sequence numbers of a partition under one identity of the producer (KIP-98, KIP-360).

use super::producer_id::{ProducerIdentity, sequence_after};

/// The sequence numbers of a partition under one identity.
///
/// ```text
///            note_order(first)              confirm(order)
///   Unused ───────────────────► FirstSent ─────────────────► Confirmed
///      │                            │                            │
///      └────── note_gap(order) ─────┴────────────────────────────┘  each with a gap at `order`:
///                                                                   nothing new until a new identity, or until
///                                                                   a batch behind the gap is confirmed
/// ```
///
/// A new identity starts a new state. Before the first confirmation a single batch may be in flight: a broker accepts any
/// first number from a producer that it does not know, so a second batch could overtake a first one that failed.
#[derive(Debug)]
pub(super) struct SequenceState {
    identity: ProducerIdentity,
    next: i32,
    progress: Progress,
    /// The order of the newest batch whose sequence number the broker may miss.
    gap: Option<u64>,
}

/// The batches of an identity that the broker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// No batch was sent under the identity.
    Unused,
    /// The batch with this order is the first one, and the broker has not acknowledged any.
    FirstSent(u64),
    /// The broker has acknowledged a batch of the identity.
    Confirmed,
}

impl SequenceState {
    /// Starts at number 0 under `identity`.
    pub(super) const fn new(identity: ProducerIdentity) -> Self {
        Self { identity, next: 0, progress: Progress::Unused, gap: None }
    }

    pub(super) const fn identity(&self) -> ProducerIdentity {
        self.identity
    }

    /// Returns the number of the next new record.
    pub(super) const fn next(&self) -> i32 {
        self.next
    }

    /// Continues with this number.
    #[cfg(test)]
    pub(super) const fn set_next(&mut self, next: i32) {
        self.next = next;
    }

    /// Uses the numbers of `records`.
    pub(super) const fn take(&mut self, records: u32) {
        self.next = sequence_after(self.next, records);
    }

    /// A batch with this order leaves under the identity.
    pub(super) const fn note_order(&mut self, order: u64) {
        if matches!(self.progress, Progress::Unused) {
            self.progress = Progress::FirstSent(order);
        }
    }

    /// The broker may miss the number of the batch with this order.
    pub(super) fn note_gap(&mut self, order: u64) {
        self.gap = self.gap.max(Some(order));
    }

    /// The broker has written the batch with this order, and so everything before it.
    pub(super) fn confirm(&mut self, order: u64) {
        self.progress = Progress::Confirmed;
        if self.gap.is_some_and(|gap| gap < order) {
            self.gap = None;
        }
    }

    pub(super) const fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    pub(super) const fn is_confirmed(&self) -> bool {
        matches!(self.progress, Progress::Confirmed)
    }

    /// Returns true if the batch with this order may have been sent under the current number. Before the confirmation that
    /// is the first one alone: a doubt about another batch is about its number under an earlier identity.
    pub(super) const fn has_sent(&self, order: u64) -> bool {
        match self.progress {
            Progress::Unused => false,
            Progress::FirstSent(first) => first == order,
            Progress::Confirmed => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Step {
        Send(u64),
        Gap(u64),
        Confirm(u64),
    }
    use Step::{Confirm, Gap, Send};

    #[test]
    fn sequence_state_follows_its_diagram() {
        // The steps; then whether the state is confirmed, has a gap, and has sent the batches 4 and 5.
        let rows: &[(&[Step], bool, bool, [bool; 2])] = &[
            (&[], false, false, [false, false]),
            (&[Send(4)], false, false, [true, false]),
            (&[Send(4), Send(5)], false, false, [true, false]),
            (&[Send(4), Confirm(4)], true, false, [true, true]),
            (&[Gap(4)], false, true, [false, false]),
            (&[Send(4), Gap(4)], false, true, [true, false]),
            (&[Send(4), Gap(4), Confirm(4)], true, true, [true, true]),
            (&[Send(4), Gap(4), Confirm(5)], true, false, [true, true]),
            (&[Send(4), Gap(5), Gap(4), Confirm(5)], true, true, [true, true]),
            (&[Send(4), Confirm(4), Send(5), Gap(5)], true, true, [true, true]),
        ];
        for (index, (steps, confirmed, gap, sent)) in rows.iter().enumerate() {
            let mut state = SequenceState::new(ProducerIdentity { id: 7, epoch: 0 });
            for step in *steps {
                match step {
                    Send(order) => state.note_order(*order),
                    Gap(order) => state.note_gap(*order),
                    Confirm(order) => state.confirm(*order),
                }
            }
            let found = (state.is_confirmed(), state.has_gap(), [4, 5].map(|order| state.has_sent(order)));
            assert_eq!(found, (*confirmed, *gap, *sent), "row {index}");
        }
    }

    #[test]
    fn sequence_numbers_wrap_to_zero_after_the_largest() {
        let mut state = SequenceState::new(ProducerIdentity { id: 7, epoch: 0 });
        state.set_next(i32::MAX);
        state.take(1);
        assert_eq!(state.next(), 0);
    }
}
