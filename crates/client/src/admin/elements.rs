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
    /// The call is refused as a whole.
    error: Option<Error>,
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
        Self { sent, results, error: None }
    }

    /// Refuses a call without elements. `what` names them.
    pub(super) fn required(mut self, what: &str) -> Self {
        if self.results.is_empty() {
            self.error = Some(invalid(format!("no {what}; name at least one")));
        }
        self
    }

    /// Refuses a call whose other arguments are invalid.
    pub(super) fn only_if(mut self, checked: Result<()>) -> Self {
        self.error = checked.err().or(self.error);
        self
    }

    /// Sends the valid elements, and returns the results of all in the order of the call. If all are refused, nothing is sent.
    pub(super) fn ask(
        self,
        name: &'static str,
        send: impl FnOnce(Vec<E>) -> AdminFuture<Vec<R>>,
    ) -> AdminFuture<Vec<R>> {
        let Self { sent, results, error } = self;
        if let Some(error) = error {
            return AdminFuture::failed(name, error);
        }
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

/// Checks partitions, of which there must be some. `refused` creates the result of one that is not sent.
pub(super) fn checked_partitions<R: Send + 'static>(
    partitions: &[(&str, i32)],
    refused: impl Fn(TopicPartition, Error) -> R,
) -> Elements<TopicPartition, R> {
    let mut names = Names::new();
    let key = |(topic, partition): &(&str, i32)| TopicPartition::new(*topic, *partition);
    let check = |one: &&(&str, i32)| names.check_partition(one.0, one.1).map(|()| key(one));
    Elements::new(partitions, check, |one, error| refused(key(one), error)).required("partitions")
}

/// Checks names, of which there must be some. `what` is the singular.
pub(super) fn checked_names<T: Send + 'static>(
    what: &str,
    ids: &[&str],
) -> Elements<Arc<str>, (String, Result<T>)> {
    let mut names = Names::new();
    let check = |id: &&&str| names.check(what, id).map(|()| Arc::from(**id));
    Elements::new(ids, check, |id, error| (id.to_string(), Err(error))).required(what)
}
