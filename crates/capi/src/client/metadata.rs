//! `rd_kafka_metadata` and the calls around it: the brokers and topics of the cluster.

use std::{
    alloc::{Layout, dealloc},
    ffi::{CString, c_char, c_int},
    ptr,
};

use ottla::Admin;
use ottla_core::admin::describe::ClusterDescription;

use crate::{
    client::{handle::Client, topic::Topic},
    ffi::{
        argument::Ref,
        boundary::{c_text, is_no_address, malloc_text},
        codes::{RespErr, code},
        error::code_of,
        export,
        quarantine::PlainQuarantine,
    },
};

/// `rd_kafka_metadata_broker_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Broker {
    pub(crate) id: i32,
    pub(crate) host: *const c_char,
    pub(crate) port: c_int,
}

/// `rd_kafka_metadata_partition_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Partition {
    id: i32,
    err: RespErr,
    leader: i32,
    replica_cnt: c_int,
    replicas: *const i32,
    isr_cnt: c_int,
    isrs: *const i32,
}

/// `rd_kafka_metadata_topic_t`.
#[repr(C)]
#[derive(Debug)]
pub struct MetadataTopic {
    topic: *const c_char,
    partition_cnt: c_int,
    partitions: *const Partition,
    err: RespErr,
}

/// `rd_kafka_metadata_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Metadata {
    broker_cnt: c_int,
    brokers: *const Broker,
    topic_cnt: c_int,
    topics: *const MetadataTopic,
    orig_broker_id: i32,
    orig_broker_name: *const c_char,
}

/// The value of `broker_cnt` in destroyed metadata: applications see the structure, which has no room for a tag.
const GONE: c_int = c_int::MIN;

static FREED: PlainQuarantine = PlainQuarantine::new(free);

unsafe fn free(memory: *mut u8) {
    // SAFETY: the memory comes from a box of an `Owned` whose contents were dropped.
    unsafe { dealloc(memory, Layout::new::<Owned>()) };
}

impl Metadata {
    const fn empty() -> Self {
        Self {
            broker_cnt: 0,
            brokers: ptr::null(),
            topic_cnt: 0,
            topics: ptr::null(),
            orig_broker_id: -1,
            orig_broker_name: ptr::null(),
        }
    }
}

/// A [`Metadata`] with the memory that it points into. C sees the first field.
#[repr(C)]
#[derive(Debug)]
struct Owned {
    metadata: Metadata,
    brokers: Vec<Broker>,
    topics: Vec<MetadataTopic>,
    partitions: Vec<Vec<Partition>>,
    numbers: Vec<Vec<i32>>,
    texts: Vec<CString>,
}

impl Owned {
    fn new(cluster: &ClusterDescription) -> Box<Self> {
        // The parts point to heap memory that stays in place when the vectors grow.
        let mut owned = Box::new(Self {
            metadata: Metadata::empty(),
            brokers: Vec::new(),
            topics: Vec::new(),
            partitions: Vec::new(),
            numbers: Vec::new(),
            texts: Vec::new(),
        });
        for broker in &cluster.brokers {
            let host = owned.text(&broker.host);
            owned.brokers.push(Broker { id: broker.id, host, port: broker.port });
        }
        for topic in &cluster.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for partition in &topic.partitions {
                partitions.push(Partition {
                    id: partition.id,
                    err: partition.error.as_ref().map_or(code::NO_ERROR, code_of),
                    leader: partition.leader.unwrap_or(-1),
                    replica_cnt: partition.replicas.len() as c_int,
                    replicas: owned.numbers(&partition.replicas),
                    isr_cnt: partition.in_sync_replicas.len() as c_int,
                    isrs: owned.numbers(&partition.in_sync_replicas),
                });
            }
            let name = owned.text(&topic.name);
            owned.topics.push(MetadataTopic {
                topic: name,
                partition_cnt: partitions.len() as c_int,
                partitions: partitions.as_ptr(),
                err: topic.error.as_ref().map_or(code::NO_ERROR, topic_code),
            });
            owned.partitions.push(partitions);
        }
        let name =
            cluster.brokers.first().map(|broker| format!("{}:{}/{}", broker.host, broker.port, broker.id));
        let name = owned.text(&name.unwrap_or_default());
        owned.metadata = Metadata {
            broker_cnt: owned.brokers.len() as c_int,
            brokers: owned.brokers.as_ptr(),
            topic_cnt: owned.topics.len() as c_int,
            topics: owned.topics.as_ptr(),
            orig_broker_id: cluster.brokers.first().map_or(-1, |broker| broker.id),
            orig_broker_name: name,
        };
        owned
    }

    fn text(&mut self, text: &str) -> *const c_char {
        let text = c_text(text);
        let at = text.as_ptr();
        self.texts.push(text);
        at
    }

    fn numbers(&mut self, numbers: &[i32]) -> *const i32 {
        let copy = numbers.to_vec();
        let at = copy.as_ptr();
        self.numbers.push(copy);
        at
    }
}

/// Returns the code of a topic's error: for a topic that does not exist, metadata has the broker's code.
fn topic_code(error: &ottla_core::error::Error) -> RespErr {
    match code_of(error) {
        code::_UNKNOWN_TOPIC => code::UNKNOWN_TOPIC_OR_PART,
        code => code,
    }
}

export!(
    #[on(rk, code::_FATAL)]
    fn rd_kafka_metadata(
        rk: Ref<Client>,
        all_topics: c_int,
        only_rkt: Ref<Topic>,
        metadatap: *mut *const Metadata,
        timeout_ms: c_int,
    ) -> RespErr {
        // SAFETY: the header demands NULL or a client, a topic and a writable address.
        unsafe {
            let Some(client) = rk.get() else { return code::_INVALID_ARG };
            if metadatap.is_null() {
                return code::_INVALID_ARG;
            }
            let admin = match client.admin() {
                Ok(admin) => admin,
                Err(code) => return code,
            };
            let used;
            let topics: Option<Vec<&str>> = match only_rkt.get() {
                _ if all_topics != 0 => None,
                Some(topic) => Some(vec![topic.name()]),
                None => {
                    used = client.topic_names();
                    // A client without topics requests all of them.
                    (!used.is_empty()).then(|| used.iter().map(String::as_str).collect())
                }
            };
            match admin.metadata(topics.as_deref(), client.query_timeout(timeout_ms)) {
                Ok(cluster) => {
                    client.learn_brokers(cluster.brokers.iter().map(|broker| broker.id));
                    *metadatap = Box::into_raw(Owned::new(&cluster)).cast_const().cast();
                    code::NO_ERROR
                }
                Err(error) => match code_of(&error) {
                    code::_ALL_BROKERS_DOWN => code::_TRANSPORT,
                    // No broker is connected.
                    code::_TIMED_OUT if !client.has_learned_brokers() => code::_TRANSPORT,
                    code => code,
                },
            }
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_metadata_destroy(metadata: *const Metadata) {
        // SAFETY: metadata is the first field of an `Owned` from `into_raw`, whose ownership the caller passes on;
        // destroyed metadata is recognized by its `broker_cnt`.
        unsafe {
            if is_no_address(metadata) || (*metadata).broker_cnt == GONE {
                return;
            }
            let owned = metadata.cast_mut().cast::<Owned>();
            ptr::drop_in_place(owned);
            metadata.cast_mut().write(Metadata { broker_cnt: GONE, ..Metadata::empty() });
            FREED.keep(owned.cast());
        }
    }
);

/// Returns the cached metadata or requests it from the cluster. With a timeout of zero it sends no request.
fn of_cluster<T>(
    rk: Ref<'_, Client>,
    timeout_ms: c_int,
    known: impl Fn(&Admin) -> Option<T>,
    value_of: impl Fn(ClusterDescription) -> Option<T>,
) -> Option<T> {
    let client = rk.counted()?;
    let admin = client.admin().ok()?;
    match known(&admin) {
        None if timeout_ms != 0 => {
            value_of(admin.metadata(Some(&[]), client.query_timeout(timeout_ms)).ok()?)
        }
        known => known,
    }
}

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_clusterid(rk: Ref<Client>, timeout_ms: c_int) -> *mut c_char {
        let id = of_cluster(rk, timeout_ms, Admin::cached_cluster_id, |cluster| cluster.cluster_id);
        id.map_or(ptr::null_mut(), |id| malloc_text(id.as_bytes()))
    }
);

export!(
    #[on(rk, -1)]
    fn rd_kafka_controllerid(rk: Ref<Client>, timeout_ms: c_int) -> i32 {
        let id = of_cluster(rk, timeout_ms, Admin::cached_controller_id, |cluster| cluster.controller_id);
        id.unwrap_or(-1)
    }
);
