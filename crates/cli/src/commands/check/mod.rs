//! `ottla check`: says by its exit code whether something is well, for cron, probes and scrapers.
//!
//! | file | what it checks |
//! |---|---|
//! | `lag.rs` | the lag of groups |
//! | `replication.rs` | partitions without all their replicas |
//! | `end_to_end.rs` | the time from producing to consuming |
//! | `report.rs` | the output: text, JSON, Prometheus |

mod end_to_end;
mod lag;
mod replication;
mod report;

use std::io;

use clap::{Args, Subcommand};

use crate::client_options::ClientOptions;
use crate::failure::Outcome;

/// Check lag, replication or the time through the cluster, for cron and probes: the exit code is the answer
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    ottla check lag -b localhost:9092 --max 1000 billing\n  \
    ottla check lag -b localhost:9092 --max 1000 --all --prometheus > /var/lib/node_exporter/kafka.prom\n  \
    ottla check under-replicated -b localhost:9092\n  \
    ottla check end-to-end -b localhost:9092 -t health --max 500ms\n\n\
    Exit codes: 0 it is well, 1 it could not be found out, 2 wrong options or properties, 3 a limit is exceeded, 130 interrupted\n\
    (SIGINT), 143 terminated (SIGTERM)")]
pub struct CheckOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Lag(lag::LagOptions),
    UnderReplicated(replication::UnderReplicatedOptions),
    EndToEnd(end_to_end::EndToEndOptions),
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &CheckOptions, outer: &ClientOptions) -> Outcome {
    let inner = match &options.action {
        Action::Lag(options) => &options.common.client,
        Action::UnderReplicated(options) => &options.common.client,
        Action::EndToEnd(options) => &options.common.client,
    };
    let client = inner.after(&options.client.after(outer));
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    match &options.action {
        Action::Lag(options) => lag::run(options, &client),
        Action::UnderReplicated(options) => replication::run(options, &client),
        Action::EndToEnd(options) => end_to_end::run(options, &client),
    }
}
