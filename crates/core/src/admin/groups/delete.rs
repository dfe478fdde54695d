//! Deletes groups, and removes members from a group.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse},
        leave_group::{LeaveGroupRequest, LeaveGroupResponse, request},
    },
    primitive::Reader,
};

use super::is_temporary;
use crate::{
    admin::{AdminCall, Operation, Verdict, item_results::ItemResults, undecodable},
    completion::Completion,
    contract::route::{CoordinatorKey, EncodeBody, Route},
    error::{Error, ErrorKind},
};

/// Deletes a group that has no members, with its committed offsets.
pub fn delete_group(
    group_id: impl Into<Arc<str>>,
    timeout: Duration,
    done: Completion<Result<(), Error>>,
) -> AdminCall {
    let group_id = group_id.into();
    AdminCall::operation(DeleteGroup { group_id, state: Deletion::Requested, done }, timeout)
}

/// The state of the deletion of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deletion {
    /// No request had an effect so far.
    Requested,
    /// The outcome of an earlier request is unknown.
    InDoubt,
    /// The group is deleted.
    Done,
}

struct DeleteGroup {
    group_id: Arc<str>,
    state: Deletion,
    done: Completion<Result<(), Error>>,
}

impl Operation for DeleteGroup {
    fn api(&self) -> ApiKey {
        ApiKey::DeleteGroups
    }

    fn route(&self) -> Route {
        Route::Coordinator(CoordinatorKey::group(Arc::clone(&self.group_id)))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let request = DeleteGroupsRequest { groups_names: vec![self.group_id.to_string()] };
        Box::new(move |version, out| request.encode(version, out))
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response =
            DeleteGroupsResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        let result = response.results.into_iter().find(|result| *result.group_id == *self.group_id);
        let Some(result) = result else {
            return Err(Error::new(ErrorKind::BadResponse, "the response leaves the group out"));
        };
        match result.error_code {
            ErrorCode::NONE => {}
            // An earlier request of this call, whose response was lost, deleted the group.
            ErrorCode::GROUP_ID_NOT_FOUND if self.state == Deletion::InDoubt => {}
            code if is_temporary(code) => return Ok(Verdict::Again(Error::broker(code, None))),
            ErrorCode::NON_EMPTY_GROUP => {
                let detail = "stop the group's members first";
                return Err(Error::broker(ErrorCode::NON_EMPTY_GROUP, Some(detail)));
            }
            code => return Err(Error::broker(code, result.error_message.as_deref())),
        }
        self.state = Deletion::Done;
        Ok(Verdict::Done)
    }

    fn handle_failure(&mut self, error: Error) -> Result<Verdict, Error> {
        if matches!(error.kind(), ErrorKind::Disconnected | ErrorKind::RequestTimedOut) {
            self.state = Deletion::InDoubt;
        }
        Err(error)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let missing = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        self.done.complete(if self.state == Deletion::Done { Ok(()) } else { Err(missing()) });
    }
}

/// A member to remove from its group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberToRemove {
    /// The static member with this `group.instance.id`.
    Instance(String),
    /// The member with this member ID.
    Member(String),
}

/// The result of each member.
pub type RemovedMembers = Vec<Result<(), Error>>;

/// Removes members from a group, as if they had left. A member that still runs joins again.
pub fn remove_members(
    group_id: impl Into<Arc<str>>,
    members: Vec<MemberToRemove>,
    reason: Option<String>,
    timeout: Duration,
    done: Completion<Result<RemovedMembers, Error>>,
) -> AdminCall {
    AdminCall::operation(RemoveMembers::new(group_id.into(), members, reason, done), timeout)
}

/// The first version with several members, and with instance IDs.
const FIRST_WITH_MEMBERS: i16 = 3;
/// The first version with a reason.
const FIRST_WITH_REASON: i16 = 5;

pub(super) struct RemoveMembers {
    group_id: Arc<str>,
    members: Vec<MemberToRemove>,
    reason: Option<String>,
    /// True if a request was sent whose outcome is unknown.
    is_in_doubt: bool,
    results: Option<RemovedMembers>,
    done: Completion<Result<RemovedMembers, Error>>,
}

impl RemoveMembers {
    pub(super) const fn new(
        group_id: Arc<str>,
        members: Vec<MemberToRemove>,
        reason: Option<String>,
        done: Completion<Result<RemovedMembers, Error>>,
    ) -> Self {
        Self { group_id, members, reason, is_in_doubt: false, results: None, done }
    }

    /// Returns the members with their results, if there are any.
    pub(super) fn into_results(self) -> ItemResults<MemberToRemove, ()> {
        self.members.into_iter().zip(self.results.unwrap_or_default()).collect()
    }
}

impl Operation for RemoveMembers {
    fn api(&self) -> ApiKey {
        ApiKey::LeaveGroup
    }

    fn versions(&self) -> RangeInclusive<i16> {
        FIRST_WITH_MEMBERS..=*self.api().versions().end()
    }

    fn route(&self) -> Route {
        Route::Coordinator(CoordinatorKey::group(Arc::clone(&self.group_id)))
    }

    fn encode(&self, _timeout: Duration) -> EncodeBody {
        let member = |member: &MemberToRemove| {
            let (member_id, group_instance_id) = match member {
                MemberToRemove::Instance(instance) => (String::new(), Some(instance.clone())),
                MemberToRemove::Member(id) => (id.clone(), None),
            };
            request::Member { member_id, group_instance_id, reason: self.reason.clone() }
        };
        let members: Vec<_> = self.members.iter().map(member).collect();
        let group_id = self.group_id.to_string();
        Box::new(move |version, out| {
            let mut members = members.clone();
            if version < FIRST_WITH_REASON {
                members.iter_mut().for_each(|member| member.reason = None);
            }
            let request =
                LeaveGroupRequest { group_id: group_id.clone(), members, ..LeaveGroupRequest::default() };
            request.encode(version, out)
        })
    }

    fn handle_response(&mut self, body: &[u8], version: i16) -> Result<Verdict, Error> {
        let response =
            LeaveGroupResponse::decode(&mut Reader::new(body), version).map_err(|e| undecodable(&e))?;
        match response.error_code {
            ErrorCode::NONE => {}
            code if is_temporary(code) => return Ok(Verdict::Again(Error::broker(code, None))),
            code => return Err(Error::broker(code, None)),
        }
        let result = |member: &MemberToRemove| {
            let found = response.members.iter().find(|result| match member {
                MemberToRemove::Instance(instance) => result.group_instance_id.as_ref() == Some(instance),
                MemberToRemove::Member(id) => result.member_id == *id,
            });
            match found.map(|result| result.error_code) {
                Some(ErrorCode::NONE) => Ok(()),
                // An earlier request of this call, whose response was lost, removed the member.
                Some(ErrorCode::UNKNOWN_MEMBER_ID) if self.is_in_doubt => Ok(()),
                Some(code) => Err(Error::broker(code, None)),
                None => Err(Error::new(ErrorKind::BadResponse, "the response leaves the member out")),
            }
        };
        self.results = Some(self.members.iter().map(result).collect());
        Ok(Verdict::Done)
    }

    fn handle_failure(&mut self, error: Error) -> Result<Verdict, Error> {
        self.is_in_doubt |= matches!(error.kind(), ErrorKind::Disconnected | ErrorKind::RequestTimedOut);
        Err(error)
    }

    fn finish(self: Box<Self>, error: Option<Error>) {
        let missing = || error.unwrap_or_else(|| Error::new(ErrorKind::Bug, "a call ended without a result"));
        self.done.complete(self.results.ok_or_else(missing));
    }
}
