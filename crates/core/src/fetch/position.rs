//! Start positions: the positions that an application can choose, and the queries that resolve them to an offset.

use crate::{config::OffsetReset, offsets::list_offsets::OffsetSpec};

/// A position in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Offset {
    /// The first record that still exists.
    Beginning,
    /// The end of the log, after the last record.
    End,
    /// This offset.
    At(i64),
    /// The first record with this timestamp, in milliseconds, or a later one; the end without such a record.
    Timestamp(i64),
    /// This number of offsets before the end, but not before the beginning.
    Tail(i64),
    /// The committed offset of the group of `group.id`, or `auto.offset.reset` if nothing is committed. Refused without
    /// a group.
    Committed,
}

impl Offset {
    /// Returns the reason why this is not a valid position, if it is not.
    pub fn invalid(self) -> Option<&'static str> {
        match self {
            Self::At(offset) if offset < 0 => Some("an offset is at least 0"),
            Self::Tail(count) if count < 0 => Some("a tail is at least 0 offsets long"),
            Self::Timestamp(ms) if ms < 0 => Some("a timestamp is at least 0 ms"),
            _ => None,
        }
    }
}

/// The resolution of a position to an offset, with at most two queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    place: Offset,
    /// The end of the log for a tail, once it is known.
    end: Option<i64>,
}

/// The next step of a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The offset is known.
    Known(i64),
    /// Query the leader for this offset.
    Ask(OffsetSpec),
    /// There is no offset: `auto.offset.reset` is `error`.
    Nowhere,
}

impl Resolution {
    /// Returns the first step of the resolution of a position.
    pub(crate) const fn begin(place: Offset, reset: OffsetReset) -> (Self, Step) {
        let place = match (place, reset) {
            (Offset::Committed, OffsetReset::Beginning) => Offset::Beginning,
            (Offset::Committed, OffsetReset::End) => Offset::End,
            (place, _) => place,
        };
        let step = match place {
            Offset::Beginning => Step::Ask(OffsetSpec::Earliest),
            Offset::End | Offset::Tail(_) => Step::Ask(OffsetSpec::Latest),
            Offset::Timestamp(ms) => Step::Ask(OffsetSpec::Timestamp(ms)),
            Offset::At(offset) => Step::Known(offset),
            Offset::Committed => Step::Nowhere,
        };
        (Self { place, end: None }, step)
    }

    /// Returns the step after a response; `None` means that there is no such offset.
    pub(crate) fn handle_offset(&mut self, found: Option<i64>) -> Step {
        if found.is_none() && matches!(self.place, Offset::Timestamp(_)) {
            self.place = Offset::End;
            return Step::Ask(OffsetSpec::Latest);
        }
        let offset = found.unwrap_or(0);
        match (self.place, self.end) {
            (Offset::Tail(_), None) => {
                self.end = Some(offset);
                Step::Ask(OffsetSpec::Earliest)
            }
            (Offset::Tail(count), Some(end)) => Step::Known(end.saturating_sub(count).max(offset)),
            _ => Step::Known(offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_take_one_question() {
        let (mut way, step) = Resolution::begin(Offset::Beginning, OffsetReset::End);
        assert_eq!(step, Step::Ask(OffsetSpec::Earliest));
        assert_eq!(way.handle_offset(Some(7)), Step::Known(7));
        assert_eq!(Resolution::begin(Offset::At(5), OffsetReset::End).1, Step::Known(5));
    }

    #[test]
    fn a_time_after_the_last_record_is_the_end() {
        let (mut way, step) = Resolution::begin(Offset::Timestamp(1000), OffsetReset::End);
        assert_eq!(step, Step::Ask(OffsetSpec::Timestamp(1000)));
        assert_eq!(way.handle_offset(None), Step::Ask(OffsetSpec::Latest));
        assert_eq!(way.handle_offset(Some(12)), Step::Known(12));
    }

    #[test]
    fn a_tail_does_not_reach_before_the_beginning() {
        for (count, expected) in [(3, 97), (1000, 90), (0, 100)] {
            let (mut way, _) = Resolution::begin(Offset::Tail(count), OffsetReset::End);
            assert_eq!(way.handle_offset(Some(100)), Step::Ask(OffsetSpec::Earliest));
            assert_eq!(way.handle_offset(Some(90)), Step::Known(expected));
        }
    }

    #[test]
    fn reset_applies_without_a_committed_offset() {
        let begin = |reset| Resolution::begin(Offset::Committed, reset).1;
        assert_eq!(begin(OffsetReset::Beginning), Step::Ask(OffsetSpec::Earliest));
        assert_eq!(begin(OffsetReset::End), Step::Ask(OffsetSpec::Latest));
        assert_eq!(begin(OffsetReset::Error), Step::Nowhere);
    }
}
