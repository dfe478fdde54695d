//! Buffers for large responses. Reuse keeps their pages mapped and avoids zeroing.

use std::{fmt, sync::Arc};

use crate::lock::Mutex;

/// A pool of byte buffers that the connections of a client share. Cheap to clone.
#[derive(Clone)]
pub struct BufferPool {
    idle: Arc<Mutex<Vec<Vec<u8>>>>,
    /// The highest number of idle buffers.
    max_idle: usize,
}

/// The highest number of idle buffers; further ones are freed.
const MAX_IDLE: usize = 8;
/// The largest buffer that the pool keeps, in bytes; larger ones are freed.
const MAX_KEPT_BYTES: usize = 4 << 20;

impl Default for BufferPool {
    fn default() -> Self {
        Self { idle: Arc::default(), max_idle: MAX_IDLE }
    }
}

impl BufferPool {
    /// Creates a pool that keeps no idle buffers, for a client with a ceiling of its memory.
    pub fn without_idle() -> Self {
        Self { max_idle: 0, ..Self::default() }
    }

    /// Takes a buffer of any length. Its content is unspecified.
    pub fn take(&self) -> Vec<u8> {
        self.idle.lock().pop().unwrap_or_default()
    }

    /// Returns a buffer to the pool.
    pub fn put(&self, buffer: Vec<u8>) {
        if buffer.capacity() <= MAX_KEPT_BYTES {
            let mut idle = self.idle.lock();
            if idle.len() < self.max_idle {
                idle.push(buffer);
            }
        }
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferPool({} idle)", self.idle.lock().len())
    }
}
