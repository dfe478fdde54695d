//! `ottla topics`: lists, creates, deletes and describes topics.

use std::io::{self, Write};
use std::time::Duration;

use clap::{Args, Subcommand};
use ottla::{Admin, ErrorKind, NewTopic};

use crate::client_options::ClientOptions;
use crate::events::EventWatch;
use crate::failure::{EXIT_CODES, Failure, Outcome};

/// The timeout of a request after the first broker has responded.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// List, create, delete and describe topics
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla topics -b localhost:9092 list\n  \
    ottla topics -b localhost:9092 create demo --partitions 6 --replication-factor 3 --config retention.ms=3600000\n  \
    ottla topics -b localhost:9092 delete demo\n  \
    ottla topics describe demo -b localhost:9092\n\n{EXIT_CODES}"))]
pub struct TopicsOptions {
    #[command(flatten)]
    client: ClientOptions,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Print the names of all topics
    List {
        #[command(flatten)]
        client: ClientOptions,
    },
    /// Create topics
    Create {
        #[command(flatten)]
        client: ClientOptions,
        /// Names of the topics
        #[arg(required = true, value_name = "TOPIC")]
        topics: Vec<String>,
        /// The number of partitions [default: num.partitions of the brokers]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..=100_000))]
        partitions: Option<i32>,
        /// The number of replicas [default: default.replication.factor of the brokers]
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i16).range(1..))]
        replication_factor: Option<i16>,
        /// Set a property of the topics; can be repeated
        #[arg(long, value_name = "NAME=VALUE")]
        config: Vec<String>,
    },
    /// Delete topics
    Delete {
        #[command(flatten)]
        client: ClientOptions,
        /// Names of the topics
        #[arg(required = true, value_name = "TOPIC")]
        topics: Vec<String>,
    },
    /// Print partitions, leaders and replicas
    Describe {
        #[command(flatten)]
        client: ClientOptions,
        /// Names of the topics [default: all topics]
        #[arg(value_name = "TOPIC")]
        topics: Vec<String>,
    },
}

impl Action {
    fn client(&self) -> &ClientOptions {
        match self {
            Action::List { client }
            | Action::Create { client, .. }
            | Action::Delete { client, .. }
            | Action::Describe { client, .. } => client,
        }
    }
}

/// Runs the command; `outer` are the options before its name.
pub fn run(options: &TopicsOptions, outer: &ClientOptions) -> Outcome {
    let client = options.action.client().after(&options.client.after(outer));
    if client.wants_list() {
        return super::properties::list(&mut io::stdout().lock());
    }
    let new_topics = match &options.action {
        Action::Create { topics, partitions, replication_factor, config, .. } => {
            let mut new_topics = Vec::new();
            for name in topics {
                let mut topic =
                    NewTopic::new(name, partitions.unwrap_or(-1), replication_factor.unwrap_or(-1));
                for pair in config {
                    let (name, value) = pair.split_once('=').ok_or_else(|| {
                        Failure::Usage(format!("--config {pair}: \"=\" is missing; write NAME=VALUE"))
                    })?;
                    topic = topic.config(name, value);
                }
                new_topics.push(topic);
            }
            new_topics
        }
        _ => Vec::new(),
    };
    let (admin, _watch) = EventWatch::connect_admin(&client)?;
    match &options.action {
        Action::List { .. } => {
            let mut out = io::stdout().lock();
            for name in topic_names(&admin)? {
                writeln!(out, "{name}")?;
            }
            Ok(())
        }
        Action::Create { .. } => report(admin.create_topics(&new_topics, TIMEOUT)?, "created"),
        Action::Delete { topics, .. } => {
            let names: Vec<_> = topics.iter().map(String::as_str).collect();
            report(admin.delete_topics(&names, TIMEOUT)?, "deleted")
        }
        Action::Describe { topics, .. } => describe(&admin, topics),
    }
}

/// Returns the names of all topics, sorted.
pub fn topic_names(admin: &Admin) -> Outcome<Vec<String>> {
    let mut names = admin.list_topics(TIMEOUT)?;
    names.sort();
    Ok(names)
}

/// Returns the number of partitions of a topic.
pub fn partition_count(admin: &Admin, topic: &str) -> Outcome<i32> {
    let cluster = admin.metadata(Some(&[topic]), TIMEOUT)?;
    let Some(description) = cluster.topics.into_iter().find(|description| description.name == topic) else {
        return Err(Failure::Failed(format!("topic \"{topic}\": the metadata response does not contain it")));
    };
    match description.error {
        Some(error) if error.kind() == ErrorKind::UnknownTopic => Err(Failure::Failed(format!(
            "topic \"{topic}\" does not exist; `ottla topics list` prints all topics, `ottla topics create {topic}` creates it"
        ))),
        Some(error) => Err(error.into()),
        None => Ok(description.partitions.len() as i32),
    }
}

/// Prints a line for each topic that succeeded; fails with the errors of the others.
fn report(results: Vec<(String, ottla::Result<()>)>, done: &str) -> Outcome {
    let mut failures = Vec::new();
    for (topic, result) in results {
        match result {
            Ok(()) => writeln!(io::stdout(), "{done} topic {topic}")?,
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

/// Joins numbers with commas.
pub fn join(numbers: &[i32]) -> String {
    numbers.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}
