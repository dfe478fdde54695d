//! The errors in the responses to the next requests.

use std::{
    ffi::{c_char, c_int},
    time::Duration,
};

use ottla_embedded_broker::{BrokerId, ErrorCode, ScriptScope, ScriptStep};

use super::cluster::{MockCluster, with};
use crate::ffi::{
    argument::{Argument, Ref},
    boundary::text,
    codes::{RespErr, code},
    export,
};

/// Returns a step for each error, or `None` if one of them can't be sent: RD_KAFKA_RESP_ERR__TRANSPORT closes the
/// connection, and a delay is at least 0.
fn steps(errors: &[RespErr], rtts: Option<&[c_int]>) -> Option<Vec<ScriptStep>> {
    let step = |(at, error): (usize, &RespErr)| {
        let delay = rtts.and_then(|rtts| rtts.get(at)).copied().unwrap_or(0);
        let delay = Duration::from_millis(u64::try_from(delay).ok()?);
        let step = match *error {
            code::_TRANSPORT => ScriptStep::close(),
            error => ScriptStep::error(ErrorCode(i16::try_from(error.0).ok().filter(|error| *error >= -1)?)),
        };
        Some(ScriptStep { delay, ..step })
    };
    errors.iter().enumerate().map(step).collect()
}

fn push(
    cluster: &MockCluster,
    scope: ScriptScope,
    api: i16,
    errors: &[RespErr],
    rtts: Option<&[c_int]>,
) -> RespErr {
    let Some(steps) = steps(errors, rtts).filter(|_| api >= 0) else { return code::_INVALID_ARG };
    cluster.control(|control| match &scope {
        ScriptScope::Broker(broker) if !control.brokers().contains(broker) => code::_UNKNOWN_BROKER,
        ScriptScope::Partition(topic, partition) if !super::topics::ensure(control, topic, *partition) => {
            code::UNKNOWN_TOPIC_OR_PART
        }
        _ => {
            control.script(scope, api, steps);
            code::NO_ERROR
        }
    })
}

/// Adds errors for requests to a partition if there is a topic, to a broker if there are delays, else to the cluster.
/// Called by the C halves of the functions that push errors.
///
/// # Safety
///
/// A cluster or NULL; `errors` and `rtts` have `count` elements; the topic is a text or NULL.
pub(crate) unsafe extern "C" fn ottla_mock_push_errors(
    cluster: *const MockCluster,
    broker: i32,
    topic: *const c_char,
    partition: i32,
    api: i16,
    count: usize,
    errors: *const RespErr,
    rtts: *const c_int,
    kind: c_int,
) -> RespErr {
    // SAFETY: by the contract of this function.
    unsafe {
        with(Ref::from_c(cluster), |cluster| {
            let errors = std::slice::from_raw_parts(errors, count);
            let rtts = std::slice::from_raw_parts(rtts, count);
            let scope = match (kind, text(topic)) {
                (0, _) => ScriptScope::Cluster,
                (1, _) => ScriptScope::Broker(BrokerId(broker)),
                (_, Some(topic)) => ScriptScope::Partition(topic.into_owned(), partition),
                (_, None) => return code::_INVALID_ARG,
            };
            push(cluster, scope, api, errors, Some(rtts))
        })
    }
}

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_push_request_errors_array(
        mcluster: Ref<MockCluster>,
        api: i16,
        cnt: usize,
        errors: *const RespErr,
    ) {
        // SAFETY: the header demands NULL or a cluster, and an array of that size.
        unsafe {
            with(mcluster, |cluster| {
                if errors.is_null() || cnt > isize::MAX as usize / size_of::<RespErr>() {
                    return code::_INVALID_ARG;
                }
                push(cluster, ScriptScope::Cluster, api, std::slice::from_raw_parts(errors, cnt), None)
            });
        }
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_clear_request_errors(mcluster: Ref<MockCluster>, api: i16) {
        if let Some(cluster) = mcluster.get() {
            cluster.control(|control| control.clear_script(&ScriptScope::Cluster, api));
        }
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_broker_error_stack_cnt(
        mcluster: Ref<MockCluster>,
        broker_id: i32,
        api: i16,
        cntp: *mut usize,
    ) -> RespErr {
        // SAFETY: the header demands NULL or a cluster, and a writable address or NULL.
        unsafe {
            with(mcluster, |cluster| {
                if cntp.is_null() || api < 0 {
                    return code::_INVALID_ARG;
                }
                cluster.control(|control| {
                    let broker = BrokerId(broker_id);
                    if !control.brokers().contains(&broker) {
                        return code::_UNKNOWN_BROKER;
                    }
                    *cntp = control.script_len(&ScriptScope::Broker(broker), api);
                    code::NO_ERROR
                })
            })
        }
    }
);
