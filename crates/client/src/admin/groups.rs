//! Calls about groups.

use std::{sync::Arc, time::Duration};

use super::{
    Admin, AdminFuture, AdminOptions,
    calls::{check_name, invalid},
    elements::{Elements, Names, checked_names, checked_partitions},
};
use ottla_core::{
    admin::{
        AdminCall,
        groups::{
            delete::{MemberToRemove, RemovedMembers, delete_group, remove_members},
            describe::{GroupDescription, describe_group, describe_group_or_dead},
            describe_many::describe_groups,
            list::{GroupFilter, GroupListings, list_groups},
            offsets::{PartitionResults, alter_group_offsets, delete_group_offsets, list_group_offsets},
            remove_all::{RemovedFromGroup, remove_all_members},
        },
    },
    completion::Completion,
    error::{Error, Result},
    offsets::committed::GroupOffset,
};
use ottla_protocol::vocabulary::TopicPartition;

/// A call of the core that commits offsets for a group.
type AlterOffsets =
    fn(Arc<str>, Vec<GroupOffset>, Duration, Completion<Result<PartitionResults<()>, Error>>) -> AdminCall;

/// The groups of a call, each with its result, in the order of the call.
pub type GroupResults<T> = Vec<(String, Result<T>)>;

impl Admin {
    /// Lists the groups of all brokers. A broker that fails is in [`GroupListings::failed`].
    ///
    /// ```
    /// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
    /// use std::time::Duration;
    ///
    /// use ottla::{GroupFilter, GroupState};
    ///
    /// let empty = GroupFilter { states: vec![GroupState::Empty], ..GroupFilter::default() };
    /// for group in admin.list_groups(&empty, Duration::from_secs(10))?.groups {
    ///     println!("{}: {}", group.group_id, group.group_type.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list_groups(
        &self,
        filter: &GroupFilter,
        options: impl Into<AdminOptions>,
    ) -> Result<GroupListings> {
        self.list_groups_async(filter, options).wait()
    }

    /// Lists groups, without blocking. See [`Admin::list_groups`].
    pub fn list_groups_async(
        &self,
        filter: &GroupFilter,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<GroupListings> {
        let (filter, options) = (filter.clone(), options.into());
        let call = move |done| list_groups(filter, options.timeout, done).done(options.how());
        self.start("list_groups", options.timeout, Ok(call)).and_then(|listings| listings)
    }

    /// Describes groups of the classic and the consumer protocol: state, assignor, members and assignments. A group that
    /// does not exist is an error, or from brokers before Kafka 4.0 a group in the state `Dead`.
    pub fn describe_groups(
        &self,
        groups: &[&str],
        options: impl Into<AdminOptions>,
    ) -> Result<GroupResults<GroupDescription>> {
        self.describe_groups_async(groups, options).wait()
    }

    /// Describes groups, without blocking. See [`Admin::describe_groups`].
    pub fn describe_groups_async(
        &self,
        groups: &[&str],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<GroupResults<GroupDescription>> {
        self.describe_groups_as(groups, options.into(), false)
    }

    /// Describes groups. Many groups take one request per coordinator, unless the options name the broker.
    pub(super) fn describe_groups_as(
        &self,
        groups: &[&str],
        options: AdminOptions,
        missing_is_dead: bool,
    ) -> AdminFuture<GroupResults<GroupDescription>> {
        const NAME: &str = "describe_groups";
        let with_operations = options.authorized_operations;
        if groups.len() > 1 && options.broker.is_none() {
            return self.about_groups(
                NAME,
                groups,
                options,
                move |groups, with_operations, timeout, done| {
                    describe_groups(groups, with_operations, missing_is_dead, timeout, done)
                },
            );
        }
        self.for_each_group(NAME, groups, options, move |group, done| match missing_is_dead {
            true => describe_group_or_dead(group, with_operations, options.timeout, done),
            false => describe_group(group, with_operations, options.timeout, done),
        })
    }

    /// Deletes groups that have no members, with their committed offsets.
    pub fn delete_groups(
        &self,
        groups: &[&str],
        options: impl Into<AdminOptions>,
    ) -> Result<GroupResults<()>> {
        self.delete_groups_async(groups, options).wait()
    }

    /// Deletes groups, without blocking. See [`Admin::delete_groups`].
    pub fn delete_groups_async(
        &self,
        groups: &[&str],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<GroupResults<()>> {
        let options = options.into();
        self.for_each_group("delete_groups", groups, options, move |group, done| {
            delete_group(group, options.timeout, done)
        })
    }

    /// Lists the committed offsets of a group: of these partitions, or of all. A partition without a committed offset has the
    /// result `None`.
    pub fn list_group_offsets(
        &self,
        group: &str,
        partitions: Option<&[(&str, i32)]>,
        options: impl Into<AdminOptions>,
    ) -> Result<PartitionResults<Option<GroupOffset>>> {
        self.list_group_offsets_async(group, partitions, options).wait()
    }

    /// Lists committed offsets, without blocking. See [`Admin::list_group_offsets`].
    pub fn list_group_offsets_async(
        &self,
        group: &str,
        partitions: Option<&[(&str, i32)]>,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<PartitionResults<Option<GroupOffset>>> {
        let options = options.into();
        let stable = options.require_stable_offsets;
        self.about_some_partitions(
            "list_group_offsets",
            group,
            partitions,
            options,
            |group, partitions, done| list_group_offsets(group, partitions, stable, options.timeout, done),
        )
    }

    /// Commits offsets for a group without members; creates the group if it does not exist.
    pub fn alter_group_offsets(
        &self,
        group: &str,
        offsets: &[GroupOffset],
        options: impl Into<AdminOptions>,
    ) -> Result<PartitionResults<()>> {
        self.alter_group_offsets_async(group, offsets, options).wait()
    }

    /// Commits offsets, without blocking. See [`Admin::alter_group_offsets`].
    pub fn alter_group_offsets_async(
        &self,
        group: &str,
        offsets: &[GroupOffset],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<PartitionResults<()>> {
        self.alter_group_offsets_by(alter_group_offsets, group, offsets, options.into())
    }

    /// Commits offsets by one of the calls of the core.
    pub(super) fn alter_group_offsets_by(
        &self,
        call: AlterOffsets,
        group: &str,
        offsets: &[GroupOffset],
        options: AdminOptions,
    ) -> AdminFuture<PartitionResults<()>> {
        const NAME: &str = "alter_group_offsets";
        let mut names = Names::new();
        let check = |one: &&GroupOffset| {
            names.check_partition(&one.topic, one.partition)?;
            check_offset(one).map(|()| (*one).clone())
        };
        let refused =
            |one: &&GroupOffset, error| (TopicPartition::new(&*one.topic, one.partition), Err(error));
        let offsets = Elements::new(offsets, check, refused).required("partitions");
        offsets.only_if(check_group_id(group)).ask(NAME, |offsets| {
            self.ask(NAME, options, Ok(offsets), |offsets, done| {
                call(group.into(), offsets, options.timeout, done)
            })
        })
    }

    /// Deletes committed offsets of partitions whose topics no member of the group subscribes to.
    pub fn delete_group_offsets(
        &self,
        group: &str,
        partitions: &[(&str, i32)],
        options: impl Into<AdminOptions>,
    ) -> Result<PartitionResults<()>> {
        self.delete_group_offsets_async(group, partitions, options).wait()
    }

    /// Deletes committed offsets, without blocking. See [`Admin::delete_group_offsets`].
    pub fn delete_group_offsets_async(
        &self,
        group: &str,
        partitions: &[(&str, i32)],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<PartitionResults<()>> {
        let options = options.into();
        let call = |group, partitions, done| delete_group_offsets(group, partitions, options.timeout, done);
        self.about_partitions("delete_group_offsets", group, partitions, options, call)
    }

    /// Removes members from a group, each with a result of its own. `reason` appears in the coordinator's log. A member that
    /// still runs joins again. Needs brokers of Kafka 2.4 or later.
    pub fn remove_members(
        &self,
        group: &str,
        members: &[MemberToRemove],
        reason: Option<&str>,
        options: impl Into<AdminOptions>,
    ) -> Result<RemovedMembers> {
        self.remove_members_async(group, members, reason, options).wait()
    }

    /// Removes members, without blocking. See [`Admin::remove_members`].
    pub fn remove_members_async(
        &self,
        group: &str,
        members: &[MemberToRemove],
        reason: Option<&str>,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<RemovedMembers> {
        let options = options.into();
        let checked = check_group_id(group).and_then(|()| match members {
            [] => Err(invalid("no members; name at least one")),
            _ => Ok(()),
        });
        let (group, members): (Arc<str>, _) = (group.into(), members.to_vec());
        let reason = reason.map(str::to_owned);
        let call = checked.map(|()| {
            move |done| remove_members(group, members, reason, options.timeout, done).done(options.how())
        });
        self.start("remove_members", options.timeout, call).and_then(|results| results)
    }

    /// Removes all members from a group, static and dynamic ones, each with a result of its own. `reason` appears in the
    /// coordinator's log. A member that still runs joins again; one that joins during the call stays. Needs brokers of Kafka 2.4
    /// or later.
    pub fn remove_all_members(
        &self,
        group: &str,
        reason: Option<&str>,
        options: impl Into<AdminOptions>,
    ) -> Result<RemovedFromGroup> {
        self.remove_all_members_async(group, reason, options).wait()
    }

    /// Removes all members, without blocking. See [`Admin::remove_all_members`].
    pub fn remove_all_members_async(
        &self,
        group: &str,
        reason: Option<&str>,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<RemovedFromGroup> {
        let options = options.into();
        let (checked, group): (_, Arc<str>) = (check_group_id(group), group.into());
        let reason = reason.map(str::to_owned);
        let call = checked.map(|()| {
            move |done| remove_all_members(group, reason, options.timeout, done).done(options.how())
        });
        self.start("remove_all_members", options.timeout, call).and_then(|results| results)
    }

    /// Makes one call about all groups: their IDs, whether the permitted operations are requested, and the timeout.
    pub(super) fn about_groups<T: Send + 'static>(
        &self,
        name: &'static str,
        groups: &[&str],
        options: AdminOptions,
        call: impl FnOnce(Vec<Arc<str>>, bool, Duration, Completion<GroupResults<T>>) -> AdminCall,
    ) -> AdminFuture<GroupResults<T>> {
        checked_names("group", groups).ask(name, |groups| {
            let call = move |done| {
                call(groups, options.authorized_operations, options.timeout, done).done(options.how())
            };
            self.start(name, options.timeout, Ok(call))
        })
    }

    /// Makes one call about partitions of a group, each of which has a result.
    pub(super) fn about_partitions<T: Send + 'static>(
        &self,
        name: &'static str,
        group: &str,
        partitions: &[(&str, i32)],
        options: AdminOptions,
        call: impl FnOnce(Arc<str>, Vec<TopicPartition>, Completion<Result<PartitionResults<T>>>) -> AdminCall,
    ) -> AdminFuture<PartitionResults<T>> {
        let partitions = checked_partitions(partitions, |key, error| (key, Err(error)));
        partitions.only_if(check_group_id(group)).ask(name, |partitions| {
            self.ask(name, options, Ok(partitions), |partitions, done| call(group.into(), partitions, done))
        })
    }

    /// Makes one call about these partitions of a group, or about all that it has offsets of.
    pub(super) fn about_some_partitions<T: Send + 'static>(
        &self,
        name: &'static str,
        group: &str,
        partitions: Option<&[(&str, i32)]>,
        options: AdminOptions,
        call: impl FnOnce(
            Arc<str>,
            Option<Vec<TopicPartition>>,
            Completion<Result<PartitionResults<T>>>,
        ) -> AdminCall,
    ) -> AdminFuture<PartitionResults<T>> {
        match partitions {
            Some(partitions) => {
                self.about_partitions(name, group, partitions, options, |group, partitions, done| {
                    call(group, Some(partitions), done)
                })
            }
            None => {
                let checked = check_group_id(group).map(|()| Arc::from(group));
                self.ask(name, options, checked, |group, done| call(group, None, done))
            }
        }
    }

    /// Makes one call for each group. All calls are in flight at the same time.
    pub(super) fn for_each_group<T: Send + 'static>(
        &self,
        name: &'static str,
        groups: &[&str],
        options: AdminOptions,
        call: impl Fn(Arc<str>, Completion<Result<T>>) -> AdminCall + Clone + Send + 'static,
    ) -> AdminFuture<GroupResults<T>> {
        self.for_each_named("group", name, groups, options, call)
    }

    /// Makes one call for each name. All calls are in flight at the same time. `what` is the singular.
    pub(super) fn for_each_named<T: Send + 'static>(
        &self,
        what: &'static str,
        name: &'static str,
        ids: &[&str],
        options: AdminOptions,
        call: impl Fn(Arc<str>, Completion<Result<T>>) -> AdminCall + Clone + Send + 'static,
    ) -> AdminFuture<Vec<(String, Result<T>)>> {
        checked_names(what, ids).ask(name, |ids| {
            let calls = ids.iter().map(|id| {
                let (id, call) = (Arc::clone(id), call.clone());
                self.start(name, options.timeout, Ok(move |done| call(id, done).done(options.how())))
            });
            let results = AdminFuture::all(name, options.timeout, calls.collect());
            results.and_then(move |results| Ok(ids.iter().map(ToString::to_string).zip(results).collect()))
        })
    }
}

pub(super) fn check_group_id(group: &str) -> Result<()> {
    check_name("group ID", group)
}

fn check_offset(offset: &GroupOffset) -> Result<()> {
    if offset.offset >= 0 {
        return Ok(());
    }
    let detail = format!("offset {}; committed offsets are at least 0", offset.offset);
    Err(invalid(detail).with_partition(&*offset.topic, offset.partition))
}
