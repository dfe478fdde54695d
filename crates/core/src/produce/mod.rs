//! The send path.

pub mod partitioner;
