//! Codecs that compress a whole batch in one call: from one slice, into memory of the largest size.

use std::cell::RefCell;

use super::CompressError;

/// The memory in bytes that a thread keeps of each buffer for the next batch.
const LARGEST_KEPT: usize = 2 << 20;

thread_local! {
    static BUFFERS: RefCell<Buffers> = const { RefCell::new(Buffers { content: Vec::new(), compressed: Vec::new() }) };
}

struct Buffers {
    content: Vec<u8>,
    compressed: Vec<u8>,
}

/// The memory that a codec writes to.
pub(super) struct Target<'a>(&'a mut Vec<u8>);

impl Target<'_> {
    /// Returns `size` bytes, whose content is unspecified.
    pub(super) fn room(&mut self, size: usize) -> &mut [u8] {
        if self.0.len() < size {
            self.0.resize(size, 0);
        }
        &mut self.0[..size]
    }
}

/// Calls `compress` with all slices of `input` as one. Appends the bytes that `compress` wrote to the start of the target,
/// whose number it returns, to `out`.
///
/// A single slice is not copied. The buffers belong to the thread, so `out` only gets memory for what it keeps.
pub(super) fn in_one_call<'a>(
    mut input: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
    compress: impl FnOnce(&[u8], Target<'_>) -> Result<usize, CompressError>,
) -> Result<(), CompressError> {
    let first = input.next().unwrap_or_default();
    BUFFERS.with_borrow_mut(|Buffers { content, compressed }| {
        let content: &[u8] = match input.next() {
            None => first,
            Some(second) => {
                content.clear();
                [first, second].into_iter().chain(input).for_each(|slice| content.extend_from_slice(slice));
                content
            }
        };
        let size = compress(content, Target(compressed))?;
        out.extend_from_slice(&compressed[..size]);
        Ok(())
    })?;
    BUFFERS.with_borrow_mut(|Buffers { content, compressed }| {
        for buffer in [content, compressed] {
            if buffer.capacity() > LARGEST_KEPT {
                *buffer = Vec::new();
            }
        }
    });
    Ok(())
}
