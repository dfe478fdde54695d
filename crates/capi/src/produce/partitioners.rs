//! The built-in partitioners, for applications that call them from their own or set them as theirs.

use std::{
    ffi::c_void,
    hash::{BuildHasher, Hasher, RandomState},
};

use ottla_core::produce::partitioner::{consistent, fnv1a, murmur2};

use crate::{
    client::topic::{Topic, rd_kafka_topic_partition_available},
    ffi::{boundary::bytes, export, types::PARTITION_UA},
};

/// Returns a partition for a record whose key does not determine one: a random one, preferably among those that are
/// available.
fn anywhere(topic: *const Topic, partition_count: i32) -> i32 {
    let mut partition = 0;
    for _ in 0..3 {
        let random = RandomState::new().build_hasher().finish();
        partition = ((u128::from(random) * partition_count.unsigned_abs() as u128) >> 64) as i32;
        // SAFETY: the caller of a partitioner passes NULL or a topic.
        if unsafe { rd_kafka_topic_partition_available(topic, partition) } == 1 {
            break;
        }
    }
    partition
}

macro_rules! partitioner {
    ($($name:ident($topic:ident, $key:ident, $count:ident) $body:expr;)*) => {$(
        export!(
            #[local(PARTITION_UA)]
            fn $name(
            $topic: *const Topic,
            key: *const c_void,
            keylen: usize,
            $count: i32,
            _rkt_opaque: *mut c_void,
            _msg_opaque: *mut c_void,
        ) -> i32 {
                if $count <= 0 {
                    return PARTITION_UA;
                }
                // SAFETY: the header demands NULL or this number of bytes.
                let $key = unsafe { bytes(key, keylen) };
                $body
            }
        );
    )*};
}

partitioner! {
    rd_kafka_msg_partitioner_random(topic, _key, count) anywhere(topic, count);
    rd_kafka_msg_partitioner_consistent(_topic, key, count) consistent::partition(key.unwrap_or_default(), count);
    rd_kafka_msg_partitioner_consistent_random(topic, key, count) match key {
        Some(key) if !key.is_empty() => consistent::partition(key, count),
        _ => anywhere(topic, count),
    };
    rd_kafka_msg_partitioner_murmur2(_topic, key, count) murmur2::partition(key.unwrap_or_default(), count);
    rd_kafka_msg_partitioner_murmur2_random(topic, key, count) match key {
        Some(key) => murmur2::partition(key, count),
        None => anywhere(topic, count),
    };
    rd_kafka_msg_partitioner_fnv1a(_topic, key, count) fnv1a::partition(key.unwrap_or_default(), count);
    rd_kafka_msg_partitioner_fnv1a_random(topic, key, count) match key {
        Some(key) => fnv1a::partition(key, count),
        None => anywhere(topic, count),
    };
}
