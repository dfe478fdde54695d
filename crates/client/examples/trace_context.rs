//! Passes the trace context of the thread that sends to the one that receives, in the headers of the record (W3C `traceparent`).
//! The spans here are a few lines of their own; the feature `opentelemetry` takes those of OpenTelemetry and `tracing`.
//!
//!     cargo run --package ottla --example trace_context

mod support;

use std::{cell::RefCell, time::Duration};

use ottla::{Consumer, Offset, Producer, Record, TraceContext, TracePropagation};

const TIMEOUT: Duration = Duration::from_secs(20);
const TOPIC: &str = "example-traced-orders";

thread_local! {
    /// The span that the thread is in.
    static CURRENT: RefCell<Option<TraceContext>> = const { RefCell::new(None) };
}

/// Calls a function in a span.
fn in_span<R>(name: &str, context: TraceContext, act: impl FnOnce() -> R) -> R {
    println!("{name}: trace {:032x}, span {:016x}", context.trace_id, context.parent_id);
    let outer = CURRENT.replace(Some(context));
    let result = act();
    CURRENT.set(outer);
    result
}

/// Runs the example.
pub fn main() -> support::Result {
    let brokers = support::Brokers::find()?;
    let config = brokers.config()?;
    let current = || CURRENT.with_borrow(Clone::clone);
    let producer = Producer::builder(&config).interceptor(TracePropagation::new(current)).build()?;

    let order = TraceContext::new(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7, 1);
    let order = order.ok_or("an ID is zero")?;
    in_span("order", order.clone(), || {
        producer.deliver(TOPIC, Record::new().value("a bicycle").partition(0), TIMEOUT)
    })?;

    let consumer = Consumer::new(&config)?;
    consumer.assign(&[(TOPIC, 0, Offset::Beginning)])?;
    let message = consumer.next(TIMEOUT)?.ok_or("no record arrived")?;
    let parent = TraceContext::of(&message).ok_or("the record has no trace context")?;
    assert_eq!(parent, order);
    // The span of the receiver is in the same trace, and the sender's is its parent.
    let shipping = TraceContext::new(parent.trace_id, 0x5333_9e2c_1d4f_8ab1, parent.flags);
    in_span("shipping", shipping.ok_or("an ID is zero")?, || {
        println!("shipping follows span {:016x}", parent.parent_id);
    });
    Ok(())
}
