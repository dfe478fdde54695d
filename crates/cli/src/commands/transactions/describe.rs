//! `ottla transactions describe` and `ottla transactions producers`.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use ottla::Admin;
use serde_json::Value;

use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::groups::finish;
use crate::commands::table::Table;
use crate::failure::Outcome;

/// Print state, producer and partitions of transactional IDs
#[derive(Args, Debug)]
pub struct DescribeOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// The transactional IDs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,

    /// Print the rows as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Print the producers that write to a partition
#[derive(Args, Debug)]
pub struct ProducersOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// The topic
    #[arg(long)]
    topic: String,

    /// The partition
    #[arg(long)]
    partition: i32,

    /// Print the rows as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Returns the milliseconds since 1970.
pub fn unix_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// Runs `describe`.
pub fn run(options: &DescribeOptions, admin: &Admin) -> Outcome {
    let mut ids: Vec<&str> = options.ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut table = Table::new(&[
        ("CoordinatorId", "coordinator", 0),
        ("TransactionalId", "transactional_id", 0),
        ("ProducerId", "producer_id", 0),
        ("ProducerEpoch", "producer_epoch", 0),
        ("TransactionState", "state", 0),
        ("TransactionTimeoutMs", "timeout_ms", 0),
        ("CurrentTransactionStartTimeMs", "start_ms", 0),
        ("TransactionDurationMs", "duration_ms", 0),
        ("TopicPartitions", "partitions", 0),
    ]);
    let mut failures = Vec::new();
    for (id, result) in admin.describe_transactions(&ids, call_timeout())? {
        let one = match result {
            Ok(one) => one,
            Err(error) => {
                failures.push(format!("transactional ID \"{id}\": {error}"));
                continue;
            }
        };
        let partitions =
            one.partitions.iter().map(|one| format!("{}-{}", one.topic, one.partition)).collect::<Vec<_>>();
        table.add([
            one.coordinator.into(),
            id.into(),
            one.producer_id.into(),
            one.producer_epoch.into(),
            one.state.name().into(),
            u64::try_from(one.timeout.as_millis()).unwrap_or(u64::MAX).into(),
            one.start.map_or(Value::Null, Value::from),
            one.start.map_or(Value::Null, |start| (unix_ms() - start).max(0).into()),
            partitions.join(",").into(),
        ]);
    }
    table.print(options.json)?;
    finish(failures)
}

/// Runs `producers`.
pub fn run_producers(options: &ProducersOptions, admin: &Admin) -> Outcome {
    let mut table = Table::new(&[
        ("ProducerId", "producer_id", 0),
        ("ProducerEpoch", "producer_epoch", 0),
        ("LatestCoordinatorEpoch", "coordinator_epoch", 0),
        ("LastSequence", "last_sequence", 0),
        ("LastTimestamp", "last_timestamp", 0),
        ("CurrentTransactionStartOffset", "transaction_start", 0),
    ]);
    let partition = (options.topic.as_str(), options.partition);
    for one in admin.describe_producers(&[partition], call_timeout())?.remove(0)? {
        table.add([
            one.producer_id.into(),
            one.producer_epoch.into(),
            one.coordinator_epoch.map_or(Value::Null, Value::from),
            one.last_sequence.map_or(Value::Null, Value::from),
            one.last_timestamp.map_or(Value::Null, Value::from),
            one.transaction_start.map_or(Value::Null, Value::from),
        ]);
    }
    table.print(options.json)
}
