//! One snapshot of the model, as tables or as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::figures::{bytes, change, clean, short};
use super::groups::Group;
use super::history::{Counter, History};
use super::model::{Model, Topic};
use crate::commands::table::Table;
use crate::failure::Outcome;

/// Prints the model to standard output.
pub fn print(model: &Model, as_json: bool) -> Outcome {
    if as_json {
        writeln!(io::stdout(), "{}", to_json(model))?;
        return Ok(());
    }
    writeln!(io::stdout(), "{}", summary(model))?;
    brokers(model).print(false)?;
    if !model.topics.is_empty() {
        topics(model).print(false)?;
    }
    if !model.groups.is_empty() {
        groups(model).print(false)?;
    }
    Ok(())
}

/// Returns the counts of the cluster as a sentence.
pub fn summary(model: &Model) -> String {
    let (lacking, leaderless) = problems(model);
    format!(
        "cluster {}: {} brokers, {} topics, {} partitions, {lacking} under-replicated, {leaderless} leaderless, {} records/s",
        model.id.as_deref().map_or("-".into(), clean),
        model.brokers.values().filter(|broker| broker.is_up).count(),
        model.topics.len(),
        model.partitions(),
        model.rate.last().map_or("-".into(), short),
    )
}

/// Returns the number of partitions that lack a replica, and of those without a leader.
pub fn problems(model: &Model) -> (usize, usize) {
    let topics = || model.topics.values();
    (topics().map(Topic::under_replicated).sum(), topics().map(Topic::leaderless).sum())
}

fn brokers(model: &Model) -> Table {
    let mut table = Table::new(&[
        ("BROKER", "broker", 0),
        ("ADDRESS", "address", 0),
        ("LEADS", "leads", 0),
        ("REPLICAS", "replicas", 0),
        ("LAGGING", "lagging", 0),
        ("RECORDS/S", "rate", 0),
        ("SIZE", "size", 0),
    ]);
    for (id, broker) in &model.brokers {
        let address = if broker.is_up { clean(&broker.address) } else { "down".to_owned() };
        table.add([
            (*id).into(),
            address.into(),
            broker.leads.into(),
            broker.replicas.into(),
            broker.lagging.into(),
            broker.rate.last().map(short).into(),
            size(&broker.bytes),
        ]);
    }
    table
}

fn topics(model: &Model) -> Table {
    let mut table = Table::new(&[
        ("TOPIC", "topic", 0),
        ("PARTITIONS", "partitions", 0),
        ("RECORDS/S", "rate", 0),
        ("BYTES/S", "byte_rate", 0),
        ("SIZE", "size", 0),
        ("UNDER-REPLICATED", "under_replicated", 0),
        ("LEADERLESS", "leaderless", 0),
    ]);
    for (name, topic) in &model.topics {
        table.add([
            clean(name).into(),
            topic.partitions.len().into(),
            topic.rate.last().map(short).into(),
            topic.bytes.rate().map(bytes).into(),
            size(&topic.bytes),
            topic.under_replicated().into(),
            topic.leaderless().into(),
        ]);
    }
    table
}

fn groups(model: &Model) -> Table {
    let mut table = Table::new(&[
        ("GROUP", "group", 0),
        ("STATE", "state", 0),
        ("MEMBERS", "members", 0),
        ("LAG", "lag", 0),
        ("TREND/S", "trend", 0),
        ("SLOWEST", "slowest", 0),
    ]);
    for (id, group) in &model.groups {
        table.add([
            clean(id).into(),
            group.state.as_str().into(),
            group.members.len().into(),
            group.lag.last().map(short).into(),
            group.trend.map(change).into(),
            group.slowest().map(|member| clean(&member.client_id)).into(),
        ]);
    }
    table
}

fn size(counter: &Counter) -> Value {
    counter.value().map(|value| bytes(value as f64)).into()
}

/// Returns the model as one JSON object. Rates are per second; what is not known is null.
pub fn to_json(model: &Model) -> Value {
    let (under_replicated, leaderless) = problems(model);
    let brokers = model.brokers.iter().map(|(id, broker)| {
        json!({
            "broker": id, "address": broker.address, "rack": broker.rack, "up": broker.is_up, "leads": broker.leads,
            "replicas": broker.replicas, "lagging_replicas": broker.lagging, "records_per_second": rate(&broker.rate),
            "bytes": broker.bytes.value(),
        })
    });
    let topics = model.topics.iter().map(|(name, topic)| topic_json(name, topic));
    let groups = model.groups.iter().map(|(id, group)| group_json(id, group));
    json!({
        "cluster": model.id, "controller": model.controller, "partitions": model.partitions(),
        "under_replicated_partitions": under_replicated, "leaderless_partitions": leaderless,
        "records_per_second": rate(&model.rate), "trouble": model.trouble, "groups_error": model.groups_failure,
        "sizes_error": model.sizes_failure, "brokers": brokers.collect::<Value>(), "topics": topics.collect::<Value>(),
        "groups": groups.collect::<Value>(),
    })
}

fn topic_json(name: &str, topic: &Topic) -> Value {
    json!({
        "topic": name, "partitions": topic.partitions.len(), "records_per_second": rate(&topic.rate),
        "bytes": topic.bytes.value(), "bytes_per_second": topic.bytes.rate().map(rounded),
        "under_replicated": topic.under_replicated(), "leaderless": topic.leaderless(), "error": topic.error,
    })
}

fn group_json(id: &str, group: &Group) -> Value {
    let members = group.members.iter().map(|(id, member)| {
        json!({
            "member": id, "client_id": member.client_id, "host": member.host, "partitions": member.partitions,
            "lag": member.lag, "slow": member.is_slow,
        })
    });
    json!({
        "group": id, "state": group.state, "coordinator": group.coordinator, "lag": group.lag.last(),
        "lag_per_second": group.trend.map(rounded), "members": members.collect::<Value>(),
    })
}

fn rate(history: &History) -> Option<f64> {
    history.last().map(rounded)
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
