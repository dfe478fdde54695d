//! The purposes of snapshots, which differ in their detail and in what they restart.

/// The purpose of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A call of the application: nothing restarts.
    Query,
    /// The periodic event: windows restart.
    Periodic,
    /// A push of client metrics: the summaries since the last push restart. Topics, partitions and histograms are left
    /// out.
    Push,
}
