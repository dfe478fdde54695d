//! `ottla log-dirs`: the directories of brokers' logs, with the meaning of Kafka's kafka-log-dirs.

use std::collections::BTreeMap;

use clap::Args;
use ottla::{Admin, TopicPartition};

use super::admin_command::{Common, Partitions, finish, named, partitions, resolve, subcommands};
use super::table::Table;
use crate::client_options::call_timeout;
use crate::failure::{EXIT_CODES, Failure, Outcome};

subcommands! {
    /// Describe the log directories of brokers, and move replicas between them
    #[command(after_help = format!("Examples:\n  \
        ottla log-dirs -b localhost:9092 describe\n  \
        ottla log-dirs -b localhost:9092 describe --broker 1 --replicas orders\n  \
        ottla log-dirs -b localhost:9092 move --broker 1 --to /disk2/kafka-logs orders:0,1\n\n{EXIT_CODES}"))]
    LogDirsOptions { Describe(DescribeOptions), Move(MoveOptions) }
}

/// Print directories with their sizes, or the replicas in them
#[derive(Args, Debug)]
struct DescribeOptions {
    #[command(flatten)]
    common: Common,

    /// Only replicas of these partitions, as TOPIC or TOPIC:PARTITION,...
    #[arg(value_name = "PARTITIONS", value_parser = partitions)]
    partitions: Vec<Partitions>,

    /// Only this broker; can be repeated
    #[arg(long, value_name = "ID")]
    broker: Vec<i32>,

    /// Print a row for each replica
    #[arg(long)]
    replicas: bool,
}

impl DescribeOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let chosen = resolve(admin, &self.partitions)?;
        let chosen = named(&chosen);
        let chosen = (!self.partitions.is_empty()).then_some(&chosen[..]);
        let brokers = (!self.broker.is_empty()).then_some(&self.broker[..]);
        let mut table = Table::new(match self.replicas {
            true => &[
                ("BROKER", "broker", 0),
                ("LOG-DIR", "log_dir", 0),
                ("TOPIC", "topic", 0),
                ("PARTITION", "partition", 0),
                ("SIZE", "size", 0),
                ("LAG", "offset_lag", 0),
                ("FUTURE", "is_future", 0),
            ],
            false => &[
                ("BROKER", "broker", 0),
                ("LOG-DIR", "log_dir", 0),
                ("REPLICAS", "replicas", 0),
                ("SIZE", "size", 0),
                ("TOTAL", "total_bytes", 0),
                ("USABLE", "usable_bytes", 0),
            ],
        });
        let mut failures = Vec::new();
        for (broker, dirs) in admin.describe_log_dirs(brokers, chosen, call_timeout())? {
            let dirs = match dirs {
                Ok(dirs) => dirs,
                Err(error) => {
                    failures.push(format!("broker {broker}: {error}"));
                    continue;
                }
            };
            for dir in dirs {
                if let Some(error) = &dir.error {
                    failures.push(format!("broker {broker}, {}: {error}", dir.path));
                }
                let path = dir.path.as_str();
                if self.replicas {
                    for (key, replica) in &dir.replicas {
                        table.add([
                            broker.into(),
                            path.into(),
                            (*key.topic).into(),
                            key.partition.into(),
                            replica.size.into(),
                            replica.offset_lag.into(),
                            replica.is_future.into(),
                        ]);
                    }
                    continue;
                }
                let size: i64 = dir.replicas.values().map(|replica| replica.size).sum();
                let (count, total, usable) = (dir.replicas.len(), dir.total_bytes, dir.usable_bytes);
                table.add([
                    broker.into(),
                    path.into(),
                    count.into(),
                    size.into(),
                    total.into(),
                    usable.into(),
                ]);
            }
        }
        table.print(self.common.json)?;
        finish(failures)
    }
}

/// Move replicas of a broker to another of its directories
#[derive(Args, Debug)]
struct MoveOptions {
    #[command(flatten)]
    common: Common,

    /// Partitions, as TOPIC or TOPIC:PARTITION,...
    #[arg(value_name = "PARTITIONS", value_parser = partitions, required = true)]
    partitions: Vec<Partitions>,

    /// The broker
    #[arg(long, value_name = "ID")]
    broker: i32,

    /// The directory, as `ottla log-dirs describe` prints it
    #[arg(long, value_name = "PATH")]
    to: String,

    /// Only print the replicas that would move
    #[arg(long)]
    dry_run: bool,
}

impl MoveOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let chosen = resolve(admin, &self.partitions)?;
        let dirs = admin.describe_log_dirs(Some(&[self.broker]), None, call_timeout())?.remove(0).1?;
        if !dirs.iter().any(|dir| dir.path == self.to) {
            let known: Vec<&str> = dirs.iter().map(|dir| dir.path.as_str()).collect();
            return Err(Failure::Failed(format!(
                "broker {} has no directory {}; it has {}",
                self.broker,
                self.to,
                known.join(", ")
            )));
        }
        let is_elsewhere = |key: &TopicPartition| {
            dirs.iter().any(|dir| dir.path != self.to && dir.replicas.contains_key(key))
        };
        let keys: Vec<_> =
            chosen.iter().map(|(topic, partition)| TopicPartition::new(topic.as_str(), *partition)).collect();
        let keys: Vec<_> = keys.into_iter().filter(is_elsewhere).collect();
        let name = |key: &TopicPartition| format!("{} [{}]", key.topic, key.partition);
        if self.dry_run || keys.is_empty() {
            return self.common.preview("replica", keys.iter().map(name), "moved");
        }
        let paths: BTreeMap<_, _> = keys.into_iter().map(|key| (key, self.to.clone())).collect();
        let results = admin.alter_replica_log_dirs(self.broker, &paths, call_timeout())?;
        self.common.report("replica", "moving", super::admin_command::texts(results, name))
    }
}
