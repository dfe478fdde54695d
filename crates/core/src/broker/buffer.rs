//! Buffers for large responses, used again so that their pages stay mapped and need no zeroing.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

/// A stock of byte buffers shared by the connections of a client. Cheap to clone.
#[derive(Clone, Default)]
pub struct BufferPool {
    idle: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// More idle buffers than this are freed.
const MAX_IDLE: usize = 8;
/// A buffer larger than this is freed instead of kept.
const MAX_KEPT_BYTES: usize = 4 << 20;

impl BufferPool {
    /// A buffer of any length; its bytes are whatever its last user left.
    pub fn take(&self) -> Vec<u8> {
        self.idle.lock().pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub fn put(&self, buffer: Vec<u8>) {
        if buffer.capacity() <= MAX_KEPT_BYTES {
            let mut idle = self.idle.lock();
            if idle.len() < MAX_IDLE {
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
