//! `ottla transactions list`.

use std::time::Duration;

use clap::Args;
use ottla::{Admin, TransactionFilter, TransactionState};

use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::groups::finish;
use crate::commands::table::Table;
use crate::failure::Outcome;

/// Print transactional IDs, with coordinator, producer and state
#[derive(Args, Debug)]
pub struct ListOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// Only IDs in this state, such as Ongoing or PrepareAbort; can be repeated
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<TransactionState>,

    /// Only IDs whose producer has this producer ID; can be repeated
    #[arg(long, value_name = "ID")]
    producer_id: Vec<i64>,

    /// Only transactions that have been running for more than this many milliseconds (Kafka 3.8 or later)
    #[arg(long, value_name = "MS")]
    running_longer_than: Option<u64>,

    /// Only IDs that match this regular expression (Kafka 4.1 or later)
    #[arg(long, value_name = "REGEX")]
    pattern: Option<String>,

    /// Print the rows as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

fn state(name: &str) -> Result<TransactionState, String> {
    match TransactionState::from_name(name) {
        TransactionState::Unknown => {
            let known = TransactionState::ALL.iter().skip(1).map(|state| state.name()).collect::<Vec<_>>();
            Err(format!("there is no state \"{name}\"; use one of {}", known.join(", ")))
        }
        state => Ok(state),
    }
}

/// Lists the transactional IDs of all brokers; fails after that if a broker did.
pub fn run(options: &ListOptions, admin: &Admin) -> Outcome {
    let filter = TransactionFilter {
        states: options.state.clone(),
        producer_ids: options.producer_id.clone(),
        running_longer_than: options.running_longer_than.map(Duration::from_millis),
        id_pattern: options.pattern.clone(),
    };
    let listings = admin.list_transactions(&filter, call_timeout())?;
    let mut table = Table::new(&[
        ("TransactionalId", "transactional_id", 0),
        ("Coordinator", "coordinator", 0),
        ("ProducerId", "producer_id", 0),
        ("TransactionState", "state", 0),
    ]);
    for one in listings.transactions {
        let state = one.state.name().into();
        table.add([one.transactional_id.into(), one.coordinator.into(), one.producer_id.into(), state]);
    }
    table.print(options.json)?;
    let failures = listings.failed.iter();
    finish(
        failures
            .map(|(broker, error)| format!("broker {broker} did not list its transactions: {error}"))
            .collect(),
    )
}
