//! The metrics that the cluster requests from clients, and their interval (KIP-714). By default it requests none.

use std::{ffi::c_char, time::Duration};

use super::cluster::{MockCluster, with};
use crate::ffi::{
    argument::Ref,
    boundary::text,
    codes::{RespErr, code},
    export,
};

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_telemetry_set_requested_metrics(
        mcluster: Ref<MockCluster>,
        metrics: *mut *mut c_char,
        metrics_cnt: usize,
    ) -> RespErr {
        // SAFETY: the header demands NULL or a cluster.
        unsafe {
            with(mcluster, |cluster| {
                if metrics.is_null() && metrics_cnt > 0 || isize::try_from(metrics_cnt).is_err() {
                    return code::_INVALID_ARG;
                }
                let names = (0..metrics_cnt).map(|i| text(*metrics.add(i)).map(std::borrow::Cow::into_owned));
                let Some(names) = names.collect::<Option<Vec<String>>>() else { return code::_INVALID_ARG };
                cluster.control(|control| control.telemetry().set_requested_metrics(names));
                code::NO_ERROR
            })
        }
    }
);

export!(
    #[on(mcluster, code::_FATAL)]
    fn rd_kafka_mock_telemetry_set_push_interval(
        mcluster: Ref<MockCluster>,
        push_interval_ms: i64,
    ) -> RespErr {
        with(mcluster, |cluster| {
            // Zero is the default.
            let interval = Duration::from_millis(u64::try_from(push_interval_ms).unwrap_or(0));
            cluster.control(|control| control.telemetry().set_push_interval(interval));
            code::NO_ERROR
        })
    }
);
