//! Calls about topics and the cluster.

use std::sync::Arc;

use ottla_core::{
    admin::{
        describe::{
            ClusterDescription, TopicDescription, WhichTopics, describe_cluster, describe_operations,
            describe_topics,
        },
        topics::{NewPartitions, NewTopic, TopicResults, create_partitions, create_topics, delete_topics},
    },
    error::{Error, ErrorKind, Result},
};
use ottla_sorted::SortedSet;

use ottla_protocol::vocabulary::NodeId;

use super::{Admin, AdminFuture, AdminOptions};
use crate::topic_name::check_topic_name;

impl Admin {
    /// Creates topics. With [`AdminOptions::validate_only`] the broker only checks whether it could.
    ///
    /// Other brokers may learn of a new topic a little later than the one that created it.
    pub fn create_topics(
        &self,
        topics: &[NewTopic],
        options: impl Into<AdminOptions>,
    ) -> Result<TopicResults> {
        self.create_topics_async(topics, options).wait()
    }

    /// Creates topics, without blocking. See [`Admin::create_topics`].
    pub fn create_topics_async(
        &self,
        topics: &[NewTopic],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<TopicResults> {
        let options = options.into();
        let checked = topics
            .iter()
            .try_for_each(check_new_topic)
            .and_then(|()| check_unique(topics.iter().map(|topic| &*topic.name)));
        let call = checked.map(|()| {
            let topics = topics.to_vec();
            move |done| {
                create_topics(topics, options.validate_only, options.timeout, done).done(options.how())
            }
        });
        self.start("create_topics", options.timeout, call)
    }

    /// Deletes topics, by name.
    pub fn delete_topics(&self, topics: &[&str], options: impl Into<AdminOptions>) -> Result<TopicResults> {
        self.delete_topics_async(topics, options).wait()
    }

    /// Deletes topics, without blocking. See [`Admin::delete_topics`].
    pub fn delete_topics_async(
        &self,
        topics: &[&str],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<TopicResults> {
        let options = options.into();
        let checked = topics
            .iter()
            .try_for_each(|name| check_topic_name(name))
            .and_then(|()| check_unique(topics.iter().copied()));
        let call = checked.map(|()| {
            let names = topics.iter().map(ToString::to_string).collect();
            move |done| delete_topics(names, options.timeout, done).done(options.how())
        });
        self.start("delete_topics", options.timeout, call)
    }

    /// Increases the number of partitions of topics. [`NewPartitions::count`] is the total, with those that exist already.
    pub fn create_partitions(
        &self,
        topics: &[NewPartitions],
        options: impl Into<AdminOptions>,
    ) -> Result<TopicResults> {
        self.create_partitions_async(topics, options).wait()
    }

    /// Increases the number of partitions, without blocking. See [`Admin::create_partitions`].
    pub fn create_partitions_async(
        &self,
        topics: &[NewPartitions],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<TopicResults> {
        let options = options.into();
        let checked = topics
            .iter()
            .try_for_each(check_new_partitions)
            .and_then(|()| check_unique(topics.iter().map(|topic| &*topic.topic)));
        let call = checked.map(|()| {
            let topics = topics.to_vec();
            move |done| {
                create_partitions(topics, options.validate_only, options.timeout, done).done(options.how())
            }
        });
        self.start("create_partitions", options.timeout, call)
    }

    /// Returns the names of all topics that the application may describe, internal ones included.
    pub fn list_topics(&self, options: impl Into<AdminOptions>) -> Result<Vec<String>> {
        self.list_topics_async(options).wait()
    }

    /// Returns the names of all topics, without blocking. See [`Admin::list_topics`].
    pub fn list_topics_async(&self, options: impl Into<AdminOptions>) -> AdminFuture<Vec<String>> {
        self.describe("list_topics", Ok(WhichTopics::All), options.into())
            .and_then(|cluster| Ok(cluster.topics.into_iter().map(|topic| topic.name).collect()))
    }

    /// Describes topics: their IDs, partitions, leaders and replicas. A topic that does not exist is in the result, with an
    /// error in [`TopicDescription::error`]. Brokers since Kafka 3.8 describe topics with many partitions page by page.
    pub fn describe_topics(
        &self,
        topics: &[&str],
        options: impl Into<AdminOptions>,
    ) -> Result<Vec<TopicDescription>> {
        self.describe_topics_async(topics, options).wait()
    }

    /// Describes topics, without blocking. See [`Admin::describe_topics`].
    pub fn describe_topics_async(
        &self,
        topics: &[&str],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<Vec<TopicDescription>> {
        let options = options.into();
        // No broker is asked about a name that can't exist.
        let (mut names, mut refused) = (Vec::new(), Vec::new());
        for name in topics {
            match check_topic_name(name) {
                Ok(()) => names.push((*name).to_owned()),
                Err(error) => refused.push(TopicDescription::refused(*name, error)),
            }
        }
        if names.is_empty() {
            let nothing = self.describe("describe_topics", Ok(WhichTopics::None), options);
            return nothing.and_then(|cluster| Ok([refused, cluster.topics].concat()));
        }
        let call = move |done| {
            describe_topics(names, options.authorized_operations, options.timeout, done).done(options.how())
        };
        let described = self.start("describe_topics", options.timeout, Ok(call));
        described.and_then(|described| {
            let mut topics = described?.topics;
            topics.extend(refused);
            topics.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(topics)
        })
    }

    /// Describes the cluster: its ID, controller and brokers, without topics. With
    /// [`AdminOptions::include_fenced_brokers`] also the brokers that the controller has fenced.
    pub fn describe_cluster(&self, options: impl Into<AdminOptions>) -> Result<ClusterDescription> {
        self.describe_cluster_async(options).wait()
    }

    /// Describes the cluster, without blocking. See [`Admin::describe_cluster`].
    pub fn describe_cluster_async(
        &self,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<ClusterDescription> {
        let options = options.into();
        let (with_operations, with_fenced) = (options.authorized_operations, options.include_fenced_brokers);
        let call = move |done| {
            describe_cluster(with_operations, with_fenced, options.timeout, done).done(options.how())
        };
        self.cached(self.start("describe_cluster", options.timeout, Ok(call)))
    }

    /// Describes the cluster and topics in one request: those that are named, or all with `None`.
    pub fn metadata(
        &self,
        topics: Option<&[&str]>,
        options: impl Into<AdminOptions>,
    ) -> Result<ClusterDescription> {
        self.metadata_async(topics, options).wait()
    }

    /// Describes the cluster and topics, without blocking. See [`Admin::metadata`].
    pub fn metadata_async(
        &self,
        topics: Option<&[&str]>,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<ClusterDescription> {
        let which = topics.map_or(Ok(WhichTopics::All), named);
        self.describe("metadata", which, options.into())
    }

    /// Returns the ID of the controller from the last metadata, without a request; `None` before the first.
    pub fn cached_controller_id(&self) -> Option<i32> {
        self.inner.events.controller_id()
    }

    /// Returns the cluster's ID from the last metadata, without a request; `None` before the first.
    pub fn cached_cluster_id(&self) -> Option<String> {
        self.inner.events.cluster_id()
    }

    /// Requests metadata, and updates the cached IDs with the response.
    fn describe(
        &self,
        call: &'static str,
        which: Result<WhichTopics>,
        options: AdminOptions,
    ) -> AdminFuture<ClusterDescription> {
        let (with_operations, timeout) = (options.authorized_operations, options.timeout);
        let operation = which.map(|which| {
            move |done| describe_operations(which, with_operations, timeout, done).done(options.how())
        });
        self.cached(self.start(call, timeout, operation))
    }

    /// Updates the cached IDs with a description of the cluster.
    fn cached(&self, described: AdminFuture<Result<ClusterDescription>>) -> AdminFuture<ClusterDescription> {
        let events = Arc::clone(&self.inner.events);
        described.and_then(move |described| {
            let cluster: ClusterDescription = described?;
            events.set_controller_id(cluster.controller_id.and_then(NodeId::from_wire));
            events.set_cluster_id(cluster.cluster_id.as_deref());
            Ok(cluster)
        })
    }
}

fn named(topics: &[&str]) -> Result<WhichTopics> {
    topics.iter().try_for_each(|name| check_topic_name(name))?;
    Ok(match topics {
        [] => WhichTopics::None,
        names => WhichTopics::These(names.iter().map(ToString::to_string).collect()),
    })
}

fn check_new_topic(topic: &NewTopic) -> Result<()> {
    check_topic_name(&topic.name)?;
    let (partitions, factor) = (topic.partitions, topic.replication_factor);
    let reason = if partitions < 1 && partitions != -1 {
        format!("{partitions} partitions; use at least 1, or -1 for the broker's default")
    } else if factor < 1 && factor != -1 {
        format!("a replication factor of {factor}; use at least 1, or -1 for the broker's default")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::InvalidArgument, reason).with_topic(&*topic.name))
}

fn check_new_partitions(topic: &NewPartitions) -> Result<()> {
    check_topic_name(&topic.topic)?;
    if topic.count >= 1 {
        return Ok(());
    }
    let reason = format!("{} partitions; use at least 1", topic.count);
    Err(Error::new(ErrorKind::InvalidArgument, reason).with_topic(&*topic.topic))
}

pub(super) fn check_unique<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = SortedSet::new();
    for name in names {
        if !seen.insert(name) {
            let reason = "the topic is named twice; name each topic once per call";
            return Err(Error::new(ErrorKind::InvalidArgument, reason).with_topic(name));
        }
    }
    Ok(())
}
