//! Connections to many brokers: the CPU time until all are there, their memory while they are idle, and the memory while
//! the brokers close them again and again.

use std::{
    fs,
    time::{Duration, Instant},
};

use ottla::{Admin, NewTopic, Producer, Record};
use peer::Job;

use crate::{A_WHILE, VERSION, config};

/// The time that idle connections stay unused before their memory is read.
const IDLE: Duration = Duration::from_secs(3);

/// Creates the topic, with a replica per partition.
pub fn create(job: &Job) {
    let admin = Admin::new(&config(job, &[])).expect("a client");
    let topic = NewTopic::new(job.text("topic"), job.number("partitions") as i32, 1);
    let results = admin.create_topics(&[topic], A_WHILE).expect("a response");
    assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
}

/// Connects by a record for each partition, each of which is on another broker, and waits. Then it sends a record to each
/// partition every 20 ms for `--seconds`.
pub fn hold(job: &Job) {
    let (partitions, seconds) = (job.number("partitions") as i32, job.number("seconds"));
    let own = [("acks", "1"), ("enable.idempotence", "false"), ("linger.ms", "0")];
    let (cpu_at_start, resident_at_start) = (cpu_milliseconds(), resident_kib());
    let began = Instant::now();
    let producer = Producer::new(&config(job, &own)).expect("a producer");
    let topic = producer.topic(job.text("topic"));
    let send = || {
        let mut failed = 0;
        for partition in 0..partitions {
            let record = Record::new().value("x").partition(partition);
            failed += u64::from(topic.send_blocking(record, A_WHILE).is_err());
        }
        failed
    };
    let mut errors = send();
    producer.flush(A_WHILE).expect("all records are acknowledged");
    let (cpu, took) = (cpu_milliseconds() - cpu_at_start, began.elapsed());
    std::thread::sleep(IDLE);
    let idle = resident_kib();
    let mut samples = Vec::new();
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut next_sample = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        errors += send();
        std::thread::sleep(Duration::from_millis(20));
        if Instant::now() > next_sample {
            next_sample += Duration::from_secs(10);
            samples.push(resident_kib());
        }
    }
    producer.flush(A_WHILE).expect("all records are acknowledged");
    let statistics = producer.statistics().expect("statistics");
    let connects: i64 = statistics.brokers.iter().map(|broker| broker.connects).sum();
    println!(
        "{{\"version\":\"{VERSION}\",\"cpu_ms\":{cpu},\"seconds\":{:.3},\"start_kib\":{resident_at_start},\"idle_kib\":{idle},\"errors\":{errors},\"connects\":{connects},\"samples_kib\":{samples:?}}}",
        took.as_secs_f64()
    );
}

/// Returns the CPU time of this process, in steps of 10 ms.
fn cpu_milliseconds() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux");
    // The second field is the program's name in parentheses; user and system time are the fields 14 and 15.
    let rest = stat.rsplit(')').next().unwrap_or_default();
    rest.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10
}

/// Returns the resident memory of this process.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}
