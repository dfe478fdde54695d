//! Log directories, and reassignments of replicas (KIP-113, KIP-455).

use std::collections::BTreeMap;

use ottla_core::admin::log_dirs::LogDir;
use ottla_protocol::vocabulary::TopicPartition;

use super::{calls, request::Fields, row::Row, shown};
use crate::{
    admin::call::{Listed, found},
    client::event::Failure,
};

calls! {
    fn rd_kafka_ottla_DescribeLogDirs("broker", "topic", "partition") |admin, rows, options| {
        let (mut brokers, mut partitions) = (Vec::new(), Vec::new());
        for row in rows.iter() {
            brokers.extend(row.optional_number::<i32>("broker")?);
            if row.optional("topic").is_some() || row.optional("partition").is_some() {
                partitions.push((row.text("topic")?, row.number("partition")?));
            }
        }
        let brokers = (!brokers.is_empty()).then_some(brokers.as_slice());
        let partitions = (!partitions.is_empty()).then_some(partitions.as_slice());
        Ok(shown(admin.describe_log_dirs_async(brokers, partitions, *options), |brokers| {
            brokers
                .iter()
                .flat_map(|(broker, dirs)| match dirs {
                    Ok(dirs) => dirs.iter().flat_map(|dir| rows_of_dir(*broker, dir)).collect(),
                    Err(error) => vec![Row::new().with("broker", broker).failed(Some(error))],
                })
                .collect()
        }))
    }

    fn rd_kafka_ottla_AlterReplicaLogDirs("topic", "partition", "broker", "log_dir") |admin, rows, options| {
        let mut paths = BTreeMap::<i32, BTreeMap<TopicPartition, String>>::new();
        for row in rows.some()? {
            let of_broker = paths.entry(row.number("broker")?).or_default();
            once(of_broker, row, row.text("log_dir")?.to_owned())?;
        }
        let calls: Vec<_> = paths
            .into_iter()
            .map(|(broker, paths)| (broker, admin.alter_replica_log_dirs_async(broker, &paths, *options), paths))
            .collect();
        Ok(async move {
            let mut rows = Vec::new();
            for (broker, call, paths) in calls {
                match call.await {
                    Ok(results) => rows.extend(results.iter().map(|(key, result)| {
                        Row::of(key).with("broker", broker).failed(result.as_ref().err())
                    })),
                    Err(error) => rows.extend(
                        paths.keys().map(|key| Row::of(key).with("broker", broker).failed(Some(&error))),
                    ),
                }
            }
            found(Listed::new(rows))
        })
    }

    fn rd_kafka_ottla_AlterPartitionReassignments("topic", "partition", "replicas") |admin, rows, options| {
        let mut reassignments = BTreeMap::new();
        for row in rows.some()? {
            once(&mut reassignments, row, row.numbers("replicas")?)?;
        }
        Ok(shown(admin.alter_reassignments_async(&reassignments, *options), |results| {
            results.iter().map(|(key, result)| Row::of(key).failed(result.as_ref().err())).collect()
        }))
    }

    fn rd_kafka_ottla_ListPartitionReassignments("topic", "partition") |admin, rows, options| {
        let partitions = rows.each(|row| Ok((row.text("topic")?, row.number("partition")?)))?;
        let partitions = (!partitions.is_empty()).then_some(partitions.as_slice());
        Ok(shown(admin.list_reassignments_async(partitions, *options), |ongoing| {
            let row = |(key, one): (&TopicPartition, &ottla_core::admin::reassignments::OngoingReassignment)| {
                Row::of(key)
                    .with_list("replicas", &one.replicas)
                    .with_list("adding_replicas", &one.adding)
                    .with_list("removing_replicas", &one.removing)
            };
            ongoing.iter().map(row).collect()
        }))
    }
}

/// Adds the partition of a row, which no other row has.
fn once<T>(map: &mut BTreeMap<TopicPartition, T>, row: &Fields<'_>, value: T) -> Result<(), Failure> {
    match map.insert(row.partition()?, value) {
        None => Ok(()),
        Some(_) => Err(row.wrong("the partition is named twice")),
    }
}

/// Returns a row for each replica of a directory, or one for a directory without replicas.
fn rows_of_dir(broker: i32, dir: &LogDir) -> Vec<Row> {
    let row = |row: Row| {
        row.with("broker", broker)
            .with("log_dir", &dir.path)
            .with_some("total_bytes", dir.total_bytes)
            .with_some("usable_bytes", dir.usable_bytes)
            .failed(dir.error.as_ref())
    };
    if dir.replicas.is_empty() {
        return vec![row(Row::new())];
    }
    let replicas = dir.replicas.iter().map(|(key, replica)| {
        row(Row::of(key))
            .with("size", replica.size)
            .with("offset_lag", replica.offset_lag)
            .with("is_future", replica.is_future)
    });
    replicas.collect()
}
