//! Trace context of OpenTelemetry from the thread that sends to the one that receives.

use std::time::Duration;

use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId,
    trace::{SpanContext, TraceContextExt, TraceState},
};
use ottla::{Config, Consumer, Offset, Producer, Record, TraceContext, TracePropagation};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn span_of_the_sender_is_the_remote_parent_at_the_receiver() {
    let cluster = EmbeddedCluster::start(ClusterOptions::default()).unwrap();
    let config = Config::from_properties([("bootstrap.servers", cluster.bootstrap_servers())]).unwrap();
    let producer =
        Producer::builder(&config).interceptor(TracePropagation::open_telemetry()).build().unwrap();
    let (trace_id, span_id) = (TraceId::from(7_u128), SpanId::from(9_u64));
    let span = SpanContext::new(trace_id, span_id, TraceFlags::SAMPLED, false, TraceState::NONE);
    {
        let _guard = Context::new().with_remote_span_context(span).attach();
        producer.deliver("t", Record::new().value("traced").partition(0), SOON).unwrap();
    }
    producer.deliver("t", Record::new().value("alone").partition(0), SOON).unwrap();

    let consumer = Consumer::new(&config).unwrap();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let traced = consumer.next(SOON).unwrap().expect("a record");
    let parent = TraceContext::of(&traced).expect("it has a context").to_context();
    let parent = parent.span().span_context().clone();
    assert_eq!((parent.trace_id(), parent.span_id()), (trace_id, span_id));
    assert!(parent.is_remote() && parent.is_sampled());
    let alone = consumer.next(SOON).unwrap().expect("a record");
    assert_eq!(TraceContext::of(&alone), None);
}
