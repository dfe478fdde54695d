//! Why a producer sends a request.

/// The reason why a producer sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendReason {
    /// The application flushes or closes.
    Flush,
    /// `broker.batch.max.partitions` is reached.
    Partitions,
    /// `broker.batch.max.bytes` is reached, or a batch is full.
    Bytes,
    /// The linger has expired.
    Linger,
    /// The broker's pace allows it.
    Adaptive,
}
