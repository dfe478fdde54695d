//! The errors of decoding and encoding.

use std::{error::Error, fmt};

/// Error: bytes violate the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The kind of violation.
    pub kind: DecodeErrorKind,
    /// The position in bytes from the start of the frame that the [`Reader`](super::Reader) was given.
    pub position: usize,
    /// The field that was being read, as `Message.Struct.field`; empty outside of messages.
    pub field: &'static str,
}

/// The kinds of [`DecodeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The bytes end before the value does.
    UnexpectedEnd {
        /// The number of bytes that the value needs.
        needed: usize,
        /// The number of bytes left.
        remaining: usize,
    },
    /// A length that no value of this type can have.
    InvalidLength(i64),
    /// A null where the version does not allow one.
    UnexpectedNull,
    /// A string that is not UTF-8.
    InvalidUtf8,
    /// A variable-length integer that does not fit its type.
    InvalidVarint,
    /// A tagged field whose content does not end where its size says.
    InvalidTaggedField {
        /// The field's tag.
        tag: u32,
    },
    /// The decoded value would take more than [`ALLOCATION_FACTOR`](super::ALLOCATION_FACTOR) times the bytes received.
    AllocationLimit,
    /// The message has no such version, or this crate does not know it.
    UnsupportedVersion(i16),
    /// Bytes are left after the value.
    TrailingBytes(usize),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DecodeErrorKind::UnexpectedEnd { needed, remaining } => {
                write!(f, "the bytes end too early: {needed} needed, {remaining} left")?;
            }
            DecodeErrorKind::InvalidLength(length) => write!(f, "impossible length {length}")?,
            DecodeErrorKind::UnexpectedNull => f.write_str("null where the version allows none")?,
            DecodeErrorKind::InvalidUtf8 => f.write_str("a string that is not UTF-8")?,
            DecodeErrorKind::InvalidVarint => f.write_str("a variable-length integer that is too large")?,
            DecodeErrorKind::InvalidTaggedField { tag } => {
                write!(f, "tagged field {tag} does not end where its size says")?;
            }
            DecodeErrorKind::AllocationLimit => {
                f.write_str("the value would take far more memory than the bytes received justify")?;
            }
            DecodeErrorKind::UnsupportedVersion(version) => write!(f, "unsupported version {version}")?,
            DecodeErrorKind::TrailingBytes(count) => write!(f, "{count} bytes left over")?,
        }
        write!(f, ", at byte {}", self.position)?;
        if self.field.is_empty() { Ok(()) } else { write!(f, ", in {}", self.field) }
    }
}

impl Error for DecodeError {}

/// Error: the chosen version of the message can't carry a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// The kind of error.
    pub kind: EncodeErrorKind,
    /// The field that could not be written, as `Message.Struct.field`.
    pub field: &'static str,
}

/// The kinds of [`EncodeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeErrorKind {
    /// The message has no such version, or this crate does not know it.
    UnsupportedVersion(i16),
    /// The field is set, but the version does not have it.
    NotInVersion(i16),
    /// The field is null, but the version does not allow that.
    UnexpectedNull,
    /// A string, byte string or array is too long for its length prefix.
    TooLong(usize),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field;
        match self.kind {
            EncodeErrorKind::UnsupportedVersion(version) => write!(f, "{field} has no version {version}"),
            EncodeErrorKind::NotInVersion(version) => {
                write!(f, "{field} is set, but version {version} has no such field")
            }
            EncodeErrorKind::UnexpectedNull => write!(f, "{field} is null, which the version does not allow"),
            EncodeErrorKind::TooLong(length) => write!(f, "{field} is too long: {length}"),
        }
    }
}

impl Error for EncodeError {}
