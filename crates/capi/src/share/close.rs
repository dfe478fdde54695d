//! Closing a share consumer, and the end of its handle.

use std::{
    ffi::c_int,
    ptr,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    access::Refusal,
    handle::{Entered, Phase, Share},
};
use crate::{
    client::{destroy::rd_kafka_destroy_flags, queue::Queue},
    ffi::{argument::Ref, boundary::Blamed, codes::code, error::ErrorObject, export, task},
};

/// `RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE`.
const NO_CONSUMER_CLOSE: c_int = 8;
/// How long a close waits for its end beyond the time that leaving may take.
const MARGIN: Duration = Duration::from_millis(200);

impl Entered<'_> {
    /// Returns how long leaving the group may take: `socket.timeout.ms`.
    fn leave_timeout(&self) -> Duration {
        let millis = self.share.client.property("socket.timeout.ms").and_then(|value| value.parse().ok());
        Duration::from_millis(millis.unwrap_or(60_000))
    }

    /// Sends the verdicts so far with the end of each session, which releases all other records, and leaves the group. It
    /// calls callbacks.
    fn close(&self) {
        let timeout = self.leave_timeout();
        let left = self.consumer.begin_leaving(timeout);
        let _ = self.share.client.wait_with_callbacks(left, Some(Instant::now() + timeout + MARGIN));
        self.consumer.core().close();
        self.share.serve_outcomes(self.consumer);
        self.share.set_closed();
    }

    /// Closes without waiting. The queue gets the callbacks.
    fn close_to(&self, queue: Arc<Queue>) {
        let left = self.consumer.begin_leaving(self.leave_timeout());
        let share = self.share.me.clone();
        task::spawn(async move {
            // The client ended if there is no result.
            left.await;
            if let Some(closed) = share.upgrade()
                && let Some(consumer) = closed.client.share_consumer()
            {
                consumer.core().close();
                Share::queue_outcomes(&share, consumer, &queue);
                closed.set_closed();
            }
            queue.signal();
        });
    }

    fn begin_close(&self) -> Result<(), Refusal> {
        if self.share.begin_close() { Ok(()) } else { Err(Refusal::Closed) }
    }
}

export!(
    #[on(rkshare, ptr::null_mut())]
    fn rd_kafka_share_consumer_close(rkshare: Ref<Share>) -> *mut ErrorObject {
        // A callback may destroy the consumer.
        let held = rkshare.counted();
        let closed = Share::enter_open(rkshare).and_then(|entered| {
            entered.begin_close()?;
            entered.close();
            Ok(())
        });
        drop(held);
        ErrorObject::from_result(closed.map_err(|refusal| refusal.error()))
    }
);

fn no_queue() -> ErrorObject {
    ErrorObject::new(code::_INVALID_ARG, "closing needs a queue for the callbacks")
}

export!(
    #[on(rkshare, ptr::null_mut())]
    fn rd_kafka_share_consumer_close_queue(rkshare: Ref<Share>, rkqu: Ref<Queue>) -> *mut ErrorObject {
        let refused = |refusal: Refusal| match refusal {
            Refusal::NoGroup if rkqu.get().is_none() => no_queue(),
            refusal => refusal.error(),
        };
        let closing = Share::enter_open(rkshare).map_err(refused).and_then(|entered| {
            let queue = rkqu.counted().ok_or_else(no_queue)?;
            entered.begin_close().map_err(|refusal| refusal.error())?;
            entered.close_to(queue);
            Ok(())
        });
        ErrorObject::from_result(closing)
    }
);

export!(
    #[local(0)]
    fn rd_kafka_share_consumer_closed(rkshare: Ref<Share>) -> c_int {
        rkshare.get().is_some_and(|share| share.phase() == Phase::Closed).into()
    }
);

/// Gives the handle up.
///
/// # Safety
///
/// NULL or a share consumer.
unsafe fn destroy(pointer: *const Share, flags: c_int) -> Result<(), Refusal> {
    // SAFETY: by the contract of this function.
    let share = unsafe { crate::ffi::argument::Argument::from_c(pointer) };
    // The calls of other threads that came before this one may still look at it.
    let held = Ref::counted(share);
    let turn = Share::turn(share)?;
    if flags & NO_CONSUMER_CLOSE == 0
        && let Ok(entered) = Share::enter(share)
        && entered.begin_close().is_ok()
    {
        entered.close();
    }
    // SAFETY: the application gives its reference up; the first call with it takes it.
    unsafe {
        if !Share::take(pointer) {
            return Err(Refusal::NoHandle);
        }
        let own = Arc::from_raw(pointer);
        rd_kafka_destroy_flags(Arc::as_ptr(&own.client), NO_CONSUMER_CLOSE);
        drop(turn);
        drop(own);
    }
    drop(held);
    Ok(())
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_share_destroy(rkshare: *const Share) -> *mut ErrorObject {
        // SAFETY: by the contract of this function.
        unsafe { rd_kafka_share_destroy_flags(rkshare, 0) }
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_share_destroy_flags(rkshare: *const Share, flags: c_int) -> *mut ErrorObject {
        if rkshare.is_inherited() {
            return ptr::null_mut();
        }
        // SAFETY: by the contract of this function.
        let destroyed = unsafe { destroy(rkshare, flags) };
        ErrorObject::from_result(destroyed.map_err(Refusal::error))
    }
);
