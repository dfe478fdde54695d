//! Kafka's primitive types on the wire: integers, variable-length integers, strings, byte strings, arrays, tagged
//! fields.
//!
//! [`Reader`] walks a received frame, [`Writer`] appends to one. Both know whether the current message is *flexible*
//! (compact lengths and tagged fields, since KIP-482), so that `string()` reads and writes the right encoding.

mod error;
mod int32_array;
mod reader;
mod writer;

pub use error::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind};
pub use int32_array::Int32Array;
pub use reader::{ALLOCATION_FACTOR, Reader};
pub use writer::{Mark, Writer};
