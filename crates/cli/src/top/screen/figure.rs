//! What is in a cell: the figure of a row in a column, as text and as a key of the order.

use std::borrow::Cow;

use super::columns::Column;
use super::items::Item;
use super::messages::Line;
use crate::times::iso_time;
use crate::top::figures::{bytes, change, clean, short, sparkline};
use crate::top::groups::{Group, Member};
use crate::top::history::History;
use crate::top::model::{Broker, Partition, Topic};

/// The figure of a row in a column.
#[derive(Debug)]
pub enum Figure<'a> {
    /// It is not known, or there is none.
    Nothing,
    Text(Cow<'a, str>),
    /// A whole number, in full if it fits.
    Count(i64),
    Rate(f64),
    Bytes(f64),
    Change(f64),
    History(&'a History),
    /// A text with its place in the order.
    Ranked(f64, Cow<'a, str>),
}

/// The place of a figure in an order.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    Number(f64),
    Text(String),
}

impl Figure<'_> {
    /// Returns the place in the order of the column.
    pub fn order(&self) -> Order {
        match self {
            Figure::Nothing => Order::Number(f64::NEG_INFINITY),
            Figure::Text(text) => Order::Text(text.to_lowercase()),
            Figure::Count(count) => Order::Number(*count as f64),
            Figure::Rate(value) | Figure::Bytes(value) | Figure::Change(value) | Figure::Ranked(value, _) => {
                Order::Number(*value)
            }
            Figure::History(history) => Order::Number(history.last().unwrap_or(f64::NEG_INFINITY)),
        }
    }

    /// Returns the text for a cell of this width.
    pub fn text(&self, width: usize, is_ascii: bool) -> String {
        match self {
            Figure::Nothing => "-".to_owned(),
            Figure::Text(text) | Figure::Ranked(_, text) => clean(text),
            Figure::Count(count) => match count.to_string() {
                text if text.len() <= width => text,
                _ => short(*count as f64),
            },
            Figure::Rate(value) => short(*value),
            Figure::Bytes(value) => bytes(*value),
            Figure::Change(value) => change(*value),
            Figure::History(history) => sparkline(history.newest(width), width, is_ascii),
        }
    }
}

/// Returns the figure of a row in a column.
pub fn figure<'a>(row: &Item<'a>, column: Column) -> Figure<'a> {
    match row {
        Item::Topic(name, topic) => of_topic(name, topic, column),
        Item::Broker(id, broker) => of_broker(*id, broker, column),
        Item::Partition(name, id, partition) => of_partition(name, *id, partition, column),
        Item::Group(name, group) => of_group(name, group, column),
        Item::Member(name, member) => of_member(name, member, column),
        Item::Message(line) => of_message(line, column),
    }
}

fn count(value: usize) -> Figure<'static> {
    Figure::Count(i64::try_from(value).unwrap_or(i64::MAX))
}

fn known<'a>(value: Option<f64>, figure: impl FnOnce(f64) -> Figure<'a>) -> Figure<'a> {
    value.map_or(Figure::Nothing, figure)
}

fn size<'a>(value: Option<i64>) -> Figure<'a> {
    known(value.map(|bytes| bytes as f64), Figure::Bytes)
}

fn of_topic<'a>(name: &'a str, topic: &'a Topic, column: Column) -> Figure<'a> {
    match column {
        Column::Name => Figure::Text(name.into()),
        Column::Partitions => count(topic.partitions.len()),
        Column::Rate => known(topic.rate.last(), Figure::Rate),
        Column::History => Figure::History(&topic.rate),
        Column::ByteRate => known(topic.bytes.rate(), Figure::Bytes),
        Column::Size => size(topic.bytes.value()),
        Column::UnderReplicated => count(topic.under_replicated()),
        Column::Leaderless => count(topic.leaderless()),
        _ => Figure::Nothing,
    }
}

fn of_broker<'a>(id: i32, broker: &'a Broker, column: Column) -> Figure<'a> {
    match column {
        Column::Id => Figure::Count(id.into()),
        Column::Name if broker.is_up => Figure::Text(broker.address.as_str().into()),
        Column::Name => Figure::Text("down".into()),
        Column::Leads => count(broker.leads),
        Column::Replicas => count(broker.replicas),
        Column::UnderReplicated => count(broker.lagging),
        Column::Rate => known(broker.rate.last(), Figure::Rate),
        Column::History => Figure::History(&broker.rate),
        Column::Size => size(broker.bytes.value()),
        _ => Figure::Nothing,
    }
}

fn of_partition<'a>(name: &'a str, id: i32, partition: &'a Partition, column: Column) -> Figure<'a> {
    match column {
        Column::Name => Figure::Text(name.into()),
        Column::Partition => Figure::Count(id.into()),
        Column::Leader => partition.leader.map_or(Figure::Nothing, |leader| Figure::Count(leader.into())),
        Column::Rate => known(partition.end.rate(), Figure::Rate),
        Column::End => partition.end.value().map_or(Figure::Nothing, Figure::Count),
        Column::Size => size(partition.bytes.value()),
        Column::InSync => {
            let text = format!("{} of {}", partition.in_sync.len(), partition.replicas.len());
            Figure::Ranked(partition.in_sync.len() as f64, text.into())
        }
        Column::State if partition.is_leaderless() => Figure::Ranked(2.0, "no leader".into()),
        Column::State if partition.is_under_replicated() => {
            let is_missing = |id: &&i32| !partition.in_sync.contains(id);
            let missing: Vec<String> =
                partition.replicas.iter().filter(is_missing).map(ToString::to_string).collect();
            Figure::Ranked(1.0, format!("lacks {}", missing.join(",")).into())
        }
        Column::State => Figure::Ranked(0.0, "ok".into()),
        _ => Figure::Nothing,
    }
}

fn of_group<'a>(name: &'a str, group: &'a Group, column: Column) -> Figure<'a> {
    match column {
        Column::Name => Figure::Text(name.into()),
        Column::State => Figure::Text(group.state.as_str().into()),
        Column::Members => count(group.members.len()),
        Column::Lag => known(group.lag.last(), |lag| Figure::Count(lag as i64)),
        Column::Trend => known(group.trend, Figure::Change),
        Column::LagHistory => Figure::History(&group.lag),
        Column::Slow => match group.slowest() {
            Some(member) => Figure::Ranked(member.lag as f64, member.client_id.as_str().into()),
            None => Figure::Ranked(-1.0, "-".into()),
        },
        _ => Figure::Nothing,
    }
}

fn of_member<'a>(name: &'a str, member: &'a Member, column: Column) -> Figure<'a> {
    match column {
        Column::Name if member.client_id.is_empty() => Figure::Text(name.into()),
        Column::Name => Figure::Text(member.client_id.as_str().into()),
        Column::Host => Figure::Text(member.host.trim_start_matches('/').into()),
        Column::Partitions => count(member.partitions),
        Column::Rate => known(member.rate, Figure::Rate),
        Column::Lag => Figure::Count(member.lag),
        Column::Trend => known(member.trend, Figure::Change),
        Column::Slow if member.is_slow => Figure::Ranked(1.0, "slow".into()),
        Column::Slow => Figure::Ranked(0.0, "".into()),
        _ => Figure::Nothing,
    }
}

fn of_message<'a>(line: &'a Line, column: Column) -> Figure<'a> {
    match column {
        // The time of day: the date is that of the newest messages.
        Column::Time => {
            let time = iso_time(line.time_ms);
            let of_day = time.get(11..23).unwrap_or(&time).to_owned();
            Figure::Ranked(line.time_ms as f64, of_day.into())
        }
        Column::Partition => Figure::Count(line.partition.into()),
        Column::Offset => Figure::Count(line.offset),
        Column::Key => Figure::Text(line.key.as_str().into()),
        Column::Value => Figure::Text(line.value.as_str().into()),
        _ => Figure::Nothing,
    }
}
