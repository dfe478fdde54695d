//! Calls about configurations.

use std::{collections::BTreeMap, time::Duration};

use ottla_core::{
    admin::{
        AdminCall,
        config_resources::list_config_resources,
        configs::{
            ConfigChanges, ConfigResource, ConfigResults, ResourceKind, change_configs, describe_configs,
            replace_configs,
        },
    },
    completion::Completion,
    error::{Error, Result},
};

use super::{Admin, AdminFuture, AdminOptions, calls::calls};

/// The result for each resource whose configuration was to be altered, in the order of the arguments.
pub type AlterConfigsResults = Vec<(ConfigResource, Result<(), Error>)>;

impl Admin {
    /// Describes the configurations of topics, brokers, groups and client metrics. Each broker gets a request of its own,
    /// because a broker describes only itself.
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
        const NAME: &str = "describe_configs";
        let options = options.into();
        let describe = |resources: Vec<ConfigResource>| {
            let call = move |done| describe_configs(resources, options.timeout, done).done(options.how());
            self.start(NAME, options.timeout, Ok(call))
        };
        let calls = by_broker(resources, Clone::clone).into_iter().map(describe).collect();
        let wanted = resources.to_vec();
        AdminFuture::all(NAME, options.timeout, calls).and_then(move |results| Ok(in_order(&wanted, results)))
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
        let wanted: Vec<ConfigResource> = changes.iter().map(|(resource, _)| resource.clone()).collect();
        let calls = by_broker(&changes, |(resource, _)| resource.clone()).into_iter().map(|changes| {
            let call =
                move |done| call(changes, options.validate_only, options.timeout, done).done(options.how());
            self.start(name, options.timeout, Ok(call))
        });
        AdminFuture::all(name, options.timeout, calls.collect())
            .and_then(move |results| without_entries(in_order(&wanted, results)))
    }
}

calls! {
    /// Lists the resources of these kinds that have a configuration, or of all kinds. Needs Kafka 3.7 or later for
    /// [`ResourceKind::CLIENT_METRICS`], and Kafka 4.1 or later for other kinds.
    fn list_config_resources, list_config_resources_async(&self, kinds: &[ResourceKind]; options) -> Vec<ConfigResource> {
        self.ask("list_config_resources", options, Ok(kinds.to_vec()), |kinds, done| {
            list_config_resources(kinds, options.timeout, done)
        })
    }
}

/// Divides items by the broker that alone knows their resource; the items of all brokers stay together.
fn by_broker<T: Clone>(items: &[T], resource: impl Fn(&T) -> ConfigResource) -> Vec<Vec<T>> {
    let mut parts = BTreeMap::<Option<i32>, Vec<T>>::new();
    for item in items {
        parts.entry(resource(item).of_broker()).or_default().push(item.clone());
    }
    parts.into_values().collect()
}

/// Returns the results of several calls in the order of the resources.
fn in_order(wanted: &[ConfigResource], results: Vec<ConfigResults>) -> ConfigResults {
    let mut found: BTreeMap<_, _> = results.into_iter().flatten().collect();
    wanted.iter().filter_map(|resource| found.remove_entry(resource)).collect()
}

fn without_entries(results: ConfigResults) -> Result<AlterConfigsResults> {
    Ok(results.into_iter().map(|(resource, result)| (resource, result.map(drop))).collect())
}
