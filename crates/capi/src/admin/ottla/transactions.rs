//! Transactions of any producer (KIP-664).

use std::time::Duration;

use ottla::HangingTransaction;
use ottla_core::admin::transactions::{TransactionState, list::TransactionFilter};

use super::{calls, row::Row, shown};
use crate::admin::call::{Listed, found};

calls! {
    fn rd_kafka_ottla_ListTransactions("state", "producer_id", "running_longer_than_ms", "pattern")
    |admin, rows, options| {
        let mut filter = TransactionFilter::default();
        let states = TransactionState::ALL.map(|state| (state.name(), state));
        for row in rows.iter() {
            filter.states.extend(row.choice("state", &states)?);
            filter.producer_ids.extend(row.optional_number::<i64>("producer_id")?);
            let longer = row.optional_number("running_longer_than_ms")?.map(Duration::from_millis);
            filter.running_longer_than = longer.or(filter.running_longer_than);
            filter.id_pattern = row.optional("pattern").map(str::to_owned).or(filter.id_pattern);
        }
        Ok(shown(admin.list_transactions_async(&filter, *options), |listings| {
            let listed = listings.transactions.iter().map(|one| {
                Row::new()
                    .with("transactional_id", &one.transactional_id)
                    .with("coordinator", one.coordinator)
                    .with("producer_id", one.producer_id)
                    .with("state", one.state.name())
            });
            let failed = listings.failed.iter();
            let failed = failed.map(|(broker, error)| Row::new().with("coordinator", broker).failed(Some(error)));
            listed.chain(failed).collect()
        }))
    }

    fn rd_kafka_ottla_DescribeTransactions("transactional_id") |admin, rows, options| {
        rows.some()?;
        let ids = rows.each(|row| row.text("transactional_id"))?;
        Ok(shown(admin.describe_transactions_async(&ids, *options), |results| {
            let row = |(id, result): &(String, ottla::Result<ottla::TransactionDescription>)| {
                let row = Row::new().with("transactional_id", id);
                match result {
                    Err(error) => row.failed(Some(error)),
                    Ok(one) => row
                        .with("coordinator", one.coordinator)
                        .with("state", one.state.name())
                        .with("producer_id", one.producer_id)
                        .with("producer_epoch", one.producer_epoch)
                        .with("timeout_ms", one.timeout.as_millis())
                        .with_some("start", one.start)
                        .with_list(
                            "partitions",
                            one.partitions.iter().map(|key| format!("{}:{}", key.topic, key.partition)),
                        ),
                }
            };
            results.iter().map(row).collect()
        }))
    }

    fn rd_kafka_ottla_DescribeProducers("topic", "partition") |admin, rows, options| {
        rows.some()?;
        let keys = rows.each(super::request::Fields::partition)?;
        let partitions: Vec<(&str, i32)> = keys.iter().map(|key| (&*key.topic, key.partition)).collect();
        let described = admin.describe_producers_async(&partitions, *options);
        Ok(shown(described, move |results| {
            let of_partition = keys.iter().zip(&results).flat_map(|(key, result)| match result {
                Err(error) => vec![Row::of(key).failed(Some(error))],
                Ok(producers) => producers
                    .iter()
                    .map(|one| {
                        Row::of(key)
                            .with("producer_id", one.producer_id)
                            .with("producer_epoch", one.producer_epoch)
                            .with_some("last_sequence", one.last_sequence)
                            .with_some("last_timestamp", one.last_timestamp)
                            .with_some("coordinator_epoch", one.coordinator_epoch)
                            .with_some("transaction_start", one.transaction_start)
                    })
                    .collect(),
            });
            of_partition.collect()
        }))
    }

    fn rd_kafka_ottla_FenceProducers("transactional_id") |admin, rows, options| {
        rows.some()?;
        let ids = rows.each(|row| row.text("transactional_id"))?;
        Ok(shown(admin.fence_producers_async(&ids, *options), |results| {
            let row = |(id, result): &(String, ottla::Result<ottla::admin::FencedProducer>)| {
                let fenced = result.as_ref().ok();
                Row::new()
                    .with("transactional_id", id)
                    .with_some("producer_id", fenced.map(|one| one.producer_id))
                    .with_some("producer_epoch", fenced.map(|one| one.producer_epoch))
                    .failed(result.as_ref().err())
            };
            results.iter().map(row).collect()
        }))
    }

    fn rd_kafka_ottla_AbortTransaction("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch")
    |admin, rows, options| {
        let row = rows.only()?;
        let key = row.partition()?;
        let transaction = HangingTransaction {
            topic: key.topic.clone(),
            partition: key.partition,
            producer_id: row.number("producer_id")?,
            producer_epoch: row.number("producer_epoch")?,
            coordinator_epoch: row.optional_number("coordinator_epoch")?,
        };
        let aborted = admin.abort_transaction_async(&transaction, *options);
        Ok(async move {
            let result = aborted.await;
            found(Listed::new([Row::of(&key).failed(result.as_ref().err())]))
        })
    }
}
