//! Calls about streams groups (KIP-1071). [`Admin::list_groups`] lists them, [`Admin::delete_groups`] deletes them, and
//! [`Admin::list_group_offsets`], [`Admin::alter_group_offsets`] and [`Admin::delete_group_offsets`] are about their committed
//! offsets.

use ottla_core::{
    admin::groups::{
        describe_typed::Included,
        streams_groups::{StreamsGroupDescription, describe_streams_groups},
    },
    error::Result,
};

use super::{Admin, AdminFuture, AdminOptions, groups::GroupResults};

impl Admin {
    /// Describes streams groups: state, topology, members and their tasks. A group of another type, or that does not exist, is
    /// an error. Needs Kafka 4.1.
    pub fn describe_streams_groups(
        &self,
        groups: &[&str],
        options: impl Into<AdminOptions>,
    ) -> Result<GroupResults<StreamsGroupDescription>> {
        self.describe_streams_groups_async(groups, options).wait()
    }

    /// Describes streams groups, without blocking. See [`Admin::describe_streams_groups`].
    pub fn describe_streams_groups_async(
        &self,
        groups: &[&str],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<GroupResults<StreamsGroupDescription>> {
        let options = options.into();
        let included = Included {
            operations: options.authorized_operations,
            topology_description: options.topology_description,
        };
        self.about_groups("describe_streams_groups", groups, options, move |groups, _, timeout, done| {
            describe_streams_groups(groups, included, timeout, done)
        })
    }
}
