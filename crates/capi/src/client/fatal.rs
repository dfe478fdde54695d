//! The error that ended a client.

use crate::{
    client::handle::Client,
    ffi::{
        argument::{Buffer, Ref, Text},
        codes::{RespErr, code},
        export,
    },
};

export!(
    #[on(rk, code::_INVALID_ARG)]
    fn rd_kafka_fatal_error(rk: Ref<Client>, errstr: Buffer, size: usize) -> RespErr {
        match rk.get() {
            None => code::_INVALID_ARG,
            Some(client) => match client.fatal() {
                None => code::NO_ERROR,
                Some((code, reason)) => {
                    errstr.put(size, &reason);
                    code
                }
            },
        }
    }
);

export!(
    #[on(rk, code::_INVALID_ARG)]
    fn rd_kafka_test_fatal_error(rk: Ref<Client>, err: RespErr, reason: Text) -> RespErr {
        match (rk.get(), reason.get()) {
            (Some(client), reason) => {
                let reason = reason.unwrap_or_default();
                if client.set_fatal(err, &format!("test_fatal_error: {reason}")) {
                    code::NO_ERROR
                } else {
                    code::_PREV_IN_PROGRESS
                }
            }
            _ => code::_INVALID_ARG,
        }
    }
);
