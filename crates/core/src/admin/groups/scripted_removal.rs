//! Removal of members from groups, against scripted brokers.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        consumer_group_describe::ConsumerGroupDescribeResponse,
        describe_groups::{DescribeGroupsResponse, response as classic},
        leave_group::{LeaveGroupRequest, LeaveGroupResponse, response as left},
    },
    primitive::Reader,
};

use super::{
    delete::{MemberToRemove, remove_members},
    remove_all::{RemovedFromGroup, remove_all_members},
    scripted::{Script, TIMEOUT},
};
use crate::{completion::Waiting, error::ErrorKind};

const OK: ErrorCode = ErrorCode::NONE;

fn left(of: &[(&str, Option<&str>, ErrorCode)]) -> LeaveGroupResponse {
    let member = |(id, instance, error_code): &(&str, Option<&str>, ErrorCode)| left::Member {
        member_id: (*id).to_owned(),
        group_instance_id: instance.map(str::to_owned),
        error_code: *error_code,
    };
    LeaveGroupResponse { members: of.iter().map(member).collect(), ..Default::default() }
}

/// A classic group with these members: member ID and instance ID.
fn group(members: &[(&str, Option<&str>)]) -> DescribeGroupsResponse {
    let member = |(id, instance): &(&str, Option<&str>)| classic::Member {
        member_id: (*id).to_owned(),
        group_instance_id: instance.map(str::to_owned),
        ..classic::Member::default()
    };
    let members = members.iter().map(member).collect();
    let group = classic::Group { group_id: "g".into(), members, ..classic::Group::default() };
    DescribeGroupsResponse { groups: vec![group], ..Default::default() }
}

/// A call that has described a group with these members.
fn after_description(
    members: &[(&str, Option<&str>)],
) -> (Script, Waiting<Result<RemovedFromGroup, crate::error::Error>>) {
    let (mut script, waiting) =
        Script::new(|done| remove_all_members("g", Some("because".into()), TIMEOUT, done));
    let request = script.one(1);
    script.fail(&request, ErrorKind::UnsupportedVersion);
    let request = script.one(5);
    script.respond(&request, 5, &group(members));
    (script, waiting)
}

#[test]
fn all_members_are_described_and_removed() {
    let (mut script, waiting) = after_description(&[("m1", None), ("m2", Some("i"))]);
    let request = script.one(5);
    let decoded = LeaveGroupRequest::decode(&mut Reader::new(&request.body), 5).unwrap();
    let members: Vec<_> = decoded
        .members
        .iter()
        .map(|member| (&*member.member_id, member.group_instance_id.as_deref(), member.reason.as_deref()))
        .collect();
    assert_eq!(members, [("m1", None, Some("because")), ("", Some("i"), Some("because"))]);
    script.respond(&request, 5, &left(&[("", Some("i"), OK), ("m1", None, ErrorCode::UNKNOWN_MEMBER_ID)]));
    let results = waiting.try_take().expect("it responded").expect("the call succeeds");
    let kinds: Vec<_> =
        results.into_iter().map(|(member, result)| (member, result.map_err(|error| error.kind()))).collect();
    let unknown = ErrorKind::Broker(ErrorCode::UNKNOWN_MEMBER_ID);
    let (dynamic, fixed) = (MemberToRemove::Member("m1".into()), MemberToRemove::Instance("i".into()));
    assert_eq!(kinds, [(dynamic, Err(unknown)), (fixed, Ok(()))]);
}

#[test]
fn empty_group_takes_no_removal() {
    let (mut script, waiting) = after_description(&[]);
    assert_eq!(waiting.try_take(), Some(Ok(Vec::new())));
    assert!(script.sent(5).is_empty());
}

#[test]
fn removal_follows_the_coordinator() {
    let (mut script, waiting) = after_description(&[("m1", None)]);
    let request = script.one(5);
    let moved = LeaveGroupResponse { error_code: ErrorCode::NOT_COORDINATOR, ..Default::default() };
    assert!(script.respond(&request, 5, &moved));
    let request = script.one(5);
    script.respond(&request, 5, &left(&[("m1", None, OK)]));
    assert_eq!(waiting.try_take().unwrap().unwrap().len(), 1);
}

#[test]
fn removal_from_a_missing_group_fails() {
    let (mut script, waiting) = Script::new(|done| remove_all_members("g", None, TIMEOUT, done));
    let request = script.one(1);
    script.fail(&request, ErrorKind::UnsupportedVersion);
    let request = script.one(5);
    let missing = ErrorCode::GROUP_ID_NOT_FOUND;
    let gone = classic::Group { group_id: "g".into(), error_code: missing, ..classic::Group::default() };
    script.respond(&request, 5, &DescribeGroupsResponse { groups: vec![gone], ..Default::default() });
    assert_eq!(waiting.try_take().unwrap().unwrap_err().kind(), ErrorKind::Broker(missing));
}

#[test]
fn descriptions_without_the_group_end_the_removal() {
    let (mut script, waiting) = Script::new(|done| remove_all_members("g", None, TIMEOUT, done));
    for _ in 0..4 {
        assert_eq!(waiting.try_take(), None);
        let request = script.one(1);
        script.respond(&request, 1, &ConsumerGroupDescribeResponse::default());
    }
    assert_eq!(waiting.try_take().unwrap().unwrap_err().kind(), ErrorKind::BadResponse);
}

#[test]
fn member_that_an_earlier_request_removed_counts_as_removed() {
    let members = || vec![MemberToRemove::Member("m".into())];
    let unknown = ErrorCode::UNKNOWN_MEMBER_ID;
    let (mut script, waiting) = Script::new(|done| remove_members("g", members(), None, TIMEOUT, done));
    let request = script.one(5);
    script.fail(&request, ErrorKind::Disconnected);
    let request = script.one(5);
    script.respond(&request, 5, &left(&[("m", None, unknown)]));
    assert_eq!(waiting.try_take(), Some(Ok(vec![Ok(())])));
}
