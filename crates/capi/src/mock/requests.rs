//! The requests that the cluster received.

use std::ptr;

use ottla_embedded_broker::RequestRecord;

use super::cluster::MockCluster;
use crate::ffi::boundary::{Handle, Tag};
use crate::ffi::{
    argument::{Given, PartMut, Ref},
    export,
};

/// A request.
#[repr(C)]
#[derive(Debug)]
pub struct MockRequest {
    tag: Tag,
    record: RequestRecord,
    at_micros: i64,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for MockRequest {
    const KIND: u32 = 0x6f74_6d02;
}

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_start_request_tracking(mcluster: Ref<MockCluster>) {
        if let Some(cluster) = mcluster.get() {
            cluster.control(|control| control.record_requests());
        }
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_stop_request_tracking(mcluster: Ref<MockCluster>) {
        if let Some(cluster) = mcluster.get() {
            cluster.control(|control| {
                control.stop_recording();
                drop(control.take_requests());
            });
        }
    }
);

export!(
    #[on(mcluster, ())]
    fn rd_kafka_mock_clear_requests(mcluster: Ref<MockCluster>) {
        if let Some(cluster) = mcluster.get() {
            drop(cluster.control(|control| control.take_requests()));
        }
    }
);

export!(
    #[on(mcluster, ptr::null_mut())]
    fn rd_kafka_mock_get_requests(mcluster: Ref<MockCluster>, cntp: PartMut<usize>) -> *mut *mut MockRequest {
        let Some(cntp) = cntp.get() else { return ptr::null_mut() };
        *cntp = 0;
        let Some(cluster) = mcluster.get() else { return ptr::null_mut() };
        // SAFETY: the array is large enough for one element more than there are.
        unsafe {
            let records = cluster.control(|control| control.requests().to_vec());
            // One element more, so that an empty array has an address, too.
            let array =
                libc::calloc(records.len() + 1, size_of::<*mut MockRequest>()).cast::<*mut MockRequest>();
            if array.is_null() {
                return ptr::null_mut();
            }
            *cntp = records.len();
            for (at, record) in records.into_iter().enumerate() {
                let nanos = i64::try_from(record.at.as_nanos()).unwrap_or(i64::MAX);
                let at_micros = cluster.origin_nanos.saturating_add(nanos) / 1000;
                let request = MockRequest { tag: Tag::of::<MockRequest>(), record, at_micros };
                *array.add(at) = Box::into_raw(Box::new(request));
            }
            array
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_mock_request_destroy(mreq: Given<MockRequest>) {
        mreq.retire();
    }
);

export!(
    #[local(())]
    fn rd_kafka_mock_request_destroy_array(mreqs: *mut *mut MockRequest, mreq_cnt: usize) {
        if mreqs.is_null() {
            return;
        }
        // SAFETY: the header demands an array of `rd_kafka_mock_get_requests` with this number of elements; the
        // ownership of both passes to this call.
        unsafe {
            for at in 0..mreq_cnt {
                rd_kafka_mock_request_destroy(*mreqs.add(at));
            }
            libc::free(mreqs.cast());
        }
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_mock_request_id(mreq: Ref<MockRequest>) -> i32 {
        mreq.get().map_or(-1, |request| request.record.broker.0)
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_mock_request_api_key(mreq: Ref<MockRequest>) -> i16 {
        mreq.get().map_or(-1, |request| request.record.api as i16)
    }
);

export!(
    #[local(0)]
    fn rd_kafka_mock_request_timestamp(mreq: Ref<MockRequest>) -> i64 {
        mreq.get().map_or(0, |request| request.at_micros)
    }
);
