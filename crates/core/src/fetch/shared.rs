//! The consumer's shared half.

/// The consumer's shared half.
#[derive(Debug)]
pub struct ConsumerShared;
