//! Sending the verdicts so far.

use std::{ffi::c_int, ptr, time::Instant};

use super::{
    access::unless_no_group,
    handle::{Entered, Share},
    outcomes::outcome_code,
};
use crate::ffi::{
    argument::{PartMut, Ref},
    codes::code,
    error::ErrorObject,
    export,
    list::List,
};

impl Entered<'_> {
    /// In implicit mode, accepts the messages of the last poll.
    fn accept_last_poll(&self) {
        if self.share.is_implicit {
            self.consumer.held().accept_open();
        }
    }

    /// Calls the callbacks for which there is something now.
    fn serve(&self) {
        let client = &self.share.client;
        client.main().serve(client, 0);
        self.share.serve_outcomes(self.consumer);
    }

    fn commit_async(&self) {
        self.accept_last_poll();
        self.consumer.held().commit(self.consumer.core());
        self.serve();
    }

    /// Returns a list with the outcome of each partition; NULL if there was nothing to commit.
    fn commit_sync(&self, timeout_ms: c_int) -> *mut List {
        let until = Instant::now().checked_add(self.share.client.query_timeout(timeout_ms));
        self.accept_last_poll();
        let Some((ticket, waiting)) = self.consumer.held().commit_with_both(self.consumer.core()) else {
            self.serve();
            return ptr::null_mut();
        };
        let _ = self.share.client.wait_with_callbacks(waiting, until);
        let outcome = ticket.outcome();
        let list = List::with_capacity(outcome.len());
        // SAFETY: NULL if memory ran out, or a list that has no other owner yet.
        if let Some(list) = unsafe { list.as_mut() } {
            for (partition, result) in &outcome {
                let element = list.add(partition.topic.as_bytes(), partition.partition);
                // SAFETY: NULL if memory ran out, or the list's element.
                if let Some(element) = unsafe { element.as_mut() } {
                    // An outcome has no offset, for which the interface has 0 here.
                    element.offset = 0;
                    element.err = result.as_ref().map_or(code::REQUEST_TIMED_OUT, outcome_code);
                }
            }
        }
        self.share.serve_outcomes(self.consumer);
        list
    }
}

export!(
    #[on(rkshare, ptr::null_mut())]
    fn rd_kafka_share_commit_async(rkshare: Ref<Share>) -> *mut ErrorObject {
        // A callback may destroy the consumer.
        let held = rkshare.counted();
        let committed = unless_no_group(Share::enter_open(rkshare).map(|entered| entered.commit_async()));
        drop(held);
        ErrorObject::from_result(committed.map_err(|refusal| refusal.error()))
    }
);

export!(
    #[on(rkshare, ptr::null_mut())]
    fn rd_kafka_share_commit_sync(
        rkshare: Ref<Share>,
        timeout_ms: c_int,
        partitions: PartMut<*mut List>,
    ) -> *mut ErrorObject {
        // A callback may destroy the consumer.
        let held = rkshare.counted();
        let entered = unless_no_group(Share::enter_open(rkshare).map(Some));
        let committed = entered.map_err(|refusal| refusal.error()).and_then(|entered| {
            let place = partitions.get().ok_or_else(|| {
                ErrorObject::new(code::_INVALID_ARG, "a commit needs a place for its outcome")
            })?;
            *place = ptr::null_mut();
            if let Some(entered) = entered {
                *place = entered.commit_sync(timeout_ms);
            }
            Ok(())
        });
        drop(held);
        ErrorObject::from_result(committed)
    }
);
