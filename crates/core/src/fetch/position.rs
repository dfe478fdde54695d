//! Where to start: the places that an application can name, and the questions that turn them into an offset.

use super::offsets::OffsetSpec;
use crate::config::OffsetReset;

/// A place in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Offset {
    /// The first record that is still there.
    Beginning,
    /// Behind the last record.
    End,
    /// This offset.
    At(i64),
    /// The first record of this time, in milliseconds, or later; the end if there is none.
    Timestamp(i64),
    /// So many offsets before the end, but not before the beginning.
    Tail(i64),
    /// What was committed for the group of `group.id`; `auto.offset.reset` where nothing was. Without a group it is refused.
    Stored,
}

impl Offset {
    /// Why this can't be a place, in words.
    pub fn invalid(self) -> Option<&'static str> {
        match self {
            Self::At(offset) if offset < 0 => Some("an offset is at least 0"),
            Self::Tail(count) if count < 0 => Some("a tail is at least 0 offsets long"),
            Self::Timestamp(ms) if ms < 0 => Some("a timestamp is at least 0 ms"),
            _ => None,
        }
    }
}

/// The way from a place to an offset: at most two questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolution {
    place: Offset,
    /// The end, for a tail, once it is known.
    end: Option<i64>,
}

/// What is next on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Here.
    Known(i64),
    /// Ask the leader.
    Ask(OffsetSpec),
    /// Nowhere: `auto.offset.reset` is `error`.
    Nowhere,
}

impl Resolution {
    /// The first step to a place.
    pub(crate) const fn begin(place: Offset, reset: OffsetReset) -> (Self, Step) {
        let place = match (place, reset) {
            (Offset::Stored, OffsetReset::Beginning) => Offset::Beginning,
            (Offset::Stored, OffsetReset::End) => Offset::End,
            (place, _) => place,
        };
        let step = match place {
            Offset::Beginning => Step::Ask(OffsetSpec::Earliest),
            Offset::End | Offset::Tail(_) => Step::Ask(OffsetSpec::Latest),
            Offset::Timestamp(ms) => Step::Ask(OffsetSpec::Timestamp(ms)),
            Offset::At(offset) => Step::Known(offset),
            Offset::Stored => Step::Nowhere,
        };
        (Self { place, end: None }, step)
    }

    /// The step after an answer; -1 means that there is no such offset.
    pub(crate) fn answered(&mut self, offset: i64) -> Step {
        match (self.place, self.end) {
            (Offset::Timestamp(_), _) if offset < 0 => {
                self.place = Offset::End;
                Step::Ask(OffsetSpec::Latest)
            }
            (Offset::Tail(_), None) => {
                self.end = Some(offset);
                Step::Ask(OffsetSpec::Earliest)
            }
            (Offset::Tail(count), Some(end)) => Step::Known(end.saturating_sub(count).max(offset)),
            _ => Step::Known(offset.max(0)),
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
        assert_eq!(way.answered(7), Step::Known(7));
        assert_eq!(Resolution::begin(Offset::At(5), OffsetReset::End).1, Step::Known(5));
    }

    #[test]
    fn a_time_after_the_last_record_is_the_end() {
        let (mut way, step) = Resolution::begin(Offset::Timestamp(1000), OffsetReset::End);
        assert_eq!(step, Step::Ask(OffsetSpec::Timestamp(1000)));
        assert_eq!(way.answered(-1), Step::Ask(OffsetSpec::Latest));
        assert_eq!(way.answered(12), Step::Known(12));
    }

    #[test]
    fn a_tail_does_not_reach_before_the_beginning() {
        for (count, expected) in [(3, 97), (1000, 90), (0, 100)] {
            let (mut way, _) = Resolution::begin(Offset::Tail(count), OffsetReset::End);
            assert_eq!(way.answered(100), Step::Ask(OffsetSpec::Earliest));
            assert_eq!(way.answered(90), Step::Known(expected));
        }
    }

    #[test]
    fn where_nothing_is_stored_the_reset_decides() {
        let begin = |reset| Resolution::begin(Offset::Stored, reset).1;
        assert_eq!(begin(OffsetReset::Beginning), Step::Ask(OffsetSpec::Earliest));
        assert_eq!(begin(OffsetReset::End), Step::Ask(OffsetSpec::Latest));
        assert_eq!(begin(OffsetReset::Error), Step::Nowhere);
    }
}
