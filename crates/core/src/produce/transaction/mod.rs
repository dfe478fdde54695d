//! The state of a transaction that a transactional producer shares: the application's threads and the senders read it,
//! the part [`txn`](crate::txn) changes it.
//!
//! - [`shared`]: whether a partition's batches may be sent, and what went wrong with them.
//! - [`state`]: the states of a transaction.
//! - `current`: the call that runs, and who must end the transaction.
//! - [`api`], [`error`]: the functions by their names, and what their callers have to do after an error.

pub mod api;
pub(crate) mod current;
pub mod error;
pub mod shared;
pub mod state;
