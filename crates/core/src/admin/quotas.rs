//! Quotas of clients (KIP-546): describes and changes the limits of users, client IDs and addresses.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ottla_protocol::generated::{
    alter_client_quotas::{
        AlterClientQuotasRequest,
        request::{Entity as EntityOfRequest, Entry, Op},
    },
    describe_client_quotas::{DescribeClientQuotasRequest, request::Component},
};

use super::{
    AdminCall, check,
    item_results::{ItemResults, Items},
    one_result::OneResult,
};
use crate::{completion::Completion, contract::route::Route, error::Error};

/// The clients that a quota is for: names by the type of entity (`user`, `client-id` or `ip`). The name `None` stands for all
/// clients of the type without a quota of their own.
pub type QuotaEntity = BTreeMap<String, Option<String>>;

/// The quotas of each entity: values by the quota's name, such as `consumer_byte_rate`.
pub type Quotas = Vec<(QuotaEntity, BTreeMap<String, f64>)>;

/// The names that a filter matches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaMatch {
    /// Exactly this name.
    Name(String),
    /// The default of the type.
    Default,
    /// All names, and the default.
    Any,
}

/// A choice of entities. The default matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotaFilter {
    /// The names for each type of entity.
    pub components: BTreeMap<String, QuotaMatch>,
    /// Entities with other types than those of the filter do not match.
    pub is_strict: bool,
}

impl QuotaFilter {
    /// Requires a type of entity with matching names.
    #[must_use]
    pub fn matching(mut self, entity_type: impl Into<String>, names: QuotaMatch) -> Self {
        self.components.insert(entity_type.into(), names);
        self
    }

    /// Excludes entities with other types than those of the filter.
    #[must_use]
    pub const fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }
}

/// A change of an entity's quotas: each named quota gets a value, or with `None` is removed.
pub type QuotaChanges = BTreeMap<String, Option<f64>>;

/// Describes the quotas of the entities that match.
pub fn describe_quotas(
    filter: QuotaFilter,
    timeout: Duration,
    done: Completion<Result<Quotas, Error>>,
) -> AdminCall {
    let request = move |_, _| {
        let component = |(entity_type, names): (&String, &QuotaMatch)| {
            let (match_type, name) = match names {
                QuotaMatch::Name(name) => (0, Some(name.clone())),
                QuotaMatch::Default => (1, None),
                QuotaMatch::Any => (2, None),
            };
            Component { entity_type: entity_type.clone(), match_type, r#match: name }
        };
        DescribeClientQuotasRequest {
            components: filter.components.iter().map(component).collect(),
            strict: filter.is_strict,
        }
    };
    let call = OneResult::new(Route::Any, request, |response, _| {
        check(response.error_code, response.error_message.as_deref())?;
        let entries = response.entries.unwrap_or_default().into_iter().map(|entry| {
            let entity = entry.entity.into_iter().map(|one| (one.entity_type, one.entity_name)).collect();
            (entity, entry.values.into_iter().map(|one| (one.key, one.value)).collect())
        });
        let mut quotas: Quotas = entries.collect();
        quotas.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(quotas)
    });
    call.call(timeout, done)
}

/// Changes the quotas of entities. With `validate_only` the broker only checks the request.
pub fn alter_quotas(
    changes: BTreeMap<QuotaEntity, QuotaChanges>,
    validate_only: bool,
    timeout: Duration,
    done: Completion<Result<ItemResults<QuotaEntity, ()>, Error>>,
) -> AdminCall {
    let keys = changes.keys().cloned().collect();
    let changes = Arc::new(changes);
    let request = move |keys: &[QuotaEntity], _, _| {
        let of_entity = |entity: &QuotaEntity| Entry {
            entity: entity
                .iter()
                .map(|(entity_type, name)| EntityOfRequest {
                    entity_type: entity_type.clone(),
                    entity_name: name.clone(),
                })
                .collect(),
            ops: changes
                .get(entity)
                .into_iter()
                .flatten()
                .map(|(key, value)| Op {
                    key: key.clone(),
                    value: value.unwrap_or(0.0),
                    remove: value.is_none(),
                })
                .collect(),
        };
        AlterClientQuotasRequest { entries: keys.iter().map(of_entity).collect(), validate_only }
    };
    let call = Items::new(keys, request, |_, response| {
        let results = response.entries.into_iter().map(|entry| {
            let entity = entry.entity.into_iter().map(|one| (one.entity_type, one.entity_name)).collect();
            (entity, check(entry.error_code, entry.error_message.as_deref()))
        });
        Ok(results.collect())
    });
    call.call(timeout, done)
}
