//! Quotas of clients (KIP-546).

use std::collections::BTreeMap;

use ottla_core::admin::quotas::{QuotaChanges, QuotaEntity, QuotaFilter, QuotaMatch};

use super::{calls, request::Fields, row::Row, shown};
use crate::client::event::Failure;

/// The types of entities, which are fields.
const ENTITIES: [&str; 3] = ["user", "client-id", "ip"];
/// The name that stands for all entities of a type without a quota of their own, as Kafka's tools show it.
const DEFAULT: &str = "<default>";
/// The name that matches all.
const ANY: &str = "*";

calls! {
    fn rd_kafka_ottla_DescribeClientQuotas("user", "client-id", "ip", "strict") |admin, rows, options| {
        let mut filter = QuotaFilter::default();
        for row in rows.iter() {
            for entity in ENTITIES {
                filter = match row.optional(entity) {
                    None => continue,
                    Some(DEFAULT) => filter.matching(entity, QuotaMatch::Default),
                    Some(ANY) => filter.matching(entity, QuotaMatch::Any),
                    Some(name) => filter.matching(entity, QuotaMatch::Name(name.to_owned())),
                };
            }
            if row.choice("strict", &[("true", true), ("false", false)])? == Some(true) {
                filter = filter.strict();
            }
        }
        Ok(shown(admin.describe_client_quotas_async(&filter, *options), |quotas| {
            let values = quotas.iter().flat_map(|(entity, values)| {
                values.iter().map(move |(quota, value)| named(entity).with("quota", quota).with("value", value))
            });
            values.collect()
        }))
    }

    fn rd_kafka_ottla_AlterClientQuotas("user", "client-id", "ip", "quota", "value") |admin, rows, options| {
        let mut changes = BTreeMap::<QuotaEntity, QuotaChanges>::new();
        for row in rows.some()? {
            let quota = row.text("quota")?.to_owned();
            let value = row.optional_number("value")?;
            if changes.entry(entity_of(row)?).or_default().insert(quota, value).is_some() {
                return Err(row.wrong("the quota of this entity is named twice"));
            }
        }
        Ok(shown(admin.alter_client_quotas_async(&changes, *options), |results| {
            results.iter().map(|(entity, result)| named(entity).failed(result.as_ref().err())).collect()
        }))
    }
}

fn entity_of(row: &Fields<'_>) -> Result<QuotaEntity, Failure> {
    let types = ENTITIES.iter().filter_map(|entity| Some((*entity, row.optional(entity)?)));
    let name = |name: &str| (name != DEFAULT).then(|| name.to_owned());
    let entity: QuotaEntity = types.map(|(entity, text)| (entity.to_owned(), name(text))).collect();
    if entity.is_empty() { Err(row.wrong("no entity; set user, client-id or ip")) } else { Ok(entity) }
}

fn named(entity: &QuotaEntity) -> Row {
    entity.iter().fold(Row::new(), |row, (kind, name)| row.with(kind, name.as_deref().unwrap_or(DEFAULT)))
}
