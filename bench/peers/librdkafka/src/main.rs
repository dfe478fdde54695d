//! librdkafka in a tight loop, called directly as by a C program, without a wrapper.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    ptr,
    time::{Duration, Instant},
};

use peer::{Job, Pace, Parts, Received, report, report_latency, report_parts, report_steady};
use rdkafka_sys::{bindings::*, types::*};

/// RD_KAFKA_MSG_F_COPY, RD_KAFKA_PARTITION_UA, RD_KAFKA_OFFSET_BEGINNING.
const COPY: i32 = 2;
const UNASSIGNED: i32 = -1;
const BEGINNING: i64 = -2;

#[derive(Default)]
struct Delivered {
    messages: u64,
    errors: u64,
    /// For `steady`: the start, and the latencies of records that carry their send time.
    began: Option<Instant>,
    times: Vec<u64>,
    /// The number of Produce requests in the last statistics.
    requests: i64,
}

/// The interval of the statistics in `steady`, which count requests, in milliseconds.
const STATISTICS_INTERVAL_MS: u64 = 1000;

/// Adds up the requests of all brokers.
unsafe extern "C" fn on_statistics(
    _: *mut rd_kafka_t,
    json: *mut c_char,
    len: usize,
    opaque: *mut c_void,
) -> i32 {
    // SAFETY: librdkafka gives `len` bytes, and the opaque is the `Delivered` that outlives the client.
    unsafe {
        let text = String::from_utf8_lossy(std::slice::from_raw_parts(json.cast::<u8>(), len));
        let counts = text.split("\"Produce\":").skip(1);
        let number = |rest: &str| {
            rest.trim_start()
                .split(|c: char| !c.is_ascii_digit())
                .next()
                .and_then(|digits| digits.parse::<i64>().ok())
        };
        (*opaque.cast::<Delivered>()).requests = counts.filter_map(number).sum();
    }
    0
}

unsafe extern "C" fn on_delivery(
    _: *mut rd_kafka_t,
    message: *const rd_kafka_message_t,
    opaque: *mut c_void,
) {
    // SAFETY: the opaque is the `Delivered` that outlives the client; librdkafka calls back inside rd_kafka_poll.
    unsafe {
        let delivered = &mut *opaque.cast::<Delivered>();
        delivered.messages += 1;
        delivered.errors += u64::from((*message).err as i32 != 0);
        let sent = (*message)._private as u64;
        if let Some(began) = delivered.began
            && sent > 0
        {
            delivered.times.push(began.elapsed().as_nanos() as u64 - sent);
        }
    }
}

unsafe extern "C" fn on_message(message: *mut rd_kafka_message_t, opaque: *mut c_void) {
    // SAFETY: the opaque is the `Received` of the caller of rd_kafka_consume_callback_queue.
    unsafe { take(message, &mut *opaque.cast::<Received>()) }
}

/// # Safety
/// `message` is a message that librdkafka handed out and that is not destroyed yet.
unsafe fn take(message: *const rd_kafka_message_t, received: &mut Received) {
    // SAFETY: the payload lives as long as its message.
    unsafe {
        if (*message).err as i32 == 0 {
            received.add(std::slice::from_raw_parts((*message).payload.cast(), (*message).len));
        }
    }
}

fn main() {
    let job = Job::from_args();
    // SAFETY: the calls follow rdkafka.h; every pointer handed in lives until the call returns, or longer where it says so.
    unsafe {
        match job.kind.as_str() {
            "produce" => produce(&job),
            "latency" => latency(&job),
            "consume" => consume(&job),
            "steady" => steady(&job),
            other => panic!("there is no job {other}"),
        }
    }
}

unsafe fn version() -> String {
    // SAFETY: a constant string.
    unsafe { CStr::from_ptr(rd_kafka_version_str()).to_string_lossy().into_owned() }
}

unsafe fn client(
    job: &Job,
    kind: rd_kafka_type_t,
    own: &[(&str, &str)],
    delivered: *mut Delivered,
) -> *mut rd_kafka_t {
    let mut error: [c_char; 512] = [0; 512];
    // SAFETY: see main.
    unsafe {
        let conf = rd_kafka_conf_new();
        let given = job.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.iter().copied().chain(given) {
            let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
            let result =
                rd_kafka_conf_set(conf, name.as_ptr(), value.as_ptr(), error.as_mut_ptr(), error.len());
            assert!(result as i32 == 0, "{name:?}: {:?}", CStr::from_ptr(error.as_ptr()));
        }
        if !delivered.is_null() {
            rd_kafka_conf_set_opaque(conf, delivered.cast());
            rd_kafka_conf_set_dr_msg_cb(conf, Some(on_delivery));
            rd_kafka_conf_set_stats_cb(conf, Some(on_statistics));
        }
        let client = rd_kafka_new(kind, conf, error.as_mut_ptr(), error.len());
        assert!(!client.is_null(), "{:?}", CStr::from_ptr(error.as_ptr()));
        client
    }
}

unsafe fn producer(job: &Job, delivered: &mut Delivered) -> (*mut rd_kafka_t, *mut rd_kafka_topic_t) {
    // SAFETY: see main.
    unsafe {
        let id = format!("bench-{}", std::process::id());
        let mut own = vec![
            ("bootstrap.servers", job.text("bootstrap")),
            ("compression.codec", job.text("codec")),
            ("acks", job.text("acks")),
        ];
        match Parts::of(job) {
            Parts::Transactions(_) => own.push(("transactional.id", &id)),
            Parts::Flushes(_) => own.push(("enable.idempotence", "true")),
            Parts::Whole => {}
        }
        let client = client(job, rd_kafka_type_t::RD_KAFKA_PRODUCER, &own, delivered);
        let topic = CString::new(job.text("topic")).unwrap();
        (client, rd_kafka_topic_new(client, topic.as_ptr(), ptr::null_mut()))
    }
}

/// Panics if a transactional call failed.
///
/// # Safety
/// `error` comes from one of these calls.
unsafe fn must(error: *mut rd_kafka_error_t) {
    // SAFETY: an error that is not NULL has a text.
    unsafe {
        assert!(error.is_null(), "{:?}", CStr::from_ptr(rd_kafka_error_string(error)));
    }
}

/// Ends a transaction, or flushes; returns how long that took.
unsafe fn end_part(client: *mut rd_kafka_t, parts: Parts) -> Duration {
    let began = Instant::now();
    // SAFETY: see main.
    unsafe {
        match parts {
            Parts::Transactions(_) => must(rd_kafka_commit_transaction(client, 60_000)),
            _ => assert!(rd_kafka_flush(client, 60_000) as i32 == 0),
        }
    }
    began.elapsed()
}

/// `sent` comes back with the delivery report.
unsafe fn send(topic: *mut rd_kafka_topic_t, partition: i32, payload: &[u8], sent: u64) -> bool {
    // SAFETY: F_COPY: the payload is copied before the call returns.
    let result = unsafe {
        rd_kafka_produce(
            topic,
            partition,
            COPY,
            payload.as_ptr().cast_mut().cast(),
            payload.len(),
            ptr::null(),
            0,
            sent as *mut c_void,
        )
    };
    result == 0
}

unsafe fn produce(job: &Job) {
    let (messages, partitions) = (job.number("messages"), job.number("partitions"));
    let mut payloads = job.payloads();
    let mut delivered = Delivered::default();
    let round_robin = job.round_robin();
    // SAFETY: see main.
    unsafe {
        let (client, topic) = producer(job, &mut delivered);
        let (parts, mut ends) = (Parts::of(job), Vec::new());
        let is_transactional = matches!(parts, Parts::Transactions(_));
        if is_transactional {
            must(rd_kafka_init_transactions(client, 60_000));
        }
        let began = Instant::now();
        for number in 0..messages {
            if parts.begin_at(number) {
                if number > 0 {
                    ends.push(end_part(client, parts));
                }
                if is_transactional {
                    must(rd_kafka_begin_transaction(client));
                }
            }
            let payload = payloads.next_payload();
            let partition = if round_robin { (number % partitions) as i32 } else { UNASSIGNED };
            while !send(topic, partition, payload, 0) {
                rd_kafka_poll(client, 10); // the queue is full
            }
            if number % 1024 == 0 {
                rd_kafka_poll(client, 0);
            }
        }
        if parts != Parts::Whole {
            ends.push(end_part(client, parts));
        }
        while delivered.messages < messages {
            rd_kafka_poll(client, 100);
        }
        report_parts(&version(), began, delivered.messages, delivered.errors, ends);
    }
}

unsafe fn latency(job: &Job) {
    let messages = job.number("messages");
    let mut payloads = job.payloads();
    let mut delivered = Delivered::default();
    let mut times = Vec::new();
    // SAFETY: see main.
    unsafe {
        let (client, topic) = producer(job, &mut delivered);
        for number in 0..messages + messages / 10 {
            let began = Instant::now();
            assert!(send(topic, 0, payloads.next_payload(), 0));
            while delivered.messages <= number {
                rd_kafka_poll(client, 1000);
            }
            if number >= messages / 10 {
                times.push(began.elapsed());
            }
        }
        assert_eq!(delivered.errors, 0);
        report_latency(&version(), times);
    }
}

unsafe fn steady(job: &Job) {
    let (pace, partitions) = (Pace::of(job), job.number("partitions"));
    let mut payloads = job.payloads();
    let began = Instant::now();
    let mut delivered = Delivered { began: Some(began), ..Delivered::default() };
    // SAFETY: see main.
    unsafe {
        let (client, topic) = producer(job, &mut delivered);
        for number in 0..pace.messages {
            // It polls while it waits, so that reports are processed immediately.
            loop {
                let wait = pace.wait(began, number);
                rd_kafka_poll(client, i32::from(!wait.is_zero()));
                if pace.wait(began, number).is_zero() {
                    break;
                }
            }
            let sent = if number < pace.warm { 0 } else { began.elapsed().as_nanos() as u64 };
            while !send(topic, pace.partition(number, partitions), payloads.next_payload(), sent) {
                rd_kafka_poll(client, 1);
            }
        }
        while delivered.messages < pace.messages {
            rd_kafka_poll(client, 100);
        }
        // The last statistics arrive up to an interval later.
        let interval = Duration::from_millis(2 * STATISTICS_INTERVAL_MS);
        let end = Instant::now() + interval;
        while Instant::now() < end {
            rd_kafka_poll(client, 100);
        }
        let times = std::mem::take(&mut delivered.times);
        report_steady(&version(), times, Vec::new(), delivered.errors, delivered.requests, -1);
    }
}

unsafe fn consume(job: &Job) {
    let (messages, partitions) = (job.number("messages"), job.number("partitions") as i32);
    let topic = CString::new(job.text("topic")).unwrap();
    let mut received = Received::default();
    let timeout = Duration::from_secs(60);
    let own = [
        ("bootstrap.servers", job.text("bootstrap")),
        ("group.id", "bench"),
        ("enable.auto.commit", "false"),
        ("auto.offset.reset", "earliest"),
        ("isolation.level", job.optional("isolation").unwrap_or("read_committed")),
    ];
    // SAFETY: see main.
    unsafe {
        let client = client(job, rd_kafka_type_t::RD_KAFKA_CONSUMER, &own, ptr::null_mut());
        let began = Instant::now();
        let mode = job.optional("mode").unwrap_or("group");
        if mode == "group" {
            // The consumer of the group API, with manually assigned partitions, so that the figure includes no
            // coordinator; messages take the same path.
            rd_kafka_poll_set_consumer(client);
            let list = rd_kafka_topic_partition_list_new(partitions);
            for partition in 0..partitions {
                (*rd_kafka_topic_partition_list_add(list, topic.as_ptr(), partition)).offset = BEGINNING;
            }
            assert!(rd_kafka_assign(client, list) as i32 == 0);
            while received.messages < messages && began.elapsed() < timeout {
                let message = rd_kafka_consumer_poll(client, 1000);
                if !message.is_null() {
                    take(message, &mut received);
                    rd_kafka_message_destroy(message);
                }
            }
        } else {
            let queue = rd_kafka_queue_new(client);
            let topic = rd_kafka_topic_new(client, topic.as_ptr(), ptr::null_mut());
            for partition in 0..partitions {
                assert!(rd_kafka_consume_start_queue(topic, partition, BEGINNING, queue) == 0);
            }
            let mut batch = vec![ptr::null_mut::<rd_kafka_message_t>(); 1000];
            while received.messages < messages && began.elapsed() < timeout {
                if mode == "callback" {
                    rd_kafka_consume_callback_queue(
                        queue,
                        1000,
                        Some(on_message),
                        (&raw mut received).cast(),
                    );
                } else {
                    let count = rd_kafka_consume_batch_queue(queue, 1000, batch.as_mut_ptr(), batch.len());
                    for &message in &batch[..count.max(0) as usize] {
                        take(message, &mut received);
                        rd_kafka_message_destroy(message);
                    }
                }
            }
        }
        report(&version(), began, received.messages, 0, received.bytes);
    }
    // Stopping librdkafka's threads is not measured.
    std::process::exit(0);
}

/// The types have different names in the bindings and in the header.
#[allow(non_camel_case_types)]
type rd_kafka_message_t = RDKafkaMessage;
