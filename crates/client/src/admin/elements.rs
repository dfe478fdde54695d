//! The elements of a call that have a result each: an invalid one is refused alone.

use std::sync::Arc;

use ottla_core::error::{Error, Result};
use ottla_protocol::vocabulary::TopicPartition;
use ottla_sorted::SortedSet;

use super::{
    AdminFuture,
    calls::{check_name, invalid},
};
use crate::topic_name::{check_partition, check_topic_name};

/// The elements of a call, divided into those that are sent and those that no broker is asked about.
pub(super) struct Elements<E, R> {
    sent: Vec<E>,
    /// The results of the refused elements, each in its place; `None` is the place of an element that is sent.
    results: Vec<Option<R>>,
}

impl<E, R: Send + 'static> Elements<E, R> {
    /// Checks elements. `refused` creates the result of one that is not sent.
    pub(super) fn new<I>(
        elements: impl IntoIterator<Item = I>,
        mut check: impl FnMut(&I) -> Result<E>,
        refused: impl Fn(&I, Error) -> R,
    ) -> Self {
        let mut sent = Vec::new();
        let result = |element: I| match check(&element) {
            Ok(element) => {
                sent.push(element);
                None
            }
            Err(error) => Some(refused(&element, error)),
        };
        let results = elements.into_iter().map(result).collect();
        Self { sent, results }
    }

    /// Sends the valid elements, and returns the results of all in the order of the call. If all are refused, nothing is sent.
    pub(super) fn ask(
        self,
        name: &'static str,
        send: impl FnOnce(Vec<E>) -> AdminFuture<Vec<R>>,
    ) -> AdminFuture<Vec<R>> {
        let Self { sent, results } = self;
        if sent.is_empty() && !results.is_empty() {
            return AdminFuture::ready(name, Ok(results.into_iter().flatten().collect()));
        }
        send(sent).and_then(move |sent| {
            let mut sent = sent.into_iter();
            Ok(results.into_iter().filter_map(|refused| refused.or_else(|| sent.next())).collect())
        })
    }
}

/// The names of a call, to refuse one that is listed twice.
pub(super) struct Names<K>(SortedSet<K>);

impl<K: Ord> Names<K> {
    pub(super) fn new() -> Self {
        Self(SortedSet::new())
    }

    /// Error: an earlier element has the same name.
    pub(super) fn add(&mut self, what: &str, name: K) -> Result<()> {
        if self.0.insert(name) {
            return Ok(());
        }
        Err(invalid(format!("the {what} is named twice; name each one once per call")))
    }
}

impl Names<String> {
    /// Checks a name. `what` is the singular.
    pub(super) fn check(&mut self, what: &str, name: &str) -> Result<()> {
        check_name(what, name)?;
        self.add(&format!("{what} \"{name}\""), name.to_owned())
    }

    /// Checks the name of a topic.
    pub(super) fn check_topic(&mut self, name: &str) -> Result<()> {
        check_topic_name(name)?;
        self.add("topic", name.to_owned()).map_err(|error| error.with_topic(name))
    }
}

impl Names<(String, i32)> {
    /// Checks a partition.
    pub(super) fn check_partition(&mut self, topic: &str, partition: i32) -> Result<()> {
        check_partition(topic, partition)?;
        self.add("partition", (topic.to_owned(), partition))
            .map_err(|error| error.with_partition(topic, partition))
    }
}

/// Checks partitions, each of which has a result with its name.
pub(super) fn checked_partitions<T: Send + 'static>(
    partitions: &[(&str, i32)],
) -> Elements<TopicPartition, (TopicPartition, Result<T>)> {
    let mut names = Names::new();
    let key = |(topic, partition): &(&str, i32)| TopicPartition::new(*topic, *partition);
    let check = |one: &&(&str, i32)| names.check_partition(one.0, one.1).map(|()| key(one));
    Elements::new(partitions, check, |one, error| (key(one), Err(error)))
}

/// Checks partitions, each of which has a result in its place.
pub(super) fn checked_positions<T: Send + 'static>(
    partitions: &[(&str, i32)],
) -> Elements<TopicPartition, Result<T>> {
    let mut names = Names::new();
    let check =
        |one: &&(&str, i32)| names.check_partition(one.0, one.1).map(|()| TopicPartition::new(one.0, one.1));
    Elements::new(partitions, check, |_, error| Err(error))
}

/// Elements that are names.
type ElementsByName<T> = Elements<Arc<str>, (String, Result<T>)>;

/// Checks names, each of which has a result. Error: there is none. `what` is the singular.
pub(super) fn checked_names<T: Send + 'static>(what: &str, ids: &[&str]) -> Result<ElementsByName<T>> {
    if ids.is_empty() {
        return Err(invalid(format!("no {what}; name at least one")));
    }
    let mut names = Names::new();
    let check = |id: &&&str| names.check(what, id).map(|()| Arc::from(**id));
    Ok(Elements::new(ids, check, |id, error| (id.to_string(), Err(error))))
}
