//! Listing and describing consumer groups.

use std::{
    borrow::Cow,
    ffi::{CString, c_char, c_int},
    ptr,
};

use ottla::{GroupDescription, GroupListings, GroupState, GroupType, MemberDescription, TopicPartition};
use ottla_core::error::Error;
use ottla_sorted::SortedSet;

use super::{
    call::{Listed, Outcome, call, code_in_result, found},
    cluster::{Node, operations, show_operations},
    options::AdminOptions,
    records::ShownList,
};
use crate::{
    client::{
        event::{Event, Failure},
        handle::Client,
        queue::Queue,
    },
    ffi::{
        argument::{Part, Place, Ref, Text, Texts},
        boundary::c_text,
        codes::code,
        error::ErrorObject,
        export, getters,
        list::List,
        or_null, text_or_null,
    },
};

/// `RD_KAFKA_EVENT_LISTCONSUMERGROUPS_RESULT`.
pub(super) const LISTED: c_int = 1 << 13;
/// `RD_KAFKA_EVENT_DESCRIBECONSUMERGROUPS_RESULT`.
pub(super) const DESCRIBED: c_int = 1 << 14;

/// The states of `rd_kafka_consumer_group_state_t`, by their number. Later states of the consumer protocol have no
/// number.
pub(super) const STATES: [(GroupState, &std::ffi::CStr); 6] = [
    (GroupState::Unknown, c"Unknown"),
    (GroupState::PreparingRebalance, c"PreparingRebalance"),
    (GroupState::CompletingRebalance, c"CompletingRebalance"),
    (GroupState::Stable, c"Stable"),
    (GroupState::Dead, c"Dead"),
    (GroupState::Empty, c"Empty"),
];

/// The types of `rd_kafka_consumer_group_type_t`, by their number.
pub(super) const TYPES: [(GroupType, &std::ffi::CStr); 3] =
    [(GroupType::Unknown, c"Unknown"), (GroupType::Consumer, c"Consumer"), (GroupType::Classic, c"Classic")];

fn number_of<T: PartialEq>(rows: &[(T, &std::ffi::CStr)], value: &T) -> c_int {
    rows.iter().position(|(known, _)| known == value).map_or(0, |place| place as c_int)
}

fn name_of<T>(rows: &[(T, &'static std::ffi::CStr)], number: c_int) -> *const c_char {
    let row = usize::try_from(number).ok().and_then(|number| rows.get(number));
    row.map_or(ptr::null(), |(_, name)| name.as_ptr())
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_consumer_group_state_name(state: c_int) -> *const c_char {
        name_of(&STATES, state)
    }
);

export!(
    #[local(0)]
    fn rd_kafka_consumer_group_state_code(name: Text) -> c_int {
        name.get().map_or(0, |name| number_of(&STATES, &GroupState::from_name(&name)))
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_consumer_group_type_name(kind: c_int) -> *const c_char {
        name_of(&TYPES, kind)
    }
);

export!(
    #[local(0)]
    fn rd_kafka_consumer_group_type_code(name: Text) -> c_int {
        name.get().map_or(0, |name| number_of(&TYPES, &GroupType::from_name(&name)))
    }
);

// ---- list

/// `rd_kafka_ConsumerGroupListing_t`.
#[derive(Debug)]
pub struct Listing {
    group_id: CString,
    is_simple: bool,
    state: c_int,
    group_type: c_int,
}

/// The result of ListConsumerGroups.
#[derive(Debug)]
pub(crate) struct Listings {
    valid: Listed<Listing>,
    errors: Listed<ErrorObject>,
}

fn listed(listings: GroupListings) -> Outcome {
    let groups = listings.groups.iter().filter(|group| group.is_of_consumers());
    let valid = groups.map(|group| Listing {
        group_id: c_text(&group.group_id),
        is_simple: group.protocol_type.is_empty(),
        state: number_of(&STATES, &group.state),
        group_type: number_of(&TYPES, &group.group_type),
    });
    let errors = listings.failed.iter().map(|(broker, error)| {
        let text = format!("Broker [{broker}] ListConsumerGroups: {error}");
        ErrorObject::new(code_in_result(error), text)
    });
    found(Listings { valid: Listed::new(valid), errors: Listed::new(errors) })
}

/// Returns the result if no broker could be asked: that is an error in the list, not of the call.
fn without_brokers(failure: Failure) -> Outcome {
    if failure.code != code::_TIMED_OUT {
        return Err(failure);
    }
    let error = ErrorObject::new(failure.code, format!("ListConsumerGroups: {}", failure.text));
    found(Listings { valid: Listed::new([]), errors: Listed::new([error]) })
}

export!(
    #[on(rk, ())]
    fn rd_kafka_ListConsumerGroups(rk: Ref<Client>, options: Ref<AdminOptions>, rkqu: Ref<Queue>) {
        let filter = options.get().map(AdminOptions::group_filter).unwrap_or_default();
        call(rk, options, rkqu, LISTED, |admin, options| {
            let listings = admin.list_groups_async(&filter, *options);
            Ok(async move {
                match listings.await {
                    Ok(listings) => listed(listings),
                    Err(error) => without_brokers(Failure::of(&error)),
                }
            })
        });
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_ListConsumerGroups_result_valid(
        result: Ref<Event>,
        cntp: Place<usize>,
    ) -> *const *const Listing {
        let listings = result.get().and_then(Event::result::<Listings>);
        Listed::show(listings.map(|listings| &listings.valid), cntp)
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_ListConsumerGroups_result_errors(
        result: Ref<Event>,
        cntp: Place<usize>,
    ) -> *const *const ErrorObject {
        let listings = result.get().and_then(Event::result::<Listings>);
        Listed::show(listings.map(|listings| &listings.errors), cntp)
    }
);

getters! {
    fn rd_kafka_ConsumerGroupListing_group_id(listing: Part<Listing>) -> *const c_char {
        ptr::null(); listing.group_id.as_ptr()
    }
    fn rd_kafka_ConsumerGroupListing_is_simple_consumer_group(listing: Part<Listing>) -> c_int {
        0; listing.is_simple.into()
    }
    fn rd_kafka_ConsumerGroupListing_state(listing: Part<Listing>) -> c_int { 0; listing.state }
    fn rd_kafka_ConsumerGroupListing_type(listing: Part<Listing>) -> c_int { 0; listing.group_type }
}

// ---- describe

/// `rd_kafka_ConsumerGroupDescription_t`.
#[derive(Debug)]
pub struct Description {
    group_id: CString,
    error: Option<ErrorObject>,
    is_simple: bool,
    assignor: CString,
    operations: Vec<c_int>,
    state: c_int,
    group_type: c_int,
    coordinator: Option<Node>,
    members: Box<[Member]>,
}

/// `rd_kafka_MemberDescription_t`.
#[derive(Debug)]
pub struct Member {
    client_id: CString,
    instance_id: Option<CString>,
    member_id: CString,
    host: CString,
    assignment: ShownList,
    target: Option<ShownList>,
}

// SAFETY: the lists are not changed.
unsafe impl Sync for ShownList {}

/// Returns partitions without offsets as a list.
fn list_of(partitions: &[TopicPartition]) -> ShownList {
    let list = ShownList(List::with_capacity(partitions.len()));
    // SAFETY: the list was just created, or is NULL.
    if let Some(list) = unsafe { list.0.as_mut() } {
        for key in partitions {
            list.add(key.topic.as_bytes(), key.partition);
        }
    }
    list
}

impl Member {
    fn new(member: &MemberDescription) -> Self {
        Self {
            client_id: c_text(&member.client_id),
            instance_id: member.instance_id.as_deref().map(c_text),
            member_id: c_text(&member.member_id),
            host: c_text(&member.host),
            assignment: list_of(&member.assignment),
            target: member.target_assignment.as_deref().map(list_of),
        }
    }
}

impl Description {
    fn failed(group: &str, error: ErrorObject) -> Self {
        Self {
            group_id: c_text(group),
            error: Some(error),
            is_simple: false,
            assignor: CString::default(),
            operations: Vec::new(),
            state: 0,
            group_type: 0,
            coordinator: None,
            members: Box::default(),
        }
    }

    fn new(group: &str, result: Result<GroupDescription, Error>) -> Self {
        let described = match result {
            Ok(described) => described,
            Err(error) => {
                return Self::failed(group, ErrorObject::new(code_in_result(&error), error.to_string()));
            }
        };
        if !matches!(&*described.protocol_type, "" | "consumer") {
            let kind = &described.protocol_type;
            let text = format!("the group \"{group}\" is of the type {kind} and not of consumers");
            return Self::failed(group, ErrorObject::new(code::_INVALID_ARG, text));
        }
        Self {
            group_id: c_text(&described.group_id),
            error: None,
            is_simple: described.protocol_type.is_empty(),
            assignor: c_text(&described.assignor),
            operations: operations(described.authorized_operations),
            state: number_of(&STATES, &described.state),
            group_type: number_of(&TYPES, &described.group_type),
            coordinator: described.coordinator.as_ref().map(Node::new),
            members: described.members.iter().map(Member::new).collect(),
        }
    }
}

/// Returns the names of the groups of a call.
fn names(groups: Texts, count: usize) -> Result<Vec<String>, Failure> {
    if count == 0 || groups.is_null() || count > c_int::MAX as usize {
        return Err(Failure::misuse("no groups: at least one is needed"));
    }
    let names: Vec<String> = groups.get(count).map(Cow::into_owned).collect();
    check_groups(names.iter())?;
    Ok(names)
}

/// Error: a group is named twice, or has no name.
pub(super) fn check_groups<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), Failure> {
    let mut seen = SortedSet::new();
    for name in names {
        if name.is_empty() {
            return Err(Failure::misuse("a group ID is empty"));
        }
        if !seen.insert(name) {
            return Err(Failure::misuse(format!("group \"{name}\" is named twice")));
        }
    }
    Ok(())
}

export!(
    #[on(rk, ())]
    fn rd_kafka_DescribeConsumerGroups(
        rk: Ref<Client>,
        groups: Texts,
        groups_cnt: usize,
        options: Ref<AdminOptions>,
        rkqu: Ref<Queue>,
    ) {
        call(rk, options, rkqu, DESCRIBED, |admin, options| {
            let names = names(groups, groups_cnt)?;
            let named: Vec<&str> = names.iter().map(String::as_str).collect();
            let described = admin.describe_groups_or_dead(&named, *options);
            Ok(async move {
                let described = described.await.map_err(|error| Failure::of(&error))?;
                let groups = described.into_iter().map(|(group, result)| Description::new(&group, result));
                found(Listed::new(groups))
            })
        });
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_DescribeConsumerGroups_result_groups(
        result: Ref<Event>,
        cntp: Place<usize>,
    ) -> *const *const Description {
        Listed::show(result.get().and_then(Event::result::<Listed<Description>>), cntp)
    }
);

getters! {
    fn rd_kafka_ConsumerGroupDescription_group_id(group: Part<Description>) -> *const c_char {
        ptr::null(); group.group_id.as_ptr()
    }
    fn rd_kafka_ConsumerGroupDescription_error(group: Part<Description>) -> *const ErrorObject {
        ptr::null(); or_null(group.error.as_ref())
    }
    fn rd_kafka_ConsumerGroupDescription_is_simple_consumer_group(group: Part<Description>) -> c_int {
        0; group.is_simple.into()
    }
    fn rd_kafka_ConsumerGroupDescription_partition_assignor(group: Part<Description>) -> *const c_char {
        ptr::null(); group.assignor.as_ptr()
    }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_ConsumerGroupDescription_authorized_operations(
        group: Part<Description>,
        cntp: Place<usize>,
    ) -> *const c_int {
        show_operations(group.get().map(|group| &group.operations), cntp)
    }
);

getters! {
    fn rd_kafka_ConsumerGroupDescription_state(group: Part<Description>) -> c_int { 0; group.state }
    fn rd_kafka_ConsumerGroupDescription_type(group: Part<Description>) -> c_int { 0; group.group_type }
    fn rd_kafka_ConsumerGroupDescription_coordinator(group: Part<Description>) -> *const Node {
        ptr::null(); or_null(group.coordinator.as_ref())
    }
    fn rd_kafka_ConsumerGroupDescription_member_count(group: Part<Description>) -> usize { 0; group.members.len() }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_ConsumerGroupDescription_member(group: Part<Description>, idx: usize) -> *const Member {
        or_null(group.get().and_then(|group| group.members.get(idx)))
    }
);

getters! {
    fn rd_kafka_MemberDescription_client_id(member: Part<Member>) -> *const c_char {
        ptr::null(); member.client_id.as_ptr()
    }
    fn rd_kafka_MemberDescription_group_instance_id(member: Part<Member>) -> *const c_char {
        ptr::null(); text_or_null(member.instance_id.as_ref())
    }
    fn rd_kafka_MemberDescription_consumer_id(member: Part<Member>) -> *const c_char {
        ptr::null(); member.member_id.as_ptr()
    }
    fn rd_kafka_MemberDescription_host(member: Part<Member>) -> *const c_char { ptr::null(); member.host.as_ptr() }
    fn rd_kafka_MemberDescription_assignment(member: Part<Member>) -> *const ShownList {
        ptr::null(); ptr::from_ref(&member.assignment)
    }
    fn rd_kafka_MemberDescription_target_assignment(member: Part<Member>) -> *const ShownList {
        ptr::null(); or_null(member.target.as_ref())
    }
    fn rd_kafka_MemberAssignment_partitions(assignment: Part<ShownList>) -> *const List {
        ptr::null(); assignment.0.cast_const()
    }
}
