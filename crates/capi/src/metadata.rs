//! Brokers and topics as the cluster describes them: `rd_kafka_metadata` and what is near it.

use std::{
    alloc::{Layout, dealloc},
    ffi::{CString, c_char, c_int},
    ptr,
};

use ottla::{Admin, ClusterDescription};

use crate::{
    boundary::{c_text, guarded_for, guarded_local, handle, is_no_address, malloc_text},
    client::Client,
    codes::code,
    error::code_of,
    graves::PlainGraves,
    list::List,
    time::timeout,
    topic::Topic,
};

/// `rd_kafka_metadata_broker_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Broker {
    id: i32,
    host: *const c_char,
    port: c_int,
}

/// `rd_kafka_metadata_partition_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Partition {
    id: i32,
    err: c_int,
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
    err: c_int,
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

/// What `broker_cnt` says when the metadata was given up: applications see the structure, which has no room for a tag.
const GONE: c_int = c_int::MIN;

static DEAD: PlainGraves = PlainGraves::new(free);

unsafe fn free(memory: *mut u8) {
    // SAFETY: it comes from a box of an `Owned`, whose contents are gone.
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
        // What the parts point to is on the heap and stays where it is when the vectors around it grow.
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
                    err: partition.error.as_ref().map_or(0, code_of),
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
                err: topic.error.as_ref().map_or(0, topic_code),
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

/// In metadata a topic that does not exist has the broker's code.
fn topic_code(error: &ottla::Error) -> c_int {
    match code_of(error) {
        code::_UNKNOWN_TOPIC => code::UNKNOWN_TOPIC_OR_PART,
        code => code,
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_metadata(
    rk: *const Client,
    all_topics: c_int,
    only_rkt: *const Topic,
    metadatap: *mut *const Metadata,
    timeout_ms: c_int,
) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client, a topic and a writable place, says the caller.
        unsafe {
            let Some(client) = Client::of(rk) else { return code::_INVALID_ARG };
            if metadatap.is_null() {
                return code::_INVALID_ARG;
            }
            let admin = match client.admin() {
                Ok(admin) => admin,
                Err(code) => return code,
            };
            let used;
            let topics: Option<Vec<&str>> = match handle::<Topic>(only_rkt) {
                Some(topic) => Some(vec![topic.name()]),
                None if all_topics != 0 => None,
                None => {
                    used = client.topic_names();
                    Some(used.iter().map(String::as_str).collect())
                }
            };
            match admin.metadata(topics.as_deref(), timeout(timeout_ms)) {
                Ok(cluster) => {
                    *metadatap = Box::into_raw(Owned::new(&cluster)).cast_const().cast();
                    code::NO_ERROR
                }
                Err(error) => match code_of(&error) {
                    code::_TIMED_OUT | code::_ALL_BROKERS_DOWN => code::_TRANSPORT,
                    code => code,
                },
            }
        }
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_metadata_destroy(metadata: *const Metadata) {
    guarded_local((), || {
        // SAFETY: metadata is the first field of an `Owned` from `into_raw`, which the caller gives up; or it was given up
        // before, and says so.
        unsafe {
            if is_no_address(metadata) || (*metadata).broker_cnt == GONE {
                return;
            }
            let owned = metadata.cast_mut().cast::<Owned>();
            ptr::drop_in_place(owned);
            metadata.cast_mut().write(Metadata { broker_cnt: GONE, ..Metadata::empty() });
            DEAD.keep(owned.cast());
        }
    });
}

/// What is known of the cluster, or what it says when it is asked. Without time nobody is asked.
///
/// # Safety
///
/// NULL or a client.
unsafe fn of_cluster<T>(
    rk: *const Client,
    timeout_ms: c_int,
    known: impl Fn(&Admin) -> Option<T>,
    told: impl Fn(ClusterDescription) -> Option<T>,
) -> Option<T> {
    // SAFETY: as the caller says.
    let admin = unsafe { Client::of(rk) }?.admin().ok()?;
    match known(&admin) {
        None if timeout_ms != 0 => told(admin.describe_cluster(timeout(timeout_ms)).ok()?),
        known => known,
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_clusterid(rk: *const Client, timeout_ms: c_int) -> *mut c_char {
    guarded_for(rk, ptr::null_mut(), || {
        // SAFETY: NULL or a client, says the caller.
        let id = unsafe { of_cluster(rk, timeout_ms, Admin::cached_cluster_id, |told| told.cluster_id) };
        id.map_or(ptr::null_mut(), |id| malloc_text(id.as_bytes()))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_controllerid(rk: *const Client, timeout_ms: c_int) -> i32 {
    guarded_for(rk, -1, || {
        // SAFETY: NULL or a client, says the caller.
        let id =
            unsafe { of_cluster(rk, timeout_ms, Admin::cached_controller_id, |told| told.controller_id) };
        id.unwrap_or(-1)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn rd_kafka_memberid(_: *const Client) -> *mut c_char {
    // A client without a group is no member.
    ptr::null_mut()
}

/// Subscriptions are not there yet, so there is never one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_subscription(rk: *const Client, topics: *mut *mut List) -> c_int {
    guarded_for(rk, code::_FATAL, || {
        // SAFETY: NULL or a client and a writable place, says the caller.
        unsafe {
            if Client::of(rk).is_none_or(Client::is_producer) || topics.is_null() {
                return code::_INVALID_ARG;
            }
            *topics = List::with_capacity(0);
            code::NO_ERROR
        }
    })
}
