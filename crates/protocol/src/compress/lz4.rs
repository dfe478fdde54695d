//! LZ4 frames.
//!
//! Blocks are written independent and with at most 64 KiB, since Java's client reads no others. The reader also accepts
//! larger blocks, blocks that refer to earlier ones, and several concatenated frames; bytes after the last one are
//! ignored, as in Java's client.
//!
//! Kafka's first lz4 included the magic number in the header's checksum. Message sets of format 0 keep that, so the
//! reader does not verify the header's checksum: the batch has a checksum of its own.
//!
//! # Pitfalls
//!
//! - LZ4 in message format 0 has a header checksum that covers the magic bytes too. Such batches are still on disks
//!   (`lz4_of_format_0_has_a_checksum_over_the_magic`).

use std::{cell::RefCell, ops::RangeInclusive};

use lz4_flex::block::{
    CompressTable, DecompressError as BlockError, compress_into_with_table, decompress_into,
    decompress_into_with_dict, get_maximum_output_size,
};
use twox_hash::XxHash32;

use super::{
    CompressError, Compression, DecompressError, Output,
    lz4_high::{self, Chains},
    snappy::in_blocks,
};

/// The levels of lz4: up to 2 is the fast compressor; from 3 on, higher levels search more of the earlier bytes.
pub const LEVELS: RangeInclusive<i32> = 0..=12;

/// The bytes that the header's checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderChecksum {
    /// The bytes that the frame format specifies: flags and block size.
    Correct,
    /// The magic number too, as in message sets of format 0.
    OverMagic,
}

const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
/// Version 1, independent blocks.
const FLAGS: u8 = VERSION | INDEPENDENT;
const VERSION: u8 = 0x40;
const VERSION_MASK: u8 = 0xc0;
const INDEPENDENT: u8 = 0x20;
const BLOCK_CHECKSUM: u8 = 0x10;
const CONTENT_SIZE: u8 = 0x08;
const CONTENT_CHECKSUM: u8 = 0x04;
const DICTIONARY: u8 = 0x01;
/// Blocks of at most 64 KiB.
const BLOCK_SIZE: u8 = 4 << 4;
const BLOCK: usize = 64 * 1024;
const WINDOW: usize = 64 * 1024;
const STORED: u32 = 1 << 31;
/// The largest compression ratio: a byte of match length stands for at most 255 bytes.
const LARGEST_RATIO: usize = 255;

struct Context {
    table: CompressTable,
    chains: Chains,
    /// A buffer for blocks that span several input slices.
    block: Vec<u8>,
}

thread_local! {
    static CONTEXT: RefCell<Context> =
        RefCell::new(Context { table: CompressTable::large(), chains: Chains::new(), block: Vec::new() });
}

pub(super) fn compress<'a>(
    level: Option<i32>,
    input: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
    checksum: HeaderChecksum,
) -> Result<(), CompressError> {
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[FLAGS, BLOCK_SIZE]);
    let covered = match checksum {
        HeaderChecksum::Correct => &out[start + MAGIC.len()..],
        HeaderChecksum::OverMagic => &out[start..],
    };
    let checksum = header_checksum(covered);
    out.push(checksum);
    let high = level.filter(|level| *level >= lz4_high::FIRST_LEVEL);
    CONTEXT.with_borrow_mut(|Context { table, chains, block }| {
        in_blocks::<BLOCK, _>(input, block, |block| {
            let at = out.len();
            let content = at + 4;
            if let Some(level) = high {
                out.extend_from_slice(&[0; 4]);
                chains.compress(block, level, out);
            } else {
                out.resize(content + get_maximum_output_size(block.len()), 0);
                let length = compress_into_with_table(block, &mut out[content..], table)
                    .map_err(|_| CompressError::Codec { codec: Compression::Lz4, detail: "block failed" })?;
                out.truncate(content + length);
            }
            let mut prefix = (out.len() - content) as u32;
            if out.len() - content >= block.len() {
                out.truncate(content);
                out.extend_from_slice(block);
                prefix = block.len() as u32 | STORED;
            }
            out[at..content].copy_from_slice(&prefix.to_le_bytes());
            Ok(())
        })
    })?;
    out.extend_from_slice(&[0; 4]);
    Ok(())
}

fn header_checksum(covered: &[u8]) -> u8 {
    (XxHash32::oneshot(0, covered) >> 8) as u8
}

pub(super) fn decompress(mut input: &[u8], output: &mut Output<'_>) -> Result<(), DecompressError> {
    loop {
        input = frame(input, output)?;
        if !input.starts_with(&MAGIC) {
            return Ok(());
        }
    }
}

/// Decompresses a frame and returns the bytes that follow it.
fn frame<'a>(input: &'a [u8], output: &mut Output<'_>) -> Result<&'a [u8], DecompressError> {
    let mut input = Input(input);
    if input.take::<4>()? != MAGIC {
        return Err(corrupt("no lz4 frame"));
    }
    let [flags, block_size] = input.take()?;
    if flags & VERSION_MASK != VERSION {
        return Err(corrupt("an unknown version of frames"));
    }
    let block_size = match block_size >> 4 & 7 {
        size @ 4..=7 => 1 << (8 + 2 * size),
        _ => return Err(corrupt("an unknown block size")),
    };
    let content_size = if flags & CONTENT_SIZE == 0 { None } else { Some(u64::from_le_bytes(input.take()?)) };
    if flags & DICTIONARY != 0 {
        return Err(corrupt("it needs a dictionary"));
    }
    let [_header_checksum] = input.take()?;
    let frame_start = output.out.len();
    loop {
        let prefix = u32::from_le_bytes(input.take()?);
        if prefix == 0 {
            break;
        }
        let length = (prefix & !STORED) as usize;
        if length > block_size {
            return Err(corrupt("a block larger than the header says"));
        }
        let block = input.bytes(length)?;
        if flags & BLOCK_CHECKSUM != 0 && u32::from_le_bytes(input.take()?) != XxHash32::oneshot(0, block) {
            return Err(corrupt("a block's checksum differs"));
        }
        if prefix & STORED != 0 {
            output.append(block)?;
        } else {
            let window = if flags & INDEPENDENT != 0 { output.out.len() } else { frame_start };
            decompress_block(block, block_size, window, output)?;
        }
    }
    let content = &output.out[frame_start..];
    if content_size.is_some_and(|size| size != content.len() as u64) {
        return Err(corrupt("the size differs from what the header says"));
    }
    if flags & CONTENT_CHECKSUM != 0 && u32::from_le_bytes(input.take()?) != XxHash32::oneshot(0, content) {
        return Err(corrupt("the content's checksum differs"));
    }
    Ok(input.0)
}

/// Appends a block, which may refer to the output from `window` on.
fn decompress_block(
    block: &[u8],
    block_size: usize,
    window: usize,
    output: &mut Output<'_>,
) -> Result<(), DecompressError> {
    let at = output.out.len();
    let window = window.max(at.saturating_sub(WINDOW));
    let possible = block_size.min(block.len().saturating_mul(LARGEST_RATIO));
    let room = possible.min(output.room());
    output.out.resize(at + room, 0);
    let (earlier, target) = output.out.split_at_mut(at);
    let written = if window == at {
        decompress_into(block, target)
    } else {
        decompress_into_with_dict(block, target, &earlier[window..])
    };
    match written {
        Ok(written) => {
            output.out.truncate(at + written);
            Ok(())
        }
        Err(BlockError::OutputTooSmall { .. }) if room < possible => Err(output.too_large()),
        Err(BlockError::OutputTooSmall { .. }) => Err(corrupt("a block larger than the header says")),
        Err(_) => Err(corrupt("an invalid block")),
    }
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecompressError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(corrupt("it ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], DecompressError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(corrupt("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }
}

const fn corrupt(detail: &'static str) -> DecompressError {
    DecompressError::Corrupt { codec: Compression::Lz4, detail }
}
