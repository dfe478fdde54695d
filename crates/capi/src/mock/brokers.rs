//! The brokers of the cluster.

use std::{ffi::c_int, time::Duration};

use ottla_embedded_broker::{ApiKey, BrokerId, CoordinatorKey};

use super::cluster::{MockCluster, with};
use crate::ffi::{
    argument::{Ref, Text},
    codes::{RespErr, code},
    export,
};

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_broker_set_down(mcluster: Ref<MockCluster>, broker_id: i32) -> RespErr {
        with(mcluster, |cluster| {
            cluster.each_broker(broker_id, |control, broker| control.set_reachable(broker, false))
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_broker_set_up(mcluster: Ref<MockCluster>, broker_id: i32) -> RespErr {
        with(mcluster, |cluster| {
            cluster.each_broker(broker_id, |control, broker| control.set_reachable(broker, true))
        })
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_broker_set_host_port(
        mcluster: Ref<MockCluster>,
        broker_id: i32,
        host: Text,
        port: c_int,
    ) {
        let (Some(cluster), Some(host)) = (mcluster.get(), host.get()) else {
            return;
        };
        let Ok(port) = u16::try_from(port) else { return };
        cluster.control(|control| control.set_endpoint(BrokerId(broker_id), &host, port));
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_set_controller_id(mcluster: Ref<MockCluster>, controller_id: i32) {
        let Some(cluster) = mcluster.get() else { return };
        cluster.control(|control| control.set_controller_id(BrokerId(controller_id)));
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_broker_set_rtt(mcluster: Ref<MockCluster>, broker_id: i32, rtt_ms: c_int) -> RespErr {
        with(mcluster, |cluster| {
            let Ok(rtt) = u64::try_from(rtt_ms) else {
                // librdkafka reports an unknown broker before it looks at the other arguments.
                return match cluster.each_broker(broker_id, |_, _| {}) {
                    code::NO_ERROR => code::_INVALID_ARG,
                    missing => missing,
                };
            };
            let rtt = Duration::from_millis(rtt);
            cluster.each_broker(broker_id, |control, broker| control.set_latency(broker, rtt))
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_broker_set_rack(mcluster: Ref<MockCluster>, broker_id: i32, rack: Text) -> RespErr {
        with(mcluster, |cluster| {
            let rack = rack.get();
            cluster.each_broker(broker_id, |control, broker| control.set_rack(broker, rack.as_deref()))
        })
    }
);

export!(
    #[on(cluster, code::_FATAL)]
    fn rd_kafka_mock_broker_decommission(cluster: Ref<MockCluster>, broker_id: i32) -> RespErr {
        with(cluster, |cluster| {
            if cluster.control(|control| control.remove_broker(BrokerId(broker_id))) {
                code::NO_ERROR
            } else {
                code::BROKER_NOT_AVAILABLE
            }
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_broker_remove_from_metadata(mcluster: Ref<MockCluster>, broker_id: i32) -> RespErr {
        with(mcluster, |cluster| {
            if broker_id == -1 {
                return code::BROKER_NOT_AVAILABLE;
            }
            cluster.each_broker(broker_id, |control, broker| control.set_listed(broker, false))
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_broker_add(mcluster: Ref<MockCluster>, broker_id: i32) -> RespErr {
        with(mcluster, |cluster| match cluster.embedded.add_broker(BrokerId(broker_id)) {
            Ok(true) => code::NO_ERROR,
            Ok(false) => code::_INVALID_ARG,
            Err(_) => code::_CRIT_SYS_RESOURCE,
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_coordinator_set(
        mcluster: Ref<MockCluster>,
        key_type: Text,
        key: Text,
        broker_id: i32,
    ) -> RespErr {
        with(mcluster, |cluster| {
            let (Some(kind), Some(key)) = (key_type.get(), key.get()) else { return code::_INVALID_ARG };
            let key = match &*kind {
                "group" => CoordinatorKey::Group(&key),
                "transaction" => CoordinatorKey::Transaction(&key),
                _ => return code::_INVALID_ARG,
            };
            cluster.control(|control| control.set_coordinator(key, BrokerId(broker_id)));
            code::NO_ERROR
        })
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_set_apiversion(mcluster: Ref<MockCluster>, api: i16, min: i16, max: i16) -> RespErr {
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
);
