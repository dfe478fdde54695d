//! `ottla check under-replicated`: partitions without all their replicas, or without a leader.

use clap::Args;

use super::report::{CommonOptions, Metric, Report};
use crate::client_options::{ClientOptions, call_timeout};
use crate::events::EventWatch;
use crate::failure::Outcome;

const UNDER_REPLICATED: Metric = Metric {
    name: "ottla_under_replicated_partitions",
    help: "Partitions with a replica that is not in sync.",
};
const LEADERLESS: Metric =
    Metric { name: "ottla_leaderless_partitions", help: "Partitions without a leader." };
const BROKERS: Metric = Metric { name: "ottla_brokers", help: "Brokers that the cluster has at present." };

/// Check that all replicas of all partitions are in sync, and that each partition has a leader
#[derive(Args, Debug)]
pub struct UnderReplicatedOptions {
    #[command(flatten)]
    pub common: CommonOptions,

    /// Check only this topic; can be repeated [default: all topics]
    #[arg(short = 't', long, add = crate::completion::topics())]
    topic: Vec<String>,

    /// The most partitions that may lack a replica
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    max: u64,
}

/// Runs the check.
pub fn run(options: &UnderReplicatedOptions, client: &ClientOptions) -> Outcome {
    let (admin, _watch) = EventWatch::connect_admin(client)?;
    let named: Vec<&str> = options.topic.iter().map(String::as_str).collect();
    let cluster = admin.metadata((!named.is_empty()).then_some(&named), call_timeout())?;
    let (mut report, mut lacking, mut leaderless) = (Report::default(), 0_u64, 0_u64);
    for topic in cluster.topics {
        if let Some(error) = topic.error {
            return Err(error.into());
        }
        let partitions = &topic.partitions;
        lacking +=
            partitions.iter().filter(|one| one.in_sync_replicas.len() < one.replicas.len()).count() as u64;
        leaderless += partitions.iter().filter(|one| one.leader.is_none()).count() as u64;
    }
    report.add(UNDER_REPLICATED, &[], lacking as f64, Some(options.max as f64));
    report.add(LEADERLESS, &[], leaderless as f64, Some(0.0));
    report.add(BROKERS, &[], cluster.brokers.len() as f64, None);
    report.finish("under-replicated", &options.common)
}
