//! The dials of worlds of producers and consumers.

use crate::{dials::dials, knobs::Knobs};

/// An application that never rests.
const NEVER: u64 = u64::MAX;

dials! {
    /// The dials, those that save most time first.
    pub DIALS: Knobs;
    "faults-ms" 0 ms faults_for;
    "records" 1 number records;
    "producers" 0 number producers;
    "consumers" 0 number consumers;
    "brokers" 1 number brokers;
    "topics" 1 topics topics;
    "partitions" 1 partitions topics;
    "step-us" 10000 derived_us step;
    "doubts" 0 flag doubts;
    "steady" 0 flag steady;
    "min-in-sync" 1 number min_in_sync;
    "lossy" 0 flag lossy;
    "no-identity-ms" 0 ms no_identity_for;
    "hasty-ms" 0 ms hasty_for;
    "workers" 0 flag workers;
    "replication-lag-us" 0 us replication_lag;
    "purges" 0 number deadlines.purges;
    "purges-moves" 0 number deadlines.purges_moves;
    "flushes" 0 number deadlines.flushes;
    "closes" 0 number deadlines.closes;
    "slow-threads" 1 number deadlines.slow_threads;
    "queries" 0 number queries.every;
    "divided" 0 flag divided;
    "sleeps" 0 flag habits.sleeps;
    "restless" NEVER number habits.restless;
    "partition-eof" 0 flag consumer.partition_eof;
    "latency-us" 1000 us network.latency;
    "jitter-us" 0 us network.jitter;
    "window" 1048576 number network.window;
    "cut-percent" 0 number network.cut_percent;
    "batch-records" 10000 number producer.topic.batch.max_records;
    "queued-messages" 100000 number producer.max_queued_messages;
    "in-flight" 1 number producer.max_in_flight;
}
