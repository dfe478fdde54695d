//! Bytes on their way in, cut into frames.

use bytes::BytesMut;

/// What one connection received and what has not been handled yet.
///
/// Small frames are read together into one buffer that is used again; a frame that does not fit into it gets a buffer of
/// its own, of exactly its size, so that record batches can stay in it without being copied.
#[derive(Debug)]
pub(crate) struct Inbox {
    small: Vec<u8>,
    start: usize,
    end: usize,
    large: Option<Large>,
    /// A buffer of an earlier large frame whose bytes nobody kept.
    spare: BytesMut,
}

#[derive(Debug)]
struct Large {
    bytes: BytesMut,
    length: usize,
    filled: usize,
}

/// One request's bytes, without the length prefix.
#[derive(Debug)]
pub(crate) enum FrameBytes<'a> {
    /// Only for as long as the request is handled; the bytes may be changed in place.
    Borrowed(&'a mut [u8]),
    /// The request's own buffer, which may be longer than the request; what is kept of it isn't copied.
    Owned(BytesMut, usize),
}

/// The frame's length is not one that this cluster takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLength(pub i32);

const SMALL: usize = 64 * 1024;

impl Inbox {
    pub fn new() -> Self {
        Self { small: Vec::new(), start: 0, end: 0, large: None, spare: BytesMut::new() }
    }

    /// Where the next bytes are to be read to; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if let Some(large) = &mut self.large
            && large.filled < large.length
        {
            return &mut large.bytes[large.filled..large.length];
        }
        if self.small.is_empty() {
            self.small = vec![0; SMALL];
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.small.len() {
            self.small.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end == self.small.len() {
                // Frames pile up behind one that waits for its answer.
                self.small.resize(self.end * 2, 0);
            }
        }
        &mut self.small[self.end..]
    }

    /// The first `n` bytes of [`space`](Self::space) are filled.
    pub fn filled(&mut self, n: usize) {
        match &mut self.large {
            Some(large) if large.filled < large.length => large.filled += n,
            _ => self.end += n,
        }
    }

    /// A whole frame or more is waiting.
    pub fn has_frame(&self) -> bool {
        match &self.large {
            Some(large) => large.filled == large.length,
            None => self.small_length().is_some_and(|length| {
                usize::try_from(length).map_or(true, |length| self.end - self.start >= 4 + length)
            }),
        }
    }

    /// The next whole frame, if there is one. Give an owned one back with [`recycle`](Self::recycle) if it was not kept.
    pub fn next_frame(&mut self, max_length: usize) -> Result<Option<FrameBytes<'_>>, BadLength> {
        if let Some(large) = &self.large {
            if large.filled < large.length {
                return Ok(None);
            }
            let large = self.large.take().expect("it was just looked at");
            return Ok(Some(FrameBytes::Owned(large.bytes, large.length)));
        }
        let Some(length) = self.small_length() else { return Ok(None) };
        let wanted = match usize::try_from(length) {
            Ok(wanted) if wanted <= max_length => wanted,
            _ => return Err(BadLength(length)),
        };
        let here = self.end - self.start - 4;
        if here >= wanted {
            let start = self.start + 4;
            self.start = start + wanted;
            return Ok(Some(FrameBytes::Borrowed(&mut self.small[start..start + wanted])));
        }
        if wanted + 4 > SMALL {
            let mut bytes = std::mem::take(&mut self.spare);
            // Not one that is much too large either: records that are kept would keep all of it.
            if bytes.len() < wanted || bytes.len() / 4 > wanted {
                bytes = BytesMut::zeroed(wanted);
            }
            bytes[..here].copy_from_slice(&self.small[self.start + 4..self.end]);
            (self.start, self.end) = (0, 0);
            self.large = Some(Large { bytes, length: wanted, filled: here });
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

impl FrameBytes<'_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes, length) => &bytes[..*length],
        }
    }

    /// The buffer, if there is one of its own, to be used again.
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
            while let Some(frame) = inbox.next_frame(1 << 20).unwrap() {
                frames.push(frame.as_slice().to_vec());
            }
        }
        frames
    }

    #[test]
    fn frames_come_out_whole_however_they_are_cut() {
        let sizes = [0, 1, 5, 100, SMALL - 4, SMALL - 3, SMALL, 300_000, 7, 200_000, 0];
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
    fn negative_and_too_large_lengths_are_refused_before_anything_is_allocated() {
        for length in [-1, i32::MIN, (1 << 20) + 1, i32::MAX] {
            let mut inbox = Inbox::new();
            inbox.space()[..4].copy_from_slice(&length.to_be_bytes());
            inbox.filled(4);
            assert_eq!(inbox.next_frame(1 << 20).unwrap_err(), BadLength(length));
        }
    }

    #[test]
    fn frames_behind_a_waiting_one_pile_up_without_being_lost() {
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
