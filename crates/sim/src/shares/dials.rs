//! The dials of worlds of share groups.

use super::setup::Setup;
use crate::dials::dials;

dials! {
    /// The dials, those that save most time first.
    pub(super) DIALS: Setup;
    "suffers-ms" 0 ms suffers;
    "writes-us" 1000000 us writes;
    "members" 0 number members;
    "brokers" 1 number brokers;
    "partitions" 1 number partitions;
    "releases" 0 number manners.releases;
    "rejects" 0 number manners.rejects;
    "delays" 0 number manners.delays;
    "processes-us" 1000 us manners.processes;
    "rests-us" 30000 us manners.rests;
    "strict" 0 flag is_strict;
    "renews-locks" 0 flag renews_locks;
    "implicit" 0 flag manners.is_implicit;
    "max-record-locks" 2000 number max_record_locks;
    "max-poll-records" 500 number max_poll_records;
    "latency-us" 1000 us network.latency;
    "jitter-us" 0 us network.jitter;
    "window" 1048576 number network.window;
    "cut-percent" 0 number network.cut_percent;
}
