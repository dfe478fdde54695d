//! Access control lists: creates, describes and deletes the rules that brokers' authorizers decide by.
//!
//! # Pitfalls
//!
//! - Version 0 has no pattern types: a filter for prefixed rules would match literal ones. Such requests are only sent to
//!   brokers that support them (`pattern_types_need_brokers_that_know_them`).

use std::{sync::Arc, time::Duration};

use ottla_protocol::generated::{
    create_acls::{CreateAclsRequest, request::Creation},
    delete_acls::{DeleteAclsRequest, request, response},
    describe_acls::DescribeAclsRequest,
};

use super::{
    AdminCall, check,
    item_results::{ItemResults, Items, by_position},
    numbered::numbered,
    one_result::OneResult,
};
use crate::{completion::Completion, contract::route::Route, error::Error};

numbered! {
    /// The type of the resource that a rule is about.
    AclResourceType {
        /// In filters: any type.
        Any = 1 "ANY",
        /// A topic.
        Topic = 2 "TOPIC",
        /// A group.
        Group = 3 "GROUP",
        /// The cluster; its name is `kafka-cluster`.
        Cluster = 4 "CLUSTER",
        /// A transactional ID.
        TransactionalId = 5 "TRANSACTIONAL_ID",
        /// A delegation token.
        DelegationToken = 6 "DELEGATION_TOKEN",
        /// A user.
        User = 7 "USER",
    }
}

numbered! {
    /// How the name of a rule is compared with the names of resources.
    PatternType {
        /// In filters: any pattern type.
        Any = 1 "ANY",
        /// In filters: all rules that are about a resource of this name, also those with `*` and prefixes.
        Match = 2 "MATCH",
        /// The rule is about the resource of this name, or with `*` about all.
        Literal = 3 "LITERAL",
        /// The rule is about all resources whose name begins with this one.
        Prefixed = 4 "PREFIXED",
    }
}

numbered! {
    /// An operation that a rule permits or denies.
    AclOperation {
        /// In filters: any operation.
        Any = 1 "ANY",
        /// All operations.
        All = 2 "ALL",
        /// Reading.
        Read = 3 "READ",
        /// Writing.
        Write = 4 "WRITE",
        /// Creating.
        Create = 5 "CREATE",
        /// Deleting.
        Delete = 6 "DELETE",
        /// Changing.
        Alter = 7 "ALTER",
        /// Describing.
        Describe = 8 "DESCRIBE",
        /// The requests of brokers.
        ClusterAction = 9 "CLUSTER_ACTION",
        /// Reading configurations.
        DescribeConfigs = 10 "DESCRIBE_CONFIGS",
        /// Changing configurations.
        AlterConfigs = 11 "ALTER_CONFIGS",
        /// Writing idempotently.
        IdempotentWrite = 12 "IDEMPOTENT_WRITE",
        /// Creating delegation tokens for another user.
        CreateTokens = 13 "CREATE_TOKENS",
        /// Describing delegation tokens of another user.
        DescribeTokens = 14 "DESCRIBE_TOKENS",
        /// Taking part in a two-phase commit.
        TwoPhaseCommit = 15 "TWO_PHASE_COMMIT",
    }
}

numbered! {
    /// The effect of a rule.
    AclPermission {
        /// In filters: both.
        Any = 1 "ANY",
        /// The operation is denied, whatever other rules permit.
        Deny = 2 "DENY",
        /// The operation is permitted.
        Allow = 3 "ALLOW",
    }
}

/// A rule: who may do what, with which resource, from where.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AclBinding {
    /// The type of the resource.
    pub resource_type: AclResourceType,
    /// The name of the resource, its beginning, or `*`.
    pub name: String,
    /// How names are compared.
    pub pattern: PatternType,
    /// The user, such as `User:alice`; `User:*` stands for all users.
    pub principal: String,
    /// The address of the client's host; `*` stands for all hosts.
    pub host: String,
    /// The operation.
    pub operation: AclOperation,
    /// The effect.
    pub permission: AclPermission,
}

impl AclBinding {
    /// Creates a rule that permits an operation on the resource of this name, from all hosts.
    pub fn allow(
        principal: impl Into<String>,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: impl Into<String>,
    ) -> Self {
        Self {
            resource_type,
            name: name.into(),
            pattern: PatternType::Literal,
            principal: principal.into(),
            host: "*".to_owned(),
            operation,
            permission: AclPermission::Allow,
        }
    }

    /// Creates a rule that denies an operation on the resource of this name, from all hosts.
    pub fn deny(
        principal: impl Into<String>,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: impl Into<String>,
    ) -> Self {
        Self { permission: AclPermission::Deny, ..Self::allow(principal, operation, resource_type, name) }
    }

    /// Makes the rule one about all resources whose name begins with [`AclBinding::name`].
    #[must_use]
    pub fn prefixed(mut self) -> Self {
        self.pattern = PatternType::Prefixed;
        self
    }

    /// Restricts the rule to clients of a host.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self
    }
}

/// A choice of rules. The default matches all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclFilter {
    /// The type of the resource, or [`AclResourceType::Any`].
    pub resource_type: AclResourceType,
    /// The name of the resource; `None` for all.
    pub name: Option<String>,
    /// The pattern type, [`PatternType::Any`], or [`PatternType::Match`].
    pub pattern: PatternType,
    /// The principal; `None` for all.
    pub principal: Option<String>,
    /// The host; `None` for all.
    pub host: Option<String>,
    /// The operation, or [`AclOperation::Any`].
    pub operation: AclOperation,
    /// The effect, or [`AclPermission::Any`].
    pub permission: AclPermission,
}

impl Default for AclFilter {
    fn default() -> Self {
        Self {
            resource_type: AclResourceType::Any,
            name: None,
            pattern: PatternType::Any,
            principal: None,
            host: None,
            operation: AclOperation::Any,
            permission: AclPermission::Any,
        }
    }
}

/// The filter that matches this rule only.
impl From<&AclBinding> for AclFilter {
    fn from(acl: &AclBinding) -> Self {
        Self {
            resource_type: acl.resource_type,
            name: Some(acl.name.clone()),
            pattern: acl.pattern,
            principal: Some(acl.principal.clone()),
            host: Some(acl.host.clone()),
            operation: acl.operation,
            permission: acl.permission,
        }
    }
}

/// The rules that a filter matched, each with its error if it was not deleted.
pub type DeletedAcls = Vec<(AclBinding, Option<Error>)>;

/// The first version with pattern types (KIP-290).
const FIRST_WITH_PATTERNS: i16 = 1;

/// Returns the first version that knows a pattern type; version 0 knows literal names only, and filters match those.
const fn first_version(is_literal: bool) -> i16 {
    if is_literal { 0 } else { FIRST_WITH_PATTERNS }
}

/// Creates rules. A rule that exists already is a success.
pub fn create_acls(
    acls: Vec<AclBinding>,
    timeout: Duration,
    done: Completion<Result<ItemResults<usize, ()>, Error>>,
) -> AdminCall {
    let is_literal = acls.iter().all(|acl| acl.pattern == PatternType::Literal);
    let acls: Arc<[AclBinding]> = acls.into();
    let keys = (0..acls.len()).collect();
    let request = move |keys: &[usize], _, _| CreateAclsRequest {
        creations: keys.iter().filter_map(|key| acls.get(*key)).map(creation).collect(),
    };
    let call = Items::new(keys, request, |keys, response| {
        by_position(keys, response.results, |one| check(one.error_code, one.error_message.as_deref()))
    });
    call.since_version(first_version(is_literal)).call(timeout, done)
}

fn creation(acl: &AclBinding) -> Creation {
    Creation {
        resource_type: acl.resource_type.number(),
        resource_name: acl.name.clone(),
        resource_pattern_type: acl.pattern.number(),
        principal: acl.principal.clone(),
        host: acl.host.clone(),
        operation: acl.operation.number(),
        permission_type: acl.permission.number(),
    }
}

/// Describes the rules that match a filter.
pub fn describe_acls(
    filter: AclFilter,
    timeout: Duration,
    done: Completion<Result<Vec<AclBinding>, Error>>,
) -> AdminCall {
    let first = first_version(matches!(filter.pattern, PatternType::Literal | PatternType::Any));
    let request = move |version, _| DescribeAclsRequest {
        resource_type_filter: filter.resource_type.number(),
        resource_name_filter: filter.name.clone(),
        pattern_type_filter: pattern_in(filter.pattern, version),
        principal_filter: filter.principal.clone(),
        host_filter: filter.host.clone(),
        operation: filter.operation.number(),
        permission_type: filter.permission.number(),
    };
    let call = OneResult::new(Route::Any, request, |response, _| {
        check(response.error_code, response.error_message.as_deref())?;
        let mut acls = Vec::new();
        for resource in response.resources {
            acls.extend(resource.acls.into_iter().map(|acl| AclBinding {
                resource_type: AclResourceType::from_number(resource.resource_type),
                name: resource.resource_name.clone(),
                pattern: PatternType::from_number(resource.pattern_type),
                principal: acl.principal,
                host: acl.host,
                operation: AclOperation::from_number(acl.operation),
                permission: AclPermission::from_number(acl.permission_type),
            }));
        }
        Ok(acls)
    });
    call.since_version(first).call(timeout, done)
}

/// Returns the number of a filter's pattern type. All rules of brokers with version 0 are literal.
fn pattern_in(pattern: PatternType, version: i16) -> i8 {
    let is_old = version < FIRST_WITH_PATTERNS && pattern == PatternType::Any;
    if is_old { PatternType::Literal.number() } else { pattern.number() }
}

/// Deletes the rules that match any of the filters.
pub fn delete_acls(
    filters: Vec<AclFilter>,
    timeout: Duration,
    done: Completion<Result<ItemResults<usize, DeletedAcls>, Error>>,
) -> AdminCall {
    let is_literal =
        filters.iter().all(|filter| matches!(filter.pattern, PatternType::Literal | PatternType::Any));
    let filters: Arc<[AclFilter]> = filters.into();
    let keys = (0..filters.len()).collect();
    let request = move |keys: &[usize], version, _| DeleteAclsRequest {
        filters: keys
            .iter()
            .filter_map(|key| filters.get(*key))
            .map(|filter| request::Filter {
                resource_type_filter: filter.resource_type.number(),
                resource_name_filter: filter.name.clone(),
                pattern_type_filter: pattern_in(filter.pattern, version),
                principal_filter: filter.principal.clone(),
                host_filter: filter.host.clone(),
                operation: filter.operation.number(),
                permission_type: filter.permission.number(),
            })
            .collect(),
    };
    let call = Items::new(keys, request, |keys, response| {
        by_position(keys, response.filter_results, |one| {
            check(one.error_code, one.error_message.as_deref())?;
            Ok(one.matching_acls.into_iter().map(deleted).collect())
        })
    });
    call.since_version(first_version(is_literal)).call(timeout, done)
}

fn deleted(acl: response::MatchingAcl) -> (AclBinding, Option<Error>) {
    let error = check(acl.error_code, acl.error_message.as_deref()).err();
    let binding = AclBinding {
        resource_type: AclResourceType::from_number(acl.resource_type),
        name: acl.resource_name,
        pattern: PatternType::from_number(acl.pattern_type),
        principal: acl.principal,
        host: acl.host,
        operation: AclOperation::from_number(acl.operation),
        permission: AclPermission::from_number(acl.permission_type),
    };
    (binding, error)
}
