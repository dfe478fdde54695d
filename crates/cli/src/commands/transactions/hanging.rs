//! `ottla transactions find-hanging`: open transactions that no coordinator knows.
//!
//! ```text
//!  partitions ──► their producers ──► open for longer than any timeout ──► by producer ID: the transactional ID
//!                                                                                 │ none: hangs
//!                                                                                 ▼
//!                                                      its transaction ── without this partition: hangs
//! ```

use clap::Args;
use ottla::{ActiveProducer, Admin, TopicPartition, TransactionFilter};
use ottla_sorted::{SortedMap, SortedSet};
use serde_json::Value;

use super::describe::unix_ms;
use crate::client_options::{ClientOptions, call_timeout};
use crate::commands::groups::finish;
use crate::commands::table::Table;
use crate::failure::{Failure, Outcome};

/// Print transactions that no coordinator will end
#[derive(Args, Debug)]
pub struct FindHangingOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// Only partitions of this topic; can be repeated [default: all topics]
    #[arg(long)]
    topic: Vec<String>,

    /// Only this partition of the topic
    #[arg(long, requires = "topic")]
    partition: Option<i32>,

    /// Only partitions that this broker leads
    #[arg(long, value_name = "ID", conflicts_with = "topic")]
    broker_id: Option<i32>,

    /// The brokers' transaction.max.timeout.ms in minutes: younger transactions do not hang
    #[arg(long, value_name = "MINUTES", default_value_t = 15)]
    max_transaction_timeout: u32,

    /// Print the rows as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// An open transaction in a partition.
struct Open {
    partition: TopicPartition,
    producer: ActiveProducer,
}

/// Runs `find-hanging`.
pub fn run(options: &FindHangingOptions, admin: &Admin) -> Outcome {
    let mut failures = Vec::new();
    let now = unix_ms();
    let oldest = now - i64::from(options.max_transaction_timeout) * 60_000;
    let open = open_transactions(options, admin, oldest, &mut failures)?;
    let hanging = hanging(open, admin)?;
    let mut table = Table::new(&[
        ("Topic", "topic", 0),
        ("Partition", "partition", 0),
        ("ProducerId", "producer_id", 0),
        ("ProducerEpoch", "producer_epoch", 0),
        ("CoordinatorEpoch", "coordinator_epoch", 0),
        ("StartOffset", "start_offset", 0),
        ("LastTimestamp", "last_timestamp", 0),
        ("Duration(min)", "duration_minutes", 0),
    ]);
    for Open { partition, producer } in hanging {
        let last = producer.last_timestamp;
        table.add([
            (*partition.topic).into(),
            partition.partition.into(),
            producer.producer_id.into(),
            producer.producer_epoch.into(),
            producer.coordinator_epoch.map_or(Value::Null, Value::from),
            producer.transaction_start.map_or(Value::Null, Value::from),
            last.map_or(Value::Null, Value::from),
            last.map_or(Value::Null, |last| ((now - last) / 60_000).into()),
        ]);
    }
    table.print(options.json)?;
    finish(failures)
}

/// Returns the transactions whose last record is older than `oldest`.
fn open_transactions(
    options: &FindHangingOptions,
    admin: &Admin,
    oldest: i64,
    failures: &mut Vec<String>,
) -> Outcome<Vec<Open>> {
    let mut open = Vec::new();
    let partitions = partitions(options, admin, failures)?;
    if partitions.is_empty() {
        return Ok(open);
    }
    let named: Vec<(&str, i32)> = partitions.iter().map(|one| (&*one.topic, one.partition)).collect();
    for (partition, found) in partitions.iter().zip(admin.describe_producers(&named, call_timeout())?) {
        match found {
            Ok(producers) => open.extend(
                producers
                    .into_iter()
                    .filter(|producer| {
                        producer.transaction_start.is_some()
                            && producer.last_timestamp.is_none_or(|last| last < oldest)
                    })
                    .map(|producer| Open { partition: partition.clone(), producer }),
            ),
            Err(error) => failures.push(error.to_string()),
        }
    }
    Ok(open)
}

/// Returns the partitions that the options select.
fn partitions(
    options: &FindHangingOptions,
    admin: &Admin,
    failures: &mut Vec<String>,
) -> Outcome<Vec<TopicPartition>> {
    let names =
        if options.topic.is_empty() { admin.list_topics(call_timeout())? } else { options.topic.clone() };
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let topics = admin.describe_topics(&names, call_timeout())?;
    failures.extend(
        topics.iter().filter_map(|topic| {
            topic.error.as_ref().map(|error| format!("topic \"{}\": {error}", topic.name))
        }),
    );
    let is_selected = |leader: Option<i32>, partition: i32| {
        options.broker_id.is_none_or(|wanted| leader == Some(wanted))
            && options.partition.is_none_or(|wanted| wanted == partition)
    };
    let all = topics.iter().flat_map(|topic| {
        let selected = topic.partitions.iter().filter(|one| is_selected(one.leader, one.id));
        selected.map(|one| TopicPartition::new(&*topic.name, one.id))
    });
    Ok(all.collect())
}

/// Returns the open transactions that no coordinator knows.
fn hanging(open: Vec<Open>, admin: &Admin) -> Outcome<Vec<Open>> {
    if open.is_empty() {
        return Ok(open);
    }
    let producer_ids: SortedSet<i64> = open.iter().map(|one| one.producer.producer_id).collect();
    let filter = TransactionFilter {
        producer_ids: producer_ids.into_iter().collect(),
        ..TransactionFilter::default()
    };
    let listings = admin.list_transactions(&filter, call_timeout())?;
    if let Some((broker, error)) = listings.failed.first() {
        // Without its list, a transaction that it coordinates would look as if it hung.
        return Err(Failure::Failed(format!("broker {broker} did not list its transactions: {error}")));
    }
    let ids: SortedMap<i64, &str> =
        listings.transactions.iter().map(|one| (one.producer_id, &*one.transactional_id)).collect();
    let names: Vec<&str> = ids.values().copied().collect();
    let described =
        if names.is_empty() { Vec::new() } else { admin.describe_transactions(&names, call_timeout())? };
    let mut known: SortedMap<&str, Vec<TopicPartition>> = SortedMap::new();
    for (id, result) in &described {
        known.insert(
            id,
            result.as_ref().map_err(|error| Failure::Failed(error.to_string()))?.partitions.clone(),
        );
    }
    let hangs = |one: &Open| {
        let partitions = ids.get(&one.producer.producer_id).and_then(|id| known.get(id));
        !partitions.is_some_and(|partitions| partitions.contains(&one.partition))
    };
    Ok(open.into_iter().filter(hangs).collect())
}
