//! Subscriptions, and the functions that read the membership.

use std::{
    ffi::{c_char, c_int},
    ptr,
    sync::atomic::Ordering,
};

use ottla_core::{
    cluster::command::Command, completion::completion, group::GroupCommand, group::shared::RebalanceProtocol,
};
use ottla_sorted::SortedSet;

use super::state::Phase;
use crate::{
    client::handle::Client,
    consume::consumer::{group_consumer_of, open_consumer_of},
    ffi::{
        argument::{Part, PartMut, Ref},
        boundary::malloc_text,
        codes::{RespErr, code},
        error::code_of,
        export,
        list::List,
    },
};

/// The reasons why a list can't be subscribed to.
fn refusal(client: &Client, list: &List) -> Option<RespErr> {
    if client.fatal().is_some() {
        return Some(code::_FATAL);
    }
    if client.membership().phase() != Phase::Open {
        return Some(code::_DESTROY);
    }
    let mut seen = SortedSet::new();
    let is_valid = |name: &str| !name.is_empty() && name != "^" && !name.contains('\0');
    let elements = list.elements();
    let are_valid = elements.iter().all(|element| is_valid(element.name()) && seen.insert(element.name()));
    (elements.is_empty() || !are_valid).then_some(code::_INVALID_ARG)
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_subscribe(rk: Ref<Client>, topics: Part<List>) -> RespErr {
        let (both, list) = (group_consumer_of(rk), List::passed(topics));
        let (client, consumer) = match both {
            Ok(both) => both,
            Err(code) => return code,
        };
        let Some(list) = list else { return code::_INVALID_ARG };
        if let Some(refusal) = refusal(client, list) {
            return refusal;
        }
        let names: Vec<_> = list.elements().iter().map(|element| element.name().to_owned()).collect();
        client.logging().note_partitions(c"SUBSCRIBE", "Subscribed to", list.elements());
        let membership = client.membership();
        // The core's timer commits from now on.
        client.offsets().set_grouped(true);
        membership.is_used.store(true, Ordering::Release);
        let mut subscription = membership.subscription.lock();
        // Under the lock, so that subscriptions reach the group in the order of the calls.
        if let Err(error) = consumer.subscribe_in_group(&names) {
            return code_of(&error);
        }
        *subscription =
            list.elements().iter().map(|element| (element.name().to_owned(), element.partition)).collect();
        subscription.sort();
        code::NO_ERROR
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_unsubscribe(rk: Ref<Client>) -> RespErr {
        let (client, consumer) = match open_consumer_of(rk) {
            Ok(both) => both,
            Err(code) => return code,
        };
        let mut subscription = client.membership().subscription.lock();
        if !std::mem::take(&mut *subscription).is_empty() {
            // The call does not wait for the coordinator's response.
            let (done, _) = completion();
            consumer.handle().command(Command::Group(GroupCommand::Unsubscribe(done)));
        }
        code::NO_ERROR
    }
);

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_subscription(rk: Ref<Client>, topics: PartMut<*mut List>) -> RespErr {
        let (Some(client), Some(topics)) = (rk.get(), topics.get()) else { return code::_INVALID_ARG };
        if !client.has_group() {
            return code::_UNKNOWN_GROUP;
        }
        if client.membership().phase() == Phase::Closed {
            return code::_DESTROY;
        }
        let subscription = client.membership().subscription.lock().clone();
        *topics = List::with_capacity(subscription.len());
        // SAFETY: NULL if memory ran out, or a list with no other owner.
        if let Some(list) = unsafe { topics.as_mut() } {
            for (name, partition) in subscription {
                list.add(name.as_bytes(), partition);
            }
        }
        code::NO_ERROR
    }
);

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_memberid(rk: Ref<Client>) -> *mut c_char {
        match rk.get() {
            Some(client) if client.has_group() && client.membership().phase() != Phase::Closed => {
                let id = client.consumer().map(|consumer| consumer.group().view().member_id);
                malloc_text(id.unwrap_or_default().as_bytes())
            }
            _ => ptr::null_mut(),
        }
    }
);

export!(
    #[on(rk, ptr::null())]
    fn rd_kafka_rebalance_protocol(rk: Ref<Client>) -> *const c_char {
        let Some(client) = rk.get().filter(|client| client.has_group()) else { return ptr::null() };
        // The I/O thread may publish the end of the membership after the call that closes has returned.
        let is_closed = client.membership().phase() == Phase::Closed;
        let consumer = client.consumer().filter(|_| !is_closed);
        let protocol = consumer.and_then(|consumer| consumer.group().view().protocol);
        let name = match protocol {
            None => c"NONE",
            Some(RebalanceProtocol::Eager) => c"EAGER",
            Some(RebalanceProtocol::Cooperative) => c"COOPERATIVE",
        };
        name.as_ptr()
    }
);

export!(
    #[on(rk, 0)]
    fn rd_kafka_assignment_lost(rk: Ref<Client>) -> c_int {
        let consumer = rk.get().and_then(|client| client.consumer());
        consumer.is_some_and(|consumer| consumer.group().is_assignment_lost()).into()
    }
);
