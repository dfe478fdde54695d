//! `ottla topics`: lists, creates, alters, deletes and describes topics, with the meaning of Kafka's kafka-topics.

use ottla_sorted::SortedMap;
use std::io::{self, Write};

use clap::Args;
use ottla::{
    Admin, AdminOptions, ConfigResource, ErrorCode, ErrorKind, NewPartitions, NewTopic, TopicDescription,
    admin::Uuid,
};
use serde_json::{Value, json};

use super::admin_command::{Common, finish, pair, subcommands};
use super::delete_records::DeleteRecordsOptions;
use crate::client_options::call_timeout;
use crate::failure::{EXIT_CODES, Failure, Outcome};

subcommands! {
    /// List, create, alter, delete and describe topics, and delete records
    #[command(after_help = format!("Examples:\n  \
        ottla topics -b localhost:9092 list\n  \
        ottla topics -b localhost:9092 create demo --partitions 6 --replication-factor 3 --config retention.ms=3600000\n  \
        ottla topics -b localhost:9092 alter demo --partitions 12\n  \
        ottla topics -b localhost:9092 describe --under-replicated\n  \
        ottla topics -b localhost:9092 delete demo --dry-run\n  \
        ottla topics -b localhost:9092 delete-records demo:0=100 demo:1=end --dry-run\n  \
        ottla topics describe demo -b localhost:9092\n\n{EXIT_CODES}"))]
    TopicsOptions {
        List(ListOptions),
        Create(CreateOptions),
        Alter(AlterOptions),
        Delete(DeleteOptions),
        DeleteRecords(DeleteRecordsOptions),
        Describe(DescribeOptions),
    }
}

/// Print the names of all topics
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    common: Common,
}

impl ListOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let names = topic_names(admin)?;
        let mut out = io::stdout().lock();
        if self.common.json {
            writeln!(out, "{}", Value::from(names))?;
            return Ok(());
        }
        names.iter().try_for_each(|name| writeln!(out, "{name}"))?;
        Ok(())
    }
}

/// Create topics
#[derive(Args, Debug)]
struct CreateOptions {
    #[command(flatten)]
    common: Common,

    /// Names of the topics
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,

    /// The number of partitions [default: num.partitions of the brokers]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..=100_000))]
    partitions: Option<i32>,

    /// The number of replicas [default: default.replication.factor of the brokers]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i16).range(1..))]
    replication_factor: Option<i16>,

    /// The brokers of each partition's replicas, the preferred leader first, such as 1:2,2:3 for two partitions
    #[arg(long, value_name = "ID:ID,...", conflicts_with_all = ["partitions", "replication_factor"], value_parser = assignment)]
    replica_assignment: Option<Assignment>,

    /// Set a property of the topics; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    config: Vec<(String, String)>,

    /// A topic that exists is not an error
    #[arg(long)]
    if_not_exists: bool,

    /// Only let the brokers check the request
    #[arg(long)]
    dry_run: bool,
}

/// The brokers of each partition's replicas.
#[derive(Clone, Debug)]
struct Assignment(Vec<Vec<i32>>);

fn assignment(text: &str) -> Result<Assignment, String> {
    let id = |id: &str| id.trim().parse::<i32>().map_err(|_| format!("\"{id}\" is not an ID of a broker"));
    let replicas = |partition: &str| partition.split(':').map(id).collect::<Result<Vec<_>, _>>();
    text.split(',').map(replicas).collect::<Result<Vec<_>, _>>().map(Assignment)
}

impl CreateOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let new = |name: &String| {
            let (partitions, replicas) =
                (self.partitions.unwrap_or(-1), self.replication_factor.unwrap_or(-1));
            let mut topic = NewTopic::new(name, partitions, replicas);
            for (partition, replicas) in (0..).zip(self.replica_assignment.iter().flat_map(|all| &all.0)) {
                topic = topic.assign(partition, replicas);
            }
            self.config.iter().fold(topic, |topic, (name, value)| topic.config(name, value))
        };
        let topics: Vec<NewTopic> = self.topics.iter().map(new).collect();
        let options = AdminOptions::new(call_timeout()).validate_only(self.dry_run);
        let mut results = admin.create_topics(&topics, options)?;
        if self.if_not_exists {
            results.retain(|(_, result)| !is_error(result, ErrorCode::TOPIC_ALREADY_EXISTS));
        }
        report(&self.common, results, if self.dry_run { "would be created:" } else { "created" })
    }
}

fn is_error(result: &ottla::Result<()>, code: ErrorCode) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Broker(code))
}

/// Increase the number of partitions. Records with a key are then written to other partitions than before
#[derive(Args, Debug)]
struct AlterOptions {
    #[command(flatten)]
    common: Common,

    /// Names of the topics
    #[arg(required = true, value_name = "TOPIC", add = crate::completion::topics())]
    topics: Vec<String>,

    /// The number of partitions afterwards
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(1..=100_000))]
    partitions: i32,

    /// Only let the brokers check the request
    #[arg(long)]
    dry_run: bool,
}

impl AlterOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let topics: Vec<_> =
            self.topics.iter().map(|topic| NewPartitions::new(topic, self.partitions)).collect();
        let options = AdminOptions::new(call_timeout()).validate_only(self.dry_run);
        let results = admin.create_partitions(&topics, options)?;
        report(&self.common, results, if self.dry_run { "would be changed:" } else { "changed" })
    }
}

/// Delete topics
#[derive(Args, Debug)]
struct DeleteOptions {
    #[command(flatten)]
    common: Common,

    /// Names of the topics
    #[arg(required_unless_present = "topic_id", value_name = "TOPIC", add = crate::completion::topics())]
    topics: Vec<String>,

    /// The ID of a topic, instead of a name; can be repeated. A topic that was recreated has another one
    #[arg(long, value_name = "ID", value_parser = topic_id, conflicts_with = "topics")]
    topic_id: Vec<Uuid>,

    /// A topic that does not exist is not an error
    #[arg(long)]
    if_exists: bool,

    /// Only print the topics that would be deleted
    #[arg(long)]
    dry_run: bool,
}

impl DeleteOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let names: Vec<_> = self.topics.iter().map(String::as_str).collect();
        let is_missing = |error: &ottla::Error| {
            let codes = [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ErrorCode::UNKNOWN_TOPIC_ID];
            error.kind() == ErrorKind::UnknownTopic
                || codes.iter().any(|code| error.kind() == ErrorKind::Broker(*code))
        };
        let results: Vec<_> = if !self.topic_id.is_empty() {
            by_id(if self.dry_run {
                let described = admin.describe_topics_by_id(&self.topic_id, call_timeout())?.into_iter();
                described.map(|(id, result)| (id, result.map(drop))).collect()
            } else {
                admin.delete_topics_by_id(&self.topic_id, call_timeout())?
            })
        } else if self.dry_run {
            let described = admin.describe_topics(&names, call_timeout())?.into_iter();
            described.map(|topic| (topic.name, topic.error.map_or(Ok(()), Err))).collect()
        } else {
            admin.delete_topics(&names, call_timeout())?
        };
        let is_counted =
            |result: &ottla::Result<()>| !self.if_exists || !result.as_ref().is_err_and(&is_missing);
        let results = results.into_iter().filter(|(_, result)| is_counted(result)).collect();
        report(&self.common, results, if self.dry_run { "would be deleted:" } else { "deleted" })
    }
}

fn topic_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| {
        format!("\"{text}\" is not a topic ID; `ottla topics describe` prints the ID of each topic")
    })
}

/// Converts results by ID for [`report`], whose errors name their topics.
fn by_id(results: Vec<(Uuid, ottla::Result<()>)>) -> Vec<(String, ottla::Result<()>)> {
    let named = |(id, result): (Uuid, ottla::Result<()>)| {
        let id = id.to_string();
        let result = result.map_err(|error| error.with_topic(&*id));
        (id, result)
    };
    results.into_iter().map(named).collect()
}

/// Print partitions, leaders and replicas
#[derive(Args, Debug)]
struct DescribeOptions {
    #[command(flatten)]
    common: Common,

    /// Names of the topics [default: all topics]
    #[arg(value_name = "TOPIC", add = crate::completion::topics())]
    topics: Vec<String>,

    /// The ID of a topic, instead of a name; can be repeated
    #[arg(long, value_name = "ID", value_parser = topic_id, conflicts_with = "topics")]
    topic_id: Vec<Uuid>,

    /// Only partitions with a replica that is not in sync
    #[arg(long)]
    under_replicated: bool,

    /// Only partitions without a leader
    #[arg(long)]
    unavailable: bool,

    /// Only partitions with fewer in-sync replicas than min.insync.replicas
    #[arg(long)]
    under_min_isr: bool,

    /// Only partitions with exactly min.insync.replicas in-sync replicas
    #[arg(long)]
    at_min_isr: bool,
}

impl DescribeOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let (mut topics, failures) = self.described(admin)?;
        let is_filtered = self.under_replicated || self.unavailable || self.under_min_isr || self.at_min_isr;
        if is_filtered {
            let least = self.min_in_sync(admin, &topics)?;
            for topic in &mut topics {
                let least = least.get(&topic.name).copied().unwrap_or(1);
                topic.partitions.retain(|partition| {
                    let in_sync = partition.in_sync_replicas.len();
                    self.under_replicated && in_sync < partition.replicas.len()
                        || self.unavailable && partition.leader.is_none()
                        || self.under_min_isr && in_sync < least
                        || self.at_min_isr && in_sync == least
                });
            }
            topics.retain(|topic| !topic.partitions.is_empty());
        }
        let mut out = io::stdout().lock();
        if self.common.json {
            writeln!(out, "{}", Value::Array(topics.iter().map(as_json).collect()))?;
        } else {
            topics.iter().try_for_each(|topic| print(&mut out, topic, !is_filtered))?;
        }
        finish(failures)
    }

    /// Returns the topics, and the errors of those that can't be described.
    fn described(&self, admin: &Admin) -> Outcome<(Vec<TopicDescription>, Vec<String>)> {
        let (mut topics, mut failures) = (Vec::new(), Vec::new());
        if !self.topic_id.is_empty() {
            for (id, result) in admin.describe_topics_by_id(&self.topic_id, call_timeout())? {
                match result {
                    Ok(topic) => topics.push(topic),
                    Err(error) => failures.push(format!("topic ID {id}: {error}")),
                }
            }
            return Ok((topics, failures));
        }
        let mut names = self.topics.clone();
        if names.is_empty() {
            names =
                admin.metadata(None, call_timeout())?.topics.into_iter().map(|topic| topic.name).collect();
        }
        names.sort();
        names.dedup();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        // Metadata does not report eligible leaders.
        let described =
            if names.is_empty() { Vec::new() } else { admin.describe_topics(&names, call_timeout())? };
        for topic in described {
            match topic.error {
                Some(error) => failures.push(error.to_string()),
                None => topics.push(topic),
            }
        }
        Ok((topics, failures))
    }

    /// Returns `min.insync.replicas` of the topics, if an option needs it.
    fn min_in_sync(&self, admin: &Admin, topics: &[TopicDescription]) -> Outcome<SortedMap<String, usize>> {
        if !self.under_min_isr && !self.at_min_isr || topics.is_empty() {
            return Ok(SortedMap::new());
        }
        let resources: Vec<_> = topics.iter().map(|topic| ConfigResource::topic(&topic.name)).collect();
        let mut all = SortedMap::new();
        for (resource, entries) in admin.describe_configs(&resources, call_timeout())? {
            let value = entries?.into_iter().find(|entry| entry.name == "min.insync.replicas");
            let least = value.and_then(|entry| entry.value?.parse().ok());
            all.insert(resource.name, least.unwrap_or(1));
        }
        Ok(all)
    }
}

fn as_json(topic: &TopicDescription) -> Value {
    let partitions = topic.partitions.iter().map(|partition| {
        json!({
            "partition": partition.id,
            "leader": partition.leader,
            "replicas": partition.replicas,
            "in_sync_replicas": partition.in_sync_replicas,
            "offline_replicas": partition.offline_replicas,
            "eligible_leader_replicas": partition.eligible_leader_replicas,
            "last_known_eligible_leader_replicas": partition.last_known_eligible_leader_replicas,
        })
    });
    json!({
        "topic": topic.name,
        "topic_id": topic.id,
        "is_internal": topic.is_internal,
        "partitions": partitions.collect::<Vec<_>>(),
    })
}

fn print(out: &mut impl Write, topic: &TopicDescription, with_heading: bool) -> Outcome {
    if with_heading {
        let replicas = topic.partitions.first().map_or(0, |partition| partition.replicas.len());
        writeln!(
            out,
            "Topic: {}\tTopicId: {}\tPartitionCount: {}\tReplicationFactor: {replicas}",
            topic.name,
            topic.id.as_deref().unwrap_or("none"),
            topic.partitions.len(),
        )?;
    }
    let reported = |replicas: &Option<Vec<i32>>| replicas.as_deref().map_or("N/A".to_owned(), join);
    for partition in &topic.partitions {
        writeln!(
            out,
            "\tTopic: {}\tPartition: {}\tLeader: {}\tReplicas: {}\tIsr: {}\tElr: {}\tLastKnownElr: {}",
            topic.name,
            partition.id,
            partition.leader.map_or("none".to_string(), |leader| leader.to_string()),
            join(&partition.replicas),
            join(&partition.in_sync_replicas),
            reported(&partition.eligible_leader_replicas),
            reported(&partition.last_known_eligible_leader_replicas),
        )?;
    }
    Ok(())
}

/// Returns the names of all topics, sorted.
pub fn topic_names(admin: &Admin) -> Outcome<Vec<String>> {
    let mut names = admin.list_topics(call_timeout())?;
    names.sort();
    Ok(names)
}

/// Returns the number of partitions of a topic.
pub fn partition_count(admin: &Admin, topic: &str) -> Outcome<i32> {
    let cluster = admin.metadata(Some(&[topic]), call_timeout())?;
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
fn report(common: &Common, results: Vec<(String, ottla::Result<()>)>, done: &str) -> Outcome {
    // The errors name their topics themselves.
    let mut failures = Vec::new();
    let mut succeeded = Vec::new();
    for (topic, result) in results {
        match result {
            Ok(()) => succeeded.push((topic, Ok(()))),
            Err(error) => failures.push(error.to_string()),
        }
    }
    common.report("topic", done, succeeded)?;
    finish(failures)
}

/// Joins numbers with commas.
pub fn join(numbers: &[i32]) -> String {
    numbers.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}
