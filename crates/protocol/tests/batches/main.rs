//! Record batches of other clients, and those that nobody should send.

#[path = "../messages/allocations.rs"]
mod allocations;
mod golden;
mod hostile;
mod lines;
mod property;
