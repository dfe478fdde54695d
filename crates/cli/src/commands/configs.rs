//! `ottla configs`: configurations of topics, brokers, groups and client metrics, with the meaning of Kafka's kafka-configs.

use clap::Args;
use ottla::{Admin, AdminOptions, ConfigChange, ConfigResource, ResourceKind};

use super::admin_command::{Common, finish, pair, subcommands, texts};
use super::table::Table;
use crate::client_options::call_timeout;
use crate::failure::{EXIT_CODES, Failure, Outcome};

subcommands! {
    /// Describe, set and delete configurations of topics, brokers, groups and client metrics
    #[command(after_help = format!("Examples:\n  \
        ottla configs -b localhost:9092 describe --topic orders\n  \
        ottla configs -b localhost:9092 describe --broker 1 --all\n  \
        ottla configs -b localhost:9092 set --topic orders retention.ms=3600000\n  \
        ottla configs -b localhost:9092 set --topic orders cleanup.policy=compact --append\n  \
        ottla configs -b localhost:9092 delete --topic orders retention.ms --dry-run\n\n{EXIT_CODES}"))]
    ConfigsOptions { List(ListOptions), Describe(DescribeOptions), Set(SetOptions), Delete(DeleteOptions) }
}

/// The resources that have configurations.
#[derive(Args, Debug)]
struct Resources {
    /// This topic; can be repeated
    #[arg(long, value_name = "TOPIC", add = crate::completion::topics())]
    topic: Vec<String>,

    /// The broker of this ID; can be repeated
    #[arg(long, value_name = "ID")]
    broker: Vec<i32>,

    /// The defaults of all brokers
    #[arg(long)]
    default_broker: bool,

    /// The loggers of the broker of this ID; can be repeated
    #[arg(long, value_name = "ID")]
    broker_logger: Vec<i32>,

    /// This group; can be repeated
    #[arg(long, value_name = "GROUP", add = crate::completion::groups())]
    group: Vec<String>,

    /// This subscription to client metrics; can be repeated
    #[arg(long, value_name = "NAME")]
    client_metrics: Vec<String>,
}

impl Resources {
    fn all(&self) -> Outcome<Vec<ConfigResource>> {
        let mut all: Vec<ConfigResource> = self.topic.iter().map(ConfigResource::topic).collect();
        all.extend(self.broker.iter().map(|id| ConfigResource::broker(*id)));
        let defaults = ConfigResource { kind: ResourceKind::BROKER, name: String::new() };
        all.extend(self.default_broker.then_some(defaults));
        all.extend(self.broker_logger.iter().map(|id| ConfigResource::broker_logger(*id)));
        all.extend(self.group.iter().map(ConfigResource::group));
        all.extend(self.client_metrics.iter().map(ConfigResource::client_metrics));
        all.sort();
        all.dedup();
        if all.is_empty() {
            let text = "no resource; add --topic, --broker, --default-broker, --broker-logger, --group or --client-metrics";
            return Err(Failure::Usage(text.into()));
        }
        Ok(all)
    }
}

/// The kinds of resources, with their names.
const KINDS: [(ResourceKind, &str); 5] = [
    (ResourceKind::TOPIC, "topic"),
    (ResourceKind::BROKER, "broker"),
    (ResourceKind::BROKER_LOGGER, "broker-logger"),
    (ResourceKind::CLIENT_METRICS, "client-metrics"),
    (ResourceKind::GROUP, "group"),
];

fn kind_name(kind: ResourceKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("unknown", |(_, name)| name)
}

fn kind(name: &str) -> Result<ResourceKind, String> {
    let known = || KINDS.map(|(_, name)| name).join(", ");
    KINDS
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(kind, _)| *kind)
        .ok_or_else(|| format!("use one of {}", known()))
}

fn shown(resource: &ConfigResource) -> String {
    let name = if resource.name.is_empty() { "<default>" } else { &resource.name };
    format!("{} {name}", kind_name(resource.kind))
}

/// The sources of values, as the protocol numbers them.
const SOURCES: [&str; 9] = [
    "UNKNOWN",
    "DYNAMIC_TOPIC_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "STATIC_BROKER_CONFIG",
    "DEFAULT_CONFIG",
    "DYNAMIC_BROKER_LOGGER_CONFIG",
    "CLIENT_METRICS_CONFIG",
    "GROUP_CONFIG",
];

fn source(number: i8) -> &'static str {
    usize::try_from(number).ok().and_then(|number| SOURCES.get(number)).unwrap_or(&SOURCES[0])
}

/// Print the resources that have a configuration
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    common: Common,

    /// Only resources of this kind: topic, broker, broker-logger, client-metrics or group; can be repeated
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<ResourceKind>,
}

impl ListOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let mut table = Table::new(&[("KIND", "kind", 0), ("NAME", "name", 0)]);
        for resource in admin.list_config_resources(&self.kind, call_timeout())? {
            table.add([kind_name(resource.kind).into(), resource.name.into()]);
        }
        table.print(self.common.json)
    }
}

/// Print properties that differ from their defaults
#[derive(Args, Debug)]
struct DescribeOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    resources: Resources,

    /// All properties, with those that have their default
    #[arg(long)]
    all: bool,

    /// A row for each place where a value is set, in the order of precedence
    #[arg(long)]
    synonyms: bool,
}

impl DescribeOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let mut table = Table::new(&[
            ("RESOURCE", "resource", 0),
            ("NAME", "name", 0),
            ("VALUE", "value", 0),
            ("SOURCE", "source", 0),
            ("READ-ONLY", "read_only", 0),
            ("SENSITIVE", "sensitive", 0),
        ]);
        let mut failures = Vec::new();
        for (resource, result) in admin.describe_configs(&self.resources.all()?, call_timeout())? {
            let entries = match result {
                Ok(entries) => entries,
                Err(error) => {
                    failures.push(format!("{}: {error}", shown(&resource)));
                    continue;
                }
            };
            let is_wanted = |is_default: bool, source: i8| self.all || !is_default && source != 4;
            for entry in entries.iter().filter(|entry| is_wanted(entry.is_default, entry.source)) {
                let mut add = |name: &str, value: &Option<String>, number: i8| {
                    table.add([
                        shown(&resource).into(),
                        name.into(),
                        value.clone().into(),
                        source(number).into(),
                        entry.is_read_only.into(),
                        entry.is_sensitive.into(),
                    ]);
                };
                match self.synonyms {
                    false => add(&entry.name, &entry.value, entry.source),
                    true => entry.synonyms.iter().for_each(|one| add(&one.name, &one.value, one.source)),
                }
            }
        }
        table.print(self.common.json)?;
        finish(failures)
    }
}

/// Set properties; others keep their values
#[derive(Args, Debug)]
struct SetOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    resources: Resources,

    /// Properties with their values
    #[arg(value_name = "NAME=VALUE", required = true, value_parser = pair)]
    properties: Vec<(String, String)>,

    /// Add the values to properties that are lists
    #[arg(long, conflicts_with = "subtract")]
    append: bool,

    /// Remove the values from properties that are lists
    #[arg(long)]
    subtract: bool,

    /// Only let the brokers check the request
    #[arg(long)]
    dry_run: bool,
}

impl SetOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let change = |(name, value): &(String, String)| match (self.append, self.subtract) {
            (true, _) => ConfigChange::append(name, value),
            (_, true) => ConfigChange::subtract(name, value),
            _ => ConfigChange::set(name, value),
        };
        let changes: Vec<_> = self.properties.iter().map(change).collect();
        alter(admin, &self.common, &self.resources, &changes, self.dry_run)
    }
}

/// Reset properties to their defaults
#[derive(Args, Debug)]
struct DeleteOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    resources: Resources,

    /// Names of the properties
    #[arg(value_name = "NAME", required = true)]
    properties: Vec<String>,

    /// Only let the brokers check the request
    #[arg(long)]
    dry_run: bool,
}

impl DeleteOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let changes: Vec<_> = self.properties.iter().map(ConfigChange::delete).collect();
        alter(admin, &self.common, &self.resources, &changes, self.dry_run)
    }
}

fn alter(
    admin: &Admin,
    common: &Common,
    resources: &Resources,
    changes: &[ConfigChange],
    dry_run: bool,
) -> Outcome {
    let all = resources.all()?.into_iter().map(|resource| (resource, changes.to_vec())).collect();
    let results =
        admin.incremental_alter_configs(&all, AdminOptions::new(call_timeout()).validate_only(dry_run))?;
    let done = if dry_run { "would be changed:" } else { "changed" };
    common.report("configuration of", done, texts(results, shown))
}
