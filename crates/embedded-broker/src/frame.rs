//! Responses on their way to the socket.

use bytes::Bytes;

/// A response as it is written, with its length prefix, in chunks: record batches are not copied out of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    chunks: Vec<Bytes>,
    len: usize,
}

impl Frame {
    /// Bytes that may be no frame at all.
    pub(crate) fn from_raw(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len(), chunks: vec![Bytes::from(bytes)] }
    }

    /// The segments, in order.
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// The segments, in order.
    pub fn into_chunks(self) -> Vec<Bytes> {
        self.chunks
    }

    /// Returns all bytes of all segments.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all segments as one.
    pub fn to_vec(&self) -> Vec<u8> {
        self.chunks.concat()
    }

    /// The first `len` bytes: a response that breaks off.
    pub(crate) fn truncated(&self, len: usize) -> Self {
        let mut bytes = self.to_vec();
        bytes.truncate(len);
        Self::from_raw(bytes)
    }
}

/// Builds a [`Frame`]: fields go into `buffer`, large segments are referenced.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    /// The bytes that were written since the last segment.
    pub buffer: Vec<u8>,
    chunks: Vec<Bytes>,
    len: usize,
}

/// Below this a copy is cheaper than another entry in the system's write vector.
const REFER_FROM: usize = 2048;

impl FrameWriter {
    pub fn new() -> Self {
        let mut buffer = Vec::with_capacity(256);
        buffer.extend_from_slice(&[0; 4]);
        Self { buffer, chunks: Vec::new(), len: 0 }
    }

    /// Appends `bytes` as a segment.
    pub fn append(&mut self, bytes: &Bytes) {
        if bytes.len() < REFER_FROM {
            self.buffer.extend_from_slice(bytes);
            return;
        }
        self.cut();
        self.len += bytes.len();
        self.chunks.push(bytes.clone());
    }

    pub fn finish(mut self) -> Frame {
        self.cut();
        let length = i32::try_from(self.len - 4).unwrap_or(i32::MAX);
        let mut first = Vec::from(std::mem::take(&mut self.chunks[0]));
        first[..4].copy_from_slice(&length.to_be_bytes());
        self.chunks[0] = Bytes::from(first);
        Frame { chunks: self.chunks, len: self.len }
    }

    fn cut(&mut self) {
        if !self.buffer.is_empty() {
            self.len += self.buffer.len();
            self.chunks.push(Bytes::from(std::mem::take(&mut self.buffer)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_length_counts_copied_and_referenced_bytes() {
        let mut writer = FrameWriter::new();
        writer.buffer.push(1);
        writer.append(&Bytes::from(vec![2; 10]));
        writer.append(&Bytes::from(vec![3; REFER_FROM]));
        writer.buffer.push(4);
        let frame = writer.finish();
        assert_eq!(frame.len(), 4 + 1 + 10 + REFER_FROM + 1);
        assert_eq!(frame.chunks().len(), 3);
        let bytes = frame.to_vec();
        assert_eq!(&bytes[..4], &i32::try_from(frame.len() - 4).unwrap().to_be_bytes());
        assert_eq!((bytes[4], bytes[5], bytes[15], bytes[frame.len() - 1]), (1, 2, 3, 4));
    }
}
