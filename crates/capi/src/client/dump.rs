//! `rd_kafka_dump`: the brokers, partitions and queues of a client.

use std::{fmt::Write, ptr};

use ottla_core::stats::Statistics;

use crate::{
    client::handle::Client,
    ffi::{
        argument::{PartMut, Ref},
        export,
    },
};

export!(
    #[on(rk, ())]
    fn rd_kafka_dump(fp: *mut libc::FILE, rk: Ref<Client>) {
        let Some(client) = rk.get() else { return };
        if fp.is_null() {
            return;
        }
        let text = match client.statistics() {
            Some(statistics) => written(&statistics),
            None => format!("{}: its I/O threads do not respond\n", client.name().to_string_lossy()),
        };
        // SAFETY: the caller passes an open stream; the text has that length.
        unsafe {
            libc::fwrite(text.as_ptr().cast(), 1, text.len(), fp);
            libc::fflush(fp);
        }
    }
);

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_brokers_learned_ids(rk: Ref<Client>, cntp: PartMut<usize>) -> *mut i32 {
        let Some(cntp) = cntp.get() else { return ptr::null_mut() };
        *cntp = 0;
        let Some(client) = rk.get() else { return ptr::null_mut() };
        let ids: Vec<i32> = client.learned_brokers().into_iter().collect();
        // SAFETY: the memory is large enough for the ids. It is allocated without ids, too, because the caller frees
        // it.
        unsafe {
            let copy = libc::malloc(size_of_val(&ids[..]).max(1)).cast::<i32>();
            if !copy.is_null() {
                copy.copy_from_nonoverlapping(ids.as_ptr(), ids.len());
                *cntp = ids.len();
            }
            copy
        }
    }
);

/// Writes a line for the client, one for each broker and one for each partition.
fn written(statistics: &Statistics) -> String {
    let mut text = String::new();
    // Writing to a `String` can't fail.
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
            "  broker {}: {} for {} s, {} requests to be written, {} in flight; {} requests sent, {} responses, \
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
