//! Transactions: reads records, processes them, and writes the results and the consumer's offsets together, or not at all.
//!
//!     cargo run --package ottla --example transactions

mod support;

use std::{collections::BTreeSet, time::Duration};

use ottla::{Config, Consumer, Message, Offset, Producer, Record, Records, TransactionError};

const TIMEOUT: Duration = Duration::from_secs(30);
const INPUT: &str = "example-transactions-input";
const OUTPUT: &str = "example-transactions-output";
const ORDERS: usize = 100;

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let config = brokers.config()?;
    let run = std::process::id().to_string();
    let input = Producer::new(&config)?;
    for order in 0..ORDERS {
        let value = format!("order {order}");
        input.send(INPUT, Record::new().key(&run).value(&value))?;
    }
    input.close(TIMEOUT)?;

    // The ID is that of this process's share of the work: a second producer with the same ID would fence this one.
    let mut producing = config.clone();
    producing.set("transactional.id", &format!("example-transactions-{run}"))?;
    let producer = Producer::new(&producing)?;
    producer.init_transactions(TIMEOUT)?;

    let mut consuming = config.clone();
    consuming
        .set("group.id", &format!("example-transactions-{run}"))?
        .set("auto.offset.reset", "earliest")?
        .set("enable.auto.commit", "false")?
        .set("isolation.level", "read_committed")?;
    let consumer = Consumer::new(&consuming)?;
    consumer.subscribe(&[INPUT])?;
    let mut processed = 0;
    while processed < ORDERS {
        let records = consumer.poll(TIMEOUT)?;
        let ours = records.iter().filter(|message| message.key() == Some(run.as_bytes())).count();
        match process(&producer, &consumer, &records) {
            Ok(()) => processed += ours,
            // The transaction was aborted: read the same records again.
            Err(TransactionError::Abort(error)) => {
                eprintln!("{error}; trying again");
                let mut positions = BTreeSet::new();
                for message in &records {
                    if positions.insert((message.topic().to_owned(), message.partition())) {
                        let offset = Offset::At(message.offset());
                        consumer.seek(message.topic(), message.partition(), offset, TIMEOUT)?;
                    }
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    consumer.close(TIMEOUT)?;
    producer.close(TIMEOUT)?;
    check(&config, &run)
}

/// Writes the results of these records and the offsets after them in one transaction.
fn process(producer: &Producer, consumer: &Consumer, records: &Records) -> Result<(), TransactionError> {
    let transaction = producer.begin()?;
    for message in records {
        let result = message.value().map(<[u8]>::to_ascii_uppercase).unwrap_or_default();
        let record = Record::new().key(message.key().unwrap_or_default()).value(&result);
        // A record that can't be sent ends the transaction: dropping it aborts.
        transaction.send(OUTPUT, record).map_err(|error| TransactionError::Abort(error.into()))?;
    }
    transaction.send_records(consumer, records, TIMEOUT)?;
    // If it is unknown whether the commit succeeded, `resume_transaction` finds that out.
    match transaction.commit(TIMEOUT) {
        Err(TransactionError::Retriable(error)) => {
            eprintln!("{error}");
            producer.resume_transaction(TIMEOUT)
        }
        result => result,
    }
}

/// Reads the committed results.
fn check(config: &Config, run: &str) -> support::Result {
    let mut reading = config.clone();
    reading.set("isolation.level", "read_committed")?;
    let reader = Consumer::new(&reading)?;
    let producer = Producer::new(config)?;
    let partitions = producer.partition_count(OUTPUT, TIMEOUT)?;
    let all: Vec<_> = (0..partitions).map(|partition| (OUTPUT, partition, Offset::Beginning)).collect();
    reader.assign(&all)?;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    while seen.len() < ORDERS {
        let message: Message = reader.next(TIMEOUT)?.ok_or("a result is missing")?;
        if message.key() == Some(run.as_bytes()) {
            let value = String::from_utf8_lossy(message.value().unwrap_or_default()).into_owned();
            assert!(seen.insert(value), "each result is there once");
        }
    }
    println!("{} results", seen.len());
    reader.close(TIMEOUT)?;
    Ok(())
}
