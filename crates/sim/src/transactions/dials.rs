//! The dials of worlds of transactions.

use super::Setup;
use crate::dials::dials;

dials! {
    /// The dials, those that save most time first.
    pub(super) DIALS: Setup;
    "suffers-ms" 0 ms suffers;
    "producers" 0 number producers;
    "copiers" 0 number copiers;
    "readers" 0 number readers;
    "brokers" 1 number brokers;
    "partitions" 1 partitions topics;
    "topics" 2 topics topics;
    "records" 1 number manners.records;
    "abort-percent" 0 number manners.abort_percent;
    "thinks-ms" 0 ms manners.thinks;
    "rests-ms" 1000 ms manners.rests;
    "switched" 0 flag is_switched;
    "workers" 0 flag workers;
    "loses-tails" 0 flag loses_tails;
    "marker-delay-us" 0 us marker_delay;
    "replication-lag-us" 0 us replication_lag;
    "linger-us" 0 us linger;
    "rereads" 0 number rereads;
    "latency-us" 1000 us network.latency;
    "jitter-us" 0 us network.jitter;
    "window" 1048576 number network.window;
    "cut-percent" 0 number network.cut_percent;
}
