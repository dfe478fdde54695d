//! Outcomes of acknowledgements: the acknowledgement commit callback, and the lists of offsets that it gets.

use std::{
    ffi::c_void,
    ops::RangeInclusive,
    ptr,
    sync::{Arc, Weak},
};

use ottla::ShareConsumer;
use ottla_core::{error::Error, share::shared::AcknowledgeOutcome};

use super::{access::unless_no_group, handle::Share};
use crate::{
    client::{
        op::{Call, Op},
        queue::Queue,
    },
    ffi::{
        argument::{Given, Part, Ref},
        boundary::{Handle, Opaque, Tag},
        codes::{RespErr, code},
        error::{ErrorObject, code_of},
        export, getters,
        list::Listed,
        lock::assert_none_held,
        types::rd_kafka_topic_partition_t,
    },
};

type AcknowledgementCb = unsafe extern "C" fn(*const Share, *mut PartitionOffsetsList, RespErr, *mut c_void);

/// The acknowledgement commit callback.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callback {
    function: AcknowledgementCb,
    opaque: Opaque,
}

/// `rd_kafka_share_partition_offsets_list_t`: it lives as long as the call of the callback, to which it belongs.
#[repr(C)]
#[derive(Debug)]
pub struct PartitionOffsetsList {
    tag: Tag,
    partitions: Vec<PartitionOffsets>,
}

/// `rd_kafka_share_partition_offsets_t`.
#[derive(Debug)]
pub struct PartitionOffsets {
    partition: Listed,
    offsets: Vec<i64>,
}

/// The tag of lists that the library owns: the application can't destroy them.
const LENT: u32 = 0x6f74_7303;

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for PartitionOffsetsList {
    const KIND: u32 = 0x6f74_7302;

    fn is_live(kind: u32) -> bool {
        kind == Self::KIND || kind == LENT
    }
}

impl PartitionOffsetsList {
    /// Returns the list of one partition, for the duration of a call.
    fn lent(outcome: &AcknowledgeOutcome) -> Self {
        let mut partition = Listed::default();
        let code = outcome_code(&outcome.result);
        partition.add(&outcome.partition.topic, outcome.partition.partition, 0, code);
        let offsets = outcome.offsets.iter().flat_map(|(first, last)| RangeInclusive::new(*first, *last));
        let tag = Tag::of::<Self>();
        tag.change(Self::KIND, LENT);
        Self { tag, partitions: vec![PartitionOffsets { partition, offsets: offsets.collect() }] }
    }
}

impl PartitionOffsets {
    fn partition(&self) -> *const rd_kafka_topic_partition_t {
        let element = self.partition.get().and_then(|list| list.elements().first());
        element.map_or(ptr::null(), ptr::from_ref)
    }
}

/// Returns the code of an outcome. Errors of the client itself are those that brokers would report.
pub(super) fn outcome_code(result: &Result<(), Error>) -> RespErr {
    let Err(error) = result else { return code::NO_ERROR };
    match code_of(error) {
        code::_TIMED_OUT => code::REQUEST_TIMED_OUT,
        code::_DESTROY => code::_TRANSPORT,
        code::_BAD_MSG => code::INVALID_MSG,
        code::_AUTHENTICATION => code::SASL_AUTHENTICATION_FAILED,
        code => code,
    }
}

impl Share {
    /// Calls the callback with the outcomes so far. Without one they are lost.
    pub(super) fn serve_outcomes(&self, consumer: &ShareConsumer) {
        for outcome in consumer.core().take_outcomes() {
            self.serve_outcome(&outcome);
        }
    }

    fn serve_outcome(&self, outcome: &AcknowledgeOutcome) {
        let Some(callback) = *self.callback.lock() else { return };
        let mut list = PartitionOffsetsList::lent(outcome);
        let code = outcome_code(&outcome.result);
        assert_none_held("the acknowledgement commit callback");
        self.access.in_callback(|| {
            // SAFETY: the application's function, with a list that lives until it returns.
            unsafe { (callback.function)(self, &raw mut list, code, callback.opaque.0) };
        });
    }

    /// Moves the outcomes so far to a queue, whose reader calls the callback.
    pub(super) fn queue_outcomes(share: &Weak<Self>, consumer: &ShareConsumer, queue: &Arc<Queue>) {
        for outcome in consumer.core().take_outcomes() {
            let share = Weak::clone(share);
            let call = move || {
                if let Some(share) = share.upgrade() {
                    share.serve_outcome(&outcome);
                }
            };
            queue.push(Op::Call(Call(Box::new(call))));
        }
    }
}

export!(
    #[on(rkshare, ptr::null_mut())]
    fn rd_kafka_share_set_acknowledgement_commit_cb(
        rkshare: Ref<Share>,
        share_acknowledgement_commit_cb: Option<AcknowledgementCb>,
        opaque: *mut c_void,
    ) -> *mut ErrorObject {
        let set = unless_no_group(Share::enter_open(rkshare).map(|entered| {
            let opaque = Opaque(opaque);
            let callback = share_acknowledgement_commit_cb.map(|function| Callback { function, opaque });
            *entered.share.callback.lock() = callback;
        }));
        ErrorObject::from_result(set.map_err(|refusal| refusal.error()))
    }
);

getters! {
    fn rd_kafka_share_partition_offsets_list_count(list: Ref<PartitionOffsetsList>) -> usize {
        0; list.partitions.len()
    }
    fn rd_kafka_share_partition_offsets_partition(
        partition_offsets: Part<PartitionOffsets>
    ) -> *const rd_kafka_topic_partition_t {
        ptr::null(); partition_offsets.partition()
    }
    fn rd_kafka_share_partition_offsets_offsets(partition_offsets: Part<PartitionOffsets>) -> *const i64 {
        ptr::null(); partition_offsets.offsets.as_ptr()
    }
    fn rd_kafka_share_partition_offsets_offsets_cnt(partition_offsets: Part<PartitionOffsets>) -> usize {
        0; partition_offsets.offsets.len()
    }
}

export!(
    #[local(ptr::null())]
    fn rd_kafka_share_partition_offsets_list_get(
        list: Ref<PartitionOffsetsList>,
        index: usize,
    ) -> *const PartitionOffsets {
        let partition = list.get().and_then(|list| list.partitions.get(index));
        partition.map_or(ptr::null(), ptr::from_ref)
    }
);

export!(
    #[local(())]
    fn rd_kafka_share_partition_offsets_list_destroy(list: Given<PartitionOffsetsList>) {
        list.retire();
    }
);
