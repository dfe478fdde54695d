//! Verdicts on messages, in explicit mode.

use std::ffi::c_int;

use ottla_core::share::acknowledgement::AcknowledgeType;

use super::{
    access::Refusal,
    handle::{Entered, Share},
};
use crate::{
    client::topic::Topic,
    ffi::{
        argument::{Part, Ref, Text},
        codes::{RespErr, code},
        error::code_of,
        export,
        types::rd_kafka_message_t,
    },
};

/// `RD_KAFKA_SHARE_ACKNOWLEDGE_TYPE_ACCEPT`.
const ACCEPT: c_int = 1;

fn kind_of(kind: c_int) -> Option<AcknowledgeType> {
    match kind {
        ACCEPT => Some(AcknowledgeType::Accept),
        2 => Some(AcknowledgeType::Release),
        3 => Some(AcknowledgeType::Reject),
        _ => None,
    }
}

impl Entered<'_> {
    fn acknowledge(&self, topic: &str, partition: i32, offset: i64, kind: c_int) -> RespErr {
        if partition < 0 || offset < 0 {
            return code::_INVALID_ARG;
        }
        if self.share.is_implicit {
            return code::_STATE;
        }
        let Some(kind) = kind_of(kind) else { return code::_INVALID_ARG };
        let acknowledged = self.consumer.held().acknowledge(topic, partition, offset, kind);
        acknowledged.map_or_else(|error| code_of(&error), |()| code::NO_ERROR)
    }
}

/// Returns the code of a verdict on a message that a consumer without a group can't have.
fn code_without_group(share: Ref<'_, Share>, partition: i32, offset: i64, kind: c_int) -> RespErr {
    let is_implicit = share.get().is_some_and(|share| share.is_implicit);
    let is_valid = partition >= 0 && offset >= 0 && (is_implicit || kind_of(kind).is_some());
    if is_valid { code::_STATE } else { code::_INVALID_ARG }
}

fn acknowledge_message(share: Ref<'_, Share>, message: Part<'_, rd_kafka_message_t>, kind: c_int) -> RespErr {
    let entered = match Share::enter(share) {
        Ok(entered) => entered,
        Err(Refusal::NoGroup) => {
            let message = message.get().map(|message| (message.partition, message.offset));
            return message.map_or(code::_INVALID_ARG, |(partition, offset)| {
                code_without_group(share, partition, offset, kind)
            });
        }
        Err(refusal) => return refusal.code(),
    };
    let Some(message) = message.get() else { return code::_INVALID_ARG };
    if let Err(refusal) = entered.check_open() {
        return refusal.code();
    }
    match Topic::of_message(message) {
        Some(topic) => entered.acknowledge(topic.name(), message.partition, message.offset, kind),
        None => code::_STATE,
    }
}

export!(
    #[on(rkshare, code::_FATAL)]
    fn rd_kafka_share_acknowledge(rkshare: Ref<Share>, rkmessage: Part<rd_kafka_message_t>) -> RespErr {
        acknowledge_message(rkshare, rkmessage, ACCEPT)
    }
);

export!(
    #[on(rkshare, code::_FATAL)]
    fn rd_kafka_share_acknowledge_type(
        rkshare: Ref<Share>,
        rkmessage: Part<rd_kafka_message_t>,
        kind: c_int,
    ) -> RespErr {
        acknowledge_message(rkshare, rkmessage, kind)
    }
);

export!(
    #[on(rkshare, code::_FATAL)]
    fn rd_kafka_share_acknowledge_offset(
        rkshare: Ref<Share>,
        topic: Text,
        partition: i32,
        offset: i64,
        kind: c_int,
    ) -> RespErr {
        let entered = match Share::enter_open(rkshare) {
            Ok(entered) => entered,
            Err(Refusal::NoGroup) if topic.get().is_some() => {
                return code_without_group(rkshare, partition, offset, kind);
            }
            Err(Refusal::NoGroup) => return code::_INVALID_ARG,
            Err(refusal) => return refusal.code(),
        };
        match topic.get() {
            Some(topic) => entered.acknowledge(&topic, partition, offset, kind),
            None => code::_INVALID_ARG,
        }
    }
);
