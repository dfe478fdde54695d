//! The state of each acquired record, eight of them in a word: most calls change many neighbours in the same way.
//!
//! # Pitfalls
//!
//! - A record that is released later needs no verdict, also while its lock is renewed: a poll accepts all records that need
//!   one, and this one would not be delivered again (`held_record_is_not_accepted_while_its_lock_is_renewed`).

use std::ops::Range;

use super::acknowledgement::AcknowledgeType;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The state of an acquired record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mark {
    /// The record needs a verdict.
    Open = 0,
    /// The record is accepted, and the acknowledgement not yet sent.
    Accepted = 1,
    Released = 2,
    Rejected = 3,
    /// The lock is to be renewed.
    ToRenew = 4,
    /// The acknowledgement was collected to be sent.
    Sent = 5,
    /// A renewal was collected to be sent; the record still needs a verdict.
    Renewing = 6,
    /// The record is released later.
    Delayed = 7,
    /// A renewal was collected to be sent because the record is released later.
    RenewingDelayed = 8,
}

impl Mark {
    pub(super) const fn of(kind: AcknowledgeType) -> Self {
        match kind {
            AcknowledgeType::Accept => Self::Accepted,
            AcknowledgeType::Release => Self::Released,
            AcknowledgeType::Reject => Self::Rejected,
            AcknowledgeType::Renew => Self::ToRenew,
        }
    }

    const fn from_u8(value: u8) -> Self {
        match value {
            0 => Self::Open,
            1 => Self::Accepted,
            2 => Self::Released,
            3 => Self::Rejected,
            4 => Self::ToRenew,
            5 => Self::Sent,
            6 => Self::Renewing,
            7 => Self::Delayed,
            _ => Self::RenewingDelayed,
        }
    }

    /// Returns the verdict to send, and the mark of a record whose verdict is sent.
    pub(super) const fn to_send(self) -> Option<(AcknowledgeType, Self)> {
        match self {
            Self::Accepted => Some((AcknowledgeType::Accept, Self::Sent)),
            Self::Released => Some((AcknowledgeType::Release, Self::Sent)),
            Self::Rejected => Some((AcknowledgeType::Reject, Self::Sent)),
            Self::ToRenew => Some((AcknowledgeType::Renew, Self::Renewing)),
            Self::Open | Self::Sent | Self::Renewing | Self::Delayed | Self::RenewingDelayed => None,
        }
    }

    /// Returns true if the application has to say what becomes of the record.
    pub(super) const fn needs_verdict(self) -> bool {
        matches!(self, Self::Open | Self::ToRenew | Self::Renewing)
    }

    /// Returns true if the record is released later.
    pub(super) const fn is_delayed(self) -> bool {
        matches!(self, Self::Delayed | Self::RenewingDelayed)
    }

    /// Returns the mark of a record whose renewal is collected to be sent.
    pub(super) const fn renewing(self) -> Self {
        if self.is_delayed() { Self::RenewingDelayed } else { Self::Renewing }
    }

    /// Returns the mark of a record whose renewal has ended and left its lock as it was, or longer; `None` without a renewal.
    pub(super) const fn renewed(self) -> Option<Self> {
        match self {
            Self::Renewing => Some(Self::Open),
            Self::RenewingDelayed => Some(Self::Delayed),
            _ => None,
        }
    }
}

/// The number of marks in a word.
const LANES: usize = 8;

/// Returns the word in which all marks are this one.
const fn all(mark: Mark) -> u64 {
    mark as u64 * 0x0101_0101_0101_0101
}

const fn lane(word: u64, number: usize) -> Mark {
    Mark::from_u8(word.to_le_bytes()[number])
}

/// Returns the mark of all lanes, if they are the same.
const fn uniform(word: u64) -> Option<Mark> {
    let mark = lane(word, 0);
    if word == all(mark) { Some(mark) } else { None }
}

/// The marks of records. The ones behind the last record's are [`Mark::Sent`].
#[derive(Debug)]
pub(super) struct Marks {
    words: Box<[AtomicU64]>,
    len: usize,
}

impl Marks {
    /// Creates open marks.
    pub(super) fn new(len: usize) -> Self {
        let count = len.div_ceil(LANES);
        let word = |number: usize| {
            let mut bytes = all(Mark::Open).to_le_bytes();
            bytes.iter_mut().skip(len - number * LANES).for_each(|byte| *byte = Mark::Sent as u8);
            AtomicU64::new(u64::from_le_bytes(bytes))
        };
        Self { words: (0..count).map(word).collect(), len }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns a mark.
    pub(super) fn get(&self, index: usize) -> Mark {
        lane(self.words[index / LANES].load(Ordering::Acquire), index % LANES)
    }

    /// Replaces a mark by the result of `change`, unless that is `None`. Returns whether it did.
    pub(super) fn change(&self, index: usize, change: impl Fn(Mark) -> Option<Mark>) -> bool {
        let mut has_changed = false;
        self.change_all(index..index + 1, change, |_, _| has_changed = true);
        has_changed
    }

    /// Replaces each of these marks by the result of `change`, unless that is `None`. Calls `changed` with the indices of
    /// marks that were replaced and with what they were, in ascending order.
    pub(super) fn change_all(
        &self,
        indices: Range<usize>,
        change: impl Fn(Mark) -> Option<Mark>,
        mut changed: impl FnMut(Range<usize>, Mark),
    ) {
        let mut at = indices.start;
        while at < indices.end {
            let first = at - at % LANES;
            let end = indices.end.min(first + LANES);
            self.change_in_word(at - first..end - first, first, &change, &mut changed);
            at = end;
        }
    }

    /// Replaces marks of the word whose first mark has the index `first`.
    fn change_in_word(
        &self,
        lanes: Range<usize>,
        first: usize,
        change: &impl Fn(Mark) -> Option<Mark>,
        changed: &mut impl FnMut(Range<usize>, Mark),
    ) {
        let word = &self.words[first / LANES];
        let mut old = word.load(Ordering::Acquire);
        loop {
            let new = match uniform(old) {
                Some(mark) if lanes.len() == LANES => change(mark).map_or(old, all),
                _ => {
                    let mut bytes = old.to_le_bytes();
                    for byte in &mut bytes[lanes.clone()] {
                        *byte = change(Mark::from_u8(*byte)).map_or(*byte, |mark| mark as u8);
                    }
                    u64::from_le_bytes(bytes)
                }
            };
            // A mark may be replaced by itself: that is not a change of the word.
            match word.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => old = now,
            }
        }
        if let Some(mark) = uniform(old) {
            if change(mark).is_some() {
                changed(first + lanes.start..first + lanes.end, mark);
            }
            return;
        }
        for number in lanes {
            let mark = lane(old, number);
            if change(mark).is_some() {
                changed(first + number..first + number + 1, mark);
            }
        }
    }

    /// Returns the number of marks that `is_counted`. It must not count [`Mark::Sent`].
    pub(super) fn count(&self, is_counted: impl Fn(Mark) -> bool) -> usize {
        let of_word = |word: &AtomicU64| {
            let word = word.load(Ordering::Acquire);
            match uniform(word) {
                Some(mark) => usize::from(is_counted(mark)) * LANES,
                None => (0..LANES).filter(|number| is_counted(lane(word, *number))).count(),
            }
        };
        self.words.iter().map(of_word).sum()
    }

    /// Returns true if some record needs a verdict.
    pub(super) fn has_open(&self) -> bool {
        self.words.iter().any(|word| {
            let word = word.load(Ordering::Acquire);
            match uniform(word) {
                Some(mark) => mark.needs_verdict(),
                None => (0..LANES).any(|number| lane(word, number).needs_verdict()),
            }
        })
    }

    /// Returns true if the acknowledgement of each record was collected.
    pub(super) fn are_sent(&self) -> bool {
        self.words.iter().all(|word| word.load(Ordering::Acquire) == all(Mark::Sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn record_needs_a_verdict_while_its_lock_is_renewed_unless_it_is_delayed() {
        let all = (0..=Mark::RenewingDelayed as u8).map(Mark::from_u8);
        let needs_verdict: Vec<Mark> = all.filter(|mark| mark.needs_verdict()).collect();
        assert_eq!(needs_verdict, [Mark::Open, Mark::ToRenew, Mark::Renewing]);
    }

    #[test]
    fn words_of_marks_match_a_list_of_marks() {
        let mut rng = Rng::from_seed(7);
        for len in [0, 1, 7, 8, 9, 16, 30] {
            let (marks, mut list) = (Marks::new(len), vec![Mark::Open; len]);
            for _ in 0..2_000 {
                let mut below = |limit: usize| rng.below(limit as u64) as usize;
                let (from, new) = (Mark::from_u8(below(9) as u8), Mark::from_u8(below(9) as u8));
                let start = below(len + 1);
                let range = start..start + below(len + 1 - start);
                let is_any = below(4) == 0;
                let change = |mark| (is_any && mark != Mark::Sent || mark == from).then_some(new);
                let mut changed = Vec::new();
                marks.change_all(range.clone(), change, |range, mark| {
                    changed.extend(range.map(|index| (index, mark)));
                });
                let expected = range.clone().filter(|index| change(list[*index]).is_some());
                let expected: Vec<(usize, Mark)> = expected.map(|index| (index, list[index])).collect();
                assert_eq!(changed, expected);
                for (index, mark) in expected {
                    list[index] = change(mark).unwrap();
                }
                assert!((0..len).all(|index| marks.get(index) == list[index]));
                let open = list.iter().filter(|mark| mark.needs_verdict()).count();
                assert_eq!((marks.count(Mark::needs_verdict), marks.has_open()), (open, open > 0));
                assert_eq!(marks.are_sent(), list.iter().all(|mark| *mark == Mark::Sent));
                if marks.are_sent() {
                    marks.change_all(0..len, |_| Some(Mark::Open), |_, _| ());
                    list = vec![Mark::Open; len];
                }
            }
        }
    }
}
