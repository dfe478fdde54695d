//! Calls about share groups (KIP-932). [`Admin::list_groups`] lists them, [`Admin::delete_groups`] deletes them, and
//! [`Admin::incremental_alter_configs`] changes their settings.

use ottla_core::{
    admin::{
        groups::{
            offsets::PartitionResults,
            share_groups::{
                ShareGroupDescription, ShareOffset, alter_share_group_offsets, delete_share_group_offsets,
                describe_share_groups, list_share_group_offsets,
            },
        },
        topics::TopicResults,
    },
    error::Result,
};
use ottla_protocol::vocabulary::TopicPartition;

use super::{
    Admin, AdminFuture, AdminOptions,
    calls::invalid,
    elements::{Elements, Names},
    groups::{GroupResults, check_group_id},
};

impl Admin {
    /// Describes share groups: state, members and their partitions. A group of another type, or that does not exist, is an
    /// error. Needs Kafka 4.1.
    pub fn describe_share_groups(
        &self,
        groups: &[&str],
        options: impl Into<AdminOptions>,
    ) -> Result<GroupResults<ShareGroupDescription>> {
        self.describe_share_groups_async(groups, options).wait()
    }

    /// Describes share groups, without blocking. See [`Admin::describe_share_groups`].
    pub fn describe_share_groups_async(
        &self,
        groups: &[&str],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<GroupResults<ShareGroupDescription>> {
        self.about_groups("describe_share_groups", groups, options.into(), describe_share_groups)
    }

    /// Lists where a share group starts: in these partitions, or in all that it has a state for; with the number of records
    /// that are not finished, if the broker reports it (Kafka 4.2).
    pub fn list_share_group_offsets(
        &self,
        group: &str,
        partitions: Option<&[(&str, i32)]>,
        options: impl Into<AdminOptions>,
    ) -> Result<PartitionResults<ShareOffset>> {
        self.list_share_group_offsets_async(group, partitions, options).wait()
    }

    /// Lists where a share group starts, without blocking. See [`Admin::list_share_group_offsets`].
    pub fn list_share_group_offsets_async(
        &self,
        group: &str,
        partitions: Option<&[(&str, i32)]>,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<PartitionResults<ShareOffset>> {
        let options = options.into();
        let call =
            |group, partitions, done| list_share_group_offsets(group, partitions, options.timeout, done);
        self.about_some_partitions("list_share_group_offsets", group, partitions, options, call)
    }

    /// Sets where a share group without members starts in partitions. What it has acknowledged there is forgotten.
    pub fn alter_share_group_offsets(
        &self,
        group: &str,
        offsets: &[(TopicPartition, i64)],
        options: impl Into<AdminOptions>,
    ) -> Result<PartitionResults<()>> {
        self.alter_share_group_offsets_async(group, offsets, options).wait()
    }

    /// Sets where a share group starts, without blocking. See [`Admin::alter_share_group_offsets`].
    pub fn alter_share_group_offsets_async(
        &self,
        group: &str,
        offsets: &[(TopicPartition, i64)],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<PartitionResults<()>> {
        let options = options.into();
        const NAME: &str = "alter_share_group_offsets";
        let mut names = Names::new();
        let check = |one: &&(TopicPartition, i64)| {
            names.check_partition(&one.0.topic, one.0.partition)?;
            check_offset(one).map(|()| (*one).clone())
        };
        let offsets = Elements::new(offsets, check, |one, error| (one.0.clone(), Err(error)));
        offsets.required("partitions").only_if(check_group_id(group)).ask(NAME, |offsets| {
            self.ask(NAME, options, Ok(offsets), |offsets, done| {
                alter_share_group_offsets(group, offsets, options.timeout, done)
            })
        })
    }

    /// Deletes the state of a share group without members in these topics: it starts there as a new group.
    pub fn delete_share_group_offsets(
        &self,
        group: &str,
        topics: &[&str],
        options: impl Into<AdminOptions>,
    ) -> Result<TopicResults> {
        self.delete_share_group_offsets_async(group, topics, options).wait()
    }

    /// Deletes the state of a share group in topics, without blocking. See [`Admin::delete_share_group_offsets`].
    pub fn delete_share_group_offsets_async(
        &self,
        group: &str,
        topics: &[&str],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<TopicResults> {
        let options = options.into();
        const NAME: &str = "delete_share_group_offsets";
        let mut names = Names::new();
        let check = |name: &&&str| names.check_topic(name).map(|()| name.to_string());
        let topics = Elements::new(topics, check, |name, error| (name.to_string(), Err(error)));
        topics.required("topic").only_if(check_group_id(group)).ask(NAME, |topics| {
            self.ask(NAME, options, Ok(topics), |topics, done| {
                delete_share_group_offsets(group, topics, options.timeout, done)
            })
        })
    }
}

fn check_offset((key, offset): &(TopicPartition, i64)) -> Result<()> {
    if *offset >= 0 {
        return Ok(());
    }
    let detail = format!("offset {offset}; a share group starts at 0 or later");
    Err(invalid(detail).with_partition(&*key.topic, key.partition))
}
