//! `rd_kafka_list_groups`: groups with their members in structures whose fields applications read.

use std::{
    alloc::{Layout, dealloc},
    ffi::{CString, c_char, c_int, c_void},
    ptr,
};

use ottla::{GroupDescription, GroupFilter};
use ottla_core::error::Error;

use super::call::code_in_result;
use crate::{
    client::{handle::Client, metadata::Broker},
    ffi::{
        argument::{Ref, Text},
        boundary::{c_text, is_no_address},
        codes::{RespErr, code},
        export,
        quarantine::PlainQuarantine,
    },
};

/// `struct rd_kafka_group_member_info`.
#[repr(C)]
#[derive(Debug)]
struct Member {
    member_id: *const c_char,
    client_id: *const c_char,
    client_host: *const c_char,
    member_metadata: *const c_void,
    member_metadata_size: c_int,
    member_assignment: *const c_void,
    member_assignment_size: c_int,
}

/// `struct rd_kafka_group_info`.
#[repr(C)]
#[derive(Debug)]
struct Group {
    broker: Broker,
    group: *const c_char,
    err: RespErr,
    state: *const c_char,
    protocol_type: *const c_char,
    protocol: *const c_char,
    members: *const Member,
    member_cnt: c_int,
}

/// `struct rd_kafka_group_list`.
#[repr(C)]
#[derive(Debug)]
pub struct GroupList {
    groups: *const Group,
    group_cnt: c_int,
}

/// A [`GroupList`] with the memory that it points into. C sees the first field.
#[repr(C)]
#[derive(Debug)]
struct Owned {
    list: GroupList,
    groups: Vec<Group>,
    members: Vec<Vec<Member>>,
    texts: Vec<CString>,
    bytes: Vec<Vec<u8>>,
}

/// The value of `group_cnt` in a destroyed list: applications see the structure, which has no room for a tag.
const GONE: c_int = c_int::MIN;

static FREED: PlainQuarantine = PlainQuarantine::new(free);

unsafe fn free(memory: *mut u8) {
    // SAFETY: the memory comes from a box of an `Owned` whose contents were dropped.
    unsafe { dealloc(memory, Layout::new::<Owned>()) };
}

impl Owned {
    fn new(groups: Vec<(String, Result<GroupDescription, Error>)>) -> Box<Self> {
        // The parts point to heap memory that stays in place when the vectors grow.
        let mut owned = Box::new(Self {
            list: GroupList { groups: ptr::null(), group_cnt: 0 },
            groups: Vec::new(),
            members: Vec::new(),
            texts: Vec::new(),
            bytes: Vec::new(),
        });
        for (name, result) in groups {
            let group = owned.group(&name, result);
            owned.groups.push(group);
        }
        owned.list.groups = owned.groups.as_ptr();
        owned.list.group_cnt = owned.groups.len() as c_int;
        owned
    }

    fn group(&mut self, name: &str, result: Result<GroupDescription, Error>) -> Group {
        let group = self.text(name);
        let described = match result {
            Ok(described) => described,
            Err(error) => {
                let empty = self.text("");
                return Group {
                    broker: Broker { id: -1, host: empty, port: 0 },
                    group,
                    err: code_in_result(&error),
                    state: empty,
                    protocol_type: empty,
                    protocol: empty,
                    members: ptr::null(),
                    member_cnt: 0,
                };
            }
        };
        let broker = match &described.coordinator {
            Some(node) => Broker { id: node.id, host: self.text(&node.host), port: node.port },
            None => Broker { id: -1, host: self.text(""), port: 0 },
        };
        let mut members = Vec::with_capacity(described.members.len());
        for member in described.members {
            let (member_metadata, member_metadata_size) = self.keep(member.subscription_bytes);
            let (member_assignment, member_assignment_size) = self.keep(member.assignment_bytes);
            members.push(Member {
                member_id: self.text(&member.member_id),
                client_id: self.text(&member.client_id),
                client_host: self.text(&member.host),
                member_metadata,
                member_metadata_size,
                member_assignment,
                member_assignment_size,
            });
        }
        let (first, member_cnt) = (members.as_ptr(), members.len() as c_int);
        self.members.push(members);
        Group {
            broker,
            group,
            err: code::NO_ERROR,
            state: self.text(described.state.name()),
            protocol_type: self.text(&described.protocol_type),
            protocol: self.text(&described.assignor),
            members: first,
            member_cnt,
        }
    }

    fn text(&mut self, text: &str) -> *const c_char {
        let text = c_text(text);
        let pointer = text.as_ptr();
        self.texts.push(text);
        pointer
    }

    fn keep(&mut self, bytes: Vec<u8>) -> (*const c_void, c_int) {
        let kept = (bytes.as_ptr().cast(), c_int::try_from(bytes.len()).unwrap_or(c_int::MAX));
        self.bytes.push(bytes);
        kept
    }
}

/// Returns the code of a call that failed as a whole.
fn code_of_call(error: &Error) -> RespErr {
    match code_in_result(error) {
        code::_ALL_BROKERS_DOWN | code::_TRANSPORT => code::_TRANSPORT,
        code => code,
    }
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_list_groups(
        rk: Ref<Client>,
        group: Text,
        grplistp: *mut *const GroupList,
        timeout_ms: c_int,
    ) -> RespErr {
        let Some(client) = rk.get().filter(|_| !grplistp.is_null()) else { return code::_INVALID_ARG };
        let admin = match client.admin() {
            Ok(admin) => admin,
            Err(code) => return code,
        };
        let timeout = client.query_timeout(timeout_ms);
        let began = std::time::Instant::now();
        let listings = match admin.list_groups(&GroupFilter::default(), timeout) {
            Ok(listings) => listings,
            Err(error) => return code_of_call(&error),
        };
        if let (true, [(_, error), ..]) = (listings.groups.is_empty(), &listings.failed[..]) {
            return code_of_call(error);
        }
        let requested = group.get();
        let is_requested = |name: &str| requested.as_ref().is_none_or(|requested| *requested == *name);
        let names: Vec<&str> = listings
            .groups
            .iter()
            .map(|group| &*group.group_id)
            .filter(|name| is_requested(name) && !name.is_empty())
            .collect();
        let left = timeout.saturating_sub(began.elapsed());
        let groups = match names.is_empty() {
            true => Vec::new(),
            false => match admin.describe_groups_or_dead_now(&names, left) {
                Ok(groups) => groups,
                Err(error) => return code_of_call(&error),
            },
        };
        // SAFETY: the header demands a writable address.
        unsafe { *grplistp = Box::into_raw(Owned::new(groups)).cast_const().cast() };
        if listings.failed.is_empty() { code::NO_ERROR } else { code::_PARTIAL }
    }
);

export!(
    #[local(())]
    fn rd_kafka_group_list_destroy(list: *const GroupList) {
        // SAFETY: the list is the first field of an `Owned` from `into_raw`, whose ownership the caller passes on; a
        // destroyed list is recognized by its count.
        unsafe {
            if is_no_address(list) || (*list).group_cnt == GONE {
                return;
            }
            let owned = list.cast_mut().cast::<Owned>();
            ptr::drop_in_place(owned);
            list.cast_mut().write(GroupList { groups: ptr::null(), group_cnt: GONE });
            FREED.keep(owned.cast());
        }
    }
);
