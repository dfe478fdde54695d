//! Polls.

use std::{ffi::c_int, ptr, time::Instant};

use ottla_core::share::shared::ShareEvent;

use super::{
    access::Refusal,
    handle::{Entered, Share},
    messages::Messages,
};
use crate::ffi::{
    argument::{PartMut, Ref},
    codes::code,
    error::{ErrorObject, code_of},
    export,
    time::deadline,
};

impl Entered<'_> {
    /// Returns the messages of the next records, or none after the time. It calls callbacks.
    fn poll(&self, until: Option<Instant>) -> Result<Option<Messages>, ErrorObject> {
        let (client, consumer) = (&self.share.client, self.consumer);
        self.check_fatal()?;
        client.main().serve(client, 0);
        if consumer.subscription().is_empty() {
            return Err(ErrorObject::new(code::_STATE, "Consumer is not subscribed to any topics"));
        }
        if self.share.is_implicit {
            consumer.held().accept_open();
        } else {
            let open = consumer.held().open_count();
            if open > 0 {
                let text = format!("{open} records from previous poll have not been acknowledged");
                return Err(ErrorObject::new(code::_STATE, text));
            }
        }
        consumer.begin_acquiring();
        loop {
            let acquired = client.wait_with_callbacks(consumer.acquire(), until);
            self.share.serve_outcomes(consumer);
            match acquired {
                Some(Ok(records)) if !records.is_empty() => {
                    let messages = Messages::new(client, records);
                    if !messages.is_empty() {
                        return Ok(Some(messages));
                    }
                }
                Some(Ok(_)) => {
                    while let Some(event) = consumer.core().take_event() {
                        if let ShareEvent::Error(error) = event {
                            return Err(ErrorObject::from(&error).classed(true, false));
                        }
                    }
                }
                Some(Err(error)) => {
                    self.check_fatal()?;
                    if consumer.is_closed() {
                        return Err(Refusal::Closed.error());
                    }
                    return Err(ErrorObject::from(&error));
                }
                None => return Ok(None),
            }
        }
    }

    /// Returns the error after which the consumer can't continue, if there is one.
    pub(super) fn check_fatal(&self) -> Result<(), ErrorObject> {
        let client = &self.share.client;
        if let Some(error) = self.consumer.core().fatal() {
            client.note_fatal(code_of(&error), &error.to_string());
        }
        client.fatal().map_or(Ok(()), |(code, text)| Err(ErrorObject::fatal(code, text)))
    }
}

export!(
    #[on(rkshare, ptr::null_mut())]
    fn rd_kafka_share_poll(
        rkshare: Ref<Share>,
        timeout_ms: c_int,
        rkmessages: PartMut<*mut Messages>,
    ) -> *mut ErrorObject {
        // A callback may destroy the consumer.
        let held = rkshare.counted();
        let refused = |refusal| match refusal {
            Refusal::NoGroup => ErrorObject::new(code::_STATE, "Consumer group not initialized"),
            refusal => refusal.error(),
        };
        let polled = Share::enter_open(rkshare).map_err(refused).and_then(|entered| {
            let place = rkmessages.get().ok_or_else(|| {
                ErrorObject::new(code::_INVALID_ARG, "a poll needs a place for its messages")
            })?;
            *place = ptr::null_mut();
            let messages = entered.poll(deadline(timeout_ms))?;
            *place = messages.map_or(ptr::null_mut(), |messages| Box::into_raw(Box::new(messages)));
            Ok(())
        });
        drop(held);
        ErrorObject::from_result(polled)
    }
);
