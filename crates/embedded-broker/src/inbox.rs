//! Splits received bytes into frames.

use bytes::BytesMut;

/// The received and unhandled bytes of one connection.
///
/// Small frames share one buffer that is reused. A frame that does not fit gets its own buffer, so that record batches
/// can stay in it without being copied. That buffer grows with the received bytes: an announced length reserves little.
#[derive(Debug)]
pub(crate) struct Inbox {
    small: Vec<u8>,
    start: usize,
    end: usize,
    large: Option<Large>,
    /// The buffer of an earlier large frame of which no bytes were retained.
    spare: BytesMut,
}

#[derive(Debug)]
struct Large {
    bytes: BytesMut,
    length: usize,
    filled: usize,
}

/// The bytes of one request, without the length prefix.
#[derive(Debug)]
pub(crate) enum FrameBytes<'a> {
    /// Borrowed while the request is handled; the bytes may be changed in place.
    Borrowed(&'a mut [u8]),
    /// The request's own buffer, which may be longer than the request. Retained parts of it aren't copied.
    Owned(BytesMut, usize),
}

/// Error: the frame's length is negative or above the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLength(pub i32);

const SMALL: usize = 64 * 1024;
/// The initial size of the small buffer: enough for most requests but Produce.
const FIRST_SMALL: usize = 4 * 1024;
/// The initial size of a large frame's buffer.
const FIRST_LARGE: usize = 1 << 20;

impl Inbox {
    pub fn new() -> Self {
        Self { small: Vec::new(), start: 0, end: 0, large: None, spare: BytesMut::new() }
    }

    /// Returns the buffer for the next bytes; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.large.as_ref().is_some_and(|large| large.filled < large.length) {
            return self.large.as_mut().expect("it was just looked at").space();
        }
        if self.start == self.end {
            // A read that filled all of it will likely be followed by more.
            let size = match self.small.len() {
                0 => FIRST_SMALL,
                size if size == self.end => size.max(SMALL),
                size => size,
            };
            self.small.resize(size, 0);
            (self.start, self.end) = (0, 0);
        } else if self.end == self.small.len() {
            self.small.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end == self.small.len() {
                // The frame is longer, or frames pile up behind a request that waits.
                self.small.resize(self.end * 2, 0);
            }
        }
        &mut self.small[self.end..]
    }

    /// Marks the first `n` bytes of [`space`](Self::space) as received.
    pub fn filled(&mut self, n: usize) {
        match &mut self.large {
            Some(large) if large.filled < large.length => large.filled += n,
            _ => self.end += n,
        }
    }

    /// Returns true if there is at least one whole frame.
    pub fn has_frame(&self) -> bool {
        match &self.large {
            Some(large) => large.filled == large.length,
            None => self.small_length().is_some_and(|length| {
                usize::try_from(length).map_or(true, |length| self.end - self.start >= 4 + length)
            }),
        }
    }

    /// Returns true if there are no unhandled bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end && self.large.is_none()
    }

    /// Returns true if reading should stop until some frames are handled.
    pub fn is_full(&self) -> bool {
        self.has_frame() || self.large.is_none() && self.end - self.start >= SMALL
    }

    /// Returns the size of all buffers in bytes, used or not.
    pub fn held(&self) -> usize {
        self.small.len() + self.spare.len() + self.large.as_ref().map_or(0, |large| large.bytes.len())
    }

    /// Frees the empty buffers.
    pub fn release_unused(&mut self) {
        self.spare = BytesMut::new();
        if self.start == self.end {
            self.small = Vec::new();
            (self.start, self.end) = (0, 0);
        }
    }

    /// Returns the next whole frame, if there is one. Return an owned one with [`recycle`](Self::recycle) if no part of
    /// it is retained.
    pub fn next_frame(&mut self, max_length: usize) -> Result<Option<FrameBytes<'_>>, BadLength> {
        if let Some(large) = &self.large {
            if large.filled < large.length {
                return Ok(None);
            }
            let large = self.large.take().expect("it was just looked at");
            return Ok(Some(FrameBytes::Owned(large.bytes, large.length)));
        }
        let Some(length) = self.small_length() else { return Ok(None) };
        let requested = match usize::try_from(length) {
            Ok(requested) if requested <= max_length => requested,
            _ => return Err(BadLength(length)),
        };
        let here = self.end - self.start - 4;
        if here >= requested {
            let start = self.start + 4;
            self.start = start + requested;
            return Ok(Some(FrameBytes::Borrowed(&mut self.small[start..start + requested])));
        }
        if requested + 4 > SMALL {
            let mut bytes = std::mem::take(&mut self.spare);
            // A buffer that is much too large isn't used either: retained records would keep all of it.
            if bytes.len() < requested || bytes.len() / 4 > requested {
                bytes = BytesMut::zeroed(requested.min(FIRST_LARGE).max(here));
            }
            bytes[..here].copy_from_slice(&self.small[self.start + 4..self.end]);
            (self.start, self.end) = (0, 0);
            self.large = Some(Large { bytes, length: requested, filled: here });
        }
        Ok(None)
    }

    /// Keeps the buffer of a large frame for the next one.
    pub fn recycle(&mut self, bytes: BytesMut) {
        if bytes.len() > self.spare.len() && bytes.len() <= 4 << 20 {
            self.spare = bytes;
        }
    }

    fn small_length(&self) -> Option<i32> {
        let bytes = self.small.get(self.start..self.end)?.get(..4)?;
        Some(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

impl Large {
    /// Returns the buffer for the next bytes of the frame; not empty, because the frame is incomplete.
    fn space(&mut self) -> &mut [u8] {
        if self.filled == self.bytes.len() {
            // The final size is exact: retained records keep all of it.
            let mut longer = BytesMut::zeroed(self.length.min(self.filled * 2));
            longer[..self.filled].copy_from_slice(&self.bytes);
            self.bytes = longer;
        }
        let end = self.length.min(self.bytes.len());
        &mut self.bytes[self.filled..end]
    }
}

impl FrameBytes<'_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes, length) => &bytes[..*length],
        }
    }

    /// Returns the frame's own buffer for reuse, if it has one.
    pub fn into_unused(self) -> Option<BytesMut> {
        match self {
            Self::Borrowed(_) => None,
            Self::Owned(bytes, _) => Some(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(inbox: &mut Inbox, mut bytes: &[u8], step: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let space = inbox.space();
            let n = bytes.len().min(step).min(space.len());
            space[..n].copy_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            inbox.filled(n);
            while let Some(frame) = inbox.next_frame(4 << 20).unwrap() {
                frames.push(frame.as_slice().to_vec());
            }
        }
        frames
    }

    #[test]
    fn frames_are_reassembled_from_any_split() {
        let sizes = [
            0,
            1,
            5,
            100,
            SMALL - 4,
            SMALL - 3,
            SMALL,
            300_000,
            7,
            5000,
            200_000,
            3 << 20,
            0,
            FIRST_LARGE + 1,
        ];
        let mut stream = Vec::new();
        for (i, size) in sizes.iter().enumerate() {
            stream.extend_from_slice(&i32::try_from(*size).unwrap().to_be_bytes());
            stream.extend(std::iter::repeat_n(u8::try_from(i).unwrap(), *size));
        }
        for step in [1, 3, 4, 1000, SMALL, usize::MAX] {
            let frames = feed(&mut Inbox::new(), &stream, step);
            assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), sizes, "cut every {step} bytes");
            for (i, frame) in frames.iter().enumerate() {
                assert!(frame.iter().all(|b| usize::from(*b) == i));
            }
        }
    }

    #[test]
    fn inbox_rejects_invalid_lengths_before_allocating() {
        for length in [-1, i32::MIN, (1 << 20) + 1, i32::MAX] {
            let mut inbox = Inbox::new();
            inbox.space()[..4].copy_from_slice(&length.to_be_bytes());
            inbox.filled(4);
            assert_eq!(inbox.next_frame(1 << 20).unwrap_err(), BadLength(length));
        }
    }

    #[test]
    fn announced_length_reserves_little() {
        let mut inbox = Inbox::new();
        inbox.space()[..4].copy_from_slice(&(100i32 << 20).to_be_bytes());
        inbox.filled(4);
        assert!(inbox.next_frame(100 << 20).unwrap().is_none());
        assert!(inbox.held() <= FIRST_SMALL + FIRST_LARGE);
        let mut received = 0;
        while received < 3 << 20 {
            let n = inbox.space().len();
            inbox.filled(n);
            received += n;
            assert!(inbox.held() <= FIRST_SMALL + (2 * received).max(FIRST_LARGE));
        }
        assert!(!inbox.is_empty() && !inbox.is_full());
    }

    #[test]
    fn unused_buffers_are_freed_and_used_ones_kept() {
        let mut inbox = Inbox::new();
        inbox.space()[..6].copy_from_slice(&[0, 0, 0, 1, 7, 0]);
        inbox.filled(6);
        assert!(matches!(inbox.next_frame(10), Ok(Some(_))));
        inbox.recycle(BytesMut::zeroed(1000));
        inbox.release_unused();
        assert_eq!(inbox.held(), FIRST_SMALL, "half a length is left");
        inbox.space()[..3].copy_from_slice(&[0, 0, 0]);
        inbox.filled(3);
        assert!(matches!(inbox.next_frame(10), Ok(Some(_))));
        inbox.release_unused();
        assert_eq!(inbox.held(), 0);
        assert!(inbox.is_empty() && !inbox.space().is_empty());
    }

    #[test]
    fn frames_after_a_waiting_one_are_queued() {
        let mut inbox = Inbox::new();
        let frame: Vec<u8> = [0, 0, 0, 100].into_iter().chain(std::iter::repeat_n(9, 100)).collect();
        for _ in 0..2000 {
            let mut rest = &frame[..];
            while !rest.is_empty() {
                let space = inbox.space();
                let n = rest.len().min(space.len());
                space[..n].copy_from_slice(&rest[..n]);
                inbox.filled(n);
                rest = &rest[n..];
            }
        }
        assert!(inbox.has_frame());
        let mut count = 0;
        while inbox.next_frame(1000).unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 2000);
    }
}
