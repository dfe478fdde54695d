//! The limits of the bandwidth that reassignments may use, as kafka-reassign-partitions sets and removes them.
//!
//! A broker limits the replicas that its topics' configurations name, at the rate of its own configuration:
//!
//! | resource | property | value |
//! |---|---|---|
//! | topic | `leader.replication.throttled.replicas` | `PARTITION:BROKER,...`: the replicas before the reassignment |
//! | topic | `follower.replication.throttled.replicas` | the replicas that are added |
//! | broker | `leader.replication.throttled.rate`, `follower.replication.throttled.rate` | bytes per second |
//! | broker | `replica.alter.log.dirs.io.max.bytes.per.second` | bytes per second between its directories |

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use ottla::{Admin, AdminOptions, ConfigChange, ConfigEntry, ConfigResource};

use super::Plan;
use crate::client_options::call_timeout;
use crate::failure::{Failure, Outcome};
use crate::standard_error::note;

const OF_TOPICS: [&str; 2] =
    ["leader.replication.throttled.replicas", "follower.replication.throttled.replicas"];
const OF_BROKERS: [&str; 2] = ["leader.replication.throttled.rate", "follower.replication.throttled.rate"];
const OF_LOG_DIRS: &str = "replica.alter.log.dirs.io.max.bytes.per.second";

/// The limits of a reassignment.
#[derive(Args, Debug)]
pub struct Throttle {
    /// Let the brokers of the plan copy at most this many bytes per second to each other; `verify` removes the limit
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(i64).range(1..))]
    throttle: Option<i64>,

    /// Let the brokers of the plan copy at most this many bytes per second between their own directories
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(i64).range(1..))]
    replica_alter_log_dirs_throttle: Option<i64>,
}

type Changes = Vec<(ConfigResource, Vec<ConfigChange>)>;

impl Throttle {
    /// Returns the changes that limit the reassignment from the replicas of now to those of the plan.
    fn changes(&self, plan: &Plan, now: &Plan) -> Changes {
        let mut topics = BTreeMap::<&str, [Vec<String>; 2]>::new();
        let (mut moving, mut targets) = (BTreeSet::new(), BTreeSet::new());
        for (key, replicas) in plan {
            let before: &[i32] = now.get(key).map_or(&[], Vec::as_slice);
            let added = replicas.iter().filter(|id| !before.contains(id));
            let text = |id: &i32| format!("{}:{id}", key.partition);
            let [leaders, followers] = topics.entry(&*key.topic).or_default();
            leaders.extend(before.iter().map(text));
            followers.extend(added.map(text));
            moving.extend(before.iter().chain(replicas).copied());
            targets.extend(replicas.iter().copied());
        }
        let mut changes = Changes::new();
        let mut of_brokers = BTreeMap::<i32, Vec<ConfigChange>>::new();
        if let Some(rate) = self.throttle {
            for (topic, lists) in topics {
                let lists = OF_TOPICS.into_iter().zip(lists).filter(|(_, list)| !list.is_empty());
                let lists = lists.map(|(name, list)| ConfigChange::set(name, list.join(",")));
                changes.push((ConfigResource::topic(topic), lists.collect()));
            }
            for id in moving {
                let rates = OF_BROKERS.map(|name| ConfigChange::set(name, rate.to_string()));
                of_brokers.entry(id).or_default().extend(rates);
            }
        }
        if let Some(rate) = self.replica_alter_log_dirs_throttle {
            for id in targets {
                let rate = ConfigChange::set(OF_LOG_DIRS, rate.to_string());
                of_brokers.entry(id).or_default().push(rate);
            }
        }
        changes.extend(of_brokers.into_iter().map(|(id, changes)| (ConfigResource::broker(id), changes)));
        changes
    }

    /// Sets the limits, if there are any, or only lets the brokers check them.
    pub fn set(&self, admin: &Admin, plan: &Plan, now: &Plan, dry_run: bool) -> Outcome {
        let changes = self.changes(plan, now);
        if changes.is_empty() {
            return Ok(());
        }
        apply(admin, &changes, dry_run)?;
        let verb = if dry_run { "would be limited" } else { "limited" };
        note!("{verb}: {}", names(&changes));
        if !dry_run {
            note!("run \"ottla reassign verify\" until the reassignment is complete: it removes the limits");
        }
        Ok(())
    }
}

/// Removes the limits of these topics and of all brokers, as far as they are set. The limit between the directories of a broker
/// stays while it moves replicas between them.
pub fn clear(admin: &Admin, topics: &BTreeSet<&str>) -> Outcome {
    let brokers = admin.describe_cluster(call_timeout())?.brokers;
    let mut resources: Vec<ConfigResource> = topics.iter().copied().map(ConfigResource::topic).collect();
    resources.extend(brokers.iter().map(|broker| ConfigResource::broker(broker.id)));
    let mut changes = Changes::new();
    for (resource, entries) in admin.describe_configs(&resources, call_timeout())? {
        // A topic of the plan may be deleted since.
        let Ok(entries) = entries else { continue };
        let mut set: Vec<&str> =
            entries.iter().filter(|entry| is_limit(entry)).map(|entry| &*entry.name).collect();
        if set.contains(&OF_LOG_DIRS) && moves_replicas(admin, &resource)? {
            set.retain(|name| *name != OF_LOG_DIRS);
        }
        if !set.is_empty() {
            changes.push((resource, set.into_iter().map(ConfigChange::delete).collect()));
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    apply(admin, &changes, false)?;
    note!("limits removed: {}", names(&changes));
    Ok(())
}

/// Returns true if the entry is a limit that was set for one topic (source 1) or one broker (source 2).
fn is_limit(entry: &ConfigEntry) -> bool {
    let name = entry.name.as_str();
    match entry.source {
        1 => OF_TOPICS.contains(&name),
        2 => OF_BROKERS.contains(&name) || name == OF_LOG_DIRS,
        _ => false,
    }
}

fn moves_replicas(admin: &Admin, broker: &ConfigResource) -> Outcome<bool> {
    let Some(id) = broker.of_broker() else { return Ok(false) };
    for (_, dirs) in admin.describe_log_dirs(Some(&[id]), None, call_timeout())? {
        if dirs?.iter().any(|dir| dir.replicas.values().any(|replica| replica.is_future)) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn apply(admin: &Admin, changes: &Changes, dry_run: bool) -> Outcome {
    let options = AdminOptions::new(call_timeout()).validate_only(dry_run);
    let results = admin.incremental_alter_configs(changes, options)?;
    let failures: Vec<String> = results
        .into_iter()
        .filter_map(|(resource, result)| Some(format!("limits of {}: {}", named(&resource), result.err()?)))
        .collect();
    if failures.is_empty() { Ok(()) } else { Err(Failure::Failed(failures.join("\n"))) }
}

fn named(resource: &ConfigResource) -> String {
    let kind = if resource.of_broker().is_some() { "broker" } else { "topic" };
    format!("{kind} {}", resource.name)
}

fn names(changes: &Changes) -> String {
    changes.iter().map(|(resource, _)| named(resource)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use ottla::TopicPartition;

    use super::*;

    fn plan(of: &[(i32, &[i32])]) -> Plan {
        of.iter().map(|(number, ids)| (TopicPartition::new("t", *number), ids.to_vec())).collect()
    }

    /// A property with its value.
    type Text = (String, Option<String>);

    fn texts(changes: Changes) -> Vec<(String, Vec<Text>)> {
        let text = |changes: Vec<ConfigChange>| {
            changes.into_iter().map(|change| (change.name, change.value)).collect()
        };
        changes.into_iter().map(|(resource, changes)| (named(&resource), text(changes))).collect()
    }

    #[test]
    fn limits_name_the_replicas_before_and_those_that_are_added() {
        let throttle = Throttle { throttle: Some(1000), replica_alter_log_dirs_throttle: Some(7) };
        let changes = throttle.changes(&plan(&[(0, &[2, 3]), (1, &[1])]), &plan(&[(0, &[1, 2]), (1, &[1])]));
        let set = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let rates = OF_BROKERS.map(|name| set(name, "1000"));
        let with_dirs = [&rates[..], &[set(OF_LOG_DIRS, "7")]].concat();
        let lists = vec![set(OF_TOPICS[0], "0:1,0:2,1:1"), set(OF_TOPICS[1], "0:3")];
        let expected = [
            ("topic t", lists),
            ("broker 1", with_dirs.clone()),
            ("broker 2", with_dirs.clone()),
            ("broker 3", with_dirs),
        ];
        assert_eq!(texts(changes), expected.map(|(name, changes)| (name.to_owned(), changes)));
    }

    #[test]
    fn reassignment_without_limits_changes_no_configuration() {
        let throttle = Throttle { throttle: None, replica_alter_log_dirs_throttle: None };
        assert!(throttle.changes(&plan(&[(0, &[2])]), &plan(&[(0, &[1])])).is_empty());
    }
}
