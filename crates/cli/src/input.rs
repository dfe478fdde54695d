//! Input whose reading a signal can interrupt.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::signals::Interrupt;

/// The maximum size of a chunk of input.
const CHUNK_BYTES: usize = 64 << 10;
/// The maximum number of chunks in the queue, which bounds memory if input arrives faster than it is sent.
const MAX_CHUNKS: usize = 4;
/// The interval at which a wait for input checks for a signal.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A stream that is read by a separate thread. A terminal or pipe without data blocks that thread and not the command.
/// After a signal it reads as if the stream had ended.
#[derive(Debug)]
pub struct InterruptibleInput {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    start: usize,
    interrupt: Interrupt,
}

impl InterruptibleInput {
    /// Starts the thread. It ends with the stream, when this value is dropped, or with the process.
    pub fn new(mut input: impl Read + Send + 'static, interrupt: &Interrupt) -> InterruptibleInput {
        let (sender, chunks) = mpsc::sync_channel(MAX_CHUNKS);
        thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let part = match input.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(0) => return,
                    Ok(count) => {
                        chunk.truncate(count);
                        Ok(chunk)
                    }
                    Err(error) => Err(error),
                };
                let is_last = part.is_err();
                if sender.send(part).is_err() || is_last {
                    return;
                }
            }
        });
        InterruptibleInput { chunks, chunk: Vec::new(), start: 0, interrupt: interrupt.clone() }
    }
}

impl Read for InterruptibleInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.start == self.chunk.len() {
            if self.interrupt.is_requested() {
                return Ok(0);
            }
            match self.chunks.recv_timeout(CHECK_INTERVAL) {
                Ok(chunk) => (self.chunk, self.start) = (chunk?, 0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let rest = &self.chunk[self.start..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.start += count;
        Ok(count)
    }
}
