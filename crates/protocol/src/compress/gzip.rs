//! Gzip: a header, deflate, and a trailer with checksum and size.
//!
//! Several members may follow each other. Bytes after the last one are ignored, as in Java's client.

use std::{cell::RefCell, ops::RangeInclusive};

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{CompressionLvl, Compressor};

use super::{CompressError, Compression, DecompressError, Output, one_call::in_one_call};

/// The levels of gzip: 0 stores, 9 compresses most.
pub const LEVELS: RangeInclusive<i32> = 0..=9;

const DEFAULT_LEVEL: i32 = 6;
/// The start of a member header.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const TRAILER_LEN: usize = 8;
const STEP: usize = 16 * 1024;

thread_local! {
    static COMPRESS: RefCell<Option<(i32, Compressor)>> = const { RefCell::new(None) };
    static DECOMPRESS: RefCell<Option<Decompress>> = const { RefCell::new(None) };
}

pub(super) fn compress<'a>(
    level: Option<i32>,
    input: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    let level = level.unwrap_or(DEFAULT_LEVEL);
    COMPRESS.with_borrow_mut(|context| {
        let compressor = match context {
            Some((of, compressor)) if *of == level => compressor,
            other => &mut other.insert((level, Compressor::new(level_of(level)?))).1,
        };
        in_one_call(input, out, |content, mut target| {
            let target = target.room(compressor.gzip_compress_bound(content.len()));
            compressor.gzip_compress(content, target).map_err(|_| failed())
        })
    })
}

/// Returns libdeflate's level of this number.
fn level_of(level: i32) -> Result<CompressionLvl, CompressError> {
    CompressionLvl::new(level).map_err(|_| failed())
}

const fn failed() -> CompressError {
    CompressError::Codec { codec: Compression::Gzip, detail: "deflate failed" }
}

pub(super) fn decompress(mut input: &[u8], output: &mut Output<'_>) -> Result<(), DecompressError> {
    DECOMPRESS.with_borrow_mut(|context| {
        let context = context.get_or_insert_with(|| Decompress::new(false));
        loop {
            input = skip_header(input)?;
            context.reset(false);
            input = member(context, input, output)?;
            if !input.starts_with(&MAGIC[..]) {
                return Ok(());
            }
        }
    })
}

/// Inflates a member and returns the bytes that follow it.
fn member<'a>(
    context: &mut Decompress,
    mut input: &'a [u8],
    output: &mut Output<'_>,
) -> Result<&'a [u8], DecompressError> {
    let member_start = output.out.len();
    loop {
        // One byte beyond the limit detects output that would exceed it.
        let requested = input.len().saturating_mul(2).max(STEP).min(output.room().saturating_add(1));
        if output.out.capacity() - output.out.len() < requested.min(STEP) {
            output.out.reserve(requested);
        }
        let (read, written) = (context.total_in(), output.out.len());
        let status = context
            .decompress_vec(input, output.out, FlushDecompress::None)
            .map_err(|_| corrupt("invalid deflate data"))?;
        input = &input[(context.total_in() - read) as usize..];
        if output.out.len() - output.start > output.limit {
            return Err(output.too_large());
        }
        match status {
            Status::StreamEnd => break,
            _ if context.total_in() == read && output.out.len() == written => {
                return Err(corrupt("it ends too early"));
            }
            _ => {}
        }
    }
    let (trailer, rest) = input.split_first_chunk::<TRAILER_LEN>().ok_or(corrupt("it ends too early"))?;
    let content = &output.out[member_start..];
    let mut expected = [0; TRAILER_LEN];
    expected[..4].copy_from_slice(&crc32fast::hash(content).to_le_bytes());
    expected[4..].copy_from_slice(&(content.len() as u32).to_le_bytes());
    if *trailer == expected { Ok(rest) } else { Err(corrupt("the checksum or the size differs")) }
}

fn skip_header(input: &[u8]) -> Result<&[u8], DecompressError> {
    const HEADER_CRC: u8 = 1 << 1;
    const EXTRA: u8 = 1 << 2;
    const NAME: u8 = 1 << 3;
    const COMMENT: u8 = 1 << 4;
    const EARLY: DecompressError = corrupt("it ends too early");

    let (header, mut rest) = input.split_first_chunk::<10>().ok_or(EARLY)?;
    if header[..3] != MAGIC[..] {
        return Err(corrupt("no gzip header"));
    }
    let flags = header[3];
    if flags & EXTRA != 0 {
        let (length, after) = rest.split_first_chunk().ok_or(EARLY)?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..).ok_or(EARLY)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0).ok_or(EARLY)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & HEADER_CRC != 0 {
        rest = rest.get(2..).ok_or(EARLY)?;
    }
    Ok(rest)
}

const fn corrupt(detail: &'static str) -> DecompressError {
    DecompressError::Corrupt { codec: Compression::Gzip, detail }
}
