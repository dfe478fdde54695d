//! The cluster's brokers.

use std::{
    ffi::{c_char, c_int},
    time::Duration,
};

use ottla_embedded_broker::{ApiKey, BrokerId, CoordinatorKey};

use super::{MockCluster, with};
use crate::{
    boundary::{guarded, text},
    codes::code,
};

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_broker_set_down(
    mcluster: *const MockCluster,
    broker_id: i32,
) -> c_int {
    // SAFETY: NULL or a cluster, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            cluster.each_broker(broker_id, |control, broker| control.set_reachable(broker, false))
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_broker_set_up(mcluster: *const MockCluster, broker_id: i32) -> c_int {
    // SAFETY: NULL or a cluster, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            cluster.each_broker(broker_id, |control, broker| control.set_reachable(broker, true))
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_broker_set_host_port(
    mcluster: *const MockCluster,
    broker_id: i32,
    host: *const c_char,
    port: c_int,
) {
    guarded((), || {
        // SAFETY: NULL or a cluster, and a text or NULL, says the caller.
        let (Some(cluster), Some(host)) = (unsafe { (MockCluster::of(mcluster), text(host)) }) else {
            return;
        };
        let Ok(port) = u16::try_from(port) else { return };
        cluster.control(|control| control.set_endpoint(BrokerId(broker_id), &host, port));
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_broker_set_rtt(
    mcluster: *const MockCluster,
    broker_id: i32,
    rtt_ms: c_int,
) -> c_int {
    // SAFETY: NULL or a cluster, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            let Ok(rtt) = u64::try_from(rtt_ms) else { return code::_INVALID_ARG };
            let rtt = Duration::from_millis(rtt);
            cluster.each_broker(broker_id, |control, broker| control.set_latency(broker, rtt))
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_broker_set_rack(
    mcluster: *const MockCluster,
    broker_id: i32,
    rack: *const c_char,
) -> c_int {
    // SAFETY: NULL or a cluster, and a text or NULL, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            let rack = text(rack);
            cluster.each_broker(broker_id, |control, broker| control.set_rack(broker, rack.as_deref()))
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_broker_decommission(
    cluster: *const MockCluster,
    broker_id: i32,
) -> c_int {
    // SAFETY: NULL or a cluster, says the caller.
    unsafe {
        with(cluster, |cluster| {
            if cluster.control(|control| control.remove_broker(BrokerId(broker_id))) {
                code::NO_ERROR
            } else {
                code::BROKER_NOT_AVAILABLE
            }
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_broker_remove_from_metadata(
    mcluster: *const MockCluster,
    broker_id: i32,
) -> c_int {
    // SAFETY: NULL or a cluster, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            if broker_id == -1 {
                return code::BROKER_NOT_AVAILABLE;
            }
            cluster.each_broker(broker_id, |control, broker| control.set_listed(broker, false))
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_broker_add(mcluster: *const MockCluster, broker_id: i32) -> c_int {
    // SAFETY: NULL or a cluster, says the caller.
    unsafe {
        with(mcluster, |cluster| match cluster.embedded.add_broker(BrokerId(broker_id)) {
            Ok(true) => code::NO_ERROR,
            Ok(false) => code::_INVALID_ARG,
            Err(_) => code::_CRIT_SYS_RESOURCE,
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_coordinator_set(
    mcluster: *const MockCluster,
    key_type: *const c_char,
    key: *const c_char,
    broker_id: i32,
) -> c_int {
    // SAFETY: NULL or a cluster, and texts or NULL, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            let (Some(kind), Some(key)) = (text(key_type), text(key)) else { return code::_INVALID_ARG };
            let key = match &*kind {
                "group" => CoordinatorKey::Group(&key),
                "transaction" => CoordinatorKey::Transaction(&key),
                _ => return code::_INVALID_ARG,
            };
            cluster.control(|control| control.set_coordinator(key, BrokerId(broker_id)));
            code::NO_ERROR
        })
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_set_apiversion(
    mcluster: *const MockCluster,
    api: i16,
    min: i16,
    max: i16,
) -> c_int {
    // SAFETY: NULL or a cluster, says the caller.
    unsafe {
        with(mcluster, |cluster| {
            cluster.control(|control| {
                let (Some(api), Some((_, newest))) =
                    (ApiKey::from_i16(api), control.implemented_versions(api))
                else {
                    return code::_INVALID_ARG;
                };
                let oldest = *api.versions().start();
                match (min, max) {
                    (-1, -1) => control.set_api_versions(None, api, 0, -1),
                    (min, max) if oldest <= min && min <= max && max <= newest => {
                        control.set_api_versions(None, api, min, max);
                    }
                    _ => return code::_INVALID_ARG,
                }
                code::NO_ERROR
            })
        })
    }
}
