//! The segments of a log: where one ends and the next begins. The batches themselves are in the log.

use std::collections::VecDeque;

use ottla_sorted::SortedMap;

/// `segment.bytes` and `segment.ms`: when a log begins a new segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentLimits {
    pub bytes: u64,
    /// The time between the first batch of a segment and a batch that begins the next one.
    pub millis: i64,
}

/// A part of a log. All but the last, the active segment, are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub base_offset: i64,
    pub bytes: u64,
    /// The largest timestamp of the first batch; -1 without one.
    first_timestamp: i64,
    /// The largest timestamp of all batches; -1 without one.
    largest_timestamp: i64,
    /// The time of the last append.
    modified_ms: i64,
}

/// The segments of a log in the order of their offsets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    all: VecDeque<Segment>,
}

/// What a segment has to know of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchSize {
    pub bytes: u64,
    pub max_timestamp: i64,
}

impl SegmentLimits {
    /// Reads the limits of a topic. `longest_ms` bounds the time, as `max.compaction.lag.ms` does for a compacted topic.
    pub fn new(configs: &SortedMap<String, String>, longest_ms: Option<i64>) -> Self {
        let number = |name| configs.get(name).and_then(|value: &String| value.parse::<i64>().ok());
        let default = Self::default();
        let bytes = number("segment.bytes").and_then(|bytes| u64::try_from(bytes).ok());
        let millis = number("segment.ms").filter(|millis| *millis > 0).unwrap_or(default.millis);
        Self { bytes: bytes.unwrap_or(default.bytes), millis: millis.min(longest_ms.unwrap_or(i64::MAX)) }
    }
}

impl Default for SegmentLimits {
    /// Kafka's defaults: 1 GiB and seven days.
    fn default() -> Self {
        Self { bytes: 1 << 30, millis: 604_800_000 }
    }
}

impl Segment {
    fn new(base_offset: i64) -> Self {
        Self { base_offset, bytes: 0, first_timestamp: -1, largest_timestamp: -1, modified_ms: -1 }
    }

    /// Returns the time of the newest record. Without timestamps it is the time of the last append, as Kafka takes that of
    /// the file.
    pub fn newest_ms(&self) -> i64 {
        if self.largest_timestamp >= 0 { self.largest_timestamp } else { self.modified_ms }
    }

    /// Returns the time of the first batch, if it has one.
    pub fn first_ms(&self) -> i64 {
        if self.first_timestamp >= 0 { self.first_timestamp } else { self.modified_ms }
    }

    fn add(&mut self, batch: BatchSize) {
        if self.bytes == 0 {
            self.first_timestamp = batch.max_timestamp;
        }
        self.bytes += batch.bytes;
        self.largest_timestamp = self.largest_timestamp.max(batch.max_timestamp);
    }
}

impl Segments {
    /// Makes room for a batch at `end_offset`: begins a new segment if the active one is full or too old for it.
    pub fn make_room(&mut self, limits: SegmentLimits, batch: BatchSize, end_offset: i64, unix_ms: i64) {
        let is_full = self.all.back().is_none_or(|active| {
            let waited = match (active.first_timestamp, batch.max_timestamp) {
                (first, last) if first >= 0 && last >= 0 => last.saturating_sub(first),
                _ => unix_ms.saturating_sub(active.modified_ms),
            };
            active.bytes > 0 && (active.bytes + batch.bytes > limits.bytes || waited > limits.millis)
        });
        if is_full {
            self.roll(end_offset);
        }
        if let Some(active) = self.all.back_mut() {
            active.modified_ms = unix_ms;
        }
    }

    /// Begins a new segment, unless the active one is empty.
    pub fn roll(&mut self, end_offset: i64) {
        if self.all.back().is_none_or(|active| active.bytes > 0) {
            self.all.push_back(Segment::new(end_offset));
        }
    }

    /// Counts an appended batch for the active segment.
    pub fn add(&mut self, base_offset: i64, batch: BatchSize) {
        if self.all.is_empty() {
            self.roll(base_offset);
        }
        if let Some(active) = self.all.back_mut() {
            active.add(batch);
        }
    }

    /// Counts the batches of one segment or all anew, after some of them were removed.
    pub fn recount(&mut self, batches: impl Iterator<Item = (i64, BatchSize)>) {
        for segment in &mut self.all {
            let modified_ms = segment.modified_ms;
            *segment = Segment { modified_ms, ..Segment::new(segment.base_offset) };
        }
        let mut at = 0;
        for (base_offset, batch) in batches {
            while self.all.get(at + 1).is_some_and(|next| next.base_offset <= base_offset) {
                at += 1;
            }
            if let Some(segment) = self.all.get_mut(at) {
                segment.add(batch);
            }
        }
    }

    /// Forgets the segments that end at or before `start`, but for the active one, and takes the bytes of a batch off the first.
    pub fn drop_front(&mut self, bytes: u64, start: i64) {
        if let Some(first) = self.all.front_mut() {
            first.bytes = first.bytes.saturating_sub(bytes);
        }
        while self.all.get(1).is_some_and(|next| next.base_offset <= start) {
            self.all.pop_front();
        }
        if let Some(only) = self.all.front_mut().filter(|only| only.bytes == 0 && only.base_offset < start) {
            *only = Segment::new(start);
        }
    }

    /// Forgets the segments that begin after `end`.
    pub fn truncate(&mut self, end: i64) {
        while self.all.back().is_some_and(|last| last.base_offset > end) {
            self.all.pop_back();
        }
    }

    /// Joins neighbours before `end` while they fit into one segment, as Kafka does with those that it has compacted. A
    /// segment's size before the compaction counts.
    pub fn join_before(&mut self, end: i64, limits: SegmentLimits) {
        let mut joined: VecDeque<Segment> = VecDeque::with_capacity(self.all.len());
        for segment in std::mem::take(&mut self.all) {
            match joined.back_mut() {
                Some(last) if segment.base_offset < end && last.bytes + segment.bytes <= limits.bytes => {
                    last.bytes += segment.bytes;
                    last.modified_ms = last.modified_ms.max(segment.modified_ms);
                }
                _ => joined.push_back(segment),
            }
        }
        self.all = joined;
    }

    /// Returns the segments.
    #[cfg(test)]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.all.iter()
    }

    /// Returns the closed segments.
    pub fn closed(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.all.range(..self.all.len().saturating_sub(1))
    }

    /// Returns each segment with the offset at which it ends.
    pub fn with_ends(&self, end_offset: i64) -> impl Iterator<Item = (&Segment, i64)> {
        let ends = self.all.iter().skip(1).map(|next| next.base_offset);
        self.all.iter().zip(ends.chain(std::iter::once(end_offset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SegmentLimits = SegmentLimits { bytes: 300, millis: 1000 };

    /// Appends batches of one record and 100 bytes with these timestamps.
    fn segments(timestamps: &[i64]) -> Segments {
        let mut segments = Segments::default();
        for (offset, timestamp) in (0..).zip(timestamps) {
            let batch = BatchSize { bytes: 100, max_timestamp: *timestamp };
            segments.make_room(LIMITS, batch, offset, 5000 + offset);
            segments.add(offset, batch);
        }
        segments
    }

    fn bases(segments: &Segments) -> Vec<i64> {
        segments.iter().map(|segment| segment.base_offset).collect()
    }

    #[test]
    fn segment_ends_when_the_next_batch_does_not_fit() {
        let segments = segments(&[10, 10, 10, 10, 10, 10, 10]);
        assert_eq!(bases(&segments), [0, 3, 6]);
        assert_eq!(segments.iter().map(|segment| segment.bytes).collect::<Vec<_>>(), [300, 300, 100]);
        let ends: Vec<_> = segments.with_ends(7).map(|(segment, end)| (segment.base_offset, end)).collect();
        assert_eq!(ends, [(0, 3), (3, 6), (6, 7)]);
    }

    #[test]
    fn segment_ends_when_timestamps_pass_segment_ms() {
        assert_eq!(bases(&segments(&[10, 1010, 1011])), [0, 2], "1000 ms after the first batch is not more");
        assert_eq!(bases(&segments(&[2000, 10, 3000])), [0], "an older record does not end a segment");
    }

    #[test]
    fn records_without_timestamps_count_by_the_time_of_their_append() {
        let segments = segments(&[-1, -1]);
        assert_eq!(segments.iter().map(Segment::newest_ms).collect::<Vec<_>>(), [5001]);
    }

    #[test]
    fn large_batch_has_a_segment_of_its_own() {
        let mut segments = segments(&[10]);
        let large = BatchSize { bytes: 1000, max_timestamp: 10 };
        segments.make_room(LIMITS, large, 1, 0);
        segments.add(1, large);
        assert_eq!(bases(&segments), [0, 1]);
        segments.roll(2);
        segments.roll(2);
        assert_eq!(bases(&segments), [0, 1, 2], "an empty segment is not closed");
    }

    #[test]
    fn small_neighbours_are_joined_up_to_the_limit() {
        let mut segments = segments(&[10, 2000, 4000, 6000, 8000]);
        assert_eq!(bases(&segments), [0, 1, 2, 3, 4]);
        segments.join_before(4, LIMITS);
        assert_eq!(bases(&segments), [0, 3, 4]);
        segments.recount((0..5).map(|offset| (offset, BatchSize { bytes: 10, max_timestamp: offset })));
        let counted = segments.iter().map(|segment| (segment.bytes, segment.newest_ms()));
        assert_eq!(counted.collect::<Vec<_>>(), [(30, 2), (10, 3), (10, 4)]);
    }

    #[test]
    fn front_and_end_are_cut_off_with_their_segments() {
        let mut segments = segments(&[10, 2000, 4000]);
        segments.drop_front(100, 1);
        assert_eq!(bases(&segments), [1, 2]);
        segments.truncate(1);
        assert_eq!(bases(&segments), [1]);
        segments.drop_front(100, 2);
        assert_eq!(bases(&segments), [2], "the active segment begins anew");
    }
}
