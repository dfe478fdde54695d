//! Subscriptions.

use std::time::Duration;

use ottla_sorted::SortedSet;

use super::handle::{Entered, Share};
use crate::ffi::{
    argument::{Part, PartMut, Ref},
    codes::{RespErr, code},
    error::code_of,
    export,
    list::List,
};

/// The time in which an ended subscription leaves the group; no call waits for it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the topics of a list, sorted; `None` if a name is empty, or there twice.
fn topics_of(list: &List) -> Option<Vec<(String, i32)>> {
    let mut seen = SortedSet::new();
    let mut topics: Vec<_> =
        list.elements().iter().map(|element| (element.name().to_owned(), element.partition)).collect();
    topics.sort();
    topics.iter().all(|(name, _)| !name.is_empty() && seen.insert(name.clone())).then_some(topics)
}

impl Entered<'_> {
    fn subscribe(&self, topics: Vec<(String, i32)>) -> RespErr {
        if self.share.client.fatal().is_some() || self.consumer.core().fatal().is_some() {
            return code::_FATAL;
        }
        if topics.is_empty() {
            return self.unsubscribe();
        }
        let names: Vec<&str> = topics.iter().map(|(name, _)| name.as_str()).collect();
        match self.consumer.subscribe(&names) {
            Ok(()) => {
                *self.share.subscription.lock() = topics;
                code::NO_ERROR
            }
            Err(error) => code_of(&error),
        }
    }

    fn unsubscribe(&self) -> RespErr {
        self.share.subscription.lock().clear();
        // The call does not wait for the coordinator.
        drop(self.consumer.begin_leaving(LEAVE_TIMEOUT));
        code::NO_ERROR
    }
}

export!(
    #[on(rkshare, code::_FATAL)]
    fn rd_kafka_share_subscribe(rkshare: Ref<Share>, topics: Part<List>) -> RespErr {
        let entered = match Share::enter_open(rkshare) {
            Ok(entered) => entered,
            Err(refusal) => return refusal.code(),
        };
        match List::passed(topics).and_then(topics_of) {
            Some(topics) => entered.subscribe(topics),
            None => code::_INVALID_ARG,
        }
    }
);

export!(
    #[on(rkshare, code::_FATAL)]
    fn rd_kafka_share_unsubscribe(rkshare: Ref<Share>) -> RespErr {
        Share::enter_open(rkshare).map_or_else(|refusal| refusal.code(), |entered| entered.unsubscribe())
    }
);

export!(
    #[on(rkshare, code::_FATAL)]
    fn rd_kafka_share_subscription(rkshare: Ref<Share>, topics: PartMut<*mut List>) -> RespErr {
        let entered = match Share::enter_open(rkshare) {
            Ok(entered) => entered,
            Err(refusal) => return refusal.code(),
        };
        let Some(topics) = topics.get() else { return code::_INVALID_ARG };
        let subscription = entered.share.subscription.lock().clone();
        *topics = List::with_capacity(subscription.len());
        // SAFETY: NULL if memory ran out, or a list that has no other owner yet.
        if let Some(list) = unsafe { topics.as_mut() } {
            for (name, partition) in subscription {
                list.add(name.as_bytes(), partition);
            }
        }
        code::NO_ERROR
    }
);
