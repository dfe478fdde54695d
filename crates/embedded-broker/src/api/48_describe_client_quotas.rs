//! DescribeClientQuotas (48) and AlterClientQuotas (49), versions 0 and 1.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        alter_client_quotas::{self, AlterClientQuotasRequest, AlterClientQuotasResponse},
        describe_client_quotas::{
            DescribeClientQuotasRequest, DescribeClientQuotasResponse, request,
            response::{Entity, Entry, Value},
        },
    },
};
use ottla_sorted::SortedMap;

use crate::{
    acls::AclOperation,
    administration::QuotaEntity,
    cluster::Cluster,
    connection::Request,
    provisioning::{Refusal, code_and_message},
};

const USER: &str = "user";
const CLIENT_ID: &str = "client-id";
const IP: &str = "ip";
/// The quotas of users and client IDs, and whether they are whole numbers.
const OF_CLIENTS: [(&str, bool); 4] = [
    ("consumer_byte_rate", true),
    ("controller_mutation_rate", false),
    ("producer_byte_rate", true),
    ("request_percentage", false),
];
const OF_ADDRESSES: [(&str, bool); 1] = [("connection_creation_rate", true)];

fn refuse(message: impl Into<String>) -> Refusal {
    (ErrorCode::INVALID_REQUEST, message.into())
}

/// Error: the types of entities do not exist, or do not go together.
fn check_types<'a>(types: impl Iterator<Item = &'a str> + Clone) -> Result<(), Refusal> {
    if let Some(unknown) = types.clone().find(|one| ![USER, CLIENT_ID, IP].contains(one)) {
        return Err(refuse(format!("Unhandled client quota entity type: {unknown}")));
    }
    let has = |wanted: &str| types.clone().any(|one| one == wanted);
    if has(IP) && (has(USER) || has(CLIENT_ID)) {
        return Err(refuse(
            "Invalid quota entity combination, ip entity should not be used with user/client ID entity.",
        ));
    }
    Ok(())
}

/// A choice of names: exactly one, the default, or any.
type Components = SortedMap<String, (i8, Option<String>)>;

fn components(filter: Vec<request::Component>) -> Result<Components, Refusal> {
    let mut components = Components::new();
    for one in filter {
        if one.entity_type.is_empty() {
            return Err(refuse("Unexpected empty filter component entity type"));
        }
        if components.contains_key(&one.entity_type) {
            return Err(refuse(format!("Duplicate {} filter component entity type", one.entity_type)));
        }
        let is_right = matches!((one.match_type, &one.r#match), (0, Some(_)) | (1 | 2, None));
        if !is_right {
            return Err(refuse(format!(
                "Unexpected match type or name of the entity type {}",
                one.entity_type
            )));
        }
        components.insert(one.entity_type, (one.match_type, one.r#match));
    }
    check_types(components.keys().map(String::as_str))?;
    Ok(components)
}

fn matches(entity: &QuotaEntity, components: &Components, is_strict: bool) -> bool {
    let is_matched = |(kind, (match_type, name)): (&String, &(i8, Option<String>))| {
        entity.get(kind).is_some_and(|found| *match_type == 2 || found == name)
    };
    components.iter().all(is_matched)
        && (!is_strict || entity.keys().all(|kind| components.contains_key(kind)))
}

impl Cluster {
    pub(crate) fn describe_client_quotas(
        &mut self,
        request: &mut Request,
        body: DescribeClientQuotasRequest,
    ) -> DescribeClientQuotasResponse {
        let mut response =
            DescribeClientQuotasResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let permitted = self.check_cluster_request(request, AclOperation::DescribeConfigs);
        let permitted = permitted.map_err(|error| (error, error.description().to_owned()));
        match permitted.and_then(|()| components(body.components)) {
            Ok(components) => {
                let found = self.administration.quotas.iter();
                let found = found.filter(|(entity, _)| matches(entity, &components, body.strict));
                response.entries = Some(found.map(|(entity, values)| entry(entity, values)).collect());
            }
            Err((error, message)) => {
                (response.error_code, response.error_message) = (error, Some(message));
                response.entries = None;
            }
        }
        response
    }

    pub(crate) fn alter_client_quotas(
        &mut self,
        request: &mut Request,
        body: AlterClientQuotasRequest,
    ) -> AlterClientQuotasResponse {
        let permitted = self.check_cluster_request(request, AclOperation::AlterConfigs);
        let permitted = permitted.map_err(|error| (error, error.description().to_owned()));
        let entries = body.entries.into_iter().map(|entry| {
            let entity: QuotaEntity =
                entry.entity.iter().map(|one| (one.entity_type.clone(), one.entity_name.clone())).collect();
            let checked = permitted.clone().and_then(|()| check(&entity, &entry));
            if checked.is_ok() && !body.validate_only {
                self.change_quotas(entity, &entry.ops);
            }
            let (error_code, error_message) = code_and_message(checked);
            let named = entry.entity.into_iter().map(|one| alter_client_quotas::response::Entity {
                entity_type: one.entity_type,
                entity_name: one.entity_name,
            });
            alter_client_quotas::response::Entry { error_code, error_message, entity: named.collect() }
        });
        let entries = entries.collect();
        AlterClientQuotasResponse { throttle_time_ms: request.throttle_ms(), entries }
    }

    fn change_quotas(&mut self, entity: QuotaEntity, ops: &[alter_client_quotas::request::Op]) {
        let values = self.administration.quotas.entry(entity).or_default();
        for op in ops {
            if op.remove {
                values.remove(&op.key);
            } else {
                values.insert(op.key.clone(), op.value);
            }
        }
        self.administration.quotas.retain(|_, values| !values.is_empty());
    }
}

fn entry(entity: &QuotaEntity, values: &SortedMap<String, f64>) -> Entry {
    let names = entity.iter();
    let names = names.map(|(kind, name)| Entity { entity_type: kind.clone(), entity_name: name.clone() });
    let values = values.iter().map(|(key, value)| Value { key: key.clone(), value: *value });
    Entry { entity: names.collect(), values: values.collect() }
}

/// Error: the entity does not exist in this form, or has no such quotas.
fn check(entity: &QuotaEntity, entry: &alter_client_quotas::request::Entry) -> Result<(), Refusal> {
    if entity.is_empty() {
        return Err(refuse("Invalid empty client quota entity"));
    }
    if entity.len() < entry.entity.len() {
        return Err(refuse("Duplicate entity type"));
    }
    if entity.values().flatten().any(String::is_empty) {
        return Err(refuse("Empty entity name"));
    }
    check_types(entity.keys().map(String::as_str))?;
    let known: &[(&str, bool)] = if entity.contains_key(IP) { &OF_ADDRESSES } else { &OF_CLIENTS };
    for op in &entry.ops {
        let Some((_, is_whole)) = known.iter().find(|(key, _)| *key == op.key) else {
            return Err(refuse(format!("Invalid configuration key {}", op.key)));
        };
        if !op.remove && *is_whole && (op.value.fract() != 0.0 || op.value < 0.0) {
            return Err(refuse(format!("Configuration {} must be a Long value", op.key)));
        }
    }
    Ok(())
}
