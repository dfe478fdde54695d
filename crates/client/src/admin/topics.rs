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

use ottla_protocol::vocabulary::NodeId;

use super::{
    Admin, AdminFuture, AdminOptions,
    elements::{Elements, Names},
};
use crate::topic_name::check_topic_name;

impl Admin {
    /// Creates topics, each with a result of its own. An invalid one, or one that is listed before, is refused without a
    /// request for it. With [`AdminOptions::validate_only`] the broker only checks whether it could.
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
        let mut names = Names::new();
        let check = |topic: &&NewTopic| {
            check_new_topic(topic).and_then(|()| names.check_topic(&topic.name)).map(|()| (*topic).clone())
        };
        let topics = Elements::new(topics, check, |topic, error| (topic.name.clone(), Err(error)));
        topics.ask("create_topics", |topics| {
            let call = move |done| {
                create_topics(topics, options.validate_only, options.timeout, done).done(options.how())
            };
            self.start("create_topics", options.timeout, Ok(call))
        })
    }

    /// Deletes topics by name, each with a result of its own, also if its name is invalid or listed before.
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
        let mut names = Names::new();
        let check = |name: &&&str| names.check_topic(name).map(|()| name.to_string());
        let topics = Elements::new(topics, check, |name, error| (name.to_string(), Err(error)));
        topics.ask("delete_topics", |names| {
            let call = move |done| delete_topics(names, options.timeout, done).done(options.how());
            self.start("delete_topics", options.timeout, Ok(call))
        })
    }

    /// Increases the number of partitions of topics, each with a result of its own. [`NewPartitions::count`] is the total, with
    /// those that exist already.
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
        let mut names = Names::new();
        let check = |topic: &&NewPartitions| {
            check_new_partitions(topic)
                .and_then(|()| names.check_topic(&topic.topic))
                .map(|()| (*topic).clone())
        };
        let topics = Elements::new(topics, check, |topic, error| (topic.topic.clone(), Err(error)));
        topics.ask("create_partitions", |topics| {
            let call = move |done| {
                create_partitions(topics, options.validate_only, options.timeout, done).done(options.how())
            };
            self.start("create_partitions", options.timeout, Ok(call))
        })
    }

    /// Returns the names of all topics that the application may describe, internal ones included.
    pub fn list_topics(&self, options: impl Into<AdminOptions>) -> Result<Vec<String>> {
        self.list_topics_async(options).wait()
    }

    /// Returns the names of all topics, without blocking. See [`Admin::list_topics`].
    pub fn list_topics_async(&self, options: impl Into<AdminOptions>) -> AdminFuture<Vec<String>> {
        self.describe("list_topics", WhichTopics::All, options.into())
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
        let (names, refused) = possible(topics);
        if names.is_empty() {
            let nothing = self.describe("describe_topics", WhichTopics::None, options);
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

    /// Describes the cluster and topics in one request: those that are named, or all with `None`. A topic that does not exist
    /// has an error in [`TopicDescription::error`].
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
        let Some(topics) = topics else {
            return self.describe("metadata", WhichTopics::All, options.into());
        };
        let (names, refused) = possible(topics);
        let which = if names.is_empty() { WhichTopics::None } else { WhichTopics::These(names) };
        self.describe("metadata", which, options.into()).and_then(|mut cluster| {
            cluster.topics.extend(refused);
            cluster.topics.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(cluster)
        })
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
        which: WhichTopics,
        options: AdminOptions,
    ) -> AdminFuture<ClusterDescription> {
        let (with_operations, timeout) = (options.authorized_operations, options.timeout);
        let operation =
            move |done| describe_operations(which, with_operations, timeout, done).done(options.how());
        self.cached(self.start(call, timeout, Ok(operation)))
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

/// Divides names into those that brokers are asked about and the descriptions of those that no topic can have.
fn possible(topics: &[&str]) -> (Vec<String>, Vec<TopicDescription>) {
    let (mut names, mut refused) = (Vec::new(), Vec::new());
    for name in topics {
        match check_topic_name(name) {
            Ok(()) => names.push((*name).to_owned()),
            Err(error) => refused.push(TopicDescription::refused(*name, error)),
        }
    }
    (names, refused)
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
