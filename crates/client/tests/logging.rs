//! Log lines through the `log` facade. In a process of its own, because there is one logger per process.

use std::{
    collections::BTreeMap,
    sync::{Mutex, OnceLock},
    time::{Duration, Instant},
};

use log::kv::{Error, Key, Value, VisitSource};
use ottla::{Config, Consumer, ErrorKind, Event, Offset, Producer, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SECONDS: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
struct Line {
    level: log::Level,
    target: String,
    text: String,
    fields: BTreeMap<String, String>,
}

/// Keeps the lines of the process.
struct Keeper;

static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl<'kvs> VisitSource<'kvs> for Fields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        self.0.insert(key.to_string(), value.to_string());
        Ok(())
    }
}

impl log::Log for Keeper {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut fields = BTreeMap::new();
        record.key_values().visit(&mut Fields(&mut fields)).unwrap();
        let (level, target) = (record.level(), record.target().to_owned());
        LINES.lock().unwrap().push(Line { level, target, text: record.args().to_string(), fields });
    }

    fn flush(&self) {}
}

/// Waits for a line.
fn line(what: &str, is_it: impl Fn(&Line) -> bool) -> Line {
    let deadline = Instant::now() + SECONDS;
    loop {
        if let Some(line) = LINES.lock().unwrap().iter().find(|line| is_it(line)) {
            return line.clone();
        }
        assert!(Instant::now() < deadline, "no line for {what}: {:#?}", LINES.lock().unwrap());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn keep_lines() {
    static SET: OnceLock<()> = OnceLock::new();
    SET.get_or_init(|| {
        log::set_logger(&Keeper).unwrap();
        log::set_max_level(log::LevelFilter::Debug);
    });
}

fn config(servers: &str, client_id: &str, debug: &str) -> Config {
    let mut config = Config::new();
    config.set("bootstrap.servers", servers).unwrap();
    config.set("client.id", client_id).unwrap();
    config.set("debug", debug).unwrap();
    config
}

fn field<'a>(line: &'a Line, name: &str) -> &'a str {
    line.fields.get(name).unwrap_or_else(|| panic!("no {name} in {line:?}"))
}

#[test]
fn debug_all_logs_client_broker_and_topic_as_fields() {
    keep_lines();
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let config = config(&cluster.bootstrap_servers(), "logs-all", "all");
    let of_client = |line: &Line| line.fields.get("client").is_some_and(|name| name.starts_with("logs-all#"));

    let producer = Producer::new(&config).unwrap();
    let written = producer.deliver("orders", Record::new().value("v").partition(1), SECONDS).unwrap();
    assert_eq!((written.partition, written.offset), (1, Some(0)));
    let up = line("a connection", |line| {
        of_client(line) && line.target == "ottla::broker" && line.text.ends_with("connection state UP")
    });
    assert!(up.level == log::Level::Debug && field(&up, "broker").contains("127.0.0.1:"), "{up:?}");
    let produce = line("a request", |line| {
        of_client(line)
            && line.target == "ottla::msg"
            && line.fields.get("api").is_some_and(|api| api == "Produce")
    });
    assert!(field(&produce, "correlation_id").parse::<i32>().is_ok() && produce.fields.contains_key("bytes"));
    let delivered = line("the delivery", |line| {
        of_client(line) && line.target == "ottla::msg" && line.fields.contains_key("offset")
    });
    assert_eq!(
        ["topic", "partition", "records", "offset"].map(|name| field(&delivered, name)),
        ["orders", "1", "1", "0"]
    );
    line("the topic", |line| line.target == "ottla::topic" && field(line, "topic") == "orders");

    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("orders", 1, Offset::Beginning)]).unwrap();
    assert_eq!(consumer.next(SECONDS).unwrap().unwrap().offset(), 0);
    let assigned = line("the assignment", |line| line.target == "ottla::consumer");
    assert_eq!((field(&assigned, "topic"), field(&assigned, "partition")), ("orders", "1"));
    line("a fetch", |line| of_client(line) && line.target == "ottla::fetch");
    producer.close(SECONDS).unwrap();
    line("the end", |line| {
        of_client(line) && line.text.contains("producer-") && line.text.ends_with("closed")
    });
}

#[test]
fn events_are_logged_and_still_delivered_when_debug_is_unset() {
    keep_lines();
    let producer = Producer::new(&config("127.0.0.1:1", "logs-events", "")).unwrap();
    let of_client =
        |line: &Line| line.fields.get("client").is_some_and(|name| name.starts_with("logs-events#"));
    let down = line("no broker", |line| of_client(line) && line.level == log::Level::Error);
    assert!(down.target == "ottla" && down.text.contains("no broker could be reached"), "{down:?}");
    let failed = line("a connection", |line| of_client(line) && line.level == log::Level::Warn);
    assert_eq!(field(&failed, "broker").split('/').next(), Some("127.0.0.1:1"));
    let deadline = Instant::now() + SECONDS;
    let mut kinds = Vec::new();
    while !kinds.contains(&ErrorKind::AllBrokersDown) {
        match producer.poll_event() {
            Some(Event::Error(error) | Event::AllBrokersDown(error)) => kinds.push(error.kind()),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
        assert!(Instant::now() < deadline, "no event: {kinds:?}");
    }
    assert!(LINES.lock().unwrap().iter().all(|line| !of_client(line) || line.level < log::Level::Debug));
}
