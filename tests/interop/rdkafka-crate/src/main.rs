//! The crate `rdkafka` on our C library: BROKERS TOPIC, or --properties FILE.

mod members;
mod secured;
mod transactions;

use std::time::Duration;

use rdkafka::{
    ClientConfig, ClientContext, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    message::{Header, Headers, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};

const COUNT: usize = 1000;

/// Counts the delivered messages.
#[derive(Default)]
struct Reports(std::sync::atomic::AtomicUsize);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, number: Box<usize>) {
        let message = result.as_ref().expect("it is delivered");
        assert_eq!(message.key().unwrap(), number.to_string().as_bytes());
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (brokers, topic) = (args.next().expect("BROKERS"), args.next().expect("TOPIC"));
    if brokers == "--properties" {
        return secured::run(&topic);
    }
    let (number, text) = rdkafka::util::get_rdkafka_version();
    assert!(number == 0x0210_00ff && text.starts_with("2.16.0-ottla"), "{text}");

    let producer: BaseProducer<Reports> = ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .set("linger.ms", "1")
        .set("enable.idempotence", "true")
        .create_with_context(Reports::default())
        .expect("a producer");
    for i in 0..COUNT {
        let (key, value) = (i.to_string(), format!("value {i}"));
        let headers = OwnedHeaders::new().insert(Header { key: "number", value: Some(&key) });
        let record = BaseRecord::with_opaque_to(&topic, Box::new(i)).key(&key).payload(&value).partition(0);
        producer.send(record.headers(headers)).expect("it is taken");
        producer.poll(Duration::ZERO);
    }
    producer.flush(Duration::from_secs(30)).expect("all is sent");
    assert_eq!(producer.context().0.load(std::sync::atomic::Ordering::Relaxed), COUNT);

    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &brokers)
        .set("group.id", "g")
        .create()
        .expect("a consumer");
    let metadata = consumer.fetch_metadata(Some(&topic), Duration::from_secs(30)).expect("metadata");
    assert_eq!(metadata.topics()[0].name(), topic);
    let marks = consumer.fetch_watermarks(&topic, 0, Duration::from_secs(30)).expect("watermarks");
    assert_eq!(marks, (0, COUNT as i64));
    let mut partitions = TopicPartitionList::new();
    partitions.add_partition_offset(&topic, 0, Offset::Beginning).expect("an offset");
    consumer.assign(&partitions).expect("assigned");
    for i in 0..COUNT {
        let message = consumer.poll(Duration::from_secs(30)).expect("it comes").expect("it is not an error");
        assert_eq!(message.offset(), i as i64);
        assert_eq!(message.payload_view::<str>(), Some(Ok(format!("value {i}").as_str())));
        assert_eq!(message.headers().expect("headers").get(0).key, "number");
    }
    println!("the crate rdkafka on {text}: {COUNT} produced, {COUNT} consumed");
    transactions::run(&brokers, &topic);
    members::run(&brokers, &topic, &producer);
}
