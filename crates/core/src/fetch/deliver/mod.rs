//! Fetched records for the application: views into the buffers that were read from the socket.
//!
//! ```text
//!  Records ──► FetchedRecords (one partition of one fetch) ──► RecordBatch ──► bytes of a shared FetchBuffer
//!     │ iter()                                                                      ▲
//!     └──► MessageRef: borrowed            Message: owned, keeps the buffer alive ──┘
//! ```
//!
//! A buffer returns to its pool when its last view is dropped.

mod buffer;
mod cursor;
mod event;
mod fetched;
mod message;
mod records;
mod walk;

pub(crate) use self::buffer::RecordBatch;
pub use self::{
    buffer::FetchBuffer,
    cursor::{Next, RecordCursor},
    event::ConsumerEvent,
    fetched::FetchedRecords,
    message::{Message, MessageRef},
    records::{MessageIter, Records},
    walk::PieceWalk,
};
