//! Assignors of the application, used beside the built-in ones.
//!
//! A [`PartitionAssignor`] is called by the member's machine: when it joins, when it has to assign as the leader, and when it
//! gets its assignment. A [`CustomAssignor`] is the wrapper that keeps the group safe from it.
//!
//! # Pitfalls
//!
//! - An assignor that panics or returns an assignment that breaks the rules must not stop the group: its member leaves,
//!   so that another one leads, and reports why (`leader_whose_assignor_fails_leaves_the_group_to_others`).
//! - A cooperative assignor may give a member what another one still has. The library withholds such partitions until
//!   they were given up (`custom_cooperative_assignor_takes_no_owned_partitions`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use ottla_protocol::vocabulary::TopicPartition;

use super::{Assignor, GroupTable, RebalanceProtocol, sticky};
use crate::{
    callback::panic_text,
    error::{Error, ErrorKind, Result},
};

/// The limit of an assignor's user data, in bytes: the coordinator holds it for each member.
const MAX_USER_DATA: usize = 1 << 20;
/// The limit of an assignor's name, in bytes.
const MAX_NAME: usize = 249;

/// Decides which member of a classic group gets which partitions.
///
/// All members of a group must list an assignor of the same name in `partition.assignment.strategy`. The member that leads
/// the group calls [`assign`](PartitionAssignor::assign); every member gets its part of the result.
///
/// The functions run on an I/O thread, without any lock. They must not block: heartbeats and requests of this process wait
/// meanwhile. A function that panics fails with [`ErrorKind::AssignorFailed`], and the consumer leaves the group to another
/// leader and joins it again after a back-off.
pub trait PartitionAssignor: Send + Sync {
    /// Returns the name, as in `partition.assignment.strategy`: 1 to 249 bytes without a comma. Called once, when the
    /// assignor is registered.
    fn name(&self) -> &str;

    /// Returns how members that use the assignor may give partitions up; at least one way. Called once, when the assignor is
    /// registered. A member is cooperative if all of its assignors can be.
    ///
    /// In a cooperative group (KIP-429) [`GroupMember::owned`](super::GroupMember::owned) has the partitions that a member
    /// keeps. If `assign` gives one to another member, that member gets it in the next rebalance, which follows at once.
    fn protocols(&self) -> &[RebalanceProtocol] {
        &[RebalanceProtocol::Eager]
    }

    /// Returns data for the leader, which gets it as [`GroupMember::user_data`](super::GroupMember::user_data); at most
    /// 1 MiB. `topics` are those that this member subscribes to. Called before each join.
    fn user_data(&self, topics: &BTreeSet<Arc<str>>) -> Option<Vec<u8>> {
        let _ = topics;
        None
    }

    /// Assigns partitions to the members of the group. A member that the result does not name gets no partitions, and a
    /// partition that it does not name is not consumed.
    ///
    /// Names, owned partitions and user data of members come from other processes and must not be trusted.
    ///
    /// Error: the reason why there is no assignment. It is treated like a panic.
    fn assign(
        &self,
        group: &GroupTable,
    ) -> std::result::Result<GroupAssignment, Box<dyn std::error::Error + Send + Sync>>;

    /// Receives this member's assignment, before its partitions are consumed. `generation` grows with each rebalance.
    fn on_assignment(&self, assignment: &MemberAssignment, generation: i32) {
        let _ = (assignment, generation);
    }
}

/// The partitions of each member of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupAssignment {
    members: BTreeMap<String, MemberAssignment>,
}

/// The partitions of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberAssignment {
    /// The partitions.
    pub partitions: Vec<TopicPartition>,
    /// Data from the leader's assignor.
    pub user_data: Option<Vec<u8>>,
}

impl GroupAssignment {
    /// Gives a partition to the member with this ID.
    pub fn add(&mut self, member_id: &str, partition: impl Into<TopicPartition>) {
        self.member(member_id).partitions.push(partition.into());
    }

    /// Sets the data that the member's assignor gets with the partitions; at most 1 MiB.
    pub fn set_user_data(&mut self, member_id: &str, data: Vec<u8>) {
        self.member(member_id).user_data = Some(data);
    }

    fn member(&mut self, member_id: &str) -> &mut MemberAssignment {
        self.members.entry(member_id.to_owned()).or_default()
    }
}

/// An assignor of `partition.assignment.strategy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// One of the built-in assignors.
    BuiltIn(Assignor),
    /// An assignor of the application.
    Custom(CustomAssignor),
}

impl Strategy {
    /// Returns the name that members offer to the broker.
    pub fn name(&self) -> &str {
        match self {
            Self::BuiltIn(assignor) => assignor.name(),
            Self::Custom(assignor) => &assignor.name,
        }
    }

    /// Returns true if members that use only such assignors keep their partitions during a rebalance.
    pub fn is_cooperative(&self) -> bool {
        match self {
            Self::BuiltIn(assignor) => assignor.protocol() == RebalanceProtocol::Cooperative,
            Self::Custom(assignor) => assignor.is_cooperative,
        }
    }

    /// Returns the assignor, if it is a built-in one.
    pub const fn built_in(&self) -> Option<Assignor> {
        match self {
            Self::BuiltIn(assignor) => Some(*assignor),
            Self::Custom(_) => None,
        }
    }

    /// Computes the assignment: for each member of the table its partitions, sorted.
    ///
    /// Error: the assignor is the application's and failed.
    pub(in crate::group) fn assign(&self, table: &GroupTable) -> Result<Vec<MemberAssignment>> {
        match self {
            Self::BuiltIn(assignor) => {
                let assigned = assignor.assign(table).into_iter();
                Ok(assigned.map(|partitions| MemberAssignment { partitions, user_data: None }).collect())
            }
            Self::Custom(assignor) => assignor.assign(table),
        }
    }
}

impl From<Assignor> for Strategy {
    fn from(assignor: Assignor) -> Self {
        Self::BuiltIn(assignor)
    }
}

/// An assignor of the application, guarded: it cannot panic into the machine, and its results are checked.
#[derive(Clone)]
pub struct CustomAssignor {
    name: Arc<str>,
    is_cooperative: bool,
    assignor: Arc<dyn PartitionAssignor>,
}

impl CustomAssignor {
    /// Registers an assignor. Error: its name or its protocols are invalid.
    pub fn new(assignor: Arc<dyn PartitionAssignor>) -> Result<Self> {
        let name: Arc<str> = assignor.name().into();
        let protocols = assignor.protocols();
        let is_cooperative = protocols.contains(&RebalanceProtocol::Cooperative);
        let problem = if name.is_empty() || name.len() > MAX_NAME {
            Some("has an empty name, or one of more than 249 bytes")
        } else if name.contains(',') || name.trim() != &*name {
            Some("has a name that `partition.assignment.strategy` can't contain")
        } else if Assignor::from_name(&name).is_some() {
            Some("has the name of a built-in assignor")
        } else if protocols.is_empty() {
            Some("supports neither eager nor cooperative rebalances")
        } else {
            None
        };
        match problem {
            Some(problem) => {
                let shown: String = name.chars().take(MAX_NAME).collect();
                let detail = format!("the registered assignor \"{shown}\" {problem}");
                Err(Error::new(ErrorKind::InvalidArgument, detail))
            }
            None => Ok(Self { name, is_cooperative, assignor }),
        }
    }

    /// Returns the name, as in `partition.assignment.strategy`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the data that the leader gets with the member's subscription.
    pub(in crate::group) fn user_data(&self, topics: &BTreeSet<Arc<str>>) -> Result<Option<Vec<u8>>> {
        let data = self.guarded("user_data", || self.assignor.user_data(topics))?;
        self.check_size(data.as_deref(), "the subscription")?;
        Ok(data)
    }

    /// Passes the member's assignment on.
    pub(in crate::group) fn on_assignment(
        &self,
        assignment: &MemberAssignment,
        generation: i32,
    ) -> Result<()> {
        self.guarded("on_assignment", || self.assignor.on_assignment(assignment, generation))
    }

    fn assign(&self, table: &GroupTable) -> Result<Vec<MemberAssignment>> {
        let assigned = self
            .guarded("assign", || self.assignor.assign(table))?
            .map_err(|why| self.failed(format!("returned an error: {why}")))?;
        let mut assigned = self.checked(table, assigned)?;
        if self.is_cooperative {
            let mut partitions: Vec<_> =
                assigned.iter_mut().map(|member| std::mem::take(&mut member.partitions)).collect();
            sticky::withhold_moving(table, &mut partitions);
            assigned.iter_mut().zip(partitions).for_each(|(member, kept)| member.partitions = kept);
        }
        assigned.iter_mut().for_each(|member| member.partitions.sort_unstable());
        Ok(assigned)
    }

    /// Returns the assignment in the order of the table's members, if it keeps the rules.
    fn checked(&self, table: &GroupTable, mut assigned: GroupAssignment) -> Result<Vec<MemberAssignment>> {
        let mut seen = BTreeSet::new();
        let mut result = Vec::with_capacity(table.members().len());
        for member in table.members() {
            let of_member = assigned.members.remove(&member.id).unwrap_or_default();
            self.check_size(of_member.user_data.as_deref(), "an assignment")?;
            for key in &of_member.partitions {
                let exists = |topic: &super::TopicTable| {
                    usize::try_from(key.partition).is_ok_and(|number| number < topic.partitions())
                };
                let problem = if !member.topics.contains(&key.topic) {
                    "which does not subscribe to the topic"
                } else if !table.topics().get(&key.topic).is_some_and(exists) {
                    "although the partition does not exist"
                } else if !seen.insert(key.clone()) {
                    "although it is assigned already"
                } else {
                    continue;
                };
                let detail = format!("assigned {key} to member \"{}\", {problem}", member.id);
                return Err(self.failed(detail));
            }
            result.push(of_member);
        }
        match assigned.members.keys().next() {
            Some(id) => Err(self.failed(format!("assigned partitions to \"{id}\", which is not a member"))),
            None => Ok(result),
        }
    }

    fn check_size(&self, data: Option<&[u8]>, of: &str) -> Result<()> {
        match data.map_or(0, <[u8]>::len) {
            len if len > MAX_USER_DATA => {
                Err(self.failed(format!("returned {len} bytes of user data for {of}; 1 MiB is the limit")))
            }
            _ => Ok(()),
        }
    }

    fn guarded<T>(&self, function: &str, call: impl FnOnce() -> T) -> Result<T> {
        catch_unwind(AssertUnwindSafe(call))
            .map_err(|panic| self.failed(format!("panicked in `{function}`: {}", panic_text(&*panic))))
    }

    fn failed(&self, problem: String) -> Error {
        let detail = format!(
            "the application's assignor \"{}\" {problem}; correct the assignor, or remove it from \
             partition.assignment.strategy",
            self.name
        );
        Error::new(ErrorKind::AssignorFailed, detail)
    }
}

impl PartialEq for CustomAssignor {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.assignor, &other.assignor)
    }
}

impl Eq for CustomAssignor {}

impl fmt::Debug for CustomAssignor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomAssignor")
            .field("name", &self.name)
            .field("is_cooperative", &self.is_cooperative)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(in crate::group) mod tests {
    use super::{
        super::tests::{member, plain, shown},
        *,
    };

    type Rule = dyn Fn(&GroupTable) -> GroupAssignment + Send + Sync;

    /// An assignor that follows a rule.
    pub(in crate::group) struct Scripted {
        pub(in crate::group) name: &'static str,
        pub(in crate::group) protocols: Vec<RebalanceProtocol>,
        pub(in crate::group) rule: Box<Rule>,
    }

    impl PartitionAssignor for Scripted {
        fn name(&self) -> &str {
            self.name
        }

        fn protocols(&self) -> &[RebalanceProtocol] {
            &self.protocols
        }

        fn assign(
            &self,
            group: &GroupTable,
        ) -> std::result::Result<GroupAssignment, Box<dyn std::error::Error + Send + Sync>> {
            Ok((self.rule)(group))
        }
    }

    /// Returns an eager assignor `custom` that follows a rule.
    pub(in crate::group) fn custom(
        rule: impl Fn(&GroupTable) -> GroupAssignment + Send + Sync + 'static,
    ) -> CustomAssignor {
        let protocols = vec![RebalanceProtocol::Eager];
        let assignor = Scripted { name: "custom", protocols, rule: Box::new(rule) };
        CustomAssignor::new(Arc::new(assignor)).expect("it is valid")
    }

    fn to(assigned: &[(&str, &str, i32)]) -> GroupAssignment {
        let mut assignment = GroupAssignment::default();
        assigned.iter().for_each(|(id, topic, number)| assignment.add(id, (*topic, *number)));
        assignment
    }

    fn table() -> GroupTable {
        GroupTable::new(vec![member("a", &["t"]), member("b", &["t", "u"])], plain(&[("t", 2), ("u", 1)]))
    }

    #[test]
    fn custom_assignment_reaches_the_members_it_names() {
        let assigned = custom(|_| to(&[("b", "u", 0), ("b", "t", 1), ("b", "t", 0)])).assign(&table());
        let assigned = assigned.expect("it is valid").into_iter().map(|member| member.partitions);
        assert_eq!(shown(&table(), &assigned.collect::<Vec<_>>()), ["a", "b t:0,1 u:0"]);
    }

    #[test]
    fn custom_assignment_that_breaks_a_rule_is_refused() {
        for (assigned, expected) in [
            (to(&[("a", "t", 0), ("b", "t", 0)]), "t [0] to member \"b\", although it is assigned already"),
            (to(&[("a", "t", 0), ("a", "t", 0)]), "t [0] to member \"a\", although it is assigned already"),
            (to(&[("a", "u", 0)]), "u [0] to member \"a\", which does not subscribe to the topic"),
            (to(&[("a", "t", 2)]), "t [2] to member \"a\", although the partition does not exist"),
            (to(&[("a", "t", -1)]), "although the partition does not exist"),
            (to(&[("c", "t", 0)]), "to \"c\", which is not a member"),
        ] {
            let error = custom(move |_| assigned.clone()).assign(&table()).expect_err(expected);
            assert_eq!(error.kind(), ErrorKind::AssignorFailed);
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn panic_and_large_user_data_of_an_assignor_are_errors() {
        let error = custom(|_| panic!("no idea")).assign(&table()).expect_err("it panics");
        assert!(error.to_string().contains("\"custom\" panicked in `assign`: no idea"), "{error}");
        assert_eq!(error.culprit(), crate::error::Culprit::Application);
        let large = |_: &GroupTable| {
            let mut assignment = GroupAssignment::default();
            assignment.set_user_data("a", vec![0; MAX_USER_DATA + 1]);
            assignment
        };
        let error = custom(large).assign(&table()).expect_err("too large");
        assert!(error.to_string().contains("1 MiB"), "{error}");
    }

    #[test]
    fn custom_cooperative_assignor_takes_no_owned_partitions() {
        let protocols = vec![RebalanceProtocol::Cooperative];
        let rule = |_: &GroupTable| to(&[("b", "t", 0), ("b", "t", 1), ("b", "u", 0)]);
        let assignor = Scripted { name: "custom", protocols, rule: Box::new(rule) };
        let assignor = CustomAssignor::new(Arc::new(assignor)).expect("it is valid");
        let mut owner = member("a", &["t"]);
        owner.owned = vec![TopicPartition::from(("t", 1))];
        let table = GroupTable::new(vec![owner, member("b", &["t", "u"])], plain(&[("t", 2), ("u", 1)]));
        let assigned = assignor.assign(&table).expect("it is valid");
        let assigned: Vec<_> = assigned.into_iter().map(|member| member.partitions).collect();
        assert_eq!(shown(&table, &assigned), ["a", "b t:0 u:0"]);
    }

    #[test]
    fn assignor_without_a_usable_name_or_protocol_is_refused() {
        let long: &'static str = "n".repeat(MAX_NAME + 1).leak();
        let eager = || vec![RebalanceProtocol::Eager];
        for (name, protocols) in [
            ("", eager()),
            (long, eager()),
            ("a,b", eager()),
            (" a", eager()),
            ("range", eager()),
            ("custom", Vec::new()),
        ] {
            let assignor = Scripted { name, protocols, rule: Box::new(|_| GroupAssignment::default()) };
            let error = CustomAssignor::new(Arc::new(assignor)).expect_err("it is refused");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name}");
        }
    }
}
