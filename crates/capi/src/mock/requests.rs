//! The requests that the cluster was sent.

use std::ptr;

use ottla_embedded_broker::RequestRecord;

use super::MockCluster;
use crate::boundary::{Handle, Tag, guarded, guarded_local, handle};

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

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_start_request_tracking(mcluster: *const MockCluster) {
    guarded((), || {
        // SAFETY: NULL or a cluster, says the caller.
        if let Some(cluster) = unsafe { MockCluster::of(mcluster) } {
            cluster.control(|control| control.record_requests());
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_stop_request_tracking(mcluster: *const MockCluster) {
    guarded((), || {
        // SAFETY: NULL or a cluster, says the caller.
        if let Some(cluster) = unsafe { MockCluster::of(mcluster) } {
            cluster.control(|control| control.stop_recording());
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_clear_requests(mcluster: *const MockCluster) {
    guarded((), || {
        // SAFETY: NULL or a cluster, says the caller.
        if let Some(cluster) = unsafe { MockCluster::of(mcluster) } {
            drop(cluster.control(|control| control.take_requests()));
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_get_requests(
    mcluster: *const MockCluster,
    cntp: *mut usize,
) -> *mut *mut MockRequest {
    guarded(ptr::null_mut(), || {
        // SAFETY: NULL or a cluster, and a writable place or NULL, says the caller.
        unsafe {
            if !cntp.is_null() {
                *cntp = 0;
            }
            let Some(cluster) = MockCluster::of(mcluster) else { return ptr::null_mut() };
            if cntp.is_null() {
                return ptr::null_mut();
            }
            let records = cluster.control(|control| control.requests().to_vec());
            // One more, so that an array without elements is one, too.
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
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_request_destroy(mreq: *mut MockRequest) {
    guarded_local((), || {
        // SAFETY: NULL or a request, says the caller, who gives it up.
        unsafe { crate::graves::bury(mreq) };
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_request_destroy_array(mreqs: *mut *mut MockRequest, mreq_cnt: usize) {
    if mreqs.is_null() {
        return;
    }
    // SAFETY: an array of `rd_kafka_mock_get_requests` with so many elements, says the caller, who gives both up.
    unsafe {
        for at in 0..mreq_cnt {
            rd_kafka_mock_request_destroy(*mreqs.add(at));
        }
        libc::free(mreqs.cast());
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_request_id(mreq: *const MockRequest) -> i32 {
    // SAFETY: NULL or a request, says the caller.
    guarded_local(-1, || unsafe { handle(mreq) }.map_or(-1, |request| request.record.broker.0))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_request_api_key(mreq: *const MockRequest) -> i16 {
    // SAFETY: NULL or a request, says the caller.
    guarded_local(-1, || unsafe { handle(mreq) }.map_or(-1, |request| request.record.api as i16))
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_mock_request_timestamp(mreq: *const MockRequest) -> i64 {
    // SAFETY: NULL or a request, says the caller.
    guarded_local(0, || unsafe { handle(mreq) }.map_or(0, |request| request.at_micros))
}
