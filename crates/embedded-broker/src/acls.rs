//! Access rules, decided as Kafka's `StandardAuthorizer` decides.
//!
//! | situation | decision |
//! |---|---|
//! | the principal is a super user | permitted |
//! | a DENY rule matches | refused, whatever else matches |
//! | an ALLOW rule matches | permitted |
//! | other rules are about the resource | refused |
//! | no rule is about the resource | `allow_everyone_if_no_acl_found` |
//!
//! A rule is about a resource if its name is the resource's, or `*`, or a prefix of it (pattern type PREFIXED).
//!
//! # Pitfalls
//!
//! - ALLOW of Read, Write, Delete or Alter implies Describe, and AlterConfigs implies DescribeConfigs; DENY implies nothing
//!   (`allow_implies_describe_and_deny_does_not`).

use ottla_sorted::SortedSet;

/// The kinds of resources that rules are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceType {
    /// A topic.
    Topic = 2,
    /// A group.
    Group = 3,
    /// The cluster; its name is `kafka-cluster`.
    Cluster = 4,
    /// A transactional ID.
    TransactionalId = 5,
    /// A delegation token.
    DelegationToken = 6,
    /// A user.
    User = 7,
}

/// How the name of a rule is compared with that of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatternType {
    /// The same name; `*` stands for every name.
    Literal = 3,
    /// The beginning of the name.
    Prefixed = 4,
}

/// An operation that rules are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclOperation {
    /// All operations.
    All = 2,
    /// Read records; be a member of a group.
    Read = 3,
    /// Write records.
    Write = 4,
    /// Create.
    Create = 5,
    /// Delete.
    Delete = 6,
    /// Alter.
    Alter = 7,
    /// Describe.
    Describe = 8,
    /// What brokers do.
    ClusterAction = 9,
    /// Read the configuration.
    DescribeConfigs = 10,
    /// Change the configuration.
    AlterConfigs = 11,
    /// Write idempotently; on the cluster.
    IdempotentWrite = 12,
    /// Create delegation tokens.
    CreateTokens = 13,
    /// Describe delegation tokens.
    DescribeTokens = 14,
    /// Take part in a two-phase commit.
    TwoPhaseCommit = 15,
}

impl AclOperation {
    /// All single operations.
    pub(crate) const EACH: [Self; 13] = [
        Self::Read,
        Self::Write,
        Self::Create,
        Self::Delete,
        Self::Alter,
        Self::Describe,
        Self::ClusterAction,
        Self::DescribeConfigs,
        Self::AlterConfigs,
        Self::IdempotentWrite,
        Self::CreateTokens,
        Self::DescribeTokens,
        Self::TwoPhaseCommit,
    ];
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Refuses.
    Deny = 2,
    /// Permits.
    Allow = 3,
}

/// The name of the cluster as a resource.
pub(crate) const CLUSTER_NAME: &str = "kafka-cluster";
/// The principal of rules for all clients.
const EVERYBODY: &str = "User:*";
const WILDCARD: &str = "*";

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Acl {
    /// The kind of the resource.
    pub resource_type: ResourceType,
    /// The resource's name, its beginning, or `*`.
    pub name: String,
    /// How names are compared.
    pub pattern: PatternType,
    /// The principal, such as `User:alice`; `User:*` stands for all users.
    pub principal: String,
    /// The client's address, or `*`.
    pub host: String,
    /// The operation.
    pub operation: AclOperation,
    /// True if the rule permits, false if it refuses.
    pub permission: Permission,
}

impl Acl {
    /// Creates a rule for all hosts that permits a user an operation on the resource of this name.
    pub fn allow(user: &str, operation: AclOperation, resource_type: ResourceType, name: &str) -> Self {
        Self {
            resource_type,
            name: name.to_owned(),
            pattern: PatternType::Literal,
            principal: format!("User:{user}"),
            host: WILDCARD.to_owned(),
            operation,
            permission: Permission::Allow,
        }
    }

    /// Turns the rule into one that refuses.
    #[must_use]
    pub fn deny(mut self) -> Self {
        self.permission = Permission::Deny;
        self
    }

    /// Turns the rule into one about all resources whose names begin with its name.
    #[must_use]
    pub fn prefixed(mut self) -> Self {
        self.pattern = PatternType::Prefixed;
        self
    }

    fn is_about(&self, resource_type: ResourceType, name: &str) -> bool {
        self.resource_type == resource_type
            && match self.pattern {
                PatternType::Literal => self.name == name || self.name == WILDCARD,
                PatternType::Prefixed => name.starts_with(&self.name),
            }
    }

    fn concerns(&self, principal: &str, host: &str, operation: AclOperation) -> bool {
        let implied = match self.permission {
            Permission::Deny => false,
            Permission::Allow => implies(self.operation, operation),
        };
        (self.principal == principal || self.principal == EVERYBODY)
            && (self.host == WILDCARD || self.host == host)
            && (self.operation == AclOperation::All || self.operation == operation || implied)
    }
}

/// Returns true if the permission of an operation includes another one.
fn implies(permitted: AclOperation, other: AclOperation) -> bool {
    use AclOperation as O;
    match other {
        O::Describe => matches!(permitted, O::Read | O::Write | O::Delete | O::Alter),
        O::DescribeConfigs => permitted == O::AlterConfigs,
        _ => false,
    }
}

/// The access rules of a cluster (`authorizer.class.name`).
#[derive(Clone, Debug, Default)]
pub struct Authorizer {
    /// The principals that may do everything, such as `User:admin` (`super.users`).
    pub super_users: SortedSet<String>,
    /// Permits everything on a resource that no rule is about (`allow.everyone.if.no.acl.found`).
    pub allow_everyone_if_no_acl_found: bool,
    acls: SortedSet<Acl>,
}

impl Authorizer {
    /// Creates an authorizer with these rules.
    pub fn new(acls: impl IntoIterator<Item = Acl>) -> Self {
        Self { acls: acls.into_iter().collect(), ..Self::default() }
    }

    /// Adds a super user, such as `User:admin`.
    #[must_use]
    pub fn super_user(mut self, principal: &str) -> Self {
        self.super_users.insert(principal.to_owned());
        self
    }

    /// Adds a rule.
    pub fn add(&mut self, acl: Acl) {
        self.acls.insert(acl);
    }

    /// Removes a rule. Returns false if there was none.
    pub fn remove(&mut self, acl: &Acl) -> bool {
        self.acls.remove(acl)
    }

    /// Iterates over the rules, in order of their resources.
    pub fn acls(&self) -> impl Iterator<Item = &Acl> {
        self.acls.iter()
    }

    /// Decides whether a principal may do something from a host.
    pub fn permits(
        &self,
        principal: &str,
        host: &str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: &str,
    ) -> bool {
        if self.super_users.contains(principal) {
            return true;
        }
        let mut about = self.acls.iter().filter(|acl| acl.is_about(resource_type, name)).peekable();
        if about.peek().is_none() {
            return self.allow_everyone_if_no_acl_found;
        }
        let mut is_allowed = false;
        for acl in about.filter(|acl| acl.concerns(principal, host, operation)) {
            match acl.permission {
                Permission::Deny => return false,
                Permission::Allow => is_allowed = true,
            }
        }
        is_allowed
    }

    /// Decides whether a principal may do something with any resource of a kind. Kafka asks this for InitProducerId.
    pub fn permits_any(
        &self,
        principal: &str,
        host: &str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool {
        if self.super_users.contains(principal) {
            return true;
        }
        let of_type =
            |acl: &&Acl| acl.resource_type == resource_type && acl.concerns(principal, host, operation);
        let denied: Vec<_> =
            self.acls.iter().filter(of_type).filter(|acl| acl.permission == Permission::Deny).collect();
        if denied.iter().any(|acl| acl.pattern == PatternType::Literal && acl.name == WILDCARD) {
            return false;
        }
        let is_denied = |allowed: &Acl| {
            denied.iter().any(|denied| match denied.pattern {
                PatternType::Literal => {
                    allowed.pattern == PatternType::Literal && denied.name == allowed.name
                }
                PatternType::Prefixed => allowed.name.starts_with(&denied.name),
            })
        };
        let mut allowed = self.acls.iter().filter(of_type).filter(|acl| acl.permission == Permission::Allow);
        self.allow_everyone_if_no_acl_found || allowed.any(|acl| !is_denied(acl))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AclOperation::{All, AlterConfigs, Delete, Describe, DescribeConfigs, Read, Write};
    use ResourceType::{Group, Topic};

    fn permits(authorizer: &Authorizer, user: &str, operation: AclOperation, name: &str) -> bool {
        authorizer.permits(&format!("User:{user}"), "10.0.0.1", operation, Topic, name)
    }

    #[test]
    fn rules_name_resources_by_name_prefix_and_wildcard() {
        let authorizer = Authorizer::new([
            Acl::allow("alice", Read, Topic, "orders"),
            Acl::allow("bob", Read, Topic, "or").prefixed(),
            Acl::allow("carol", Read, Topic, "*"),
            Acl::allow("dora", All, Topic, "orders"),
            Acl::allow("*", Describe, Topic, "public"),
        ]);
        for (user, operation, name, expected) in [
            ("alice", Read, "orders", true),
            ("alice", Read, "orders2", false),
            ("alice", Write, "orders", false),
            ("bob", Read, "orders2", true),
            ("bob", Read, "other", false),
            ("carol", Read, "other", true),
            ("dora", Delete, "orders", true),
            ("dora", Delete, "other", false),
            ("nobody", Read, "orders", false),
            ("nobody", Describe, "public", true),
        ] {
            assert_eq!(permits(&authorizer, user, operation, name), expected, "{user} {operation:?} {name}");
        }
        assert!(!authorizer.permits("User:alice", "10.0.0.1", Read, Group, "orders"));
    }

    #[test]
    fn deny_wins_over_allow_in_every_order() {
        let allow = Acl::allow("alice", All, Topic, "orders");
        let deny = Acl::allow("*", Write, Topic, "or").prefixed().deny();
        for rules in [[allow.clone(), deny.clone()], [deny, allow]] {
            let authorizer = Authorizer::new(rules).super_user("User:admin");
            assert!(permits(&authorizer, "alice", Read, "orders"));
            assert!(!permits(&authorizer, "alice", Write, "orders"));
            assert!(permits(&authorizer, "admin", Write, "orders"), "a super user");
        }
    }

    #[test]
    fn allow_implies_describe_and_deny_does_not() {
        let allowed = Authorizer::new([
            Acl::allow("alice", Read, Topic, "a"),
            Acl::allow("alice", AlterConfigs, Topic, "a"),
        ]);
        assert!(
            permits(&allowed, "alice", Describe, "a") && permits(&allowed, "alice", DescribeConfigs, "a")
        );
        let denied = Authorizer::new([
            Acl::allow("alice", All, Topic, "a"),
            Acl::allow("alice", Read, Topic, "a").deny(),
        ]);
        assert!(permits(&denied, "alice", Describe, "a") && !permits(&denied, "alice", Read, "a"));
    }

    #[test]
    fn resources_without_rules_are_open_only_by_option() {
        let mut authorizer = Authorizer::new([Acl::allow("alice", Read, Topic, "orders")]);
        assert!(!permits(&authorizer, "bob", Read, "other"));
        authorizer.allow_everyone_if_no_acl_found = true;
        assert!(permits(&authorizer, "bob", Read, "other"));
        assert!(!permits(&authorizer, "bob", Read, "orders"), "a rule is about it");
    }

    #[test]
    fn hosts_are_addresses_or_all() {
        let mut acl = Acl::allow("alice", Read, Topic, "orders");
        acl.host = "10.0.0.1".to_owned();
        let authorizer = Authorizer::new([acl]);
        assert!(permits(&authorizer, "alice", Read, "orders"));
        assert!(!authorizer.permits("User:alice", "10.0.0.2", Read, Topic, "orders"));
    }

    #[test]
    fn permission_for_any_topic_is_lost_by_a_rule_for_all() {
        let any = |rules: &[Acl]| {
            Authorizer::new(rules.iter().cloned()).permits_any("User:alice", "::1", Write, Topic)
        };
        let allow = Acl::allow("alice", Write, Topic, "orders");
        assert!(any(std::slice::from_ref(&allow)) && !any(&[]));
        assert!(!any(&[allow.clone(), allow.clone().deny()]));
        assert!(!any(&[allow.clone(), Acl::allow("alice", Write, Topic, "*").deny()]));
        assert!(!any(&[allow.clone(), Acl::allow("alice", Write, Topic, "or").prefixed().deny()]));
        assert!(any(&[allow, Acl::allow("alice", Write, Topic, "x").deny()]));
    }
}
