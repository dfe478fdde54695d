//! Gzip: a header, deflate, and a trailer with checksum and size.
//!
//! Several members may follow each other. Bytes after the last one are ignored, as in Java's client.

use std::{cell::RefCell, ops::RangeInclusive};

use crc_fast::{CrcAlgorithm, Digest, checksum};
use flate2::{Compress, Compression as Level, Decompress, FlushCompress, FlushDecompress, Status};

use super::{CompressError, Compression, DecompressError, Output};

/// The levels of gzip: 0 stores, 9 compresses most.
pub const LEVELS: RangeInclusive<i32> = 0..=9;

const DEFAULT_LEVEL: i32 = 6;
/// A member header with no name, no time, and an unknown operating system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
const TRAILER_LEN: usize = 8;
const STEP: usize = 16 * 1024;

thread_local! {
    static COMPRESS: RefCell<Option<(i32, Compress)>> = const { RefCell::new(None) };
    static DECOMPRESS: RefCell<Option<Decompress>> = const { RefCell::new(None) };
}

pub(super) fn compress<'a>(
    level: Option<i32>,
    input: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    let level = level.unwrap_or(DEFAULT_LEVEL);
    COMPRESS.with_borrow_mut(|context| {
        let context = match context {
            Some((of, context)) if *of == level => {
                context.reset();
                context
            }
            other => &mut other.insert((level, Compress::new(Level::new(level as u32), false))).1,
        };
        out.extend_from_slice(&HEADER);
        let mut digest = Digest::new(CrcAlgorithm::Crc32IsoHdlc);
        for piece in input {
            digest.update(piece);
            deflate(context, piece, out, FlushCompress::None)?;
        }
        deflate(context, &[], out, FlushCompress::Finish)?;
        out.extend_from_slice(&(digest.finalize() as u32).to_le_bytes());
        out.extend_from_slice(&(context.total_in() as u32).to_le_bytes());
        Ok(())
    })
}

fn deflate(
    context: &mut Compress,
    mut piece: &[u8],
    out: &mut Vec<u8>,
    flush: FlushCompress,
) -> Result<(), CompressError> {
    let finish = flush == FlushCompress::Finish;
    while finish || !piece.is_empty() {
        if out.capacity() == out.len() {
            out.reserve(STEP);
        }
        let before = context.total_in();
        let status = context
            .compress_vec(piece, out, flush)
            .map_err(|_| CompressError::Codec { codec: Compression::Gzip, detail: "deflate failed" })?;
        piece = &piece[(context.total_in() - before) as usize..];
        if finish && status == Status::StreamEnd {
            break;
        }
    }
    Ok(())
}

pub(super) fn decompress(mut input: &[u8], output: &mut Output<'_>) -> Result<(), DecompressError> {
    DECOMPRESS.with_borrow_mut(|context| {
        let context = context.get_or_insert_with(|| Decompress::new(false));
        loop {
            input = skip_header(input)?;
            context.reset(false);
            input = member(context, input, output)?;
            if !input.starts_with(&HEADER[..3]) {
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
    expected[..4].copy_from_slice(&(checksum(CrcAlgorithm::Crc32IsoHdlc, content) as u32).to_le_bytes());
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
    if header[..3] != HEADER[..3] {
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
