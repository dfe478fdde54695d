//! The buffers of TLS connections, which an I/O thread lends to the connection that it serves.
//!
//! A connection holds a buffer only while bytes wait in it: half a record that arrived, or records that the kernel did
//! not accept. An idle connection holds none.

use std::{cell::RefCell, fmt};

/// The largest plaintext of a TLS record in bytes.
pub const RECORD_BYTES: usize = 16 * 1024;
/// The room for header, padding and tag of a record. TLS 1.3 needs 22 bytes, TLS 1.2 at most 29 with these suites; the
/// protocol permits 256 and five.
pub const OVERHEAD_BYTES: usize = 261;
/// The records that are encrypted for one write to the socket, and read at once.
const RECORDS: usize = 8;
/// The length of every pooled buffer. A handshake message has at most 64 KiB, so the buffer holds each one.
const BUFFER_BYTES: usize = RECORDS * (RECORD_BYTES + OVERHEAD_BYTES);
/// The idle buffers of a thread; further ones are freed.
const MAX_IDLE: usize = 4;

thread_local! {
    static IDLE: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A queue of bytes in a pooled buffer.
#[derive(Default)]
pub struct ByteQueue {
    /// Empty without a buffer.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl ByteQueue {
    /// Returns the queued bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the queued bytes, to decrypt them in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.start..self.end]
    }

    /// Returns true if nothing is queued.
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the free space behind the queued bytes, after moving these to the front if there is less than a record.
    pub fn space(&mut self) -> &mut [u8] {
        if self.buffer.is_empty() {
            self.buffer = take();
        }
        if self.buffer.len() - self.end < RECORD_BYTES + OVERHEAD_BYTES && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut self.buffer[self.end..]
    }

    /// Returns at least this much free space; for messages of the handshake, which may be larger than a buffer.
    pub fn space_of(&mut self, bytes: usize) -> &mut [u8] {
        if self.space().len() < bytes {
            let mut larger = self.bytes().to_vec();
            self.end -= self.start;
            self.start = 0;
            larger.resize(self.end + bytes, 0);
            self.buffer = larger.into();
        }
        &mut self.buffer[self.end..]
    }

    /// Queues the first `n` bytes of the free space.
    pub const fn filled(&mut self, n: usize) {
        self.end += n;
    }

    /// Removes the oldest `n` bytes.
    pub fn discard(&mut self, n: usize) {
        self.start = (self.start + n).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Returns an empty buffer to the thread.
    pub fn release(&mut self) {
        if self.is_empty() && !self.buffer.is_empty() {
            put(std::mem::take(&mut self.buffer));
        }
    }
}

impl fmt::Debug for ByteQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteQueue({} of {} bytes)", self.end - self.start, self.buffer.len())
    }
}

fn take() -> Box<[u8]> {
    let idle = IDLE.try_with(|idle| idle.borrow_mut().pop()).ok().flatten();
    idle.unwrap_or_else(|| vec![0; BUFFER_BYTES].into())
}

fn put(buffer: Box<[u8]>) {
    if buffer.len() != BUFFER_BYTES {
        return;
    }
    // While the thread ends, its buffers are gone, and so is this one.
    let _ = IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        if idle.len() < MAX_IDLE {
            idle.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_their_order_when_the_queue_wraps() {
        let mut queue = ByteQueue::default();
        let (mut written, mut read) = (0u32, 0u32);
        for round in 1..2000usize {
            let n = (round * 97) % 5000;
            let space = queue.space();
            let n = n.min(space.len());
            space[..n].iter_mut().for_each(|byte| {
                *byte = written as u8;
                written += 1;
            });
            queue.filled(n);
            let n = ((round * 89) % 6000).min(queue.bytes().len());
            for byte in &queue.bytes()[..n] {
                assert_eq!(*byte, read as u8);
                read += 1;
            }
            queue.discard(n);
        }
        assert!(read > 1_000_000);
    }

    #[test]
    fn empty_queue_holds_no_buffer_after_release() {
        let mut queue = ByteQueue::default();
        queue.space()[0] = 1;
        queue.filled(1);
        queue.release();
        assert_eq!(queue.bytes(), [1], "a queue with bytes keeps its buffer");
        queue.discard(1);
        queue.release();
        assert!(queue.buffer.is_empty());
    }

    #[test]
    fn large_handshake_message_gets_a_larger_buffer() {
        let mut queue = ByteQueue::default();
        queue.space()[..3].copy_from_slice(b"abc");
        queue.filled(3);
        assert!(queue.space_of(BUFFER_BYTES + 1).len() > BUFFER_BYTES);
        assert_eq!(queue.bytes(), b"abc");
    }
}
