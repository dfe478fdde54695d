//! Functions of every client that a share consumer has under names of its own, because its client is not seen: the queue of
//! log lines, credentials and tokens.

use std::ptr;

use super::{access::Refusal, handle::Share};
use crate::{
    client::{
        handle::Client,
        queue::{Queue, raw},
        sasl::PassedToken,
    },
    ffi::{
        argument::{Buffer, Ref, Text, Texts},
        codes::{RespErr, code},
        error::{ErrorObject, describe},
        export,
    },
};

/// Calls a function of the client.
fn with_client(
    share: Ref<'_, Share>,
    call: impl FnOnce(&Client) -> Result<(), ErrorObject>,
) -> *mut ErrorObject {
    let share = share.get().ok_or_else(|| Refusal::NoHandle.error());
    ErrorObject::from_result(share.and_then(|share| call(&share.client)))
}

export!(
    #[on(rkshare, ptr::null_mut())]
    fn rd_kafka_share_set_log_queue(rkshare: Ref<Share>, rkqu: Ref<Queue>) -> *mut ErrorObject {
        let share = rkshare.get().ok_or(code::_INVALID_ARG);
        match share.map_or_else(|code| code, |share| share.client.set_log_queue(rkqu)) {
            code::NO_ERROR => ptr::null_mut(),
            code => ErrorObject::new(code, describe(code).to_bytes()).into_raw(),
        }
    }
);

export!(
    #[on(rkshare, ptr::null())]
    fn rd_kafka_share_queue_get_sasl(rkshare: Ref<Share>) -> *const Queue {
        raw(rkshare.get().and_then(|share| share.client.sasl_queue().cloned()))
    }
);

export!(
    #[on(rkshare, ptr::null_mut())]
    fn rd_kafka_share_sasl_background_callbacks_enable(rkshare: Ref<Share>) -> *mut ErrorObject {
        with_client(rkshare, Client::serve_tokens_in_background)
    }
);

export!(
    #[on(rkshare, ptr::null_mut())]
    fn rd_kafka_share_sasl_set_credentials(
        rkshare: Ref<Share>,
        username: Text,
        password: Text,
    ) -> *mut ErrorObject {
        with_client(rkshare, |client| client.set_sasl_credentials(username, password))
    }
);

export!(
    #[on(rkshare, code::_INVALID_ARG)]
    fn rd_kafka_share_oauthbearer_set_token(
        rkshare: Ref<Share>,
        token_value: Text,
        md_lifetime_ms: i64,
        md_principal_name: Text,
        extensions: Texts,
        extension_size: usize,
        errstr: Buffer,
        errstr_size: usize,
    ) -> RespErr {
        let token = PassedToken {
            value: token_value,
            lifetime_ms: md_lifetime_ms,
            principal: md_principal_name,
            extensions,
            extension_size,
        };
        let no_handle = || Err((code::_INVALID_ARG, "Share consumer handle is NULL or destroyed".to_owned()));
        match rkshare.get().map_or_else(no_handle, |share| share.client.set_token(&token)) {
            Ok(()) => code::NO_ERROR,
            Err((code, text)) => {
                errstr.put(errstr_size, &text);
                code
            }
        }
    }
);

export!(
    #[on(rkshare, code::_INVALID_ARG)]
    fn rd_kafka_share_oauthbearer_set_token_failure(rkshare: Ref<Share>, errstr: Text<'_>) -> RespErr {
        rkshare.get().map_or(code::_INVALID_ARG, |share| share.client.set_token_failure(errstr))
    }
);
