//! Record batches of other clients, and malformed ones.

#[path = "../messages/allocations.rs"]
mod allocations;
mod golden;
mod hostile;
mod lines;
mod property;
