//! Calls about quotas of clients.

use std::collections::BTreeMap;

use ottla_core::{
    admin::{
        item_results::ItemResults,
        quotas::{QuotaChanges, QuotaEntity, QuotaFilter, QuotaMatch, Quotas, alter_quotas, describe_quotas},
    },
    error::Result,
};

use super::{
    calls::{calls, check_name, invalid},
    elements::Elements,
};

calls! {
    /// Describes the quotas of the entities that match a filter. Needs Kafka 2.6 or later.
    ///
    /// ```
    /// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
    /// use std::time::Duration;
    ///
    /// use ottla::admin::{QuotaFilter, QuotaMatch};
    ///
    /// let of_users = QuotaFilter::default().matching("user", QuotaMatch::Any);
    /// for (entity, values) in admin.describe_client_quotas(&of_users, Duration::from_secs(10))? {
    ///     println!("{entity:?}: {values:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn describe_client_quotas, describe_client_quotas_async(&self, filter: &QuotaFilter; options) -> Quotas {
        let checked = check_filter(filter).map(|()| filter.clone());
        self.ask("describe_client_quotas", options, checked, |filter, done| {
            describe_quotas(filter, options.timeout, done)
        })
    }

    /// Sets and removes quotas. Each entity has a result. Needs Kafka 2.6 or later.
    fn alter_client_quotas, alter_client_quotas_async(
        &self,
        changes: &BTreeMap<QuotaEntity, QuotaChanges>;
        options
    ) -> ItemResults<QuotaEntity, ()> {
        const NAME: &str = "alter_client_quotas";
        let check = |(entity, changes): &(&QuotaEntity, &QuotaChanges)| {
            check_changes(entity, changes).map(|()| ((*entity).clone(), (*changes).clone()))
        };
        let changes = Elements::new(changes, check, |(entity, _), error| ((*entity).clone(), Err(error)));
        changes.required("entities").ask(NAME, |changes| {
            let changes = changes.into_iter().collect();
            self.ask(NAME, options, Ok(changes), |changes, done| {
                alter_quotas(changes, options.validate_only, options.timeout, done)
            })
        })
    }
}

fn check_filter(filter: &QuotaFilter) -> Result<()> {
    filter.components.iter().try_for_each(|(entity_type, names)| {
        check_name("type of an entity", entity_type)?;
        match names {
            QuotaMatch::Name(name) => check_name("name of an entity", name),
            _ => Ok(()),
        }
    })
}

fn check_changes(entity: &QuotaEntity, changes: &QuotaChanges) -> Result<()> {
    if entity.is_empty() {
        return Err(invalid("an entity has no type; name a user, a client-id or an ip"));
    }
    for (entity_type, name) in entity {
        check_name("type of an entity", entity_type)?;
        name.as_ref().map_or(Ok(()), |name| check_name("name of an entity", name))?;
    }
    if changes.is_empty() {
        return Err(invalid(format!("no quotas for {entity:?}; name at least one")));
    }
    for (key, value) in changes {
        check_name("name of a quota", key)?;
        if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
            return Err(invalid(format!("quota {key} must be a number of at least 0")));
        }
    }
    Ok(())
}
