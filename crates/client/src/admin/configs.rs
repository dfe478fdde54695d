//! Calls about configurations.

use std::time::Duration;

use ottla_core::{
    admin::{
        AdminCall,
        configs::{
            ConfigChanges, ConfigResource, ConfigResults, change_configs, describe_configs, replace_configs,
        },
    },
    completion::Completion,
    error::{Error, Result},
};

use super::{Admin, AdminFuture, AdminOptions};

/// The result for each resource whose configuration was to be altered, in the order of the arguments.
pub type AlterConfigsResults = Vec<(ConfigResource, Result<(), Error>)>;

impl Admin {
    /// Describes the configurations of topics, brokers and groups. At most one of the resources may be a broker, because a
    /// broker describes only itself.
    pub fn describe_configs(
        &self,
        resources: &[ConfigResource],
        options: impl Into<AdminOptions>,
    ) -> Result<ConfigResults> {
        self.describe_configs_async(resources, options).wait()
    }

    /// Describes configurations, without blocking. See [`Admin::describe_configs`].
    pub fn describe_configs_async(
        &self,
        resources: &[ConfigResource],
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<ConfigResults> {
        let (resources, options) = (resources.to_vec(), options.into());
        let call = move |done| describe_configs(resources, options.timeout, done).done(options.how());
        self.start("describe_configs", options.timeout, Ok(call))
    }

    /// Changes properties of configurations; properties that are not named keep their values. Needs Kafka 2.3 or later.
    ///
    /// ```
    /// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
    /// use std::time::Duration;
    ///
    /// use ottla::{ConfigChange, ConfigResource};
    ///
    /// let changes =
    ///     vec![ConfigChange::set("retention.ms", "86400000"), ConfigChange::append("cleanup.policy", "compact")];
    /// admin.incremental_alter_configs(&vec![(ConfigResource::topic("orders"), changes)], Duration::from_secs(10))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn incremental_alter_configs(
        &self,
        changes: &ConfigChanges,
        options: impl Into<AdminOptions>,
    ) -> Result<AlterConfigsResults> {
        self.incremental_alter_configs_async(changes, options).wait()
    }

    /// Changes properties, without blocking. See [`Admin::incremental_alter_configs`].
    pub fn incremental_alter_configs_async(
        &self,
        changes: &ConfigChanges,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<AlterConfigsResults> {
        self.alter("incremental_alter_configs", changes.clone(), options.into(), change_configs)
    }

    /// Replaces whole configurations: properties that are not named return to their defaults. Kafka deprecates this call;
    /// [`Admin::incremental_alter_configs`] does not undo what others set.
    pub fn alter_configs(
        &self,
        changes: &ConfigChanges,
        options: impl Into<AdminOptions>,
    ) -> Result<AlterConfigsResults> {
        self.alter_configs_async(changes, options).wait()
    }

    /// Replaces whole configurations, without blocking. See [`Admin::alter_configs`].
    pub fn alter_configs_async(
        &self,
        changes: &ConfigChanges,
        options: impl Into<AdminOptions>,
    ) -> AdminFuture<AlterConfigsResults> {
        self.alter("alter_configs", changes.clone(), options.into(), replace_configs)
    }

    fn alter(
        &self,
        name: &'static str,
        changes: ConfigChanges,
        options: AdminOptions,
        call: fn(ConfigChanges, bool, Duration, Completion<ConfigResults>) -> AdminCall,
    ) -> AdminFuture<AlterConfigsResults> {
        let call =
            move |done| call(changes, options.validate_only, options.timeout, done).done(options.how());
        self.start(name, options.timeout, Ok(call)).and_then(without_entries)
    }
}

fn without_entries(results: ConfigResults) -> Result<AlterConfigsResults> {
    Ok(results.into_iter().map(|(resource, result)| (resource, result.map(drop))).collect())
}
