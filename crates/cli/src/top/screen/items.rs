//! The rows of a page: filtered and in its order.

use std::cmp::Ordering;
use std::sync::Arc;

use super::columns::{Scope, View};
use super::figure::{Order, figure};
use super::messages::{Line, Messages, Source};
use super::state::Page;
use crate::top::groups::{Group, Member};
use crate::top::model::{Broker, Model, Partition, Topic};

/// A row.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    Topic(&'a Arc<str>, &'a Topic),
    Broker(i32, &'a Broker),
    Partition(&'a Arc<str>, i32, &'a Partition),
    Group(&'a str, &'a Group),
    Member(&'a str, &'a Member),
    Message(&'a Line),
}

/// What a row is about, while figures and order change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    Name(String),
    Broker(i32),
    Partition(Arc<str>, i32),
    Message(i32, i64),
}

impl Item<'_> {
    /// Returns what the row is about.
    pub fn id(&self) -> Id {
        match self {
            Item::Topic(name, _) => Id::Name(name.to_string()),
            Item::Broker(id, _) => Id::Broker(*id),
            Item::Partition(name, id, _) => Id::Partition(Arc::clone(name), *id),
            Item::Group(name, _) | Item::Member(name, _) => Id::Name((*name).to_owned()),
            Item::Message(line) => Id::Message(line.partition, line.offset),
        }
    }

    /// Returns the view that Enter opens.
    pub fn opens(&self) -> Option<View> {
        Some(match self {
            Item::Topic(name, _) => View::Partitions(Scope::Topic(Arc::clone(name))),
            Item::Broker(id, _) => View::Partitions(Scope::Broker(*id)),
            Item::Partition(name, id, _) => {
                View::Messages(Source { topic: Arc::clone(name), partition: Some(*id) })
            }
            Item::Group(name, _) => View::Members((*name).to_owned()),
            Item::Member(..) | Item::Message(_) => return None,
        })
    }

    /// Whether the row contains this text, which is in lower case.
    fn contains(&self, text: &str) -> bool {
        let has = |name: &str| name.to_lowercase().contains(text);
        match self {
            Item::Topic(name, _) | Item::Partition(name, ..) => has(name),
            Item::Broker(id, broker) => has(&broker.address) || id.to_string() == text,
            Item::Group(name, group) => has(name) || has(&group.state),
            Item::Member(name, member) => has(name) || has(&member.client_id) || has(&member.host),
            Item::Message(line) => has(&line.key) || has(&line.value),
        }
    }
}

/// Returns the rows of a page.
pub fn items<'a>(model: &'a Model, messages: &'a Messages, page: &Page) -> Vec<Item<'a>> {
    let mut rows = all(model, messages, &page.view);
    if !page.filter.is_empty() {
        let text = page.filter.to_lowercase();
        rows.retain(|row| row.contains(&text));
    }
    let mut keyed: Vec<(Order, Item<'a>)> =
        rows.into_iter().map(|row| (figure(&row, page.sort).order(), row)).collect();
    // The sort is stable: rows with the same figure stay in the order of their names.
    keyed.sort_by(|(one, _), (other, _)| match page.is_descending() {
        true => compare(other, one),
        false => compare(one, other),
    });
    keyed.into_iter().map(|(_, row)| row).collect()
}

fn compare(one: &Order, other: &Order) -> Ordering {
    match (one, other) {
        (Order::Number(one), Order::Number(other)) => one.total_cmp(other),
        (Order::Text(one), Order::Text(other)) => one.cmp(other),
        // What is not known is less than everything.
        (Order::Text(_), Order::Number(_)) => Ordering::Greater,
        (Order::Number(_), Order::Text(_)) => Ordering::Less,
    }
}

fn all<'a>(model: &'a Model, messages: &'a Messages, view: &View) -> Vec<Item<'a>> {
    match view {
        View::Topics => model.topics.iter().map(|(name, topic)| Item::Topic(name, topic)).collect(),
        View::Brokers => model.brokers.iter().map(|(id, broker)| Item::Broker(*id, broker)).collect(),
        View::Partitions(scope) => partitions(model, scope),
        View::Groups => model.groups.iter().map(|(name, group)| Item::Group(name, group)).collect(),
        View::Members(group) => {
            let members = model.groups.get(group.as_str()).into_iter().flat_map(|group| group.members.iter());
            members.map(|(name, member)| Item::Member(name, member)).collect()
        }
        View::Messages(_) => messages.lines.iter().map(Item::Message).collect(),
    }
}

fn partitions<'a>(model: &'a Model, scope: &Scope) -> Vec<Item<'a>> {
    let is_meant = |name: &Arc<str>, partition: &Partition| match scope {
        Scope::All => true,
        Scope::Problems => partition.is_leaderless() || partition.is_under_replicated(),
        Scope::Topic(topic) => name == topic,
        Scope::Broker(id) => partition.leader == Some(*id) || partition.replicas.contains(id),
    };
    let of_topic = |(name, topic): (&'a Arc<str>, &'a Topic)| {
        topic.partitions.iter().map(move |(id, partition)| (name, *id, partition))
    };
    let all = model.topics.iter().flat_map(of_topic);
    all.filter(|(name, _, partition)| is_meant(name, partition))
        .map(|(name, id, partition)| Item::Partition(name, id, partition))
        .collect()
}
