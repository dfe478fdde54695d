//! Log lines as events of `tracing`, and its spans in the headers of records. In a process of its own, because there is one
//! subscriber per process.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId,
    trace::{Span, SpanBuilder, SpanContext, Status, TraceState, Tracer},
};
use ottla::{Config, Consumer, Offset, Producer, Record, TraceContext, TracePropagation};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    layer::{self, Layer, SubscriberExt},
    registry::LookupSpan,
};

const SECONDS: Duration = Duration::from_secs(20);
const TRACE: u128 = 7;

#[derive(Clone, Debug)]
struct Line {
    target: String,
    level: tracing::Level,
    parent: Option<String>,
    fields: BTreeMap<String, String>,
}

/// Keeps the events of the process.
struct Keeper;

static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Keeper {
    fn on_event(&self, event: &Event<'_>, context: layer::Context<'_, S>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        let parent = context.event_span(event).map(|span| span.name().to_owned());
        let (target, level) = (event.metadata().target().to_owned(), *event.metadata().level());
        LINES.lock().unwrap().push(Line { target, level, parent, fields });
    }
}

/// A tracer whose spans are in one trace, and are numbered.
struct Numbering;

static LAST_SPAN: AtomicU64 = AtomicU64::new(0);

struct Numbered(SpanContext);

impl Tracer for Numbering {
    type Span = Numbered;

    fn build_with_context(&self, _: SpanBuilder, _: &Context) -> Numbered {
        let number = LAST_SPAN.fetch_add(1, Ordering::Relaxed) + 1;
        let (trace, span) = (TraceId::from(TRACE), SpanId::from(number));
        Numbered(SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE))
    }
}

impl Span for Numbered {
    fn add_event_with_timestamp<T: Into<std::borrow::Cow<'static, str>>>(
        &mut self,
        _: T,
        _: SystemTime,
        _: Vec<KeyValue>,
    ) {
    }

    fn span_context(&self) -> &SpanContext {
        &self.0
    }

    fn is_recording(&self) -> bool {
        true
    }

    fn set_attribute(&mut self, _: KeyValue) {}

    fn set_status(&mut self, _: Status) {}

    fn update_name<T: Into<std::borrow::Cow<'static, str>>>(&mut self, _: T) {}

    fn add_link(&mut self, _: SpanContext, _: Vec<KeyValue>) {}

    fn end_with_timestamp(&mut self, _: SystemTime) {}
}

fn subscribe() {
    static SET: OnceLock<()> = OnceLock::new();
    SET.get_or_init(|| {
        let spans = tracing_opentelemetry::layer().with_tracer(Numbering);
        let subscriber = tracing_subscriber::registry().with(spans).with(Keeper);
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

/// Waits for an event.
fn line(what: &str, is_it: impl Fn(&Line) -> bool) -> Line {
    let deadline = Instant::now() + SECONDS;
    loop {
        if let Some(line) = LINES.lock().unwrap().iter().find(|line| is_it(line)) {
            return line.clone();
        }
        assert!(Instant::now() < deadline, "no event for {what}: {:#?}", LINES.lock().unwrap());
        std::thread::yield_now();
    }
}

#[test]
fn lines_are_events_with_facility_severity_and_parent() {
    subscribe();
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let config = Config::from_properties([
        ("bootstrap.servers", &*cluster.bootstrap_servers()),
        ("client.id", "traced"),
        ("debug", "msg,broker"),
    ])
    .unwrap();
    let producer = tracing::info_span!("service").in_scope(|| Producer::new(&config).unwrap());
    producer.deliver("lines", Record::new().value("1").partition(0), SECONDS).unwrap();
    let of_client = |line: &Line| line.fields["client"].contains("traced");
    let delivered = line("a batch", |line| {
        line.target == "ottla::msg" && of_client(line) && line.fields.contains_key("records")
    });
    assert_eq!((delivered.level, delivered.fields["facility"].as_str()), (tracing::Level::DEBUG, "MSG"));
    assert_eq!((delivered.fields["severity"].as_str(), delivered.fields["topic"].as_str()), ("7", "lines"));
    assert_eq!((delivered.fields["partition"].as_str(), delivered.fields["records"].as_str()), ("0", "1"));
    assert!(delivered.fields["message"].contains("delivered from offset"), "{delivered:?}");
    assert!(!delivered.fields.contains_key("throttle_ms"), "fields that do not apply are left out");
    // The span that the client was created in has ended.
    assert_eq!(delivered.parent, None);

    let service = tracing::info_span!("service");
    let second = service.in_scope(|| Producer::new(&config).unwrap());
    second.deliver("open", Record::new().value("1").partition(0), SECONDS).unwrap();
    let is_of_second = |line: &Line| line.fields.get("topic").is_some_and(|topic| topic == "open");
    assert_eq!(line("a batch", is_of_second).parent.as_deref(), Some("service"));
    drop(service);
}

#[test]
fn entered_span_is_the_parent_at_the_receiver() {
    subscribe();
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    let producer =
        Producer::builder(&config).interceptor(TracePropagation::open_telemetry()).build().unwrap();
    let sent = tracing::info_span!("order").in_scope(|| {
        producer.deliver("t", Record::new().value("traced").partition(0), SECONDS).unwrap();
        TraceContext::of_context(&Context::current()).expect("the layer has made the span the current one")
    });
    producer.deliver("t", Record::new().value("alone").partition(0), SECONDS).unwrap();
    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let traced = consumer.next(SECONDS).unwrap().expect("a record");
    let parent = TraceContext::of(&traced).expect("it has a context");
    assert_eq!((parent.trace_id, &parent), (TRACE, &sent));
    let alone = consumer.next(SECONDS).unwrap().expect("a record");
    assert_eq!(TraceContext::of(&alone), None);
}
