//! DescribeAcls (29), CreateAcls (30) and DeleteAcls (31), versions 1 to 3: the access rules of the cluster. Without an
//! authorizer they respond with SECURITY_DISABLED.
//!
//! # Pitfalls
//!
//! - In a filter, the pattern type MATCH finds the rules that are about a resource of this name: literal, `*`, and prefixed
//!   (`filters_match_by_pattern_type`).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        create_acls::{self, CreateAclsRequest, CreateAclsResponse},
        delete_acls::{self, DeleteAclsRequest, DeleteAclsResponse},
        describe_acls::{self, DescribeAclsRequest, DescribeAclsResponse},
    },
};

use crate::{
    acls::{Acl, AclOperation, PatternType, Permission, ResourceType},
    cluster::Cluster,
    connection::Request,
};

/// The number that stands for everything in filters.
const ANY: i8 = 1;
/// The pattern type of filters that match as the authorizer does.
const MATCH: i8 = 2;
const NO_AUTHORIZER: &str = "No Authorizer is configured.";

/// A choice of rules; `None` matches everything.
#[derive(Clone, Debug, Default)]
struct Filter {
    resource_type: Option<ResourceType>,
    name: Option<String>,
    /// `None` matches all; `Some(None)` matches as the authorizer does.
    pattern: Option<Option<PatternType>>,
    principal: Option<String>,
    host: Option<String>,
    operation: Option<AclOperation>,
    permission: Option<Permission>,
}

impl Filter {
    fn matches(&self, acl: &Acl) -> bool {
        let is = |filter: &Option<String>, value: &str| filter.as_ref().is_none_or(|it| it == value);
        self.resource_type.is_none_or(|it| it == acl.resource_type)
            && self.matches_name(acl)
            && is(&self.principal, &acl.principal)
            && is(&self.host, &acl.host)
            && self.operation.is_none_or(|it| it == acl.operation)
            && self.permission.is_none_or(|it| it == acl.permission)
    }

    fn matches_name(&self, acl: &Acl) -> bool {
        let Some(name) = &self.name else {
            return self.pattern.flatten().is_none_or(|pattern| pattern == acl.pattern);
        };
        match self.pattern {
            Some(None) => match acl.pattern {
                PatternType::Literal => acl.name == *name || acl.name == "*",
                PatternType::Prefixed => name.starts_with(&acl.name),
            },
            Some(Some(pattern)) => pattern == acl.pattern && acl.name == *name,
            None => acl.name == *name,
        }
    }
}

/// Returns the value of a number on the wire. Error: there is none.
fn known<T: Copy>(number: i8, all: &[(i8, T)]) -> Result<T, String> {
    all.iter()
        .find(|(known, _)| *known == number)
        .map(|(_, value)| *value)
        .ok_or_else(|| format!("The number {number} stands for nothing that access rules may have."))
}

fn resource_type(number: i8) -> Result<ResourceType, String> {
    use ResourceType as R;
    let all = [R::Topic, R::Group, R::Cluster, R::TransactionalId, R::DelegationToken, R::User];
    known(number, &all.map(|it| (it as i8, it)))
}

fn pattern(number: i8) -> Result<PatternType, String> {
    known(number, &[PatternType::Literal, PatternType::Prefixed].map(|it| (it as i8, it)))
}

fn operation(number: i8) -> Result<AclOperation, String> {
    let each = AclOperation::EACH.map(|it| (it as i8, it));
    if number == AclOperation::All as i8 { Ok(AclOperation::All) } else { known(number, &each) }
}

fn permission(number: i8) -> Result<Permission, String> {
    known(number, &[Permission::Deny, Permission::Allow].map(|it| (it as i8, it)))
}

/// Returns the value of a filter's number, `None` for any.
fn any<T>(number: i8, read: impl FnOnce(i8) -> Result<T, String>) -> Result<Option<T>, String> {
    if number == ANY { Ok(None) } else { read(number).map(Some) }
}

fn filter(wire: delete_acls::request::Filter) -> Result<Filter, String> {
    let pattern_of = |number| if number == MATCH { Ok(None) } else { pattern(number).map(Some) };
    Ok(Filter {
        resource_type: any(wire.resource_type_filter, resource_type)?,
        name: wire.resource_name_filter,
        pattern: any(wire.pattern_type_filter, pattern_of)?,
        principal: wire.principal_filter,
        host: wire.host_filter,
        operation: any(wire.operation, operation)?,
        permission: any(wire.permission_type, permission)?,
    })
}

/// Reads a rule to create. Error: what Kafka refuses.
fn rule(wire: create_acls::request::Creation) -> Result<Acl, String> {
    let acl = Acl {
        resource_type: resource_type(wire.resource_type)?,
        name: wire.resource_name,
        pattern: pattern(wire.resource_pattern_type)?,
        principal: wire.principal,
        host: wire.host,
        operation: operation(wire.operation)?,
        permission: permission(wire.permission_type)?,
    };
    if acl.name.is_empty() {
        return Err("Resource name should not be empty".to_owned());
    }
    if acl.resource_type == ResourceType::Cluster && acl.name != crate::acls::CLUSTER_NAME {
        return Err("The only valid name for the CLUSTER resource is kafka-cluster".to_owned());
    }
    if !acl.principal.contains(':') {
        return Err(format!(
            "Could not parse principal from `{}` (no colon is present separating the principal type from the principal name)",
            acl.principal
        ));
    }
    Ok(acl)
}

impl Cluster {
    /// Error: there is no authorizer, or the client may not do this with the cluster.
    fn check_acl_access(
        &self,
        request: &Request,
        needed: AclOperation,
    ) -> Result<(), (ErrorCode, Option<String>)> {
        let injected = request.injected_error();
        if injected.is_error() {
            return Err((injected, None));
        }
        if self.options.authorizer.is_none() {
            return Err((ErrorCode::SECURITY_DISABLED, Some(NO_AUTHORIZER.to_owned())));
        }
        self.check_cluster_access(request, needed)
            .map_err(|error| (error, Some(error.description().to_owned())))
    }

    pub(crate) fn describe_acls(
        &mut self,
        request: &mut Request,
        body: DescribeAclsRequest,
    ) -> DescribeAclsResponse {
        let mut response =
            DescribeAclsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if let Err((error, message)) = self.check_acl_access(request, AclOperation::Describe) {
            return DescribeAclsResponse { error_code: error, error_message: message, ..response };
        }
        let wanted = filter(delete_acls::request::Filter {
            resource_type_filter: body.resource_type_filter,
            resource_name_filter: body.resource_name_filter,
            pattern_type_filter: body.pattern_type_filter,
            principal_filter: body.principal_filter,
            host_filter: body.host_filter,
            operation: body.operation,
            permission_type: body.permission_type,
        });
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(message) => {
                let error_code = ErrorCode::INVALID_REQUEST;
                return DescribeAclsResponse { error_code, error_message: Some(message), ..response };
            }
        };
        let acls = self.options.authorizer.iter().flat_map(|authorizer| authorizer.acls());
        for acl in acls.filter(|acl| wanted.matches(acl)) {
            let described = describe_acls::response::Acl {
                principal: acl.principal.clone(),
                host: acl.host.clone(),
                operation: acl.operation as i8,
                permission_type: acl.permission as i8,
            };
            let (kind, pattern) = (acl.resource_type as i8, acl.pattern as i8);
            // Rules are in order of their resources.
            match response.resources.last_mut() {
                Some(last)
                    if (last.resource_type, last.pattern_type) == (kind, pattern)
                        && last.resource_name == acl.name =>
                {
                    last.acls.push(described);
                }
                _ => response.resources.push(describe_acls::response::Resource {
                    resource_type: kind,
                    resource_name: acl.name.clone(),
                    pattern_type: pattern,
                    acls: vec![described],
                }),
            }
        }
        response
    }

    pub(crate) fn create_acls(
        &mut self,
        request: &mut Request,
        body: CreateAclsRequest,
    ) -> CreateAclsResponse {
        let refusal = self.check_acl_access(request, AclOperation::Alter);
        let mut create = |wire| {
            refusal.clone()?;
            let acl = rule(wire).map_err(|message| (ErrorCode::INVALID_REQUEST, Some(message)))?;
            self.options.authorizer.iter_mut().for_each(|authorizer| authorizer.add(acl.clone()));
            Ok(())
        };
        let results = body.creations.into_iter().map(|wire| match create(wire) {
            Ok(()) => create_acls::response::CreateAclsResult::default(),
            Err((error_code, error_message)) => {
                create_acls::response::CreateAclsResult { error_code, error_message }
            }
        });
        let results = results.collect();
        CreateAclsResponse { throttle_time_ms: request.throttle_ms(), results }
    }

    pub(crate) fn delete_acls(
        &mut self,
        request: &mut Request,
        body: DeleteAclsRequest,
    ) -> DeleteAclsResponse {
        let refusal = self.check_acl_access(request, AclOperation::Alter);
        let mut delete = |wire| {
            refusal.clone()?;
            let wanted = filter(wire).map_err(|message| (ErrorCode::INVALID_REQUEST, Some(message)))?;
            let Some(authorizer) = &mut self.options.authorizer else { return Ok(Vec::new()) };
            let matching: Vec<Acl> = authorizer.acls().filter(|acl| wanted.matches(acl)).cloned().collect();
            for acl in &matching {
                authorizer.remove(acl);
            }
            Ok(matching)
        };
        let results = body.filters.into_iter().map(|wire| match delete(wire) {
            Ok(deleted) => delete_acls::response::FilterResult {
                matching_acls: deleted.iter().map(deleted_rule).collect(),
                ..Default::default()
            },
            Err((error_code, error_message)) => {
                delete_acls::response::FilterResult { error_code, error_message, ..Default::default() }
            }
        });
        let filter_results = results.collect();
        DeleteAclsResponse { throttle_time_ms: request.throttle_ms(), filter_results }
    }
}

fn deleted_rule(acl: &Acl) -> delete_acls::response::MatchingAcl {
    delete_acls::response::MatchingAcl {
        resource_type: acl.resource_type as i8,
        resource_name: acl.name.clone(),
        pattern_type: acl.pattern as i8,
        principal: acl.principal.clone(),
        host: acl.host.clone(),
        operation: acl.operation as i8,
        permission_type: acl.permission as i8,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_by_pattern_type() {
        let literal = Acl::allow("alice", AclOperation::Read, ResourceType::Topic, "orders");
        let prefixed = Acl { name: "or".to_owned(), ..literal.clone() }.prefixed();
        let all = Acl { name: "*".to_owned(), ..literal.clone() };
        let found = |pattern_type: i8, name: Option<&str>| {
            let wire = delete_acls::request::Filter {
                resource_type_filter: ANY,
                resource_name_filter: name.map(str::to_owned),
                pattern_type_filter: pattern_type,
                principal_filter: None,
                host_filter: None,
                operation: ANY,
                permission_type: ANY,
            };
            let filter = filter(wire).unwrap();
            [&literal, &prefixed, &all].map(|acl| filter.matches(acl))
        };
        assert_eq!(found(ANY, None), [true, true, true]);
        assert_eq!(found(PatternType::Literal as i8, None), [true, false, true]);
        assert_eq!(found(PatternType::Prefixed as i8, None), [false, true, false]);
        assert_eq!(found(ANY, Some("orders")), [true, false, false]);
        assert_eq!(found(PatternType::Prefixed as i8, Some("or")), [false, true, false]);
        assert_eq!(found(MATCH, Some("orders")), [true, true, true]);
        assert_eq!(found(MATCH, Some("other")), [false, false, true]);
    }

    #[test]
    fn rules_with_impossible_values_are_refused() {
        let wire = || create_acls::request::Creation {
            resource_type: 2,
            resource_name: "orders".to_owned(),
            resource_pattern_type: 3,
            principal: "User:alice".to_owned(),
            host: "*".to_owned(),
            operation: 3,
            permission_type: 3,
        };
        rule(wire()).unwrap();
        for wrong in [
            create_acls::request::Creation { resource_type: ANY, ..wire() },
            create_acls::request::Creation { resource_pattern_type: MATCH, ..wire() },
            create_acls::request::Creation { operation: ANY, ..wire() },
            create_acls::request::Creation { operation: 99, ..wire() },
            create_acls::request::Creation { permission_type: 0, ..wire() },
            create_acls::request::Creation { principal: "alice".to_owned(), ..wire() },
            create_acls::request::Creation { resource_name: String::new(), ..wire() },
            create_acls::request::Creation { resource_type: 4, ..wire() },
        ] {
            rule(wrong).unwrap_err();
        }
    }
}
