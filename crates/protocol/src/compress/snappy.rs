//! Snappy. The format itself has no frames; Java's client uses those of the Xerial library, in big endian:
//!
//! ```text
//!   82 "SNAPPY" 00 | version (4) | compatible version (4) | length (4) block | length (4) block | ...
//! ```
//!
//! The reader also accepts plain snappy blocks, which some clients write.

use std::cell::RefCell;

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use super::{CompressError, Compression, DecompressError, Output};

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
const HEADER_LEN: usize = MAGIC.len() + VERSIONS.len();
/// The default block size of Xerial's library, in bytes.
const BLOCK: usize = 32 * 1024;
/// The largest compression ratio: a copy of 3 bytes yields at most 64.
const LARGEST_RATIO: usize = 64;

struct Context {
    encoder: Encoder,
    /// A buffer for blocks that span several input slices.
    block: Vec<u8>,
}

thread_local! {
    static CONTEXT: RefCell<Context> = RefCell::new(Context { encoder: Encoder::new(), block: Vec::new() });
}

pub(super) fn compress<'a>(
    input: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSIONS);
    CONTEXT.with_borrow_mut(|Context { encoder, block }| {
        in_blocks::<BLOCK, _>(input, block, |block| {
            let at = out.len();
            out.resize(at + 4 + max_compress_len(block.len()), 0);
            let length = encoder
                .compress(block, &mut out[at + 4..])
                .map_err(|_| CompressError::Codec { codec: Compression::Snappy, detail: "block failed" })?;
            out[at..at + 4].copy_from_slice(&(length as u32).to_be_bytes());
            out.truncate(at + 4 + length);
            Ok(())
        })
    })
}

/// Cuts `input` into blocks of `SIZE` bytes; the last one may be shorter. Only blocks that span several slices are
/// copied.
pub(super) fn in_blocks<'a, const SIZE: usize, E>(
    input: impl Iterator<Item = &'a [u8]>,
    gathered: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    gathered.clear();
    let mut input = input.filter(|piece| !piece.is_empty()).peekable();
    while let Some(mut piece) = input.next() {
        while !piece.is_empty() {
            let is_last = input.peek().is_none();
            if gathered.is_empty() && (piece.len() >= SIZE || is_last) {
                let (block, rest) = piece.split_at(piece.len().min(SIZE));
                each(block)?;
                piece = rest;
                continue;
            }
            let (part, rest) = piece.split_at(piece.len().min(SIZE - gathered.len()));
            gathered.extend_from_slice(part);
            piece = rest;
            if gathered.len() == SIZE {
                each(gathered)?;
                gathered.clear();
            }
        }
    }
    if gathered.is_empty() { Ok(()) } else { each(gathered) }
}

pub(super) fn decompress(input: &[u8], output: &mut Output<'_>) -> Result<(), DecompressError> {
    if !input.starts_with(&MAGIC) {
        return block(input, output);
    }
    let mut rest = input;
    while !rest.is_empty() {
        // Concatenated streams contain a header each.
        if rest.starts_with(&MAGIC) {
            rest = rest.get(HEADER_LEN..).ok_or(corrupt("it ends too early"))?;
            continue;
        }
        let (length, after) = rest.split_first_chunk().ok_or(corrupt("it ends too early"))?;
        let (compressed, after) = after
            .split_at_checked(u32::from_be_bytes(*length) as usize)
            .ok_or(corrupt("it ends too early"))?;
        block(compressed, output)?;
        rest = after;
    }
    Ok(())
}

fn block(compressed: &[u8], output: &mut Output<'_>) -> Result<(), DecompressError> {
    let length = decompress_len(compressed).map_err(|_| corrupt("a block without a length"))?;
    if compressed.is_empty() || length > compressed.len().saturating_mul(LARGEST_RATIO) {
        return Err(corrupt("a block claims more than it can hold"));
    }
    if length > output.room() {
        return Err(output.too_large());
    }
    let at = output.out.len();
    output.out.resize(at + length, 0);
    Decoder::new().decompress(compressed, &mut output.out[at..]).map_err(|_| corrupt("an invalid block"))?;
    Ok(())
}

const fn corrupt(detail: &'static str) -> DecompressError {
    DecompressError::Corrupt { codec: Compression::Snappy, detail }
}
