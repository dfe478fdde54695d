//! `ottla transactions abort`.

use std::io::{self, Write};

use clap::Args;
use ottla::{Admin, HangingTransaction};

use crate::client_options::{ClientOptions, call_timeout};
use crate::failure::{Failure, Outcome};

/// Write the abort marker of a hanging transaction to its partition
#[derive(Args, Debug)]
pub struct AbortOptions {
    #[command(flatten)]
    pub client: ClientOptions,

    /// The topic
    #[arg(long)]
    topic: String,

    /// The partition
    #[arg(long)]
    partition: i32,

    /// The offset of the transaction's first record, as find-hanging prints it
    #[arg(
        long,
        value_name = "OFFSET",
        required_unless_present = "producer_id",
        conflicts_with = "producer_id"
    )]
    start_offset: Option<i64>,

    /// The producer ID, if the brokers are too old to find it by the offset
    #[arg(long, value_name = "ID", requires = "producer_epoch", requires = "coordinator_epoch")]
    producer_id: Option<i64>,

    /// The producer epoch
    #[arg(long, value_name = "EPOCH", requires = "producer_id")]
    producer_epoch: Option<i16>,

    /// The epoch of the coordinator that wrote the producer's last marker
    #[arg(long, value_name = "EPOCH", requires = "producer_id")]
    coordinator_epoch: Option<i32>,

    /// Only print what would be aborted
    #[arg(long)]
    dry_run: bool,
}

/// Runs `abort`.
pub fn run(options: &AbortOptions, admin: &Admin) -> Outcome {
    let transaction = find(options, admin)?;
    let HangingTransaction { topic, partition, producer_id, producer_epoch, .. } = &transaction;
    let what = format!(
        "the transaction of producer {producer_id} with epoch {producer_epoch} in {topic} [{partition}]"
    );
    if options.dry_run {
        writeln!(io::stdout(), "would abort {what}")?;
        return Ok(());
    }
    admin.abort_transaction(&transaction, call_timeout())?;
    writeln!(io::stdout(), "aborted {what}")?;
    Ok(())
}

/// Returns the transaction that the options name.
fn find(options: &AbortOptions, admin: &Admin) -> Outcome<HangingTransaction> {
    let topic = options.topic.as_str().into();
    let partition = options.partition;
    if let (Some(producer_id), Some(producer_epoch)) = (options.producer_id, options.producer_epoch) {
        let coordinator_epoch = options.coordinator_epoch;
        return Ok(HangingTransaction { topic, partition, producer_id, producer_epoch, coordinator_epoch });
    }
    let producers = admin.describe_producers(&[(&options.topic, partition)], call_timeout())?.remove(0)?;
    let found = producers.iter().find(|one| one.transaction_start == options.start_offset);
    let Some(found) = found else {
        let offset = options.start_offset.unwrap_or(-1);
        return Err(Failure::Failed(format!(
            "{topic} [{partition}] has no open transaction that starts at offset {offset}; `ottla transactions producers` \
             prints the start of each"
        )));
    };
    let producer_epoch = i16::try_from(found.producer_epoch).map_err(|_| {
        Failure::Failed(format!("the broker reports the impossible producer epoch {}", found.producer_epoch))
    })?;
    let (producer_id, coordinator_epoch) = (found.producer_id, found.coordinator_epoch);
    Ok(HangingTransaction { topic, partition, producer_id, producer_epoch, coordinator_epoch })
}
