//! Removes all members from a group: describes it, and removes the members that it has.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::api::ApiKey;

use super::{
    delete::{MemberToRemove, RemoveMembers},
    describe::{DescribeGroup, GroupDescription},
};
use crate::{
    admin::{AdminCall, Operation, Verdict, item_results::ItemResults},
    completion::{Completion, completion},
    contract::route::{EncodeBody, Route},
    error::Error,
};

/// The members of a group, each with the result of its removal.
pub type RemovedFromGroup = ItemResults<MemberToRemove, ()>;

/// Removes all members from a group, as if they had left: static members by their instance ID, others by their member ID. A
/// member that joins after the description stays.
pub fn remove_all_members(
    group_id: impl Into<Arc<str>>,
    reason: Option<String>,
    timeout: Duration,
    done: Completion<Result<RemovedFromGroup, Error>>,
) -> AdminCall {
    let group_id = group_id.into();
    let description = DescribeGroup::new(Arc::clone(&group_id), false, completion().0);
    AdminCall::operation(RemoveAll { group_id, reason, step: Step::Describe(description), done }, timeout)
}

struct RemoveAll {
    group_id: Arc<str>,
    reason: Option<String>,
    step: Step,
    done: Completion<Result<RemovedFromGroup, Error>>,
}

enum Step {
    Describe(DescribeGroup),
    Remove(RemoveMembers),
}

impl RemoveAll {
    fn operation(&self) -> &dyn Operation {
        match &self.step {
            Step::Describe(operation) => operation,
            Step::Remove(operation) => operation,
        }
    }

    fn operation_mut(&mut self) -> &mut dyn Operation {
        match &mut self.step {
            Step::Describe(operation) => operation,
            Step::Remove(operation) => operation,
        }
    }

    /// Continues with the removal once the group is described.
    fn after(&mut self, verdict: Verdict) -> Verdict {
        let (Verdict::Done, Step::Describe(described)) = (&verdict, &self.step) else { return verdict };
        let members: Vec<_> = described.description().map(members_of).unwrap_or_default();
        let verdict = if members.is_empty() { Verdict::Done } else { Verdict::Next };
        let (group_id, reason) = (Arc::clone(&self.group_id), self.reason.clone());
        self.step = Step::Remove(RemoveMembers::new(group_id, members, reason, completion().0));
        verdict
    }
}

fn members_of(group: &GroupDescription) -> Vec<MemberToRemove> {
    let members = group.members.iter().map(|member| match &member.instance_id {
        Some(instance) => MemberToRemove::Instance(instance.clone()),
        None => MemberToRemove::Member(member.member_id.clone()),
    });
    members.collect()
}

impl Operation for RemoveAll {
    fn api(&self) -> ApiKey {
        self.operation().api()
    }

    fn versions(&self) -> RangeInclusive<i16> {
        self.operation().versions()
    }

    fn route(&self) -> Route {
        self.operation().route()
    }

    fn encode(&self, timeout: Duration) -> EncodeBody {
        self.operation().encode(timeout)
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let verdict = self.operation_mut().handle_response(body, version)?;
        Ok(self.after(verdict))
    }

    fn handle_failure(&mut self, error: Error) -> Result<Verdict, Error> {
        self.operation_mut().handle_failure(error)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let results = match (error, self.step) {
            (Some(error), _) => Err(error),
            (None, Step::Remove(removed)) => Ok(removed.into_results()),
            (None, Step::Describe(_)) => Ok(Vec::new()),
        };
        self.done.complete(results);
    }
}
