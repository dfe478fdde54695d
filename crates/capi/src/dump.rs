//! What a client knows and does at the moment, for people and for programs: its brokers, its partitions, its queues.

use std::{fmt::Write, ptr};

use ottla::Statistics;

use crate::{boundary::guarded_for, client::Client};

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_dump(fp: *mut libc::FILE, rk: *const Client) {
    guarded_for(rk, (), || {
        // SAFETY: NULL or a client, says the caller.
        let Some(client) = (unsafe { Client::of(rk) }) else { return };
        if fp.is_null() {
            return;
        }
        let text = match client.statistics() {
            Some(statistics) => written(&statistics),
            None => format!("{}: its I/O threads can't be asked now\n", client.name().to_string_lossy()),
        };
        // SAFETY: an open stream, says the caller, and a text of that length.
        unsafe {
            libc::fwrite(text.as_ptr().cast(), 1, text.len(), fp);
            libc::fflush(fp);
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rd_kafka_brokers_learned_ids(rk: *const Client, cntp: *mut usize) -> *mut i32 {
    guarded_for(rk, ptr::null_mut(), || {
        if cntp.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: a writable place, says the caller.
        unsafe { *cntp = 0 };
        // SAFETY: NULL or a client, says the caller.
        let statistics = unsafe { Client::of(rk) }.and_then(Client::statistics);
        let brokers = statistics.iter().flat_map(|statistics| &statistics.brokers);
        let mut ids: Vec<i32> = brokers.filter_map(|broker| broker.nodeid.try_into().ok()).collect();
        ids.retain(|id| *id >= 0);
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return ptr::null_mut();
        }
        // SAFETY: the memory has room for the ids, if there is any.
        unsafe {
            let copy = libc::malloc(size_of_val(&ids[..])).cast::<i32>();
            if !copy.is_null() {
                copy.copy_from_nonoverlapping(ids.as_ptr(), ids.len());
                *cntp = ids.len();
            }
            copy
        }
    })
}

/// A line for the client, one for each broker and one for each partition.
fn written(statistics: &Statistics) -> String {
    let mut text = String::new();
    // Writing to a text can't fail.
    let _ = writeln!(
        text,
        "{}: {}, client.id {}, {} s old; {} messages of {} bytes wait for their reports, {} events wait",
        statistics.name,
        statistics.kind,
        statistics.client_id,
        statistics.age / 1_000_000,
        statistics.msg_cnt,
        statistics.msg_size,
        statistics.replyq,
    );
    for broker in &statistics.brokers {
        let _ = writeln!(
            text,
            "  broker {}: {} for {} s, {} requests to be written, {} to be answered; {} requests sent, {} answers, \
             {} connections",
            broker.name,
            broker.state,
            broker.stateage / 1_000_000,
            broker.outbuf_cnt,
            broker.waitresp_cnt,
            broker.tx,
            broker.rx,
            broker.connects,
        );
    }
    for (topic, of_topic) in &statistics.topics {
        for (partition, it) in of_topic.partitions.iter().filter(|(partition, _)| **partition >= 0) {
            let _ = write!(text, "  {topic} [{partition}]: leader {}, broker {}", it.leader, it.broker);
            let _ = if statistics.kind == "producer" {
                writeln!(
                    text,
                    "; {} messages of {} bytes wait, {} are in flight, {} were sent",
                    it.msgq_cnt + it.xmit_msgq_cnt,
                    it.msgq_bytes + it.xmit_msgq_bytes,
                    it.msgs_inflight,
                    it.txmsgs
                )
            } else {
                writeln!(
                    text,
                    "; {}, next offset {}, application at {}, log from {} to {}; {} messages of {} bytes are fetched",
                    it.fetch_state,
                    it.next_offset,
                    it.app_offset,
                    it.lo_offset,
                    it.hi_offset,
                    it.fetchq_cnt,
                    it.fetchq_size
                )
            };
        }
    }
    text
}
