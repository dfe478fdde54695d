//! The dials of worlds of streams groups.

use super::setup::Setup;
use crate::dials::dials;

dials! {
    /// The dials, those that save most time first.
    pub(super) DIALS: Setup;
    "suffers-ms" 0 ms suffers;
    "members" 0 number members;
    "brokers" 1 number brokers;
    "partitions" 1 number partitions;
    "standby-replicas" 0 number standby_replicas;
    "gives-up-ms" 10 ms gives_up;
    "latency-us" 1000 us network.latency;
    "jitter-us" 0 us network.jitter;
    "window" 1048576 number network.window;
    "cut-percent" 0 number network.cut_percent;
}
