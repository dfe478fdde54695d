//! Requests that were handed to a connection and are not answered yet, in the order in which they were sent.

use std::{collections::VecDeque, io::IoSlice, time::Duration};

use ottla_protocol::api::ApiKey;

use crate::{
    machine::{Instant, earliest},
    produce::request::ProduceFrame,
};

/// One request on its way.
#[derive(Debug)]
pub struct InFlight {
    /// Matches the answer to the request.
    pub correlation_id: i32,
    /// The API.
    pub api: ApiKey,
    /// The version in which the request was encoded and in which the answer will come.
    pub version: i16,
    /// Who asked.
    pub tag: RequestTag,
    /// The bytes, kept until the request is over.
    pub payload: Payload,
    /// False for a ProduceRequest with `acks=0`, which is over once it is written.
    pub expects_answer: bool,
    /// When it was handed to the connection.
    pub queued_at: Instant,
    /// When its last byte was written, from where the answer's time counts.
    pub written_at: Instant,
    /// How long the broker may take to answer once the request is written, and to take a byte of it before.
    pub timeout: Duration,
}

impl InFlight {
    /// True if the answer to the request, which is wholly written, should be here by now.
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.written_at + self.timeout <= now
    }
}

/// Who asked for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTag {
    /// The connection itself, to learn the broker's versions.
    Versions,
    /// The cluster's owner; the number is its own.
    Cluster(u64),
    /// This broker's collector.
    Produce,
    /// This broker's fetch session.
    Fetch,
}

/// A request's frame, length prefix included.
#[derive(Debug)]
pub enum Payload {
    /// A frame in one piece.
    Bytes(Vec<u8>),
    /// A ProduceRequest: pieces of scratch between batches that are not copied.
    Produce(Box<ProduceFrame>),
}

/// A place in a frame: how much of it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCursor {
    /// Which part of the frame.
    pub part: usize,
    /// Which segment of the part.
    pub segment: usize,
    /// How many bytes of the segment are written.
    pub offset: usize,
}

/// The FIFO of requests in flight with the place up to which they are written.
#[derive(Debug, Default)]
pub struct InFlights {
    queue: VecDeque<InFlight>,
    /// `queue[..written]` are wholly written.
    written: usize,
    cursor: WriteCursor,
    unsent_bytes: usize,
    /// When the peer last took bytes, or when there were bytes for it again.
    progress_at: Instant,
    /// Of the requests that are written.
    earliest_deadline: Option<Instant>,
    /// The peer said that it reads and answers nothing before then.
    held_until: Instant,
}

/// A request that ran out of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The API.
    pub api: ApiKey,
    /// Since when nothing happened.
    pub since: Instant,
    /// It is not even written: the peer takes no bytes.
    pub unsent: bool,
}

impl Payload {
    /// The frame's length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Produce(frame) => frame.len(),
        }
    }

    /// The messages in it.
    pub fn messages(&self) -> usize {
        match self {
            Self::Bytes(_) => 0,
            Self::Produce(frame) => {
                frame.batches.iter().map(|batch| batch.batch.sealed.record_count() as usize).sum()
            }
        }
    }

    /// True if there is nothing to send, which does not happen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn fill<'a>(&'a self, cursor: WriteCursor, slices: &mut [IoSlice<'a>]) -> usize {
        match self {
            Self::Bytes(bytes) => {
                slices[0] = IoSlice::new(&bytes[cursor.offset..]);
                1
            }
            Self::Produce(frame) => frame.fill(cursor, slices),
        }
    }

    /// Moves the cursor by up to `n` bytes; answers how many were left over when the frame's end was reached.
    fn advance(&self, cursor: &mut WriteCursor, n: usize) -> Option<usize> {
        match self {
            Self::Bytes(bytes) => {
                let left = bytes.len() - cursor.offset;
                cursor.offset += n.min(left);
                (n >= left).then(|| n - left)
            }
            Self::Produce(frame) => frame.advance(cursor, n),
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

    /// Bytes that are not handed to the socket yet.
    pub const fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Requests that are not over.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True if nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// When the first request runs out of time.
    pub fn earliest_deadline(&self) -> Option<Instant> {
        let stall =
            self.queue.get(self.written).map(|request| self.counts_from(self.progress_at) + request.timeout);
        earliest(self.earliest_deadline, stall)
    }

    /// The first request that ran out of time by now.
    pub fn overdue(&self, now: Instant) -> Option<Overdue> {
        let is_overdue = |request: &&InFlight| self.counts_from(request.written_at) + request.timeout <= now;
        if let Some(request) = self.queue.range(..self.written).find(is_overdue) {
            return Some(Overdue { api: request.api, since: request.written_at, unsent: false });
        }
        let request = self.queue.get(self.written)?;
        (self.counts_from(self.progress_at) + request.timeout <= now).then_some(Overdue {
            api: request.api,
            since: self.progress_at,
            unsent: true,
        })
    }

    /// The peer reads and answers nothing before then.
    pub fn hold_back(&mut self, until: Instant) {
        self.held_until = self.held_until.max(until);
        self.find_earliest_deadline();
    }

    /// All requests, oldest first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut InFlight> {
        self.queue.iter_mut()
    }

    /// The requests that are wholly written, oldest first: only their answers are missing.
    pub fn written_mut(&mut self) -> impl Iterator<Item = &mut InFlight> {
        self.queue.range_mut(..self.written)
    }

    /// The oldest request.
    pub fn front(&self) -> Option<&InFlight> {
        self.queue.front()
    }

    /// Fills `slices` with what is to be written next; answers how many it filled.
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

    /// The socket took `n` bytes. Requests that expect no answer and are wholly written are handed out.
    pub fn advance(&mut self, now: Instant, mut n: usize, over: &mut Vec<InFlight>) {
        self.unsent_bytes -= n.min(self.unsent_bytes);
        if n > 0 {
            self.progress_at = now;
        }
        while let Some(request) = self.queue.get_mut(self.written) {
            let Some(left_over) = request.payload.advance(&mut self.cursor, n) else { return };
            n = left_over;
            self.cursor = WriteCursor::default();
            if request.expects_answer {
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

    /// How many requests are wholly written and wait for their answer.
    pub const fn written(&self) -> usize {
        self.written
    }

    /// All requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.queue.iter()
    }

    /// Takes the oldest request if it is wholly written: an answer came.
    pub fn pop_written(&mut self) -> Option<InFlight> {
        if self.written == 0 {
            return None;
        }
        self.written -= 1;
        let request = self.queue.pop_front();
        self.find_earliest_deadline();
        request
    }

    /// Takes everything: the connection is gone. Each request comes with whether any of its bytes may have left.
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
        let written = self.queue.range(..self.written);
        self.earliest_deadline =
            written.map(|request| self.counts_from(request.written_at) + request.timeout).min();
    }

    /// A peer that holds back is not waited for meanwhile.
    fn counts_from(&self, at: Instant) -> Instant {
        at.max(self.held_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(correlation_id: i32, len: usize, expects_answer: bool) -> InFlight {
        InFlight {
            correlation_id,
            api: ApiKey::Metadata,
            version: 0,
            tag: RequestTag::Cluster(0),
            payload: Payload::Bytes(vec![correlation_id as u8; len]),
            expects_answer,
            queued_at: Instant::ZERO,
            written_at: Instant::ZERO,
            timeout: Duration::from_secs(60),
        }
    }

    #[test]
    fn writing_stops_and_goes_on_at_any_byte() {
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
    fn the_answers_time_counts_from_the_last_byte_written_and_a_stalled_peer_is_noticed() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut requests = InFlights::default();
        requests.push(request(1, 10, true));
        requests.push(request(2, 10, true));
        // A slow link: a byte every 30 s. As long as it moves nobody is late.
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
    fn a_request_without_an_answer_is_over_when_it_is_written() {
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
