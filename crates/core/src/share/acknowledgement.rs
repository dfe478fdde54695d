//! The ways to acknowledge a record, and ranges of acknowledged offsets as requests carry them.

use ottla_protocol::generated::{share_acknowledge, share_fetch};

/// The application's verdict on a record that it acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcknowledgeType {
    /// The record is processed; it is never delivered again.
    Accept,
    /// The record is to be delivered again, to any member. Its delivery count stays.
    Release,
    /// The record can't be processed; it is never delivered again.
    Reject,
    /// The record is still being processed: its acquisition lock starts again (KIP-1222). It still has to be
    /// acknowledged. It needs Kafka 4.2.
    Renew,
}

/// The content of an acknowledgement: the application's verdict, or a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The acquired range has no record at the offset: compaction removed it, or it is a transaction marker.
    Gap,
    /// The application's verdict.
    Of(AcknowledgeType),
}

impl Verdict {
    /// Returns the verdict as the protocol numbers it.
    pub(crate) const fn to_wire(self) -> i8 {
        match self {
            Self::Gap => 0,
            Self::Of(AcknowledgeType::Accept) => 1,
            Self::Of(AcknowledgeType::Release) => 2,
            Self::Of(AcknowledgeType::Reject) => 3,
            Self::Of(AcknowledgeType::Renew) => 4,
        }
    }
}

/// Acknowledged offsets with a common verdict, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcknowledgedRange {
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) verdict: Verdict,
}

impl AcknowledgedRange {
    /// Returns the range as ShareFetch carries it.
    pub(crate) fn in_fetch(&self) -> share_fetch::request::AcknowledgementBatch {
        share_fetch::request::AcknowledgementBatch {
            first_offset: self.first,
            last_offset: self.last,
            acknowledge_types: vec![self.verdict.to_wire()],
        }
    }

    /// Returns the range as ShareAcknowledge carries it.
    pub(crate) fn in_acknowledge(&self) -> share_acknowledge::request::AcknowledgementBatch {
        share_acknowledge::request::AcknowledgementBatch {
            first_offset: self.first,
            last_offset: self.last,
            acknowledge_types: vec![self.verdict.to_wire()],
        }
    }
}

/// Appends an offset to ascending ranges: to the last one if it continues it with the same verdict.
pub(crate) fn append(ranges: &mut Vec<AcknowledgedRange>, offset: i64, verdict: Verdict) {
    append_range(ranges, offset, offset, verdict);
}

/// Appends offsets, both ends included, as [`append`] does.
pub(crate) fn append_range(ranges: &mut Vec<AcknowledgedRange>, first: i64, last: i64, verdict: Verdict) {
    match ranges.last_mut() {
        Some(before) if before.verdict == verdict && before.last.checked_add(1) == Some(first) => {
            before.last = last;
        }
        _ => ranges.push(AcknowledgedRange { first, last, verdict }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_with_the_same_verdict_form_a_range() {
        let accept = Verdict::Of(AcknowledgeType::Accept);
        let mut ranges = Vec::new();
        for (offset, verdict) in [(1, accept), (2, accept), (3, Verdict::Gap), (5, Verdict::Gap)] {
            append(&mut ranges, offset, verdict);
        }
        let shown: Vec<_> = ranges.iter().map(|range| (range.first, range.last, range.verdict)).collect();
        assert_eq!(shown, [(1, 2, accept), (3, 3, Verdict::Gap), (5, 5, Verdict::Gap)]);
    }
}
