//! `ottla topics`: list, create, delete, describe.

use std::io::{self, Write};
use std::time::Duration;

use clap::{Args, Subcommand};
use ottla::{Admin, NewTopic};

use crate::client_options::{ClientOptions, require_servers};
use crate::failure::{Failure, Outcome};

/// How long a call to the cluster may take.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// List, create, delete and describe topics
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    ottla topics -b localhost:9092 list\n  \
    ottla topics -b localhost:9092 create demo --partitions 6 --replication-factor 3 --config retention.ms=3600000\n  \
    ottla topics -b localhost:9092 delete demo")]
pub struct TopicsOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Print the names of all topics
    List,
    /// Create topics
    Create {
        /// Their names
        #[arg(required = true, value_name = "TOPIC")]
        topics: Vec<String>,
        /// How many partitions; the brokers' default where it isn't given
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..=100_000))]
        partitions: Option<i32>,
        /// How many replicas; the brokers' default where it isn't given
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i16).range(1..))]
        replication_factor: Option<i16>,
        /// Set a property of the topics; may stand more than once
        #[arg(long, value_name = "NAME=VALUE")]
        config: Vec<String>,
    },
    /// Delete topics
    Delete {
        /// Their names
        #[arg(required = true, value_name = "TOPIC")]
        topics: Vec<String>,
    },
    /// Print partitions, leaders and replicas
    Describe {
        /// Their names; all topics where none is given
        #[arg(value_name = "TOPIC")]
        topics: Vec<String>,
    },
}

/// Does it.
pub fn run(options: &TopicsOptions) -> Outcome {
    if options.client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let config = options.client.config()?;
    require_servers(&config)?;
    let new_topics = match &options.action {
        Action::Create { topics, partitions, replication_factor, config } => {
            let mut new_topics = Vec::new();
            for name in topics {
                let mut topic =
                    NewTopic::new(name, partitions.unwrap_or(-1), replication_factor.unwrap_or(-1));
                for pair in config {
                    let (name, value) = pair
                        .split_once('=')
                        .ok_or_else(|| Failure::Usage(format!("--config {pair}: write NAME=VALUE")))?;
                    topic = topic.config(name, value);
                }
                new_topics.push(topic);
            }
            new_topics
        }
        _ => Vec::new(),
    };
    let admin = Admin::new(&config)?;
    match &options.action {
        Action::List => {
            let mut out = io::stdout().lock();
            for name in topic_names(&admin)? {
                writeln!(out, "{name}")?;
            }
            Ok(())
        }
        Action::Create { .. } => report(admin.create_topics(&new_topics, TIMEOUT)?, "created"),
        Action::Delete { topics } => {
            let names: Vec<_> = topics.iter().map(String::as_str).collect();
            report(admin.delete_topics(&names, TIMEOUT)?, "deleted")
        }
        Action::Describe { topics } => describe(&admin, topics),
    }
}

/// The names of all topics, in order.
pub fn topic_names(admin: &Admin) -> Outcome<Vec<String>> {
    let mut names = admin.list_topics(TIMEOUT)?;
    names.sort();
    Ok(names)
}

/// How many partitions a topic has.
pub fn partition_count(admin: &Admin, topic: &str) -> Outcome<i32> {
    let cluster = admin.metadata(Some(&[topic]), TIMEOUT)?;
    let Some(description) = cluster.topics.into_iter().find(|description| description.name == topic) else {
        return Err(Failure::Failed(format!("topic {topic}: the brokers said nothing about it")));
    };
    match description.error {
        Some(error) => Err(error.into()),
        None => Ok(description.partitions.len() as i32),
    }
}

/// Prints one line per topic; one failure makes the command fail.
fn report(results: Vec<(String, ottla::Result<()>)>, done: &str) -> Outcome {
    let mut failures = Vec::new();
    for (topic, result) in results {
        match result {
            Ok(()) => println!("{done} topic {topic}"),
            Err(error) => failures.push(error.to_string()),
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(failures.join("\n"))),
    }
}

fn describe(admin: &Admin, topics: &[String]) -> Outcome {
    let names: Vec<_> = topics.iter().map(String::as_str).collect();
    let which = if names.is_empty() { None } else { Some(names.as_slice()) };
    let mut cluster = admin.metadata(which, TIMEOUT)?;
    cluster.topics.sort_by(|left, right| left.name.cmp(&right.name));
    let mut out = io::stdout().lock();
    let mut failure = None;
    for topic in cluster.topics {
        if let Some(error) = topic.error {
            failure = Some(error);
            continue;
        }
        let replicas = topic.partitions.first().map_or(0, |partition| partition.replicas.len());
        writeln!(
            out,
            "Topic: {}\tTopicId: {}\tPartitionCount: {}\tReplicationFactor: {replicas}",
            topic.name,
            topic.id.as_deref().unwrap_or("none"),
            topic.partitions.len(),
        )?;
        for partition in topic.partitions {
            writeln!(
                out,
                "\tTopic: {}\tPartition: {}\tLeader: {}\tReplicas: {}\tIsr: {}",
                topic.name,
                partition.id,
                partition.leader.map_or("none".to_string(), |leader| leader.to_string()),
                join(&partition.replicas),
                join(&partition.in_sync_replicas),
            )?;
        }
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Numbers with commas between.
pub fn join(numbers: &[i32]) -> String {
    numbers.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}
