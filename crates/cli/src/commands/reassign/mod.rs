//! `ottla reassign`: moves replicas to brokers, with the plans of Kafka's kafka-reassign-partitions. [`minimal`] makes
//! those that move as little as possible, [`by_size`] evens bytes, [`plan`] reads them, [`sizes`] says how many bytes they move, [`throttle`] limits
//! the bandwidth.

mod by_size;
mod minimal;
mod plan;
mod sizes;
mod throttle;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use ottla::admin::Reassignments;
use ottla::{Admin, AdminOptions, TopicPartition};
use serde_json::Value;

use self::plan::{LogDirs, Plan};
use self::sizes::Sizes;
use self::throttle::Throttle;
use super::admin_command::{Common, Partitions, finish, named, partitions, resolve, subcommands, texts};
use super::table::Table;
use super::topics::join;
use crate::client_options::{call_timeout, parse_seconds};
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::standard_error::note;

subcommands! {
    /// Move replicas of partitions to other brokers
    #[command(after_help = format!("\
        A plan is a file in the format of Kafka's kafka-reassign-partitions:\n  \
        {{\"version\": 1, \"partitions\": [{{\"topic\": \"orders\", \"partition\": 0, \"replicas\": [2, 3]}}]}}\n\
        \"log_dirs\": [\"/data/b\", \"any\"] beside \"replicas\" names their directories.\n\n\
        Examples:\n  \
        ottla reassign -b localhost:9092 plan orders --replication-factor 3 > plan.json\n  \
        ottla reassign -b localhost:9092 plan --remove-broker 4 > plan.json\n  \
        ottla reassign -b localhost:9092 plan --balance --balance-leaders > plan.json\n  \
        ottla reassign -b localhost:9092 plan --balance-size > plan.json\n  \
        ottla reassign -b localhost:9092 generate orders invoices --brokers 2,3,4 > plan.json\n  \
        ottla reassign -b localhost:9092 execute plan.json --throttle 50000000\n  \
        ottla reassign -b localhost:9092 verify plan.json      # and removes the limit once it is complete\n  \
        ottla reassign -b localhost:9092 execute plan.json --wait\n  \
        ottla reassign -b localhost:9092 execute more.json --additional\n  \
        ottla reassign -b localhost:9092 list\n  \
        ottla reassign -b localhost:9092 cancel orders:0,1 --dry-run\n\n{EXIT_CODES}"))]
    ReassignOptions {
        Plan(minimal::PlanOptions),
        Generate(GenerateOptions),
        Execute(ExecuteOptions),
        Verify(VerifyOptions),
        List(ListOptions),
        Cancel(CancelOptions),
    }
}

fn shown(key: &TopicPartition) -> String {
    format!("{} [{}]", key.topic, key.partition)
}

/// Returns the topics of partitions.
fn topics<'a>(keys: impl Iterator<Item = &'a TopicPartition>) -> BTreeSet<&'a str> {
    keys.map(|key| &*key.topic).collect()
}

/// Returns the replicas of partitions now.
fn current(admin: &Admin, keys: impl Iterator<Item = TopicPartition>) -> Outcome<Plan> {
    let keys: BTreeSet<TopicPartition> = keys.collect();
    let mut topics: Vec<&str> = keys.iter().map(|key| &*key.topic).collect();
    topics.dedup();
    let mut plan = Plan::new();
    for topic in admin.describe_topics(&topics, call_timeout())? {
        if let Some(error) = topic.error {
            return Err(error.into());
        }
        for partition in topic.partitions {
            let key = TopicPartition::new(topic.name.as_str(), partition.id);
            if keys.contains(&key) {
                plan.insert(key, partition.replicas);
            }
        }
    }
    Ok(plan)
}

/// Print a plan that spreads replicas over brokers evenly
#[derive(Args, Debug)]
struct GenerateOptions {
    #[command(flatten)]
    common: Common,

    /// Partitions, as TOPIC or TOPIC:PARTITION,...
    #[arg(value_name = "PARTITIONS", value_parser = partitions, required = true)]
    partitions: Vec<Partitions>,

    /// IDs of the brokers
    #[arg(long, value_name = "ID,...", value_delimiter = ',', required = true)]
    brokers: Vec<i32>,

    /// The number of replicas [default: as now]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    replication_factor: Option<u16>,
}

impl GenerateOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let keys = resolve(admin, &self.partitions)?;
        let keys = keys.iter().map(|(topic, partition)| TopicPartition::new(topic.as_str(), *partition));
        let mut brokers = self.brokers.clone();
        brokers.sort_unstable();
        brokers.dedup();
        let now = current(admin, keys)?;
        let plan =
            spread(&now, &brokers, self.replication_factor.map(usize::from)).map_err(Failure::Usage)?;
        // Without a change of the other output: the plan itself is JSON.
        writeln!(io::stdout(), "{:#}", plan::to_json(&plan))?;
        Ok(())
    }
}

/// Spreads replicas: each partition's are distinct brokers, and leaders follow each other.
fn spread(now: &Plan, brokers: &[i32], replicas: Option<usize>) -> Result<Plan, String> {
    let mut plan = Plan::new();
    for (index, (key, before)) in now.iter().enumerate() {
        let count = replicas.unwrap_or(before.len());
        if count > brokers.len() {
            return Err(format!("{} has {count} replicas, for {} brokers", shown(key), brokers.len()));
        }
        // Followers of one leader differ from round to round.
        let shift = 1 + index / brokers.len() % (brokers.len() - 1).max(1);
        let follower = |number: usize| match number {
            0 => index,
            _ => index + 1 + (shift - 1 + number - 1) % (brokers.len() - 1),
        };
        let chosen = (0..count).map(|number| brokers[follower(number) % brokers.len()]);
        plan.insert(key.clone(), chosen.collect());
    }
    Ok(plan)
}

/// Start the reassignments of a plan
#[derive(Args, Debug)]
struct ExecuteOptions {
    #[command(flatten)]
    common: Common,

    /// The file with the plan; - for standard input
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// Wait until all replicas are in their places, and show the progress on standard error
    #[arg(long)]
    wait: bool,

    /// With --wait: give up after this time; the reassignments go on
    #[arg(long, value_name = "SECONDS", requires = "wait", value_parser = parse_seconds)]
    wait_timeout: Option<Duration>,

    /// Refuse another number of replicas than now (Kafka 4.1 or later)
    #[arg(long)]
    same_replication_factor: bool,

    #[command(flatten)]
    throttle: Throttle,

    /// With --wait: keep the limits of the bandwidth afterwards
    #[arg(long, requires = "wait")]
    preserve_throttles: bool,

    /// Start the reassignments although others are in progress
    #[arg(long)]
    additional: bool,

    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
}

impl ExecuteOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let (plan, log_dirs) = plan::read(&self.plan)?;
        let ongoing = admin.list_reassignments(None, call_timeout())?.len();
        if ongoing > 0 && !self.additional {
            return Err(Failure::Failed(format!(
                "{ongoing} reassignments are in progress; use --additional to start others beside them, or to change \
                 their limits with the same plan"
            )));
        }
        let now = current(admin, plan.keys().cloned())?;
        if self.dry_run {
            self.throttle.set(admin, &plan, &now, true)?;
            return self.preview(&plan, &now, &Sizes::of(admin, &plan, &now)?);
        }
        // The plan that undoes this one.
        note!("replicas before: {}", plan::to_json(&now));
        // The replicas must not start without their limits.
        self.throttle.set(admin, &plan, &now, false)?;
        let reassignments: Reassignments =
            plan.iter().map(|(key, replicas)| (key.clone(), Some(replicas.clone()))).collect();
        let options = AdminOptions::new(call_timeout()).same_replication_factor(self.same_replication_factor);
        let results = admin.alter_reassignments(&reassignments, options)?;
        let started: Vec<TopicPartition> =
            results.iter().filter(|(_, result)| result.is_ok()).map(|(key, _)| key.clone()).collect();
        let mut rows = texts(results, shown);
        rows.extend(move_replicas(admin, &log_dirs, &started)?);
        let reported = self.common.report("reassignment of", "started", rows);
        if self.wait {
            wait(admin, &started, self.wait_timeout)?;
            if !self.preserve_throttles && admin.list_reassignments(None, call_timeout())?.is_empty() {
                throttle::clear(admin, &topics(plan.keys()))?;
            }
        }
        reported
    }

    fn preview(&self, plan: &Plan, now: &Plan, sizes: &Sizes) -> Outcome {
        let mut table = Table::new(&[
            ("TOPIC", "topic", 0),
            ("PARTITION", "partition", 0),
            ("REPLICAS", "replicas", 0),
            ("NEW-REPLICAS", "new_replicas", 0),
            ("MOVED-BYTES", "moved_bytes", 0),
        ]);
        let mut failures = Vec::new();
        for (key, replicas) in plan {
            match now.get(key) {
                Some(before) => {
                    let (before, after) = (join(before), join(replicas));
                    let moved = sizes.moved(now, key, replicas);
                    let topic = Value::from(&*key.topic);
                    table.add([topic, key.partition.into(), before.into(), after.into(), moved.into()]);
                }
                None => failures.push(format!("{} does not exist", shown(key))),
            }
        }
        table.print(self.common.json)?;
        sizes.summary(plan, now).iter().for_each(|line| note!("% {line}"));
        finish(failures)
    }
}

/// Moves replicas of the `started` partitions to the directories of the plan. A broker that does not have a replica yet refuses
/// that, and is asked again until the timeout.
fn move_replicas(
    admin: &Admin,
    log_dirs: &LogDirs,
    started: &[TopicPartition],
) -> Outcome<Vec<(String, Result<(), String>)>> {
    let mut rows = Vec::new();
    for (broker, paths) in log_dirs {
        let mut paths = paths.clone();
        paths.retain(|key, _| started.contains(key));
        if !paths.is_empty() {
            let name = |key: &TopicPartition| format!("{} to {} of broker {broker}", shown(key), paths[key]);
            rows.extend(texts(admin.alter_replica_log_dirs(*broker, &paths, call_timeout())?, name));
        }
    }
    Ok(rows)
}

/// The pause between two looks at the progress.
const POLL: Duration = Duration::from_millis(500);

/// Waits until no partition is being reassigned.
fn wait(admin: &Admin, keys: &[TopicPartition], timeout: Option<Duration>) -> Outcome {
    let began = Instant::now();
    let partitions: Vec<(&str, i32)> = keys.iter().map(|key| (&*key.topic, key.partition)).collect();
    let mut shown = None;
    while !partitions.is_empty() {
        let left = admin.list_reassignments(Some(&partitions), call_timeout())?.len();
        if shown != Some(left) {
            note!(
                "{} of {} partitions reassigned",
                partitions.len() - left.min(partitions.len()),
                partitions.len()
            );
            shown = Some(left);
        }
        if left == 0 {
            break;
        }
        if timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
            return Err(Failure::Failed(format!("{left} reassignments are not complete; they go on")));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Print whether the reassignments of a plan are complete, and remove the limits of the bandwidth once no reassignment is in
/// progress
#[derive(Args, Debug)]
struct VerifyOptions {
    #[command(flatten)]
    common: Common,

    /// The file with the plan; - for standard input
    #[arg(value_name = "PLAN")]
    plan: PathBuf,

    /// Keep the limits of the bandwidth
    #[arg(long)]
    preserve_throttles: bool,
}

impl VerifyOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let (plan, log_dirs) = plan::read(&self.plan)?;
        let ongoing = admin.list_reassignments(None, call_timeout())?;
        let now = current(admin, plan.keys().cloned())?;
        let mut table =
            Table::new(&[("TOPIC", "topic", 0), ("PARTITION", "partition", 0), ("STATUS", "status", 0)]);
        let mut failures = Vec::new();
        let elsewhere = elsewhere(admin, &log_dirs)?;
        for (key, replicas) in &plan {
            let status = if ongoing.contains_key(key) {
                "in progress".to_owned()
            } else if let Some(text) = elsewhere.get(key) {
                failures.push(format!("{} {text}", shown(key)));
                text.clone()
            } else if now.get(key) == Some(replicas) {
                "complete".to_owned()
            } else {
                let text = now
                    .get(key)
                    .map_or("does not exist".to_owned(), |now| format!("has replicas {}", join(now)));
                failures.push(format!("{} {text}", shown(key)));
                text
            };
            table.add([(*key.topic).into(), key.partition.into(), status.into()]);
        }
        table.print(self.common.json)?;
        if ongoing.is_empty() && !self.preserve_throttles {
            throttle::clear(admin, &topics(plan.keys()))?;
        }
        finish(failures)
    }
}

/// Returns the partitions of the plan with a replica in another directory, and which one.
fn elsewhere(admin: &Admin, log_dirs: &LogDirs) -> Outcome<BTreeMap<TopicPartition, String>> {
    let mut elsewhere = BTreeMap::new();
    for (broker, paths) in log_dirs {
        let keys: Vec<(&str, i32)> = paths.keys().map(|key| (&*key.topic, key.partition)).collect();
        for (_, dirs) in admin.describe_log_dirs(Some(&[*broker]), Some(&keys), call_timeout())? {
            for dir in dirs? {
                for (key, replica) in dir.replicas {
                    let is_there = paths.get(&key).is_none_or(|path| *path == dir.path);
                    if !replica.is_future && !is_there {
                        elsewhere.insert(key, format!("is in {} of broker {broker}", dir.path));
                    }
                }
            }
        }
    }
    Ok(elsewhere)
}

/// Print the reassignments in progress
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    common: Common,
}

impl ListOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let mut table = Table::new(&[
            ("TOPIC", "topic", 0),
            ("PARTITION", "partition", 0),
            ("REPLICAS", "replicas", 0),
            ("ADDING", "adding", 0),
            ("REMOVING", "removing", 0),
        ]);
        for (key, one) in admin.list_reassignments(None, call_timeout())? {
            let lists = [&one.replicas, &one.adding, &one.removing].map(|ids| Value::from(join(ids)));
            let [replicas, adding, removing] = lists;
            table.add([(*key.topic).into(), key.partition.into(), replicas, adding, removing]);
        }
        table.print(self.common.json)
    }
}

/// Cancel reassignments in progress; the replicas return to their places
#[derive(Args, Debug)]
struct CancelOptions {
    #[command(flatten)]
    common: Common,

    /// Partitions, as TOPIC or TOPIC:PARTITION,...
    #[arg(value_name = "PARTITIONS", value_parser = partitions, required_unless_present = "all")]
    partitions: Vec<Partitions>,

    /// All reassignments in progress
    #[arg(long, conflicts_with = "partitions")]
    all: bool,

    /// Keep the limits of the bandwidth; otherwise they are removed once no reassignment is in progress
    #[arg(long)]
    preserve_throttles: bool,

    /// Only print the reassignments that would be cancelled
    #[arg(long)]
    dry_run: bool,
}

impl CancelOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let chosen = resolve(admin, &self.partitions)?;
        let chosen = named(&chosen);
        let ongoing = admin.list_reassignments((!self.all).then_some(&chosen[..]), call_timeout())?;
        if self.dry_run || ongoing.is_empty() {
            return self.common.preview("reassignment of", ongoing.keys().map(shown), "cancelled");
        }
        let cancelled: Reassignments = ongoing.into_keys().map(|key| (key, None)).collect();
        let results = admin.alter_reassignments(&cancelled, call_timeout())?;
        let reported = self.common.report("reassignment of", "cancelled", texts(results, shown));
        if !self.preserve_throttles && admin.list_reassignments(None, call_timeout())?.is_empty() {
            throttle::clear(admin, &topics(cancelled.keys()))?;
        }
        reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(count: i32, replicas: usize) -> Plan {
        (0..count).map(|number| (TopicPartition::new("t", number), vec![9; replicas])).collect()
    }

    #[test]
    fn replicas_are_spread_evenly_over_distinct_brokers() {
        let spread = spread(&plan(12, 3), &[1, 2, 3, 4], None).unwrap();
        let mut leaders = BTreeMap::<i32, usize>::new();
        let mut all = BTreeMap::<i32, usize>::new();
        for replicas in spread.values() {
            assert_eq!(replicas.iter().collect::<BTreeSet<_>>().len(), 3, "{replicas:?}");
            *leaders.entry(replicas[0]).or_default() += 1;
            replicas.iter().for_each(|id| *all.entry(*id).or_default() += 1);
        }
        assert!(leaders.values().all(|count| *count == 3), "{leaders:?}");
        assert!(all.values().all(|count| *count == 9), "{all:?}");
        assert_eq!(
            super::spread(&plan(2, 1), &[5], None).unwrap().into_values().collect::<Vec<_>>(),
            [[5], [5]]
        );
        assert!(super::spread(&plan(1, 1), &[5], Some(2)).is_err());
    }
}
