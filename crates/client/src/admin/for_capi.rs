//! Calls of the C library, which leaves the check of names and numbers to the brokers.

use std::{future::Future, time::Duration};

use ottla_core::{
    admin::{
        AdminCall,
        configs::{
            ConfigChanges, ConfigResource, ConfigResults, change_configs, describe_configs, replace_configs,
        },
        describe::{ClusterDescription, WhichTopics, describe_operations},
        groups::{
            describe::GroupDescription,
            offsets::{PartitionResults, alter_group_offsets_once},
        },
        item_results::ItemResults,
        topics::{NewPartitions, NewTopic, TopicResults, create_partitions, create_topics, delete_topics},
        users::{ScramAlteration, alter_users},
    },
    error::{Error, ErrorKind, Result},
    offsets::{
        committed::GroupOffset,
        list_offsets::{ListedOffset, OffsetQuery, OffsetSpec},
    },
};

use ottla_sorted::SortedSet;

use super::{Admin, AdminFuture, AdminOptions, GroupResults, offsets::offset_query};
use crate::topic_name::check_topic_name;

impl Admin {
    /// Creates topics. The broker refuses a name that is listed twice.
    pub fn create_topics_with(
        &self,
        topics: &[NewTopic],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<TopicResults>> + Send + use<>> {
        let (topics, options) = (topics.to_vec(), *options);
        Ok(self.start(
            "create_topics",
            options.timeout,
            Ok(move |done| {
                create_topics(topics, options.validate_only, options.timeout, done).done(options.how())
            }),
        ))
    }

    pub fn delete_topics_with(
        &self,
        topics: &[&str],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<TopicResults>> + Send + use<>> {
        check_unique(topics.iter().copied())?;
        let (names, options) = (topics.iter().map(ToString::to_string).collect(), *options);
        let call = move |done| delete_topics(names, options.timeout, done).done(options.how());
        Ok(self.start("delete_topics", options.timeout, Ok(call)))
    }

    pub fn create_partitions_with(
        &self,
        topics: &[NewPartitions],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<TopicResults>> + Send + use<>> {
        check_unique(topics.iter().map(|topic| &*topic.topic))?;
        let (topics, options) = (topics.to_vec(), *options);
        Ok(self.start(
            "create_partitions",
            options.timeout,
            Ok(move |done| {
                create_partitions(topics, options.validate_only, options.timeout, done).done(options.how())
            }),
        ))
    }

    /// Describes groups; one that does not exist is `Dead`.
    pub fn describe_groups_or_dead(
        &self,
        groups: &[&str],
        options: AdminOptions,
    ) -> AdminFuture<GroupResults<GroupDescription>> {
        self.describe_groups_as(groups, options, true)
    }

    /// Describes groups like [`Admin::describe_groups_or_dead`], and waits.
    pub fn describe_groups_or_dead_now(
        &self,
        groups: &[&str],
        timeout: Duration,
    ) -> Result<GroupResults<GroupDescription>> {
        self.describe_groups_or_dead(groups, timeout.into()).wait()
    }

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
        let call = move |done| {
            describe_operations(which, with_operations, options.timeout, done).done(options.how())
        };
        self.start("metadata", options.timeout, Ok(call))
    }

    pub fn list_offsets_with(
        &self,
        questions: &[(&str, i32, OffsetSpec)],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<Vec<Result<ListedOffset>>>> + Send + use<>> {
        let query = offset_query(questions, options.timeout)?;
        let query = OffsetQuery { read_committed: options.read_committed, ..query };
        let call = move |done| AdminCall::list_offsets(query, done);
        Ok(self.start("list_offsets", options.timeout, Ok(call)))
    }

    /// Looks offsets up, and returns a partition's error once brokers have refused it `refusals` times. A topic that does
    /// not exist fails at once, and so does one with a name that no topic can have. Timestamps are for the broker to judge.
    pub fn list_offsets_up_to(
        &self,
        questions: &[(&str, i32, OffsetSpec)],
        timeout: Duration,
        refusals: u32,
    ) -> Result<Vec<Result<ListedOffset>>> {
        let is_possible = |topic: &str| check_topic_name(topic).is_ok();
        let possible = questions.iter().filter(|(topic, ..)| is_possible(topic));
        let query = OffsetQuery {
            questions: possible
                .map(|(topic, partition, spec)| ((*topic, *partition).into(), *spec))
                .collect(),
            timeout,
            read_committed: false,
            refusals: Some(refusals),
        };
        let mut found = Vec::new();
        if !query.questions.is_empty() {
            let call = move |done| AdminCall::list_offsets(query, done);
            found = self.start("list_offsets", timeout, Ok(call)).wait()?;
        }
        let mut found = found.into_iter();
        let results = questions.iter().map(|(topic, ..)| {
            let known = if is_possible(topic) { found.next() } else { None };
            known.unwrap_or_else(|| {
                Err(Error::new(ErrorKind::UnknownTopic, "no topic can have this name").with_topic(*topic))
            })
        });
        Ok(results.collect())
    }

    pub fn delete_records_with(
        &self,
        partitions: &[(&str, i32, i64)],
        options: &AdminOptions,
    ) -> Result<impl Future<Output = Result<Vec<Result<i64>>>> + Send + use<>> {
        Ok(self.delete_records_up_to(partitions, *options, |_, _, offset| Ok(offset)))
    }

    pub fn describe_configs_with(
        &self,
        resources: &[ConfigResource],
        options: &AdminOptions,
    ) -> impl Future<Output = Result<ConfigResults>> + Send + use<> {
        let (resources, options) = (resources.to_vec(), *options);
        let call = move |done| describe_configs(resources, options.timeout, done).done(options.how());
        self.start("describe_configs", options.timeout, Ok(call))
    }

    pub fn change_configs_with(
        &self,
        changes: &ConfigChanges,
        options: &AdminOptions,
    ) -> impl Future<Output = Result<ConfigResults>> + Send + use<> {
        let (changes, options) = (changes.clone(), *options);
        let call = move |done| {
            change_configs(changes, options.validate_only, options.timeout, done).done(options.how())
        };
        self.start("change_configs", options.timeout, Ok(call))
    }

    pub fn replace_configs_with(
        &self,
        changes: &ConfigChanges,
        options: &AdminOptions,
    ) -> impl Future<Output = Result<ConfigResults>> + Send + use<> {
        let (changes, options) = (changes.clone(), *options);
        let call = move |done| {
            replace_configs(changes, options.validate_only, options.timeout, done).done(options.how())
        };
        self.start("replace_configs", options.timeout, Ok(call))
    }

    /// Commits offsets, and returns the first response of the coordinator, also if it is an error that passes by itself.
    pub fn alter_group_offsets_once(
        &self,
        group: &str,
        offsets: &[GroupOffset],
        options: AdminOptions,
    ) -> AdminFuture<PartitionResults<()>> {
        self.alter_group_offsets_by(alter_group_offsets_once, group, offsets, options)
    }

    /// Changes SCRAM credentials. The broker refuses a user and mechanism that are named twice.
    pub fn alter_scram_users_unchecked(
        &self,
        alterations: &[ScramAlteration],
        options: AdminOptions,
    ) -> AdminFuture<ItemResults<String, ()>> {
        self.ask("alter_scram_users", options, Ok(alterations.to_vec()), |alterations, done| {
            alter_users(alterations, options.timeout, done)
        })
    }
}

/// Error: a topic is named twice.
fn check_unique<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = SortedSet::new();
    for name in names {
        if !seen.insert(name) {
            let reason = "the topic is named twice; name each topic once per call";
            return Err(Error::new(ErrorKind::InvalidArgument, reason).with_topic(name));
        }
    }
    Ok(())
}
