//! Application threads send, flush and close while the broker actor takes batches and reports them.

use std::{sync::Arc, task::Poll};

use loom::thread::spawn as start;

use super::{Sleep, model};
use crate::{
    error::{Error, ErrorKind},
    machine::Instant,
    produce::{
        accumulator::{Accumulator, OpenBatch},
        budget::Budget,
        compression::Compressing,
        partitioner::Partitioner,
        producer_id::{ProducerIdentity, SharedIdentity},
        ready::ReadyList,
        record::{Record, SendError},
        report::{DeliveryBatch, DeliverySink, PersistenceStatus},
        settings::ProducerSettings,
        shared::ProducerShared,
        topic::ProducerTopic,
        transaction::state::TransactionState,
    },
    rng::Rng,
    sync::atomic::{AtomicUsize, Ordering},
    waiters::Waiter,
};

/// Counts delivery reports.
#[derive(Default)]
struct Reports(AtomicUsize);

impl DeliverySink for Reports {
    fn deliver(&self, batch: DeliveryBatch) {
        self.0.fetch_add(batch.len(), Ordering::SeqCst);
    }
}

/// Creates a producer with room for this number of messages.
struct Producer {
    shared: ProducerShared,
    reports: Arc<Reports>,
    topic: Arc<ProducerTopic>,
}

fn producer(room: u64) -> Arc<Producer> {
    producer_with(ProducerSettings { max_queued_messages: room, ..ProducerSettings::default() })
}

fn producer_with(settings: ProducerSettings) -> Arc<Producer> {
    let reports = Arc::<Reports>::default();
    let sink = Arc::clone(&reports) as Arc<dyn DeliverySink>;
    let shared =
        ProducerShared::new(settings.with_partitioner(Partitioner::Consistent), sink, Rng::from_seed(1));
    let (topic, _) = shared.topic("t");
    Arc::new(Producer { shared, reports, topic })
}

impl Producer {
    /// Publishes one partition for the topic.
    fn known(self: Arc<Self>) -> Arc<Self> {
        self.topic.set_partitions(1, |_| (), |_| ());
        self
    }

    fn accumulator(&self) -> &Arc<Accumulator> {
        self.topic.accumulator(0).unwrap()
    }

    fn send(&self, value: &str) -> Result<(), SendError> {
        self.shared.send(&self.topic, Instant::ZERO, 0, &Record::new().value(value).partition(0), None)
    }

    fn send_blocking(&self, sleep: &Arc<Sleep>) -> Result<(), SendError> {
        let record = Record::new().value("v").partition(0);
        let mut waiter = Waiter::default();
        sleep.wait(|context| {
            let register = |budget: &Arc<Budget>| budget.register(&mut waiter, context.waker());
            self.shared.poll_send(&self.topic, Instant::ZERO, 0, &record, None, register)
        })
    }

    fn report(&self, batch: OpenBatch) {
        let error = Error::new(ErrorKind::Closed, "");
        self.shared.report_unsent(self.topic.name(), 0, batch.into(), error);
    }

    /// Behaves like a broker actor: checks the notifications, takes records and sleeps until `records` records are
    /// reported.
    fn own(&self, ready: &ReadyList, sleep: &Sleep, records: usize) {
        let mut notifications = Vec::new();
        let mut taken = 0;
        loop {
            ready.drain(&mut notifications);
            while notifications.pop().is_some() {
                while let (Some(batch), _) = self.accumulator().take(true) {
                    taken += batch.builder.record_count() as usize;
                    self.report(batch);
                }
            }
            if taken >= records {
                return;
            }
            if ready.settle(0, false) {
                sleep.sleep();
            }
        }
    }

    fn assert_over(&self, reports: usize) {
        assert_eq!(self.reports.0.load(Ordering::SeqCst), reports);
        assert_eq!((self.shared.budget.messages(), self.shared.budget.bytes()), (0, 0));
    }
}

fn ready_list(sleep: &Arc<Sleep>, flushing: &Arc<AtomicUsize>) -> Arc<ReadyList> {
    Arc::new(ReadyList::new(sleep.handle(), Arc::clone(flushing), Arc::default(), None, None))
}

/// Detects a `poll_send` that does not try again after registering, and a `release` that checks for waiters before it
/// returns room.
#[test]
fn a_blocked_sender_is_woken_by_the_report_that_makes_room() {
    model(|| {
        let producer = producer(1).known();
        producer.send("first").unwrap();
        let sender = {
            let producer = Arc::clone(&producer);
            start(move || producer.send_blocking(&Sleep::new()).unwrap())
        };
        producer.report(producer.accumulator().take(true).0.unwrap());
        sender.join().unwrap();
        producer.report(producer.accumulator().take(true).0.unwrap());
        producer.assert_over(2);
    });
}

/// Caught: a `try_charge` that charged first and undid the charge if it was too much. The second sender saw no room
/// because of the first one's attempt, and no wake-up followed when that charge was undone.
#[test]
fn a_refused_attempt_hides_no_room_from_a_blocked_sender() {
    model(|| {
        let budget = Arc::new(Budget::new(10, 100));
        assert!(budget.try_charge(50));
        let blocked = {
            let budget = Arc::clone(&budget);
            start(move || {
                let mut waiter = Waiter::default();
                Sleep::new().wait(|context| {
                    if budget.try_charge(80) {
                        return Poll::Ready(());
                    }
                    budget.register(&mut waiter, context.waker());
                    if budget.try_charge(80) { Poll::Ready(()) } else { Poll::Pending }
                });
                budget.release(1, 80);
            })
        };
        let impatient = {
            let budget = Arc::clone(&budget);
            start(move || {
                if budget.try_charge(80) {
                    budget.release(1, 80);
                }
            })
        };
        budget.release(1, 50);
        blocked.join().unwrap();
        impatient.join().unwrap();
        assert_eq!((budget.messages(), budget.bytes()), (0, 0));
    });
}

/// Caught: the same `try_charge`. A flush counted the temporary charge and slept, and no wake-up followed.
#[test]
fn a_flush_ends_with_the_last_report_whatever_is_refused_meanwhile() {
    model(|| {
        let producer = producer(1).known();
        producer.send("only").unwrap();
        let flush = {
            let producer = Arc::clone(&producer);
            start(move || {
                let mut waiter = Waiter::default();
                Sleep::new().wait(|context| producer.shared.poll_flushed(&mut waiter, context))
            })
        };
        let sender = {
            let producer = Arc::clone(&producer);
            start(move || producer.send("perhaps").is_ok())
        };
        producer.report(producer.accumulator().take(true).0.unwrap());
        let sent = sender.join().unwrap();
        if sent {
            producer.report(producer.accumulator().take(true).0.unwrap());
        }
        flush.join().unwrap();
        producer.assert_over(1 + usize::from(sent));
    });
}

/// Detects a `try_charge` that checks and charges in two steps, and room that is released twice.
#[test]
fn no_more_is_in_the_queue_than_there_is_room_for() {
    model(|| {
        let budget = Arc::new(Budget::new(1, 100));
        let inside = Arc::new(AtomicUsize::new(0));
        let send = |budget: Arc<Budget>, inside: Arc<AtomicUsize>| {
            for _ in 0..2 {
                if budget.try_charge(10) {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "there is room for one");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    budget.release(1, 10);
                }
            }
        };
        let other = {
            let (budget, inside) = (Arc::clone(&budget), Arc::clone(&inside));
            start(move || send(budget, inside))
        };
        send(Arc::clone(&budget), inside);
        other.join().unwrap();
        assert_eq!((budget.messages(), budget.bytes()), (0, 0));
    });
}

/// Detects a `settle` that does not check the list before the actor sleeps, a `take` that leaves the partition marked
/// as announced, and a `push` that assumes the actor is awake after `settle`.
#[test]
fn every_record_that_is_appended_is_taken() {
    model(|| {
        let producer = producer(10).known();
        let sleep = Sleep::new();
        let ready = ready_list(&sleep, &producer.shared.flushing);
        assert!(producer.accumulator().attach(&ready, 0).is_none());
        let senders = [1, 2].map(|records| {
            let producer = Arc::clone(&producer);
            start(move || (0..records).for_each(|_| producer.send("v").unwrap()))
        });
        producer.own(&ready, &sleep, 3);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        producer.assert_over(3);
    });
}

/// Detects an `attach` that does not announce records appended while no leader was known, and one that leaves the
/// partition marked as announced to the previous broker actor.
#[test]
fn a_leader_change_loses_no_record() {
    model(|| {
        let producer = producer(10).known();
        let (old, new) = (Sleep::new(), Sleep::new());
        let [old_ready, new_ready] = [&old, &new].map(|it| ready_list(it, &producer.shared.flushing));
        assert!(producer.accumulator().attach(&old_ready, 0).is_none());
        let sender = {
            let producer = Arc::clone(&producer);
            start(move || (0..2).for_each(|_| producer.send("v").unwrap()))
        };
        producer.accumulator().detach();
        if let Some(waiting) = producer.accumulator().attach(&new_ready, 0) {
            let _ = new_ready.push(waiting);
        }
        producer.own(&new_ready, &new, 2);
        sender.join().unwrap();
        producer.assert_over(2);
    });
}

/// Detects a `take_all` that does not seal, so that a record never gets its report, and a rejected send that keeps its
/// room.
#[test]
fn a_send_to_a_sealed_partition_is_refused_or_reported() {
    model(|| {
        let producer = producer(10).known();
        let sender = {
            let producer = Arc::clone(&producer);
            start(move || producer.send("v"))
        };
        let mut left = Vec::new();
        producer.accumulator().take_all(true, &mut left);
        left.into_iter().for_each(|batch| producer.report(batch));
        let sent = sender.join().unwrap();
        assert!(matches!(sent, Ok(()) | Err(SendError::Closed)), "{sent:?}");
        producer.assert_over(usize::from(sent.is_ok()));
    });
}

/// Detects a send that does not check under the lock whether a transaction is open.
#[test]
fn record_sent_while_a_transaction_ends_is_in_it_or_refused() {
    model(|| {
        let id = Some("x".into());
        let settings = ProducerSettings { transactional_id: id, ..ProducerSettings::default() };
        let producer = producer_with(settings).known();
        producer.shared.begin_transaction();
        let sender = {
            let producer = Arc::clone(&producer);
            start(move || producer.send("v"))
        };
        producer.shared.end_transaction();
        let (in_transaction, _) = producer.accumulator().queued();
        let sent = sender.join().unwrap();
        assert!(matches!(sent, Ok(()) | Err(SendError::State(_))), "{sent:?}");
        assert_eq!(usize::from(sent.is_ok()), in_transaction);
        while let (Some(batch), _) = producer.accumulator().take(true) {
            producer.report(batch);
        }
        producer.assert_over(in_transaction);
    });
}

/// Detects a last report that reads the state of the transaction without an exchange: neither the thread that reports nor the
/// cluster actor would notice that the commit can go on.
#[test]
fn commit_goes_on_after_the_last_report() {
    model(|| {
        let id = Some("x".into());
        let settings = ProducerSettings { transactional_id: id, ..ProducerSettings::default() };
        let producer = producer_with(settings).known();
        let sleep = Sleep::new();
        let transactions = producer.shared.transactions.clone().unwrap();
        transactions.set_wake(&sleep.handle());
        producer.shared.begin_transaction();
        producer.send("v").unwrap();
        let batch = producer.accumulator().take(true).0.unwrap();
        let reporter = {
            let producer = Arc::clone(&producer);
            start(move || producer.report(batch))
        };
        transactions.set_state(TransactionState::BeginCommit);
        while producer.shared.queued_messages() > 0 {
            sleep.sleep();
        }
        reporter.join().unwrap();
        producer.assert_over(1);
    });
}

/// Detects a topic that returns the waiting records with its error and still accepts later ones, which then never get a
/// report.
#[test]
fn a_send_to_an_unknown_topic_that_fails_is_refused_or_reported() {
    model(|| {
        let producer = producer(10);
        let sender = {
            let producer = Arc::clone(&producer);
            start(move || producer.send("v"))
        };
        producer.shared.fail_all_waiting(&Error::new(ErrorKind::Closed, ""));
        let sent = sender.join().unwrap();
        assert!(matches!(sent, Ok(()) | Err(SendError::Closed)), "{sent:?}");
        producer.assert_over(usize::from(sent.is_ok()));
    });
}

/// Detects a `topic` and a `send` that do not check whether the producer is closed, for a topic that is created after
/// closing visited all topics.
#[test]
fn a_topic_that_is_new_while_the_producer_closes_keeps_no_record() {
    model(|| {
        let producer = producer(10);
        let sender = {
            let producer = Arc::clone(&producer);
            start(move || {
                let (topic, _) = producer.shared.topic("new");
                let record = Record::new().value("v");
                producer.shared.send(&topic, Instant::ZERO, 0, &record, None)
            })
        };
        producer.shared.close(None);
        producer.shared.fail_all_waiting(&Error::new(ErrorKind::Closed, ""));
        let sent = sender.join().unwrap();
        assert!(matches!(sent, Ok(()) | Err(SendError::Closed)), "{sent:?}");
        producer.assert_over(usize::from(sent.is_ok()));
    });
}

/// Detects a `set_partitions` that publishes the number of partitions before it appends the waiting records, and a
/// `wait` that does not check the number again under the lock.
#[test]
fn records_that_waited_for_the_topic_come_before_those_that_did_not() {
    model(|| {
        let producer = producer(10);
        // Sent here and not in the sender thread: otherwise three preemptions are needed to get between two steps of
        // the actor.
        producer.send("1").unwrap();
        let sender = {
            let producer = Arc::clone(&producer);
            start(move || producer.send("22").unwrap())
        };
        let (shared, topic) = (&producer.shared, &producer.topic);
        topic.set_partitions(
            1,
            |_| (),
            |records| assert!(shared.append_waiting(topic, 1, records).is_empty()),
        );
        sender.join().unwrap();
        let mut batches = Vec::new();
        producer.accumulator().take_all(false, &mut batches);
        let lengths: Vec<u64> = batches.iter().map(|batch| batch.charged_bytes).collect();
        assert_eq!(lengths, [3], "both in one batch");
        let sealed = batches.pop().unwrap().builder.seal(&shared.topic_settings().seal_options()).unwrap();
        let bytes = sealed.to_vec();
        let place = |value: &[u8]| bytes.windows(value.len()).rposition(|window| window == value).unwrap();
        assert!(place(b"\x021\0") < place(b"\x0422\0"));
    });
}

/// Detects a `set` that changes the ID before the version, and a `get` that does not check the version again.
#[test]
fn identity_is_never_seen_with_the_epoch_of_another() {
    model(|| {
        let identity = Arc::new(SharedIdentity::default());
        let (one, two) = (ProducerIdentity { id: 1, epoch: 1 }, ProducerIdentity { id: 2, epoch: 2 });
        identity.set(one);
        let reader = {
            let identity = Arc::clone(&identity);
            start(move || {
                let seen = identity.get();
                assert!(seen.is_none_or(|seen| seen == one || seen == two), "{seen:?}");
            })
        };
        identity.set(two);
        reader.join().unwrap();
        assert_eq!(identity.get(), Some(two));
    });
}

/// Detects a job that notifies the broker before it has ended.
#[test]
fn compressed_batch_is_noticed_by_the_leader_of_its_time() {
    model(|| {
        let producer = producer(1).known();
        producer.send("v").unwrap();
        let accumulator = producer.accumulator();
        let first = ready_list(&Sleep::new(), &producer.shared.flushing);
        accumulator.attach(&first, 0);
        let (batch, _) = accumulator.take(true);
        let options = producer.shared.topic_settings().seal_options();
        let (compressing, job) = Compressing::start(batch.unwrap(), &options, accumulator);
        let worker = start(move || job.run());
        accumulator.detach();
        let sleep = Sleep::new();
        let second = ready_list(&sleep, &producer.shared.flushing);
        accumulator.attach(&second, 1);
        while !compressing.is_done() {
            if second.settle(0, false) {
                sleep.sleep();
            }
            second.take_compressed();
        }
        let batch = compressing.into_batch(0).unwrap();
        assert_eq!(batch.sealed.record_count(), 1);
        let error = Error::new(ErrorKind::Closed, "");
        let status = PersistenceStatus::NotPersisted;
        producer.shared.report(batch.into_report(producer.topic.name(), 0, Err(error), status));
        worker.join().unwrap();
        producer.assert_over(1);
    });
}
