//! Cuts the incoming byte stream into response frames.
//!
//! ```text
//!   socket ──► staging (64 KiB) ──► small frames
//!                   │
//!                   └── start of a large frame ──► a buffer of its own, into which the rest is read directly
//! ```
//!
//! The length prefix is not trusted: a large frame's buffer grows with the bytes that arrive, at most doubling.
//!
//! # Pitfalls
//!
//! - The announced length of a frame allocates nothing; the buffer grows with the bytes that arrive
//!   (`announced_length_allocates_nothing`).
//! - The reader recognises an HTTP or TLS server by its first bytes, and the error names it
//!   (`http_tls_and_absurd_lengths_are_distinguished`).

use std::fmt;

use super::buffer::BufferPool;

/// Assembles frames: a four-byte length, then that many bytes.
pub struct FrameReader {
    staging: Vec<u8>,
    start: usize,
    end: usize,
    large: Option<LargeFrame>,
    max_frame_bytes: usize,
    buffers: BufferPool,
}

/// A frame that does not fit into the staging buffer.
struct LargeFrame {
    buffer: Vec<u8>,
    filled: usize,
    total: usize,
}

/// One complete frame, without its length: `bytes[..len]`. The vector may be longer than the frame.
#[derive(Debug)]
pub struct Frame {
    /// The buffer that holds the frame.
    pub bytes: Vec<u8>,
    /// The number of bytes that belong to the frame.
    pub len: usize,
}

/// The reason why the byte stream is not a sequence of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The length is negative.
    Negative(i32),
    /// The length is above `receive.message.max.bytes`.
    TooLarge {
        /// The length that the peer announced.
        announced: usize,
        /// The limit.
        limit: usize,
    },
    /// The peer responded with HTTP.
    Http,
    /// The peer responded with a TLS record.
    Tls,
}

const STAGING_BYTES: usize = 64 * 1024;

impl FrameReader {
    /// Creates a reader that accepts frames of up to `max_frame_bytes`.
    pub fn new(max_frame_bytes: usize, buffers: BufferPool) -> Self {
        Self { staging: Vec::new(), start: 0, end: 0, large: None, max_frame_bytes, buffers }
    }

    /// Discards all bytes, for a new connection.
    pub fn reset(&mut self) {
        self.start = 0;
        self.end = 0;
        if let Some(large) = self.large.take() {
            self.buffers.put(large.buffer);
        }
    }

    /// Returns the buffer for the next bytes. It is never empty.
    pub fn space(&mut self) -> &mut [u8] {
        match &mut self.large {
            Some(large) => {
                if large.filled == large.buffer.len() {
                    let next = (large.filled * 2).clamp(STAGING_BYTES, large.total.max(STAGING_BYTES));
                    large.buffer.resize(next, 0);
                }
                let end = large.buffer.len().min(large.total);
                &mut large.buffer[large.filled..end]
            }
            None => {
                if self.staging.is_empty() {
                    self.staging.resize(STAGING_BYTES, 0);
                }
                if self.start == self.end {
                    self.start = 0;
                    self.end = 0;
                } else if self.end == self.staging.len() {
                    self.staging.copy_within(self.start..self.end, 0);
                    self.end -= self.start;
                    self.start = 0;
                }
                &mut self.staging[self.end..]
            }
        }
    }

    /// Accepts `n` bytes that the driver read into [`FrameReader::space`].
    pub fn filled(&mut self, n: usize) {
        match &mut self.large {
            Some(large) => large.filled += n,
            None => self.end += n,
        }
    }

    /// Returns the next complete frame.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(large) = &self.large {
            if large.filled < large.total {
                return Ok(None);
            }
            let large = self.large.take().expect("was just there");
            return Ok(Some(Frame { bytes: large.buffer, len: large.total }));
        }
        let available = &self.staging[self.start..self.end];
        let Some(prefix) = available.first_chunk::<4>() else { return Ok(None) };
        let total = self.check_length(*prefix)?;
        let body = &available[4..];
        if body.len() >= total {
            let frame = Frame { bytes: body[..total].to_vec(), len: total };
            self.start += 4 + total;
            return Ok(Some(frame));
        }
        if 4 + total > self.staging.len() {
            let mut buffer = self.buffers.take();
            if buffer.len() < body.len() {
                buffer.resize(STAGING_BYTES.max(body.len()).min(total), 0);
            }
            buffer[..body.len()].copy_from_slice(body);
            self.large = Some(LargeFrame { filled: body.len(), buffer, total });
            self.start = 0;
            self.end = 0;
        }
        Ok(None)
    }

    fn check_length(&self, prefix: [u8; 4]) -> Result<usize, FrameError> {
        let length = i32::from_be_bytes(prefix);
        let total = usize::try_from(length).map_err(|_| FrameError::Negative(length))?;
        if total <= self.max_frame_bytes {
            return Ok(total);
        }
        Err(match prefix {
            [b'H', b'T', b'T', b'P'] => FrameError::Http,
            [0x14..=0x17, 3, 0..=4, _] => FrameError::Tls,
            _ => FrameError::TooLarge { announced: total, limit: self.max_frame_bytes },
        })
    }
}

impl fmt::Debug for FrameReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameReader")
            .field("staged", &(self.end - self.start))
            .field("large", &self.large.as_ref().map(|large| (large.filled, large.total)))
            .finish()
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negative(length) => write!(f, "the frame's length is {length}"),
            Self::TooLarge { announced, limit } => write!(
                f,
                "the frame's length is {announced} bytes, more than receive.message.max.bytes={limit}; \
                 not a Kafka broker, or the limit is too small"
            ),
            Self::Http => f.write_str("the peer responds in HTTP: this is not a Kafka listener"),
            Self::Tls => f.write_str("the peer responds in TLS: the listener wants security.protocol=ssl"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> FrameReader {
        FrameReader::new(1_000_000, BufferPool::default())
    }

    fn feed(reader: &mut FrameReader, mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let space = reader.space();
            let n = space.len().min(bytes.len());
            space[..n].copy_from_slice(&bytes[..n]);
            reader.filled(n);
            bytes = &bytes[n..];
            while let Some(frame) = reader.next_frame().unwrap() {
                frames.push(frame.bytes[..frame.len].to_vec());
            }
        }
        frames
    }

    fn framed(body: &[u8]) -> Vec<u8> {
        let mut bytes = (body.len() as i32).to_be_bytes().to_vec();
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn frames_of_every_size_survive_being_cut_anywhere() {
        let bodies: Vec<Vec<u8>> =
            [0, 1, 4, 1000, 65_532, 65_533, 300_000, 7].iter().map(|n| vec![*n as u8; *n as usize]).collect();
        let stream: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
        for step in [1, 3, 1000, 65_536, stream.len()] {
            let mut reader = reader();
            let frames: Vec<Vec<u8>> =
                stream.chunks(step).flat_map(|piece| feed(&mut reader, piece)).collect();
            assert_eq!(frames, bodies, "step {step}");
        }
    }

    #[test]
    fn announced_length_allocates_nothing() {
        let mut reader = reader();
        assert!(feed(&mut reader, &999_999i32.to_be_bytes()).is_empty());
        assert!(reader.space().len() <= STAGING_BYTES);
    }

    #[test]
    fn http_tls_and_absurd_lengths_are_distinguished() {
        for (bytes, expected) in [
            (*b"HTTP", FrameError::Http),
            ([0x15, 3, 1, 0], FrameError::Tls),
            ([0xff; 4], FrameError::Negative(-1)),
            ([0x7f, 0xff, 0xff, 0xff], FrameError::TooLarge { announced: 0x7fff_ffff, limit: 1_000_000 }),
        ] {
            let mut reader = reader();
            reader.space()[..4].copy_from_slice(&bytes);
            reader.filled(4);
            assert_eq!(reader.next_frame().unwrap_err(), expected);
        }
    }
}
