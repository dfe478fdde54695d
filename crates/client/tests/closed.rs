//! Calls after a client was closed, and while another thread closes it: every one ends, with `Closed`.

use std::{
    fmt::Debug,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use futures_core::Stream;
use ottla::{
    Admin, Config, ConfigChange, ConfigResource, Consumer, ErrorKind, GroupFilter, GroupOffset, NewTopic,
    Offset, OffsetSpec, Producer, Record, SendError, ShareConsumer, ShareRecord, TransactionError,
    TransactionFilter,
    admin::{AclFilter, QuotaFilter},
};
use ottla_embedded_broker::{ApiKey, ClusterOptions, EmbeddedCluster, Fault, FaultAction};

const SECONDS: Duration = Duration::from_secs(10);
/// No call waits for its timeout.
const FOREVER: Duration = Duration::from_secs(1_000_000);

struct World {
    cluster: EmbeddedCluster,
    config: Config,
}

fn world(properties: &[(&str, &str)]) -> World {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    cluster.control(|control| control.create_topic("t", 1, 1)).unwrap();
    let mut config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    for (name, value) in properties {
        config.set(name, value).unwrap();
    }
    World { cluster, config }
}

/// The error of a call, by its kind.
trait Kind {
    fn kind(&self) -> ErrorKind;
}

impl Kind for ottla::Error {
    fn kind(&self) -> ErrorKind {
        self.kind()
    }
}

impl Kind for TransactionError {
    fn kind(&self) -> ErrorKind {
        self.kind()
    }
}

impl Kind for SendError {
    fn kind(&self) -> ErrorKind {
        ottla::Error::from(self.clone()).kind()
    }
}

/// The future is ready at once.
fn ready<T>(name: &str, future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("{name} waits although the client is closed"),
    }
}

/// The future is ready at once, and its client closed.
fn closed<T: Debug, E: Kind + Debug>(name: &str, future: impl Future<Output = Result<T, E>>) {
    let error = ready(name, future).expect_err(name);
    assert_eq!(error.kind(), ErrorKind::Closed, "{name}: {error:?}");
}

/// The call returns `Closed`, and not because of a timeout.
fn refused<T: Debug>(name: &str, result: ottla::Result<T>) {
    let error = result.expect_err(name);
    assert_eq!(error.kind(), ErrorKind::Closed, "{name}: {error}");
}

fn next<S: Stream + Unpin>(stream: &mut S) -> impl Future<Output = Option<S::Item>> {
    poll_fn(|context| Pin::new(&mut *stream).poll_next(context))
}

fn admin_calls_are_closed(admin: &Admin) {
    let long = FOREVER;
    closed("create_topics", admin.create_topics_async(&[NewTopic::new("n", 1, 1)], long));
    closed("delete_topics", admin.delete_topics_async(&["t"], long));
    closed("list_topics", admin.list_topics_async(long));
    closed("describe_topics", admin.describe_topics_async(&["t"], long));
    closed("describe_cluster", admin.describe_cluster_async(long));
    closed("list_offsets", admin.list_offsets_async(&[("t", 0, OffsetSpec::Latest)], long));
    closed("list_groups", admin.list_groups_async(&GroupFilter::default(), long));
    closed("describe_groups", admin.describe_groups_async(&["g"], long));
    closed("delete_groups", admin.delete_groups_async(&["g"], long));
    closed("list_transactions", admin.list_transactions_async(&TransactionFilter::default(), long));
    closed("describe_acls", admin.describe_acls_async(&AclFilter::default(), long));
    closed("describe_client_quotas", admin.describe_client_quotas_async(&QuotaFilter::default(), long));
    closed("describe_quorum", admin.describe_quorum_async(long));
    closed("describe_features", admin.describe_features_async(long));
    refused("describe_cluster", admin.describe_cluster(long).map(drop));
}

#[test]
fn every_call_of_a_closed_admin_client_ends_at_once() {
    let world = world(&[]);
    let admin = Admin::new(&world.config).unwrap();
    admin.describe_cluster(SECONDS).unwrap();
    admin.close(SECONDS).unwrap();
    admin_calls_are_closed(&admin);
    refused("client_instance_id", admin.client_instance_id(FOREVER));
}

fn consumer_calls_are_closed(consumer: &Consumer, message: &ottla::Message, records: &ottla::Records) {
    let offsets = [GroupOffset::new("t", 0, 1)];
    closed("poll", consumer.poll_async());
    closed("next", consumer.next_async());
    assert!(ready("stream", next(&mut consumer.stream())).is_none());
    closed("commit", consumer.commit_async(&offsets, FOREVER));
    closed("commit_message", consumer.commit_message_async(message, FOREVER));
    for (_, outcome) in
        ready("commit_records", consumer.commit_records_async(records, FOREVER)).into_iter().flatten()
    {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::State, "the group has the partition no more");
    }
    let _ = ready("commit_stored", consumer.commit_stored_async(FOREVER));
    closed("committed", consumer.committed_async(&[("t", 0)], FOREVER));
    closed("list_offsets", consumer.list_offsets_async(&[("t", 0, OffsetSpec::Latest)], FOREVER));
    closed("seek", consumer.seek_async("t", 0, Offset::Beginning));
    let rebalances = consumer.rebalances();
    assert!(ready("rebalance", rebalances.next_async()).is_none());
    assert!(ready("group event", rebalances.next_event_async()).is_none());
    assert!(rebalances.next(FOREVER).is_none());
    let tracked = consumer.track_messages(1).unwrap();
    closed("tracked", tracked.next_async());
    assert!(ready("tracked stream", next(&mut tracked.stream())).is_none());
    // The blocking forms, and calls that only send a command.
    refused("commit", consumer.commit(&offsets, FOREVER));
    refused("watermarks", consumer.watermarks("t", 0, FOREVER));
    refused("subscribe", consumer.subscribe(&["t"]));
    refused("assign", consumer.assign(&[("t", 0, Offset::Beginning)]));
    refused("incremental_assign", consumer.incremental_assign(&[("t", 1, Offset::Beginning)]));
    refused("incremental_unassign", consumer.incremental_unassign(&[("t", 0)]));
    refused("add_bootstrap_servers", consumer.add_bootstrap_servers("127.0.0.1:1"));
    refused("statistics", consumer.statistics().map(drop));
    refused("client_instance_id", consumer.client_instance_id(FOREVER));
    admin_calls_are_closed(&consumer.admin());
}

fn consuming() -> World {
    let world = world(&[
        ("group.id", "g"),
        ("auto.offset.reset", "earliest"),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
    ]);
    let producer = Producer::new(
        &Config::from_properties([("bootstrap.servers", world.cluster.bootstrap_servers())]).unwrap(),
    )
    .unwrap();
    for _ in 0..3 {
        producer.deliver("t", Record::new().value("v").partition(0), SECONDS).unwrap();
    }
    producer.close(SECONDS).unwrap();
    world
}

#[test]
fn every_call_of_a_closed_consumer_ends_at_once() {
    let world = consuming();
    for subscribes in [false, true] {
        let consumer = Consumer::new(&world.config).unwrap();
        match subscribes {
            true => consumer.subscribe(&["t"]).unwrap(),
            false => consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap(),
        }
        let message = consumer.next(FOREVER).unwrap().unwrap();
        let records = consumer.poll(FOREVER).unwrap();
        let mut stream = consumer.partition_stream("t", 0).unwrap();
        consumer.close(SECONDS).unwrap();
        if subscribes {
            let error =
                ready("commit_message", consumer.commit_message_async(&message, FOREVER)).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::State | ErrorKind::Closed), "{error}");
        } else {
            consumer_calls_are_closed(&consumer, &message, &records);
        }
        while ready("partition stream", next(&mut stream)).is_some() {}
    }
}

#[test]
fn every_call_of_a_closed_producer_ends_at_once() {
    let world = world(&[("transactional.id", "x")]);
    let producer = Producer::new(&world.config).unwrap();
    producer.init_transactions(SECONDS).unwrap();
    let open = [producer.begin().unwrap()];
    let topic = producer.topic("t");
    topic.send(Record::new().value("v")).unwrap();
    producer.close(SECONDS).unwrap();
    let [transaction] = open;
    closed("send_async", topic.send_async(Record::new().value("v")));
    closed("deliver_async", topic.deliver_async(Record::new().value("v")));
    closed("deliver_async", producer.deliver_async("new", Record::new().value("v")));
    ready("flush_async", producer.flush_async());
    closed("commit", transaction.commit_async());
    closed("init", producer.init_transactions_async());
    closed("begin", async { producer.begin_async().await.map(drop) });
    assert_eq!(producer.resume_transaction(FOREVER).unwrap_err().kind(), ErrorKind::Closed);
    refused("add_bootstrap_servers", producer.add_bootstrap_servers("127.0.0.1:1"));
    refused("statistics", producer.statistics().map(drop));
    refused("partition_count", producer.partition_count("other", FOREVER));
    admin_calls_are_closed(&producer.admin());
}

/// A share consumer and its record, whose lock lasts this long.
fn sharing(lock_ms: &str) -> (World, ShareConsumer, ShareRecord) {
    let world = world(&[("group.id", "g")]);
    let admin = Admin::new(&world.config).unwrap();
    let changes = vec![
        ConfigChange::set("share.auto.offset.reset", "earliest"),
        ConfigChange::set("share.record.lock.duration.ms", lock_ms),
    ];
    let changed =
        admin.incremental_alter_configs(&vec![(ConfigResource::group("g"), changes)], SECONDS).unwrap();
    changed.into_iter().for_each(|(_, result)| result.unwrap());
    let mut config = Config::new();
    config.set("bootstrap.servers", &world.cluster.bootstrap_servers()).unwrap();
    let producer = Producer::new(&config).unwrap();
    producer.deliver("t", Record::new().value("v").partition(0), SECONDS).unwrap();
    let consumer = ShareConsumer::new(&world.config).unwrap();
    consumer.subscribe(&["t"]).unwrap();
    let records = consumer.poll(FOREVER).unwrap();
    let record = records.into_iter().next().unwrap();
    (world, consumer, record)
}

#[test]
fn record_is_not_accepted_after_its_lock_has_ended() {
    let (_world, consumer, record) = sharing("200");
    thread::sleep(record.lock_remaining());
    let error = record.accept().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State, "{error}");
    assert!(error.to_string().contains("lock"), "{error}");
    consumer.close(SECONDS).unwrap();
}

#[test]
fn share_poll_that_a_close_interrupts_says_so() {
    let (_world, consumer, record) = sharing("30000");
    record.accept().unwrap();
    let polling = consumer.clone();
    let poll = thread::spawn(move || {
        loop {
            if let Err(error) = polling.poll(FOREVER) {
                break error.kind();
            }
        }
    });
    consumer.close(SECONDS).unwrap();
    assert_eq!(poll.join().unwrap(), ErrorKind::Closed);
}

#[test]
fn close_beside_a_silent_coordinator_is_an_error() {
    let world = consuming();
    let consumer = Consumer::new(&world.config).unwrap();
    consumer.subscribe(&["t"]).unwrap();
    consumer.next(FOREVER).unwrap();
    world.cluster.control(|control| {
        for api in [ApiKey::LeaveGroup, ApiKey::ConsumerGroupHeartbeat] {
            control.inject(Fault::new(FaultAction::NeverRespond).api(api));
        }
    });
    let error = consumer.close(Duration::from_millis(50)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains("has not confirmed"), "{error}");
    refused("poll", consumer.poll(FOREVER));
}

#[test]
fn calls_after_a_leaked_transaction_agree() {
    let world = world(&[("transactional.id", "x")]);
    let producer = Producer::new(&world.config).unwrap();
    producer.init_transactions(SECONDS).unwrap();
    std::mem::forget(producer.begin().unwrap());
    for _ in 0..2 {
        let begun = producer.begin().map(drop).unwrap_err();
        assert_eq!((begun.kind(), begun.next_call()), (ErrorKind::State, None), "{begun}");
        assert!(begun.to_string().contains("a transaction is open"), "{begun}");
        // There is nothing to continue, and no error leads here.
        producer.resume_transaction(FOREVER).unwrap();
    }
    producer.close(SECONDS).unwrap();
}

#[test]
fn every_call_of_a_closed_share_consumer_ends_at_once() {
    let (_world, consumer, record) = sharing("30000");
    consumer.close(SECONDS).unwrap();
    closed("poll", consumer.poll_async());
    closed("commit", consumer.commit());
    refused("renew", record.renew());
    refused("accept", record.accept());
    refused("commit_sync", consumer.commit_sync(FOREVER));
    refused("commit_async", consumer.commit_async());
    refused("subscribe", consumer.subscribe(&["t"]));
    refused("unsubscribe", consumer.unsubscribe(FOREVER));
    refused("add_bootstrap_servers", consumer.add_bootstrap_servers("127.0.0.1:1"));
    admin_calls_are_closed(&consumer.admin());
}

#[test]
fn share_consumer_that_failed_is_closed_after_its_close() {
    let world = consuming();
    let consumer = Consumer::new(&world.config).unwrap();
    consumer.subscribe(&["t"]).unwrap();
    consumer.next(FOREVER).unwrap();
    // The group is one of consumers, not a share group.
    let share = ShareConsumer::new(&world.config).unwrap();
    share.subscribe(&["t"]).unwrap();
    assert!(matches!(share.poll(FOREVER).unwrap_err().kind(), ErrorKind::Broker(_)));
    share.close(SECONDS).unwrap();
    closed("poll", share.poll_async());
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn clients_leave_and_close_without_blocking() {
    let world = consuming();
    let consumer = Consumer::new(&world.config).unwrap();
    consumer.subscribe(&["t"]).unwrap();
    consumer.next(FOREVER).unwrap();
    block_on(consumer.unsubscribe_async(SECONDS)).unwrap();
    assert!(consumer.assignment().is_empty() && consumer.subscription().is_empty());
    consumer.subscribe(&["t"]).unwrap();
    consumer.next(FOREVER).unwrap();
    block_on(consumer.close_async(SECONDS)).unwrap();
    closed("poll", consumer.poll_async());

    let mut config = world.config.clone();
    config.set("group.id", "shared").unwrap();
    let share = ShareConsumer::new(&config).unwrap();
    share.subscribe(&["t"]).unwrap();
    block_on(share.unsubscribe_async(SECONDS)).unwrap();
    share.subscribe(&["t"]).unwrap();
    block_on(share.close_async(SECONDS)).unwrap();
    closed("poll", share.poll_async());

    let producer = Producer::new(&world.config).unwrap();
    let delivery = producer.topic("t").send_tracked(Record::new().value("v")).unwrap();
    block_on(producer.close_async(SECONDS)).unwrap();
    ready("delivery", delivery).unwrap();
    let admin = Admin::new(&world.config).unwrap();
    block_on(admin.close_async()).unwrap();
    closed("list_topics", admin.list_topics_async(FOREVER));
}

/// Threads that call until the client is closed; each of them ends.
fn end_beside_close<C: Clone + Send + Sync + 'static>(
    client: &C,
    calls: &[fn(&C) -> bool],
    close: impl FnOnce(&C),
) {
    let (ended, ends) = mpsc::channel();
    let (began, begins) = mpsc::channel();
    for call in calls.iter().copied() {
        let (client, ended, began) = (client.clone(), ended.clone(), began.clone());
        thread::spawn(move || {
            began.send(()).unwrap();
            while call(&client) {}
            ended.send(()).unwrap();
        });
    }
    calls.iter().for_each(|_| begins.recv().unwrap());
    close(client);
    for _ in calls {
        ends.recv_timeout(Duration::from_secs(120)).expect("a call that met the close has no end");
    }
}

fn goes_on<T>(result: ottla::Result<T>) -> bool {
    result.map_or_else(|error| error.kind() != ErrorKind::Closed, |_| true)
}

#[test]
fn calls_beside_the_close_of_a_consumer_end() {
    let world = consuming();
    for _ in 0..20 {
        let consumer = Consumer::new(&world.config).unwrap();
        consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
        let calls: [fn(&Consumer) -> bool; 6] = [
            |consumer| goes_on(block_on(consumer.commit_async(&[GroupOffset::new("t", 0, 1)], FOREVER))),
            |consumer| goes_on(block_on(consumer.committed_async(&[("t", 0)], FOREVER))),
            |consumer| {
                goes_on(block_on(consumer.list_offsets_async(&[("t", 0, OffsetSpec::Latest)], FOREVER)))
            },
            |consumer| goes_on(block_on(consumer.seek_async("t", 0, Offset::Beginning))),
            |consumer| goes_on(block_on(consumer.poll_async())),
            |consumer| goes_on(block_on(consumer.admin().describe_cluster_async(FOREVER))),
        ];
        end_beside_close(&consumer, &calls, |consumer| consumer.close(SECONDS).unwrap());
    }
}

#[test]
fn calls_beside_the_close_of_a_producer_end() {
    let world = world(&[("queue.buffering.max.messages", "10")]);
    for _ in 0..20 {
        let producer = Producer::new(&world.config).unwrap();
        let calls: [fn(&Producer) -> bool; 3] = [
            |producer| goes_on(block_on(producer.deliver_async("t", Record::new().value("v")))),
            |producer| {
                let topic = producer.topic("t");
                let sent = block_on(topic.send_async(Record::new().value("v")));
                !matches!(sent, Err(SendError::Closed))
            },
            |producer| goes_on(block_on(producer.admin().list_topics_async(FOREVER))),
        ];
        // Others keep the queue filled, so that records may be left.
        end_beside_close(&producer, &calls, |producer| drop(producer.close(Duration::ZERO)));
    }
}
