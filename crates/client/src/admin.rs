//! The admin client: thin over `ottla_core::admin`, which has the behaviour.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use ottla_core::{
    admin::{
        AdminCall, How,
        configs::{
            ConfigChanges, ConfigResource, ConfigResults, change_configs, describe_configs, replace_configs,
        },
        describe::{ClusterDescription, WhichTopics, describe, describe_operations},
        records::delete_records,
        topics::{NewPartitions, NewTopic, TopicResults, create_partitions, create_topics, delete_topics},
    },
    cluster::command::Command,
    completion::{Completion, Waiting, completion},
    config::ClientView,
    error::{Error, ErrorKind, Result},
    event::{Event, EventQueue},
    fetch::offsets::{ListedOffset, OffsetQuery, OffsetSpec},
};

use crate::{
    config::Config,
    consumer::offset_query,
    producer::{check_topic_name, config_error},
    start,
    wait::wait_for,
};

/// Looks at a cluster and changes its topics. Cheap to clone.
///
/// Every call has two forms: one that waits, and one with `_async` behind its name that gives a future, which needs no
/// runtime. Input that can't be meant is an error at once.
#[derive(Clone, Debug)]
pub struct Admin {
    inner: Arc<Inner>,
}

/// How a call is made, for the calls with `_with` behind their name. These leave it to the broker to judge names and
/// numbers, so that each topic has its own error; only what can't be asked at all is an error at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdminOptions {
    /// How long to try, in all.
    pub timeout: Duration,
    /// How long the broker may take for what is wanted; without it, as long as the request.
    pub operation_timeout: Option<Duration>,
    /// Only say whether it could be done.
    pub validate_only: bool,
    /// The broker that is asked, in place of the one that the call would go to.
    pub broker: Option<i32>,
    /// The last offset is the one up to which transactions are decided.
    pub read_committed: bool,
    /// Descriptions say what the application may do with the topics, or with the cluster where no topics are described.
    pub authorized_operations: bool,
}

impl AdminOptions {
    /// Tries this long, and does nothing special.
    pub const fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            operation_timeout: None,
            validate_only: false,
            broker: None,
            read_committed: false,
            authorized_operations: false,
        }
    }

    const fn how(&self) -> How {
        How { broker: self.broker, operation_timeout: self.operation_timeout }
    }
}

#[derive(Debug)]
struct Inner {
    client: Arc<start::Client>,
    events: Arc<EventQueue>,
}

impl Admin {
    /// An admin client.
    pub fn new(config: &Config) -> Result<Self> {
        let view = ClientView::new(config.raw()).map_err(config_error)?;
        view.require_servers().map_err(config_error)?;
        let events = Arc::new(EventQueue::default());
        let seed = start::seeded_rng().next_u64();
        // Asking about a topic must not create it.
        let view = ClientView { allow_auto_create_topics: false, ..view };
        let client =
            Arc::new(start::client(&view, None, None, Arc::clone(&events), start::Hooks::default(), seed)?);
        Ok(Self { inner: Arc::new(Inner { client, events }) })
    }

    /// An admin client on another client's connections.
    pub(crate) fn of(client: Arc<start::Client>, events: Arc<EventQueue>) -> Self {
        Self { inner: Arc::new(Inner { client, events }) }
    }

    /// Creates topics. Each has its own result, in the order in which they were named.
    pub fn create_topics(&self, topics: &[NewTopic], timeout: Duration) -> Result<TopicResults> {
        wait(self.create_topics_async(topics, timeout)?, timeout)
    }

    /// Creates topics. See [`Admin::create_topics`].
    pub fn create_topics_async(
        &self,
        topics: &[NewTopic],
        timeout: Duration,
    ) -> Result<impl Future<Output = Result<TopicResults>> + Send + use<>> {
        topics.iter().try_for_each(check_new_topic)?;
        check_unique(topics.iter().map(|topic| &*topic.name))?;
        let topics = topics.to_vec();
        Ok(self.call(move |done| create_topics(topics, false, timeout, done)))
    }

    /// Asks whether topics could be created, without creating them.
    pub fn validate_topics(&self, topics: &[NewTopic], timeout: Duration) -> Result<TopicResults> {
        topics.iter().try_for_each(check_new_topic)?;
        check_unique(topics.iter().map(|topic| &*topic.name))?;
        let topics = topics.to_vec();
        wait(self.call(move |done| create_topics(topics, true, timeout, done)), timeout)
    }

    /// Deletes topics. Each has its own result, in the order in which they were named.
    pub fn delete_topics(&self, topics: &[&str], timeout: Duration) -> Result<TopicResults> {
        wait(self.delete_topics_async(topics, timeout)?, timeout)
    }

    /// Deletes topics. See [`Admin::delete_topics`].
    pub fn delete_topics_async(
        &self,
        topics: &[&str],
        timeout: Duration,
    ) -> Result<impl Future<Output = Result<TopicResults>> + Send + use<>> {
        topics.iter().try_for_each(|name| check_topic_name(name))?;
        check_unique(topics.iter().copied())?;
        let names = topics.iter().map(ToString::to_string).collect();
        Ok(self.call(move |done| delete_topics(names, timeout, done)))
    }

    /// Gives topics more partitions: name, and how many there are to be in all.
    pub fn create_partitions(&self, topics: &[(&str, i32)], timeout: Duration) -> Result<TopicResults> {
        wait(self.create_partitions_async(topics, timeout)?, timeout)
    }

    /// Gives topics more partitions. See [`Admin::create_partitions`].
    pub fn create_partitions_async(
        &self,
        topics: &[(&str, i32)],
        timeout: Duration,
    ) -> Result<impl Future<Output = Result<TopicResults>> + Send + use<>> {
        for (name, count) in topics {
            check_topic_name(name)?;
            if *count < 1 {
                let error = Error::new(
                    ErrorKind::InvalidArgument,
                    format!("{count} partitions; at least 1 is needed"),
                );
                return Err(error.with_topic(*name));
            }
        }
        check_unique(topics.iter().map(|(name, _)| *name))?;
        let topics = topics.iter().map(|(name, count)| NewPartitions::new(*name, *count)).collect();
        Ok(self.call(move |done| create_partitions(topics, false, timeout, done)))
    }

    /// Creates topics. See [`AdminOptions`].
    pub fn create_topics_with(
        &self,
        topics: &[NewTopic],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<TopicResults>> + Send + use<>> {
        check_unique(topics.iter().map(|topic| &*topic.name))?;
        let (topics, options) = (topics.to_vec(), *options);
        Ok(self.call(move |done| {
            create_topics(topics, options.validate_only, options.timeout, done).done(options.how())
        }))
    }

    /// Deletes topics. See [`AdminOptions`].
    pub fn delete_topics_with(
        &self,
        topics: &[&str],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<TopicResults>> + Send + use<>> {
        check_unique(topics.iter().copied())?;
        let (names, options) = (topics.iter().map(ToString::to_string).collect(), *options);
        Ok(self.call(move |done| delete_topics(names, options.timeout, done).done(options.how())))
    }

    /// Gives topics more partitions. See [`AdminOptions`].
    pub fn create_partitions_with(
        &self,
        topics: &[NewPartitions],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<TopicResults>> + Send + use<>> {
        check_unique(topics.iter().map(|topic| &*topic.topic))?;
        let (topics, options) = (topics.to_vec(), *options);
        Ok(self.call(move |done| {
            create_partitions(topics, options.validate_only, options.timeout, done).done(options.how())
        }))
    }

    /// The cluster with topics. See [`Admin::metadata`] and [`AdminOptions`].
    pub fn metadata_with(
        &self,
        topics: Option<&[&str]>,
        options: &AdminOptions,
    ) -> impl Future<Output = Result<Result<ClusterDescription>>> + Send + use<> {
        let which = match topics {
            None => WhichTopics::All,
            Some([]) => WhichTopics::None,
            Some(names) => WhichTopics::These(names.iter().map(ToString::to_string).collect()),
        };
        let options = *options;
        let with_operations = options.authorized_operations;
        self.call(move |done| {
            describe_operations(which, with_operations, options.timeout, done).done(options.how())
        })
    }

    /// Asks the partitions' leaders for offsets. See [`Admin::list_offsets`] and [`AdminOptions`].
    pub fn list_offsets_with(
        &self,
        questions: &[(&str, i32, OffsetSpec)],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<Vec<Result<ListedOffset>>>> + Send + use<>> {
        let query = offset_query(questions, options.timeout)?;
        let query = OffsetQuery { read_committed: options.read_committed, ..query };
        Ok(self.call(move |done| AdminCall::list_offsets(query, done)))
    }

    /// Deletes the records of partitions before an offset, -1 for all; the answers are the first offsets that are left.
    pub fn delete_records(
        &self,
        partitions: &[(&str, i32, i64)],
        timeout: Duration,
    ) -> Result<Vec<Result<i64>>> {
        wait(self.delete_records_with(partitions, &AdminOptions::new(timeout))?, timeout)
    }

    /// Deletes records. See [`Admin::delete_records`] and [`AdminOptions`]; the partitions' leaders are asked in any case.
    pub fn delete_records_with(
        &self,
        partitions: &[(&str, i32, i64)],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<Vec<Result<i64>>>> + Send + use<>> {
        for (topic, partition, before) in partitions {
            if *partition < 0 || *before < -1 {
                let reason =
                    format!("offset {before}; a partition and an offset are at least 0, or -1 for its end");
                return Err(Error::new(ErrorKind::InvalidArgument, reason).with_partition(*topic, *partition));
            }
        }
        let options = *options;
        let asked = partitions.iter().map(|(topic, partition, before)| {
            let (topic, partition, before) = (Arc::from(*topic), *partition, *before);
            self.call(move |done| {
                delete_records(topic, partition, before, options.timeout, done).done(options.how())
            })
        });
        let asked: Vec<Answer<Result<i64>>> = asked.collect();
        Ok(async move {
            let mut answers = Vec::with_capacity(asked.len());
            for answer in asked {
                answers.push(answer.await?);
            }
            Ok(answers)
        })
    }

    /// Describes configurations. At most one of the resources is a broker: each answers only for itself.
    pub fn describe_configs(&self, resources: &[ConfigResource], timeout: Duration) -> Result<ConfigResults> {
        wait(self.describe_configs_with(resources, &AdminOptions::new(timeout)), timeout)
    }

    /// Describes configurations. See [`Admin::describe_configs`] and [`AdminOptions`].
    pub fn describe_configs_with(
        &self,
        resources: &[ConfigResource],
        options: &AdminOptions,
    ) -> impl Future<Output = Result<ConfigResults>> + Send + use<> {
        let (resources, options) = (resources.to_vec(), *options);
        self.call(move |done| describe_configs(resources, options.timeout, done).done(options.how()))
    }

    /// Changes properties; those that are not named stay as they are (from Kafka 2.3 on).
    pub fn change_configs(&self, changes: &ConfigChanges, timeout: Duration) -> Result<ConfigResults> {
        wait(self.change_configs_with(changes, &AdminOptions::new(timeout)), timeout)
    }

    /// Changes properties. See [`Admin::change_configs`] and [`AdminOptions`].
    pub fn change_configs_with(
        &self,
        changes: &ConfigChanges,
        options: &AdminOptions,
    ) -> impl Future<Output = Result<ConfigResults>> + Send + use<> {
        let (changes, options) = (changes.clone(), *options);
        self.call(move |done| {
            change_configs(changes, options.validate_only, options.timeout, done).done(options.how())
        })
    }

    /// Replaces whole configurations: what is not named goes back to its default. See [`AdminOptions`].
    pub fn replace_configs_with(
        &self,
        changes: &ConfigChanges,
        options: &AdminOptions,
    ) -> impl Future<Output = Result<ConfigResults>> + Send + use<> {
        let (changes, options) = (changes.clone(), *options);
        self.call(move |done| {
            replace_configs(changes, options.validate_only, options.timeout, done).done(options.how())
        })
    }

    /// The names of all topics that may be seen.
    pub fn list_topics(&self, timeout: Duration) -> Result<Vec<String>> {
        wait(self.list_topics_async(timeout), timeout)?
    }

    /// The names of all topics that may be seen.
    pub fn list_topics_async(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Result<Vec<String>>>> + Send + use<> {
        let asked = self.describe(WhichTopics::All, timeout);
        async move {
            let cluster = asked.await?;
            Ok(cluster.map(|cluster| cluster.topics.into_iter().map(|topic| topic.name).collect()))
        }
    }

    /// The cluster with the named topics, or with all of them. A topic that does not exist has an error of its own.
    pub fn metadata(&self, topics: Option<&[&str]>, timeout: Duration) -> Result<ClusterDescription> {
        wait(self.metadata_async(topics, timeout)?, timeout)?
    }

    /// The cluster with topics. See [`Admin::metadata`].
    pub fn metadata_async(
        &self,
        topics: Option<&[&str]>,
        timeout: Duration,
    ) -> Result<impl Future<Output = Result<Result<ClusterDescription>>> + Send + use<>> {
        let which = match topics {
            None => WhichTopics::All,
            Some([]) => WhichTopics::None,
            Some(names) => {
                names.iter().try_for_each(|name| check_topic_name(name))?;
                WhichTopics::These(names.iter().map(ToString::to_string).collect())
            }
        };
        Ok(self.describe(which, timeout))
    }

    /// The controller as the last metadata named it, without asking anybody; `None` while that is not known.
    pub fn cached_controller_id(&self) -> Option<i32> {
        self.inner.events.controller_id()
    }

    /// The cluster's id as metadata named it, without asking anybody; `None` while that is not known.
    pub fn cached_cluster_id(&self) -> Option<String> {
        self.inner.events.cluster_id()
    }

    /// The cluster's id, controller and brokers.
    pub fn describe_cluster(&self, timeout: Duration) -> Result<ClusterDescription> {
        wait(self.describe_cluster_async(timeout), timeout)?
    }

    /// The cluster's id, controller and brokers.
    pub fn describe_cluster_async(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Result<ClusterDescription>>> + Send + use<> {
        self.describe(WhichTopics::None, timeout)
    }

    /// Asks the partitions' leaders for offsets; the answers come in the order of the questions.
    pub fn list_offsets(
        &self,
        questions: &[(&str, i32, OffsetSpec)],
        timeout: Duration,
    ) -> Result<Vec<Result<ListedOffset>>> {
        wait(self.list_offsets_async(questions, timeout)?, timeout)
    }

    /// Asks the partitions' leaders for offsets. See [`Admin::list_offsets`].
    pub fn list_offsets_async(
        &self,
        questions: &[(&str, i32, OffsetSpec)],
        timeout: Duration,
    ) -> Result<impl Future<Output = Result<Vec<Result<ListedOffset>>>> + Send + use<>> {
        let query = offset_query(questions, timeout)?;
        Ok(self.call(move |done| AdminCall::list_offsets(query, done)))
    }

    /// The oldest event that belongs to no call: connections that failed and the like.
    pub fn poll_event(&self) -> Option<Event> {
        self.inner.events.pop()
    }

    /// Closes: calls under way end with an error.
    pub fn close(&self, timeout: Duration) -> Result<()> {
        self.inner.client.end(timeout)
    }

    /// Asks for metadata; whatever is asked, the answer says who the controller is.
    fn describe(
        &self,
        which: WhichTopics,
        timeout: Duration,
    ) -> impl Future<Output = Result<Result<ClusterDescription>>> + Send + use<> {
        let asked = self.call(move |done| describe(which, timeout, done));
        let events = Arc::clone(&self.inner.events);
        async move {
            let answer = asked.await;
            if let Ok(Ok(cluster)) = &answer {
                events.set_controller_id(cluster.controller_id.unwrap_or(-1));
                events.set_cluster_id(cluster.cluster_id.as_deref());
            }
            answer
        }
    }

    fn call<T, F>(&self, call: F) -> Answer<T>
    where
        T: Send + 'static,
        F: FnOnce(Completion<T>) -> AdminCall,
    {
        let (done, waiting) = completion();
        self.inner.client.command(Command::Admin(call(done)));
        Answer(waiting)
    }
}

/// The answer to a call, or that there will be none.
struct Answer<T>(Waiting<T>);

impl<T> Future for Answer<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let answer = Pin::new(&mut self.0).poll(context);
        answer.map(|answer| answer.ok_or_else(|| Error::new(ErrorKind::Closed, "")))
    }
}

/// Waits a moment longer than the client itself does, so that its error is the one that is given.
fn wait<T>(call: impl Future<Output = Result<T>>, timeout: Duration) -> Result<T> {
    wait_for(call, timeout.saturating_add(Duration::from_secs(1)))
        .unwrap_or_else(|| Err(Error::new(ErrorKind::TimedOut, "no answer from the I/O threads")))
}

fn check_new_topic(topic: &NewTopic) -> Result<()> {
    check_topic_name(&topic.name)?;
    let reason = if topic.partitions < 1 && topic.partitions != -1 {
        format!("{} partitions; give at least 1, or -1 for the broker's default", topic.partitions)
    } else if topic.replication_factor < 1 && topic.replication_factor != -1 {
        format!(
            "a replication factor of {}; give at least 1, or -1 for the broker's default",
            topic.replication_factor
        )
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::InvalidArgument, reason).with_topic(&*topic.name))
}

fn check_unique<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::new(ErrorKind::InvalidArgument, "the topic is named twice").with_topic(name));
        }
    }
    Ok(())
}
