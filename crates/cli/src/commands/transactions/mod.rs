//! `ottla transactions`: lists, describes and finds transactions, and ends those that hang, with the output of Kafka's
//! kafka-transactions.
//!
//! | file | subcommands |
//! |---|---|
//! | `list.rs` | list |
//! | `describe.rs` | describe, producers |
//! | `hanging.rs` | find-hanging |
//! | `abort.rs` | abort |
//! | `terminate.rs` | terminate |

mod abort;
mod describe;
mod hanging;
mod list;
mod terminate;

use std::io;

use clap::{Args, Subcommand};

use crate::client_options::ClientOptions;
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Outcome};

/// List, describe and find transactions, and end those that hang
#[derive(Args, Debug)]
#[command(after_help = format!("\
    A transaction hangs if a partition has records of it and its coordinator does not know it any more. Consumers with\n\
    isolation.level=read_committed, the default, then never read beyond its first record.\n\n\
    Examples:\n  \
    ottla transactions -b localhost:9092 list --state Ongoing\n  \
    ottla transactions -b localhost:9092 describe billing-1\n  \
    ottla transactions -b localhost:9092 producers --topic orders --partition 3\n  \
    ottla transactions -b localhost:9092 find-hanging --topic orders\n  \
    ottla transactions -b localhost:9092 abort --topic orders --partition 3 --start-offset 1207\n  \
    ottla transactions -b localhost:9092 terminate billing-1 --dry-run\n\n{EXIT_CODES}"))]
pub struct TransactionsOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    List(list::ListOptions),
    Describe(describe::DescribeOptions),
    Producers(describe::ProducersOptions),
    FindHanging(hanging::FindHangingOptions),
    Abort(abort::AbortOptions),
    Terminate(terminate::TerminateOptions),
}

impl Action {
    fn client(&self) -> &ClientOptions {
        match self {
            Action::List(options) => &options.client,
            Action::Describe(options) => &options.client,
            Action::Producers(options) => &options.client,
            Action::FindHanging(options) => &options.client,
            Action::Abort(options) => &options.client,
            Action::Terminate(options) => &options.client,
        }
    }
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &TransactionsOptions, outer: &ClientOptions) -> Outcome {
    let client = options.action.client().after(&options.client.after(outer));
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let (admin, _watch) = EventWatch::connect_admin(&client)?;
    match &options.action {
        Action::List(options) => list::run(options, &admin),
        Action::Describe(options) => describe::run(options, &admin),
        Action::Producers(options) => describe::run_producers(options, &admin),
        Action::FindHanging(options) => hanging::run(options, &admin),
        Action::Abort(options) => abort::run(options, &admin),
        Action::Terminate(options) => terminate::run(options, &admin),
    }
}
