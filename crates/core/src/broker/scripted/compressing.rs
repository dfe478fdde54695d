//! Batches that workers compress: the tests play the workers.

use std::{collections::VecDeque, sync::Arc};

use ottla_protocol::{compress::Compression, error_code::ErrorCode};

use super::{Script, TOPIC, at, millis};
use crate::{
    contract::purge::Purge,
    error::ErrorKind,
    message::ToBroker,
    produce::{
        collector::Linger,
        compression::{CompressionJob, Workers},
        message::ProduceMessage,
        record::Record,
        report::PersistenceStatus,
        settings::ProducerSettings,
        topic_settings::TopicSettings,
    },
    sync::Mutex,
};

/// The jobs that no worker has begun.
#[derive(Debug, Default)]
struct Jobs(Mutex<VecDeque<CompressionJob>>);

impl Workers for Jobs {
    fn submit(&self, job: CompressionJob) {
        self.0.lock().push_back(job);
    }
}

impl Jobs {
    fn len(&self) -> usize {
        self.0.lock().len()
    }

    fn next(&self) -> CompressionJob {
        self.0.lock().pop_front().expect("a job")
    }
}

fn settings() -> ProducerSettings {
    ProducerSettings {
        linger: Linger::Broker(millis(5)),
        topic: TopicSettings { compression: Compression::Lz4, ..TopicSettings::default() },
        retry_backoff: millis(100),
        retry_backoff_max: millis(100),
        ..ProducerSettings::default()
    }
}

fn script(partitions: i32, settings: ProducerSettings) -> (Script, Arc<Jobs>) {
    let script = Script::new(partitions, settings);
    let jobs = Arc::new(Jobs::default());
    script.shared.set_workers(Arc::clone(&jobs) as Arc<dyn Workers>);
    (script, jobs)
}

/// A value whose compression is worth a worker.
fn large(letter: &str) -> String {
    letter.repeat(100_000)
}

impl Script {
    fn send_large(&mut self, partition: i32, letter: &str) {
        self.send(partition, &large(letter));
        self.run_for(millis(10));
    }

    fn run(&mut self, job: CompressionJob) {
        job.run();
        self.settle();
    }

    /// Returns the first letters of the values of the only request.
    fn letters(&mut self) -> String {
        self.request().values().iter().filter_map(|value| value.chars().next()).collect()
    }
}

#[test]
fn batch_at_a_worker_leaves_when_it_is_compressed_and_others_before() {
    let (mut script, jobs) = script(2, settings());
    script.send_large(0, "a");
    assert_eq!(jobs.len(), 1);
    script.assert_silent();
    script.send(1, "small");
    script.run_for(millis(10));
    let small = script.request();
    assert_eq!(small.partitions(), [1], "it does not wait for the codec");
    script.accept(&small);
    script.send_large(0, "b");
    assert_eq!(jobs.len(), 1, "a partition has one batch at the workers");
    script.run(jobs.next());
    let request = script.request();
    assert_eq!((request.values()[0], &request.topics[0].1), (&*large("a"), &Compression::Lz4));
    assert_eq!(request.numbers, [(0, 0)]);
    script.accept(&request);
    script.run_for(millis(10));
    script.run(jobs.next());
    let request = script.request();
    assert_eq!((request.values()[0], &request.numbers), (&*large("b"), &vec![(0, 1)]));
}

#[test]
fn batches_of_a_round_leave_in_one_request() {
    let (mut script, jobs) = script(4, settings());
    for (partition, letter) in [(0, "a"), (1, "b"), (2, "c")] {
        script.send(partition, &large(letter));
    }
    script.run_for(millis(10));
    assert_eq!(jobs.len(), 3);
    script.send_large(3, "d");
    assert_eq!(jobs.len(), 3, "it is in the next round");
    script.run(jobs.next());
    script.run(jobs.next());
    script.assert_silent();
    script.run(jobs.next());
    assert_eq!(script.letters(), "abc");
    assert_eq!(jobs.len(), 1);
    script.run(jobs.next());
    assert_eq!(script.letters(), "d");
}

#[test]
fn batch_at_a_worker_moves_with_its_partition() {
    for ends_before_adoption in [true, false] {
        let (mut script, jobs) = script(2, settings());
        script.send(0, &large("a"));
        script.send(1, &large("b"));
        script.run_for(millis(10));
        script.release(0);
        let job = jobs.next();
        if ends_before_adoption {
            script.run(job);
            script.adopt_all();
        } else {
            script.adopt_all();
            script.run(job);
        }
        if ends_before_adoption {
            assert_eq!(script.letters(), "a", "it left the round of the other one");
        } else {
            script.assert_silent();
        }
        script.run(jobs.next());
        assert_eq!(script.letters(), if ends_before_adoption { "b" } else { "ab" });
    }
}

#[test]
fn released_partition_does_not_hold_up_its_round() {
    let (mut script, jobs) = script(2, settings());
    script.send(0, &large("a"));
    script.send(1, &large("b"));
    script.run_for(millis(10));
    let (first, second) = (jobs.next(), jobs.next());
    script.run(second);
    script.assert_silent();
    script.release(0);
    assert_eq!(script.letters(), "b");
    script.run(first);
    script.assert_silent();
    assert_eq!(script.parked.len(), 1);
}

#[test]
fn purge_reports_a_batch_at_a_worker_with_its_records() {
    for runs_before in [true, false] {
        let (mut script, jobs) = script(1, settings());
        let (value, topic) = (large("a"), script.shared.topic(TOPIC).0);
        let record = Record::new().value(&*value).partition(0).kept_for_its_report(true);
        script.shared.send(&topic, script.now, 0, &record, None).expect("there is room");
        script.settle();
        script.run_for(millis(10));
        let job = jobs.next();
        let job = if runs_before {
            // The broker actor has not handled the notification yet.
            job.run();
            None
        } else {
            Some(job)
        };
        script.messages(ToBroker::Produce(ProduceMessage::Purge(Purge::ALL)));
        let errors: Vec<ErrorKind> = script.errors().iter().map(|error| error.kind()).collect();
        assert_eq!(errors, [ErrorKind::PurgedFromQueue]);
        assert_eq!(script.reports.1.lock().drain(..).collect::<Vec<usize>>(), [1]);
        job.into_iter().for_each(|job| script.run(job));
        script.assert_silent();
        script.send_large(0, "b");
        script.run(jobs.next());
        assert_eq!(script.letters(), "b");
    }
}

#[test]
fn batch_whose_job_is_dropped_is_compressed_by_the_actor() {
    let (mut script, jobs) = script(1, settings());
    script.send_large(0, "a");
    drop(jobs.next());
    script.settle();
    let request = script.request();
    assert_eq!((request.values()[0], &request.topics[0].1), (&*large("a"), &Compression::Lz4));
}

#[test]
fn batch_that_is_sent_again_leaves_before_the_one_at_a_worker() {
    let (mut script, jobs) = script(1, settings());
    script.send_large(0, "a");
    script.run(jobs.next());
    let request = script.request();
    script.accept(&request);
    script.send(0, "small");
    script.run_for(millis(10));
    let refused = script.request();
    script.send_large(0, "b");
    script.respond_to_produce(&refused, 0, |_| ErrorCode::NOT_ENOUGH_REPLICAS);
    script.run(jobs.next());
    script.assert_silent();
    script.run_for(millis(200));
    let requests = std::mem::take(&mut script.requests);
    let sent: Vec<_> =
        requests.iter().map(|request| (&request.values()[0][..1], request.numbers[0])).collect();
    assert_eq!(sent, [("s", (0, 1)), ("b", (0, 2))]);
}

#[test]
fn batch_that_no_worker_begins_times_out() {
    let topic = TopicSettings { message_timeout: Some(millis(1000)), ..settings().topic };
    let (mut script, jobs) = script(1, ProducerSettings { topic, ..settings() });
    script.send_large(0, "a");
    script.send(0, "behind");
    script.run_until(at(3000));
    assert_eq!(script.statuses(), [PersistenceStatus::NotPersisted; 2]);
    let kinds: Vec<ErrorKind> = script.errors().iter().map(|error| error.kind()).collect();
    assert_eq!(kinds, [ErrorKind::MessageTimedOutInQueue; 2]);
    assert_eq!(script.shared.queued_messages(), 0);
    script.run(jobs.next());
    script.assert_silent();
    script.send_large(0, "b");
    script.run(jobs.next());
    assert_eq!(script.letters(), "b");
}

#[test]
fn batch_is_compressed_without_workers_too() {
    let mut script = Script::new(1, settings());
    script.send_large(0, "a");
    assert_eq!(script.request().topics[0].1, Compression::Lz4);
}

#[test]
fn many_small_batches_are_worth_workers_together() {
    let (mut script, jobs) = script(12, settings());
    for partition in 0..12 {
        script.send(partition, &"x".repeat(16 << 10));
    }
    script.send(0, "tiny");
    script.run_for(millis(10));
    let here = script.request();
    assert_eq!(here.partitions(), [0, 1, 2], "with the next one it would be 64 KiB");
    assert_eq!(jobs.len(), 9);
    (0..9).for_each(|_| script.run(jobs.next()));
    assert_eq!(script.request().partitions(), (3..12).collect::<Vec<_>>());
}
