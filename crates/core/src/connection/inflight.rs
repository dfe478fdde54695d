//! Requests that were handed to a connection and have no response yet, in the order in which they were sent.
//!
//! # Pitfalls
//!
//! - The time-out of a response starts with the last byte of its request, not when the request was queued: a slow link
//!   would time out while it writes (`response_timeout_starts_at_last_byte_and_stalled_peer_is_noticed`).

use std::{any::Any, collections::VecDeque, fmt, io::IoSlice, time::Duration};

use ottla_protocol::api::ApiKey;

use crate::machine::{Instant, earliest};

/// A request in flight.
#[derive(Debug)]
pub struct InFlight {
    /// Matches the response to the request.
    pub correlation_id: i32,
    /// The API.
    pub api: ApiKey,
    /// The version of the request and of its response.
    pub version: i16,
    /// The owner of the request.
    pub tag: RequestTag,
    /// The bytes, kept until the request is complete.
    pub payload: Payload,
    /// False for a ProduceRequest with `acks=0`, which is complete once it is written.
    pub expects_response: bool,
    /// When it was handed to the connection.
    pub queued_at: Instant,
    /// When its last byte was written; the response timeout starts then.
    pub written_at: Instant,
    /// The time the broker has to respond after the last byte, and to accept a further byte before that.
    pub timeout: Duration,
}

impl InFlight {
    /// Returns true if the request is completely written and its response is overdue.
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.written_at + self.timeout <= now
    }
}

/// The owner of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTag {
    /// The connection itself: an ApiVersions request.
    Versions,
    /// The connection itself: a request of an authentication.
    Sasl,
    /// The cluster actor; the number is its token.
    Cluster(u64),
    /// The sender of this broker actor.
    Produce,
    /// The fetcher of this broker actor.
    Fetch,
    /// The share half of this broker actor.
    Share,
    /// No owner any more: the request has timed out, and its response is dropped.
    GivenUp,
}

/// A request's frame, including the length prefix.
#[derive(Debug)]
pub enum Payload {
    /// A frame in one buffer.
    Bytes(Vec<u8>),
    /// A frame in several buffers.
    Segments(Box<dyn SegmentedFrame>),
}

/// A frame in several buffers, which are written where they are. Its owner takes it back with [`Payload::frame_mut`].
pub trait SegmentedFrame: Any + fmt::Debug + Send {
    /// Returns the frame's length in bytes, including the length prefix.
    fn byte_len(&self) -> usize;

    /// Returns the number of messages in the frame.
    fn messages(&self) -> usize;

    /// Fills `slices` with the bytes after `cursor` and returns the number of slices filled.
    fn fill<'a>(&'a self, cursor: WriteCursor, slices: &mut [IoSlice<'a>]) -> usize;

    /// Moves `cursor` by up to `n` bytes. Returns the number of bytes left over if it reaches the end of the frame.
    fn advance(&self, cursor: &mut WriteCursor, n: usize) -> Option<usize>;
}

/// A position in a frame: the bytes before it are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCursor {
    /// The index of the frame's part.
    pub part: usize,
    /// The index of the segment in the part.
    pub segment: usize,
    /// The number of bytes of the segment that are written.
    pub offset: usize,
}

/// The FIFO of requests in flight, with the position up to which they are written.
#[derive(Debug, Default)]
pub struct InFlights {
    queue: VecDeque<InFlight>,
    /// `queue[..written]` are completely written.
    written: usize,
    cursor: WriteCursor,
    unsent_bytes: usize,
    /// When the peer last accepted bytes, or when new bytes were queued for it.
    progress_at: Instant,
    /// The earliest deadline of the written requests.
    earliest_deadline: Option<Instant>,
    /// The peer throttles the client: it neither reads nor responds before this time.
    held_until: Instant,
}

/// A request that timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The API.
    pub api: ApiKey,
    /// The time of the last progress.
    pub since: Instant,
    /// True if the request is not completely written: the peer accepts no bytes.
    pub unsent: bool,
}

impl Payload {
    /// Returns the frame's length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Segments(frame) => frame.byte_len(),
        }
    }

    /// Returns the number of messages in the frame.
    pub fn messages(&self) -> usize {
        match self {
            Self::Bytes(_) => 0,
            Self::Segments(frame) => frame.messages(),
        }
    }

    /// Returns true if the frame has no bytes, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the frame if it is one of this type.
    pub fn frame_mut<F: SegmentedFrame>(&mut self) -> Option<&mut F> {
        let Self::Segments(frame) = self else { return None };
        let frame: &mut dyn Any = &mut **frame;
        frame.downcast_mut()
    }

    fn fill<'a>(&'a self, cursor: WriteCursor, slices: &mut [IoSlice<'a>]) -> usize {
        match self {
            Self::Bytes(bytes) => {
                slices[0] = IoSlice::new(&bytes[cursor.offset..]);
                1
            }
            Self::Segments(frame) => frame.fill(cursor, slices),
        }
    }

    /// Moves the cursor by up to `n` bytes. Returns the number of bytes left over if it reaches the end of the frame.
    fn advance(&self, cursor: &mut WriteCursor, n: usize) -> Option<usize> {
        match self {
            Self::Bytes(bytes) => {
                let left = bytes.len() - cursor.offset;
                cursor.offset += n.min(left);
                (n >= left).then(|| n - left)
            }
            Self::Segments(frame) => frame.advance(cursor, n),
        }
    }
}

impl InFlights {
    /// Appends a request to be written.
    pub fn push(&mut self, request: InFlight) {
        if self.unsent_bytes == 0 {
            self.progress_at = request.queued_at;
        }
        self.unsent_bytes += request.payload.len();
        self.queue.push_back(request);
    }

    /// Returns the number of bytes that are not handed to the socket yet.
    pub const fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Returns the number of requests in flight.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns true if no request is in flight.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns when the first request times out.
    pub fn earliest_deadline(&self) -> Option<Instant> {
        let stall =
            self.queue.get(self.written).map(|request| self.counts_from(self.progress_at) + request.timeout);
        earliest(self.earliest_deadline, stall)
    }

    /// Returns the first request that has timed out by now.
    pub fn overdue(&self, now: Instant) -> Option<Overdue> {
        let is_overdue = |request: &&InFlight| self.counts_from(request.written_at) + request.timeout <= now;
        if let Some(request) = self.queue.range(..self.written).filter(is_awaited).find(is_overdue) {
            return Some(Overdue { api: request.api, since: request.written_at, unsent: false });
        }
        let request = self.queue.get(self.written)?;
        (self.counts_from(self.progress_at) + request.timeout <= now).then_some(Overdue {
            api: request.api,
            since: self.progress_at,
            unsent: true,
        })
    }

    /// Gives up the oldest completely written request that has timed out by now: its response will be dropped. Returns the
    /// request.
    pub fn give_up_overdue(&mut self, now: Instant) -> Option<InFlight> {
        let held_until = self.held_until;
        let is_overdue = |request: &&mut InFlight| {
            request.tag != RequestTag::GivenUp && request.written_at.max(held_until) + request.timeout <= now
        };
        let request = self.queue.range_mut(..self.written).find(is_overdue)?;
        let placeholder =
            InFlight { tag: RequestTag::GivenUp, payload: Payload::Bytes(Vec::new()), ..*request };
        let given_up = std::mem::replace(request, placeholder);
        self.find_earliest_deadline();
        Some(given_up)
    }

    /// Extends the timeouts: the peer neither reads nor responds before `until`.
    pub fn throttle(&mut self, until: Instant) {
        self.held_until = self.held_until.max(until);
        self.find_earliest_deadline();
    }

    /// Returns the time after which the last request in flight times out at the latest, if the peer takes its bytes now.
    pub fn longest_wait(&self, now: Instant) -> Duration {
        let deadline = |(index, request): (usize, &InFlight)| {
            let written_at = if index < self.written { request.written_at } else { now };
            self.counts_from(written_at) + request.timeout
        };
        let awaited = self.queue.iter().enumerate().filter(|(_, request)| is_awaited(request));
        let latest = awaited.map(deadline).max();
        latest.map_or(Duration::ZERO, |latest| latest.saturating_since(now))
    }

    /// Returns all requests, oldest first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut InFlight> {
        self.queue.iter_mut()
    }

    /// Returns the completely written requests, oldest first: only their responses are missing.
    pub fn written_mut(&mut self) -> impl Iterator<Item = &mut InFlight> {
        self.queue.range_mut(..self.written)
    }

    /// Returns the oldest request.
    pub fn front(&self) -> Option<&InFlight> {
        self.queue.front()
    }

    /// Fills `slices` with the bytes to write next and returns the number of slices filled.
    pub fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut cursor = self.cursor;
        for request in self.queue.range(self.written..) {
            if filled == slices.len() {
                break;
            }
            filled += request.payload.fill(cursor, &mut slices[filled..]);
            cursor = WriteCursor::default();
        }
        filled
    }

    /// Accepts that the socket took `n` bytes; moves completely written requests that expect no response to `over`.
    pub fn advance(&mut self, now: Instant, mut n: usize, over: &mut Vec<InFlight>) {
        self.unsent_bytes -= n.min(self.unsent_bytes);
        if n > 0 {
            self.progress_at = now;
        }
        while let Some(request) = self.queue.get_mut(self.written) {
            let Some(left_over) = request.payload.advance(&mut self.cursor, n) else { return };
            n = left_over;
            self.cursor = WriteCursor::default();
            if request.expects_response {
                request.written_at = now;
                let deadline = now.max(self.held_until) + request.timeout;
                self.earliest_deadline = earliest(self.earliest_deadline, Some(deadline));
                self.written += 1;
            } else if let Some(request) = self.queue.remove(self.written) {
                over.push(request);
            }
            if n == 0 {
                return;
            }
        }
    }

    /// Returns the number of completely written requests that wait for a response.
    pub const fn written(&self) -> usize {
        self.written
    }

    /// Returns all requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.queue.iter()
    }

    /// Removes the oldest request, whose response arrived, if it is completely written.
    pub fn pop_written(&mut self) -> Option<InFlight> {
        if self.written == 0 {
            return None;
        }
        self.written -= 1;
        let request = self.queue.pop_front();
        self.find_earliest_deadline();
        request
    }

    /// Removes all requests because the connection is lost. Each comes with whether any of its bytes may have been
    /// sent.
    pub fn drain(&mut self) -> Vec<(InFlight, bool)> {
        let written = self.written + usize::from(self.cursor != WriteCursor::default());
        self.written = 0;
        self.cursor = WriteCursor::default();
        self.unsent_bytes = 0;
        self.earliest_deadline = None;
        self.held_until = Instant::ZERO;
        self.queue.drain(..).enumerate().map(|(index, request)| (request, index < written)).collect()
    }

    fn find_earliest_deadline(&mut self) {
        let written = self.queue.range(..self.written).filter(is_awaited);
        self.earliest_deadline =
            written.map(|request| self.counts_from(request.written_at) + request.timeout).min();
    }

    /// Returns the start of a timeout, which does not run while the peer throttles.
    fn counts_from(&self, at: Instant) -> Instant {
        at.max(self.held_until)
    }
}

/// Returns true if the request still has an owner that waits for the response.
fn is_awaited(request: &&InFlight) -> bool {
    request.tag != RequestTag::GivenUp
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(correlation_id: i32, len: usize, expects_response: bool) -> InFlight {
        InFlight {
            correlation_id,
            api: ApiKey::Metadata,
            version: 0,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(vec![correlation_id as u8; len]),
            expects_response,
            queued_at: Instant::ZERO,
            written_at: Instant::ZERO,
            timeout: Duration::from_secs(60),
        }
    }

    #[test]
    fn writing_resumes_at_any_byte() {
        let mut requests = InFlights::default();
        for id in 1..=3 {
            requests.push(request(id, 10, true));
        }
        let mut written = Vec::new();
        while requests.unsent_bytes() > 0 {
            let mut slices = [IoSlice::new(&[]); 2];
            let filled = requests.fill(&mut slices);
            let bytes: Vec<u8> =
                slices[..filled].iter().flat_map(|slice| slice.iter().copied()).take(7).collect();
            requests.advance(Instant::ZERO, bytes.len(), &mut Vec::new());
            written.extend(bytes);
        }
        assert_eq!(written, [[1; 10], [2; 10], [3; 10]].concat());
        assert_eq!(requests.pop_written().map(|request| request.correlation_id), Some(1));
    }

    #[test]
    fn response_timeout_starts_at_last_byte_and_stalled_peer_is_noticed() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut requests = InFlights::default();
        requests.push(request(1, 10, true));
        requests.push(request(2, 10, true));
        // On a slow link, a byte every 30 s keeps a request from timing out.
        for byte in 1..=9 {
            assert_eq!(requests.overdue(at(30 * byte)), None);
            requests.advance(at(30 * byte), 1, &mut Vec::new());
        }
        assert_eq!(requests.earliest_deadline(), Some(at(270 + 60)));
        requests.advance(at(300), 1, &mut Vec::new());
        assert_eq!(requests.overdue(at(359)), None);
        let (api, unsent) = (ApiKey::Metadata, false);
        assert_eq!(requests.overdue(at(360)), Some(Overdue { api, since: at(300), unsent }));
        assert_eq!(requests.pop_written().map(|request| request.correlation_id), Some(1));
        // The second one waits for the peer to take a byte, since the last one that it took.
        assert_eq!(requests.earliest_deadline(), Some(at(360)));
        assert_eq!(requests.overdue(at(360)), Some(Overdue { api, since: at(300), unsent: true }));
        requests.advance(at(361), 10, &mut Vec::new());
        assert_eq!(requests.earliest_deadline(), Some(at(421)));
    }

    #[test]
    fn request_without_response_completes_when_written() {
        let mut requests = InFlights::default();
        requests.push(request(1, 10, true));
        requests.push(request(2, 10, false));
        requests.push(request(3, 10, true));
        let mut over = Vec::new();
        requests.advance(Instant::ZERO, 15, &mut over);
        assert!(over.is_empty());
        requests.advance(Instant::ZERO, 6, &mut over);
        assert_eq!(over.iter().map(|request| request.correlation_id).collect::<Vec<_>>(), [2]);
        let left: Vec<_> = requests.drain().into_iter().map(|(r, sent)| (r.correlation_id, sent)).collect();
        assert_eq!(left, [(1, true), (3, true)], "one byte of the third may have left");
    }
}
