//! What the next requests are answered with.

use std::{
    ffi::{c_char, c_int},
    time::Duration,
};

use ottla_embedded_broker::{BrokerId, ErrorCode, ScriptScope, ScriptStep};

use super::{MockCluster, with};
use crate::{
    boundary::{guarded, text},
    codes::code,
};

/// A step for each error, or `None` if one of them can't be sent: RD_KAFKA_RESP_ERR__TRANSPORT closes the connection,
/// and a delay is at least 0.
fn steps(errors: &[c_int], rtts: Option<&[c_int]>) -> Option<Vec<ScriptStep>> {
    let step = |(at, error): (usize, &c_int)| {
        let delay = rtts.and_then(|rtts| rtts.get(at)).copied().unwrap_or(0);
        let delay = Duration::from_millis(u64::try_from(delay).ok()?);
        let step = match *error {
            code::_TRANSPORT => ScriptStep::close(),
            error => ScriptStep::error(ErrorCode(i16::try_from(error).ok().filter(|error| *error >= -1)?)),
        };
        Some(ScriptStep { delay, ..step })
    };
    errors.iter().enumerate().map(step).collect()
}

fn push(
    cluster: &MockCluster,
    scope: ScriptScope,
    api: i16,
    errors: &[c_int],
    rtts: Option<&[c_int]>,
) -> c_int {
    let Some(steps) = steps(errors, rtts).filter(|_| api >= 0) else { return code::_INVALID_ARG };
    cluster.control(|control| match &scope {
        ScriptScope::Broker(broker) if !control.brokers().contains(broker) => code::BROKER_NOT_AVAILABLE,
        ScriptScope::Partition(topic, partition) if !super::topics::ensure(control, topic, *partition) => {
            code::UNKNOWN_TOPIC_OR_PART
        }
        _ => {
            control.script(scope, api, steps);
            code::NO_ERROR
        }
    })
}

/// Called by the C halves of the functions that push errors: to a partition if there is a topic, to a broker if there are
/// delays, else to the cluster.
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
    errors: *const c_int,
    rtts: *const c_int,
    kind: c_int,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        with(cluster, |cluster| {
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

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_push_request_errors_array(
    mcluster: *const MockCluster,
    api: i16,
    cnt: usize,
    errors: *const c_int,
) {
    // SAFETY: NULL or a cluster, and an array of that size, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            if errors.is_null() || cnt > isize::MAX as usize / size_of::<c_int>() {
                return code::_INVALID_ARG;
            }
            push(cluster, ScriptScope::Cluster, api, std::slice::from_raw_parts(errors, cnt), None)
        });
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_clear_request_errors(mcluster: *const MockCluster, api: i16) {
    guarded((), || {
        // SAFETY: NULL or a cluster, says the caller.
        if let Some(cluster) = unsafe { MockCluster::of(mcluster) } {
            cluster.control(|control| control.clear_script(&ScriptScope::Cluster, api));
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_broker_error_stack_cnt(
    mcluster: *const MockCluster,
    broker_id: i32,
    api: i16,
    cntp: *mut usize,
) -> c_int {
    // SAFETY: NULL or a cluster, and a writable place or NULL, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            if cntp.is_null() || api < 0 {
                return code::_INVALID_ARG;
            }
            cluster.control(|control| {
                let broker = BrokerId(broker_id);
                if !control.brokers().contains(&broker) {
                    return code::BROKER_NOT_AVAILABLE;
                }
                *cntp = control.script_len(&ScriptScope::Broker(broker), api);
                code::NO_ERROR
            })
        })
    }
}
