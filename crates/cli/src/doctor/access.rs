//! Topics and groups that the user names: do they exist, and may the client use them?

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        consumer_group_describe::ConsumerGroupDescribeRequest, describe_groups::DescribeGroupsRequest,
        find_coordinator::FindCoordinatorRequest, metadata::response,
    },
};

use super::{
    connection::Connection,
    diagnosis::{Finding, Problem, Sink, Step, Stepped, Verdict},
    sasl,
    steps::Doctor,
};

/// The operations that the user wants to perform on the cluster.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Topics to describe.
    pub described: Vec<String>,
    /// Topics to write to.
    pub produced: Vec<String>,
    /// Topics to read.
    pub consumed: Vec<String>,
    /// Groups to be a member of.
    pub groups: Vec<String>,
}

impl Wanted {
    /// Returns the names of all topics, each once.
    pub fn topics(&self) -> Vec<&str> {
        let all = self.described.iter().chain(&self.produced).chain(&self.consumed);
        let mut names: Vec<_> = all.map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the operations that a topic is needed for.
    fn operations(&self, topic: &str) -> Vec<Operation> {
        let has = |names: &[String]| names.iter().any(|name| name == topic);
        let needed = [
            (has(&self.consumed), Operation::Read),
            (has(&self.produced), Operation::Write),
            (has(&self.described), Operation::Describe),
        ];
        needed.into_iter().filter_map(|(is_needed, operation)| is_needed.then_some(operation)).collect()
    }
}

/// An operation of Kafka's access rules; the number is its bit in sets of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read = 3,
    Write = 4,
    Create = 5,
    Delete = 6,
    Alter = 7,
    Describe = 8,
    DescribeConfigs = 10,
    AlterConfigs = 11,
}

impl Operation {
    const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Create,
        Self::Delete,
        Self::Alter,
        Self::Describe,
        Self::DescribeConfigs,
        Self::AlterConfigs,
    ];

    const fn is_in(self, set: i32) -> bool {
        set >> (self as i32) & 1 == 1
    }
}

/// Returns the operations of a set in words; `None` if the broker did not report it.
fn operations(set: i32) -> Option<Vec<Operation>> {
    (set != i32::MIN).then(|| Operation::ALL.into_iter().filter(|operation| operation.is_in(set)).collect())
}

fn words(operations: &[Operation]) -> String {
    match operations {
        [] => "nothing".to_owned(),
        some => some.iter().map(|operation| format!("{operation:?}")).collect::<Vec<_>>().join(", "),
    }
}

impl Doctor {
    pub(super) fn examine_topic(&self, topic: &response::Topic, wanted: &Wanted) -> Stepped<()> {
        let name = topic.name.as_deref().unwrap_or_default();
        let needed = wanted.operations(name);
        match topic.error_code {
            ErrorCode::NONE => {}
            ErrorCode::TOPIC_AUTHORIZATION_FAILED => {
                let text =
                    format!("the broker does not permit {} (or the topic does not exist)", words(&needed));
                return Err(self.advise_acl(
                    Finding::failed(Problem::NotAuthorized, text),
                    "topic",
                    name,
                    &needed,
                ));
            }
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                return Err(Finding::failed(Problem::UnknownTopic, "the topic does not exist")
                    .advise(format!("create it: ottla topics create {name}"))
                    .advise("names of topics are case-sensitive"));
            }
            code => {
                let text = format!("{}: {}", code.name(), code.description());
                return Err(Finding::failed(Problem::BadResponse, text)
                    .advise("check the topic's name, and the broker's log at this time"));
            }
        }
        let permitted = operations(topic.topic_authorized_operations);
        if let Some(permitted) = &permitted {
            let missing: Vec<_> = needed.iter().copied().filter(|it| !permitted.contains(it)).collect();
            if !missing.is_empty() {
                let text = format!("not permitted: {}; permitted: {}", words(&missing), words(permitted));
                let finding = Finding::failed(Problem::NotAuthorized, text);
                return Err(self.advise_acl(finding, "topic", name, &missing));
            }
        }
        let finding = describe_partitions(topic)?;
        Ok(((), with_operations(finding, permitted.as_deref())))
    }

    pub(super) fn examine_group(&self, connection: &mut Connection, group: &str) -> Stepped<()> {
        connection.set_deadline(self.deadline());
        let mut coordinator = self.coordinator(connection, group)?;
        let request = DescribeGroupsRequest {
            groups: vec![group.to_owned()],
            include_authorized_operations: coordinator
                .versions
                .pick_any(ApiKey::DescribeGroups)
                .is_some_and(|version| version >= 3),
        };
        let mut answer = coordinator.call(&request).map_err(|broken| self.explain(broken))?;
        let Some(described) = answer.groups.pop() else {
            return Err(Finding::failed(Problem::BadResponse, "the coordinator describes no group"));
        };
        let (mut code, mut set, mut state) =
            (described.error_code, described.authorized_operations, described.group_state);
        // A group of the consumer protocol (KIP-848).
        if code == ErrorCode::GROUP_ID_NOT_FOUND
            && coordinator.versions.pick_any(ApiKey::ConsumerGroupDescribe).is_some()
        {
            let request = ConsumerGroupDescribeRequest {
                group_ids: vec![group.to_owned()],
                include_authorized_operations: true,
            };
            let mut answer = coordinator.call(&request).map_err(|broken| self.explain(broken))?;
            if let Some(described) = answer.groups.pop() {
                (code, set, state) =
                    (described.error_code, described.authorized_operations, described.group_state);
            }
        }
        match code {
            ErrorCode::NONE => {}
            ErrorCode::GROUP_ID_NOT_FOUND => {
                return Ok((
                    (),
                    Finding::passed("the group does not exist yet; its first member creates it"),
                ));
            }
            ErrorCode::GROUP_AUTHORIZATION_FAILED => return Err(self.no_group_access(group)),
            code => {
                let text = format!("{}: {}", code.name(), code.description());
                return Err(Finding::failed(Problem::GroupUnavailable, text)
                    .advise("the group's coordinator may be starting: try again, and look into its log"));
            }
        }
        let permitted = operations(set);
        if permitted.as_ref().is_some_and(|permitted| !permitted.contains(&Operation::Read)) {
            return Err(self.no_group_access(group));
        }
        let state = if state == "Dead" { "new".to_owned() } else { ottla_core::shown::quoted(&state) };
        Ok(((), with_operations(Finding::passed(format!("state {state}")), permitted.as_deref())))
    }

    fn no_group_access(&self, group: &str) -> Finding {
        let finding = Finding::failed(Problem::NotAuthorized, "the broker does not permit Read on the group");
        self.advise_acl(finding, "group", group, &[Operation::Read])
    }

    /// Returns a connection to the coordinator of a group.
    fn coordinator(&self, connection: &mut Connection, group: &str) -> Result<Connection, Finding> {
        let version = connection.versions.pick_any(ApiKey::FindCoordinator).unwrap_or(0);
        let mut request = FindCoordinatorRequest::default();
        if version < 4 {
            request.key = group.to_owned();
        } else {
            request.coordinator_keys = vec![group.to_owned()];
        }
        let mut answer = connection.call_in(version, &request).map_err(|broken| self.explain(broken))?;
        let (code, host, port) = match answer.coordinators.pop() {
            Some(found) => (found.error_code, found.host, found.port),
            None => (answer.error_code, answer.host, answer.port),
        };
        match code {
            ErrorCode::NONE => {}
            ErrorCode::GROUP_AUTHORIZATION_FAILED => {
                let finding = Finding::failed(
                    Problem::NotAuthorized,
                    "the broker does not permit Describe on the group",
                );
                return Err(self.advise_acl(finding, "group", group, &[Operation::Read]));
            }
            code => {
                let text = format!("the coordinator is not known: {}: {}", code.name(), code.description());
                return Err(Finding::failed(Problem::GroupUnavailable, text).advise(
                    "check that __consumer_offsets has leaders: ottla metadata -t __consumer_offsets",
                ));
            }
        }
        let mut inner = LastFailure(None);
        let port = u16::try_from(port).unwrap_or(0);
        self.connect(&host, port, &mut inner).ok_or_else(|| {
            inner.0.unwrap_or_else(|| {
                Finding::failed(Problem::BrokerUnreachable, "no connection to the coordinator")
            })
        })
    }

    /// Adds the command that permits operations.
    fn advise_acl(&self, finding: Finding, kind: &str, name: &str, needed: &[Operation]) -> Finding {
        let own = self.tls.as_ref().and_then(|tls| tls.client_certificate()).map(|own| own.subject);
        let user = self.sasl.as_ref().and_then(|sasl| sasl::user(sasl)).or(own);
        let user = user.unwrap_or_else(|| "NAME".to_owned());
        let list: String = needed.iter().map(|operation| format!(" --operation {operation:?}")).collect();
        finding
            .advise(format!("let an administrator permit it: ottla acls add --allow-principal 'User:{user}'{list} --{kind} '{name}'"))
            .advise(format!("a DENY rule wins over every ALLOW rule: ottla acls list --{kind} '{name}' shows both"))
    }
}

/// Keeps the last failure of the steps to a connection.
struct LastFailure(Option<Finding>);

impl Sink for LastFailure {
    fn begin(&mut self, _target: &str, _step: Step) {}

    fn end(&mut self, check: super::diagnosis::Check) {
        if matches!(check.finding.verdict, Verdict::Failed(_)) {
            self.0 = Some(check.finding);
        }
    }
}

fn with_operations(finding: Finding, permitted: Option<&[Operation]>) -> Finding {
    let Some(permitted) = permitted else {
        return finding.note("the broker does not report what is permitted");
    };
    let list: Vec<_> = permitted.iter().map(|operation| format!("{operation:?}")).collect();
    finding.note(format!("permitted: {}", words(permitted))).with("permitted", list)
}

/// Checks that partitions have leaders and in-sync replicas.
fn describe_partitions(topic: &response::Topic) -> Result<Finding, Finding> {
    let list = |which: &dyn Fn(&&response::Partition) -> bool| -> Vec<i32> {
        topic.partitions.iter().filter(which).map(|partition| partition.partition_index).collect()
    };
    let leaderless = list(&|partition| partition.leader_id < 0);
    let behind = list(&|partition| partition.isr_nodes.len() < partition.replica_nodes.len());
    let count = topic.partitions.len();
    let of = |partitions: &[i32]| {
        let shown: Vec<_> = partitions.iter().take(10).map(ToString::to_string).collect();
        format!(
            "{} of {count} ({}{})",
            partitions.len(),
            shown.join(", "),
            if partitions.len() > 10 { ", ..." } else { "" }
        )
    };
    if !leaderless.is_empty() {
        let text = format!("partitions without a leader: {}", of(&leaderless));
        return Err(Finding::failed(Problem::NoLeader, text).advise(
            "start the brokers that have replicas of these partitions: ottla topics describe TOPIC lists them",
        ));
    }
    if !behind.is_empty() {
        let text = format!("{count} partitions; not all replicas are in sync: {}", of(&behind));
        return Ok(Finding::warning(Problem::UnderReplicated, text)
            .advise("with acks=all, partitions below min.insync.replicas refuse records"));
    }
    let plural = if count == 1 { "partition" } else { "partitions" };
    Ok(Finding::passed(format!("{count} {plural}, all replicas in sync")).with("partitions", count))
}
