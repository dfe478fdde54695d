//! `ottla acls`: lists, adds and removes access rules, with the options of Kafka's kafka-acls.

use clap::Args;
use ottla::admin::{AclBinding, AclFilter, AclOperation, AclPermission, AclResourceType, PatternType};
use ottla::{Admin, ErrorCode, ErrorKind};

use super::admin_command::{Common, finish, subcommands};
use super::table::Table;
use crate::client_options::call_timeout;
use crate::failure::{EXIT_CODES, Failure, Outcome};

subcommands! {
    /// List, add and remove access rules of the brokers' authorizer
    #[command(after_help = format!("Examples:\n  \
        ottla acls -b localhost:9092 list --topic orders --pattern match\n  \
        ottla acls -b localhost:9092 add --allow-principal User:alice --producer --topic orders\n  \
        ottla acls -b localhost:9092 add --allow-principal User:bob --consumer --topic orders --group billing\n  \
        ottla acls -b localhost:9092 remove --topic orders --dry-run\n\n{EXIT_CODES}"))]
    AclsOptions { List(ListOptions), Add(AddOptions), Remove(RemoveOptions) }
}

/// The resources that rules are about.
#[derive(Args, Debug, Default)]
struct Resources {
    /// Rules about this topic; can be repeated
    #[arg(long, value_name = "TOPIC", add = crate::completion::topics())]
    topic: Vec<String>,

    /// Rules about this group; can be repeated
    #[arg(long, value_name = "GROUP", add = crate::completion::groups())]
    group: Vec<String>,

    /// Rules about this transactional ID; can be repeated
    #[arg(long, value_name = "ID")]
    transactional_id: Vec<String>,

    /// Rules about the cluster
    #[arg(long)]
    cluster: bool,

    /// Rules about this delegation token; can be repeated
    #[arg(long, value_name = "TOKEN_ID")]
    delegation_token: Vec<String>,

    /// Rules about the tokens of this user, such as User:alice; can be repeated
    #[arg(long, value_name = "PRINCIPAL")]
    user_principal: Vec<String>,
}

/// The name of the cluster as a resource.
const CLUSTER: &str = "kafka-cluster";

impl Resources {
    fn all(&self) -> Vec<(AclResourceType, &str)> {
        let lists = [
            (AclResourceType::Topic, &self.topic),
            (AclResourceType::Group, &self.group),
            (AclResourceType::TransactionalId, &self.transactional_id),
            (AclResourceType::DelegationToken, &self.delegation_token),
            (AclResourceType::User, &self.user_principal),
        ];
        let named =
            lists.into_iter().flat_map(|(kind, names)| names.iter().map(move |name| (kind, name.as_str())));
        named.chain(self.cluster.then_some((AclResourceType::Cluster, CLUSTER))).collect()
    }
}

/// A choice of rules.
#[derive(Args, Debug)]
struct Selection {
    #[command(flatten)]
    resources: Resources,

    /// How names are compared: any, match (all rules that apply to the resource), literal or prefixed
    #[arg(long, value_name = "TYPE", default_value = "any", value_parser = pattern)]
    pattern: PatternType,

    /// Only rules of this user, such as User:alice; can be repeated
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Vec<String>,

    /// Only rules for clients of this host
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Only rules about this operation
    #[arg(long, value_name = "OPERATION", value_parser = operation)]
    operation: Option<AclOperation>,

    /// Only rules with this effect: allow or deny
    #[arg(long, value_name = "EFFECT", value_parser = permission)]
    permission: Option<AclPermission>,
}

impl Selection {
    fn filters(&self) -> Vec<AclFilter> {
        let mut resources: Vec<_> =
            self.resources.all().into_iter().map(|(kind, name)| (kind, Some(name.to_owned()))).collect();
        if resources.is_empty() {
            resources.push((AclResourceType::Any, None));
        }
        let mut principals: Vec<_> = self.principal.iter().cloned().map(Some).collect();
        if principals.is_empty() {
            principals.push(None);
        }
        let filter = |(resource_type, name): &(AclResourceType, Option<String>),
                      principal: Option<String>| AclFilter {
            resource_type: *resource_type,
            name: name.clone(),
            pattern: self.pattern,
            principal,
            host: self.host.clone(),
            operation: self.operation.unwrap_or(AclOperation::Any),
            permission: self.permission.unwrap_or(AclPermission::Any),
        };
        let all = resources.iter().flat_map(|resource| principals.iter().map(move |one| (resource, one)));
        all.map(|(resource, principal)| filter(resource, principal.clone())).collect()
    }
}

/// Print rules
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    selection: Selection,
}

impl ListOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let rules = found(admin, &self.selection.filters())?;
        print(&self.common, rules.iter().map(|rule| (rule, None)))
    }
}

/// Error: the brokers have no rules at all, which every result of a request says.
fn require_authorizer<T>(results: &[ottla::Result<T>]) -> Outcome {
    let is_about_brokers = |error: &&ottla::Error| matches!(error.kind(), ErrorKind::Broker(code) if code == ErrorCode::SECURITY_DISABLED);
    match results.first().and_then(|result| result.as_ref().err()).filter(is_about_brokers) {
        Some(error) => Err(Failure::Failed(format!(
            "{error}; set authorizer.class.name on the brokers (`ottla broker --super-user NAME` has an authorizer)"
        ))),
        None => Ok(()),
    }
}

/// Returns the rules that match any of the filters, each once.
fn found(admin: &Admin, filters: &[AclFilter]) -> Outcome<Vec<AclBinding>> {
    let mut rules = Vec::new();
    for filter in filters {
        rules.extend(admin.describe_acls(filter, call_timeout())?);
    }
    rules.sort();
    rules.dedup();
    Ok(rules)
}

fn print<'a>(common: &Common, rules: impl Iterator<Item = (&'a AclBinding, Option<&'a str>)>) -> Outcome {
    let mut table = Table::new(&[
        ("RESOURCE", "resource_type", 0),
        ("NAME", "name", 0),
        ("PATTERN", "pattern", 0),
        ("PRINCIPAL", "principal", 0),
        ("HOST", "host", 0),
        ("OPERATION", "operation", 0),
        ("PERMISSION", "permission", 0),
        ("STATUS", "status", 0),
    ]);
    for (rule, status) in rules {
        table.add([
            rule.resource_type.name().into(),
            rule.name.as_str().into(),
            rule.pattern.name().into(),
            rule.principal.as_str().into(),
            rule.host.as_str().into(),
            rule.operation.name().into(),
            rule.permission.name().into(),
            status.into(),
        ]);
    }
    table.print(common.json)
}

/// Add rules
#[derive(Args, Debug)]
struct AddOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    resources: Resources,

    /// Permit the operations to this user, such as User:alice or User:*; can be repeated
    #[arg(long, value_name = "PRINCIPAL", required_unless_present = "deny_principal")]
    allow_principal: Vec<String>,

    /// Deny the operations to this user; can be repeated
    #[arg(long, value_name = "PRINCIPAL")]
    deny_principal: Vec<String>,

    /// Only from this host; can be repeated [default: all hosts]
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,

    /// This operation, such as Read, Write or Describe; can be repeated [default: All]
    #[arg(long, value_name = "OPERATION", value_parser = operation)]
    operation: Vec<AclOperation>,

    /// The names of resources are prefixes
    #[arg(long)]
    prefixed: bool,

    /// The rules of a producer: Write, Describe and Create on topics, Write and Describe on transactional IDs
    #[arg(long, conflicts_with_all = ["operation", "deny_principal"])]
    producer: bool,

    /// The rules of a consumer: Read and Describe on topics, Read on groups
    #[arg(long, conflicts_with_all = ["operation", "deny_principal"])]
    consumer: bool,

    /// With --producer: IdempotentWrite on the cluster, which brokers before Kafka 2.8 need
    #[arg(long, requires = "producer")]
    idempotent: bool,

    /// Only print the rules
    #[arg(long)]
    dry_run: bool,
}

impl AddOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let rules = self.rules()?;
        if self.dry_run {
            return print(&self.common, rules.iter().map(|rule| (rule, Some("would be added"))));
        }
        let results = admin.create_acls(&rules, call_timeout())?;
        require_authorizer(&results)?;
        let errors: Vec<String> = results
            .iter()
            .map(|result| result.as_ref().err().map_or("added".into(), ToString::to_string))
            .collect();
        print(&self.common, rules.iter().zip(&errors).map(|(rule, status)| (rule, Some(&**status))))?;
        let failed = results.into_iter().filter_map(Result::err);
        finish(failed.map(|error| error.to_string()).collect())
    }

    /// Returns the operations for each resource.
    fn permissions(&self) -> Vec<(AclResourceType, &str, Vec<AclOperation>)> {
        use AclOperation as O;
        let is_plain = !self.producer && !self.consumer;
        let mut all = Vec::new();
        for (kind, name) in self.resources.all() {
            let mut operations = Vec::new();
            match kind {
                AclResourceType::Topic if self.producer => {
                    operations.extend([O::Write, O::Describe, O::Create])
                }
                AclResourceType::TransactionalId if self.producer => {
                    operations.extend([O::Write, O::Describe])
                }
                _ => {}
            }
            match kind {
                AclResourceType::Topic if self.consumer => operations.extend([O::Read, O::Describe]),
                AclResourceType::Group if self.consumer => operations.push(O::Read),
                _ => {}
            }
            if is_plain {
                operations = if self.operation.is_empty() { vec![O::All] } else { self.operation.clone() };
            }
            operations.sort();
            operations.dedup();
            all.push((kind, name, operations));
        }
        if self.idempotent {
            all.push((AclResourceType::Cluster, CLUSTER, vec![O::IdempotentWrite]));
        }
        all
    }

    fn rules(&self) -> Outcome<Vec<AclBinding>> {
        let permissions = self.permissions();
        if permissions.is_empty() {
            let text = "no resource; add --topic, --group, --cluster, --transactional-id, --delegation-token or --user-principal";
            return Err(Failure::Usage(text.into()));
        }
        if let Some((kind, name, _)) = permissions.iter().find(|(.., operations)| operations.is_empty()) {
            let kind = kind.name().to_lowercase();
            return Err(Failure::Usage(format!(
                "--producer and --consumer have no rules for the {kind} \"{name}\"; add it in a call with --operation"
            )));
        }
        let everywhere = ["*".to_owned()];
        let hosts = if self.host.is_empty() { &everywhere[..] } else { &self.host[..] };
        let allowed = self.allow_principal.iter().map(|one| (one, AclPermission::Allow));
        let denied = self.deny_principal.iter().map(|one| (one, AclPermission::Deny));
        let mut rules = Vec::new();
        for (principal, permission) in allowed.chain(denied) {
            for (kind, name, operations) in &permissions {
                for operation in operations {
                    for host in hosts {
                        let rule = AclBinding::allow(principal, *operation, *kind, *name).with_host(host);
                        // The cluster has no prefix.
                        let is_prefixed = self.prefixed && *kind != AclResourceType::Cluster;
                        let rule = if is_prefixed { rule.prefixed() } else { rule };
                        rules.push(AclBinding { permission, ..rule });
                    }
                }
            }
        }
        rules.sort();
        rules.dedup();
        Ok(rules)
    }
}

/// Remove rules
#[derive(Args, Debug)]
struct RemoveOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    selection: Selection,

    /// Remove all rules, if no option restricts them
    #[arg(long)]
    all: bool,

    /// Only print the rules
    #[arg(long)]
    dry_run: bool,
}

impl RemoveOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let filters = self.selection.filters();
        let matches_all = filters == [AclFilter { pattern: self.selection.pattern, ..AclFilter::default() }];
        if matches_all && !self.all {
            return Err(Failure::Usage(
                "nothing restricts the rules to remove; name a resource or a principal, or add --all".into(),
            ));
        }
        if self.dry_run {
            let rules = found(admin, &filters)?;
            return print(&self.common, rules.iter().map(|rule| (rule, Some("would be removed"))));
        }
        let mut removed = Vec::new();
        let mut failures = Vec::new();
        let results = admin.delete_acls(&filters, call_timeout())?;
        require_authorizer(&results)?;
        for result in results {
            match result {
                Ok(rules) => removed.extend(rules),
                Err(error) => failures.push(error.to_string()),
            }
        }
        removed.sort_by(|(one, _), (other, _)| one.cmp(other));
        removed.dedup_by(|(one, _), (other, _)| one == other);
        let statuses: Vec<String> = removed
            .iter()
            .map(|(_, error)| error.as_ref().map_or("removed".into(), ToString::to_string))
            .collect();
        print(
            &self.common,
            removed.iter().zip(&statuses).map(|((rule, _), status)| (rule, Some(&**status))),
        )?;
        failures.extend(removed.into_iter().filter_map(|(_, error)| error).map(|error| error.to_string()));
        finish(failures)
    }
}

fn known<T: Copy>(
    value: T,
    is_unknown: bool,
    what: &str,
    all: impl Iterator<Item = &'static str>,
) -> Result<T, String> {
    if is_unknown {
        return Err(format!("there is no such {what}; use one of {}", all.collect::<Vec<_>>().join(", ")));
    }
    Ok(value)
}

fn operation(name: &str) -> Result<AclOperation, String> {
    let found = AclOperation::from_name(name);
    let all = AclOperation::ALL.iter().filter(|one| **one != AclOperation::Any).map(|one| one.name());
    known(found, matches!(found, AclOperation::Unknown | AclOperation::Any), "operation", all)
}

fn pattern(name: &str) -> Result<PatternType, String> {
    let found = PatternType::from_name(name);
    known(found, found == PatternType::Unknown, "pattern type", PatternType::ALL.iter().map(|one| one.name()))
}

fn permission(name: &str) -> Result<AclPermission, String> {
    let found = AclPermission::from_name(name);
    let is_unknown = matches!(found, AclPermission::Unknown | AclPermission::Any);
    known(found, is_unknown, "effect", ["allow", "deny"].into_iter())
}
