//! The codecs of record batches: gzip, snappy, lz4 and zstd, compatible with Java's client and librdkafka.
//!
//! [`compress`] takes its input as slices, since a batch is a chain of chunks. [`decompress`] takes one slice, since
//! batches are read in the receive buffer, and a limit: a few bytes from the network can claim, and with most codecs
//! really contain, thousands of times their own size.
//!
//! - [`gzip`]: a gzip member around deflate
//! - [`snappy`]: the framing of the Xerial library that Java uses, and plain blocks, which other clients write
//! - [`lz4`]: the LZ4 frame format with independent blocks of 64 KiB, and the wrong header checksum of old message sets
//! - [`zstd`]: zstd frames
//!
//! Codec contexts live as long as the thread, because creating them costs more than a small batch.

pub mod gzip;
pub mod lz4;
mod lz4_high;
mod one_call;
pub mod snappy;
pub mod zstd;

#[cfg(test)]
mod tests;

use std::{error::Error, fmt, ops::RangeInclusive};

/// The codec of a record batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// Deflate in a gzip member.
    Gzip,
    /// Snappy in Xerial's framing.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// Every codec, in the order of their ids.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// Returns the bits 0 to 2 of a batch's attributes.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The codec with these bits.
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }

    /// Returns the levels of the codec, if it has any.
    pub const fn levels(self) -> Option<RangeInclusive<i32>> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some(gzip::LEVELS),
            Self::Lz4 => Some(lz4::LEVELS),
            Self::Zstd => Some(zstd::LEVELS),
        }
    }

    /// Fails if the codec does not have the level. A codec without levels accepts any.
    pub fn check_level(self, level: Option<i32>) -> Result<(), CompressError> {
        match (self.levels(), level) {
            (Some(levels), Some(level)) if !levels.contains(&level) => {
                Err(CompressError::Level { codec: self, level })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error: records could not be compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressError {
    /// The codec has no such level.
    Level {
        /// The codec.
        codec: Compression,
        /// The requested level.
        level: i32,
    },
    /// The codec itself failed, for example because memory is short.
    Codec {
        /// The codec.
        codec: Compression,
        /// The codec's message.
        detail: &'static str,
    },
}

impl fmt::Display for CompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Level { codec, level } => {
                write!(f, "{codec} has no level {level}")?;
                match codec.levels() {
                    Some(levels) => write!(f, ": use {} to {}", levels.start(), levels.end()),
                    None => Ok(()),
                }
            }
            Self::Codec { codec, detail } => write!(f, "{codec} could not compress: {detail}"),
        }
    }
}

impl Error for CompressError {}

/// Error: records could not be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecompressError {
    /// The bytes are not valid output of the codec.
    Corrupt {
        /// The codec.
        codec: Compression,
        /// What is wrong, for the error text.
        detail: &'static str,
    },
    /// The output is larger than allowed.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

impl fmt::Display for DecompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { codec, detail } => write!(f, "damaged {codec} data: {detail}"),
            Self::TooLarge { limit } => write!(f, "decompressed, the data is larger than {limit} bytes"),
        }
    }
}

impl Error for DecompressError {}

/// Appends the compressed `input`, a sequence of slices, to `out`. After an error `out` is unchanged.
///
/// Without a `level` the codec's default applies.
pub fn compress<'a>(
    codec: Compression,
    level: Option<i32>,
    input: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    compress_with(codec, level, input, out, lz4::HeaderChecksum::Correct)
}

/// Compresses like [`compress`], for message sets of format 0: their lz4 frames have another header checksum.
pub fn compress_format_0<'a>(
    codec: Compression,
    level: Option<i32>,
    input: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    compress_with(codec, level, input, out, lz4::HeaderChecksum::OverMagic)
}

fn compress_with<'a>(
    codec: Compression,
    level: Option<i32>,
    input: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
    checksum: lz4::HeaderChecksum,
) -> Result<(), CompressError> {
    codec.check_level(level)?;
    let start = out.len();
    let result = match codec {
        Compression::None => {
            input.for_each(|piece| out.extend_from_slice(piece));
            Ok(())
        }
        Compression::Gzip => gzip::compress(level, input, out),
        Compression::Snappy => snappy::compress(input, out),
        Compression::Lz4 => lz4::compress(level, input, out, checksum),
        Compression::Zstd => zstd::compress(level, input, out),
    };
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Appends the decompressed `input` to `out`, at most `limit` bytes. After an error `out` is unchanged.
///
/// Memory grows with the decompressed bytes, not with the claimed size, and never exceeds `limit`.
pub fn decompress(
    codec: Compression,
    input: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    let start = out.len();
    let mut output = Output { out, start, limit };
    let result = match codec {
        Compression::None => output.append(input),
        Compression::Gzip => gzip::decompress(input, &mut output),
        Compression::Snappy => snappy::decompress(input, &mut output),
        Compression::Lz4 => lz4::decompress(input, &mut output),
        Compression::Zstd => zstd::decompress(input, &mut output),
    };
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// The output buffer of a codec, with its limit.
pub(crate) struct Output<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    limit: usize,
}

impl Output<'_> {
    /// Returns the number of bytes that may still be written.
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.out.len() - self.start)
    }

    fn too_large(&self) -> DecompressError {
        DecompressError::TooLarge { limit: self.limit }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), DecompressError> {
        if bytes.len() > self.room() {
            return Err(self.too_large());
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }
}
