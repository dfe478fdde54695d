//! Trace context of OpenTelemetry (feature `opentelemetry`): the span of the thread that sends is the parent of the spans of those
//! that receive.
//!
//! Only the interface of OpenTelemetry is used: whatever makes a span the current one of the thread, its context is sent.

use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId,
    trace::{SpanContext, TraceContextExt, TraceState},
};

use crate::trace_context::{TraceContext, TracePropagation};

impl TraceContext {
    /// Returns the trace context of the span in a context of OpenTelemetry. `None`: it has no valid span.
    pub fn of_context(context: &Context) -> Option<Self> {
        let span = context.span();
        let span = span.span_context();
        let trace_id = u128::from_be_bytes(span.trace_id().to_bytes());
        let parent_id = u64::from_be_bytes(span.span_id().to_bytes());
        let known = Self::new(trace_id, parent_id, span.trace_flags().to_u8())?;
        Some(known.with_state(span.trace_state().header()))
    }

    /// Returns the current context of OpenTelemetry with this as the remote parent of new spans. A `tracestate` that
    /// OpenTelemetry refuses is left out.
    ///
    /// ```
    /// # fn example(message: &ottla::Message) {
    /// use opentelemetry::{global, trace::Tracer};
    /// use ottla::TraceContext;
    ///
    /// let parent = TraceContext::of(message).map(|context| context.to_context()).unwrap_or_default();
    /// let span = global::tracer("orders").start_with_context("process", &parent);
    /// # }
    /// ```
    pub fn to_context(&self) -> Context {
        let trace_id = TraceId::from_bytes(self.trace_id.to_be_bytes());
        let span_id = SpanId::from_bytes(self.parent_id.to_be_bytes());
        let state = self.state.parse::<TraceState>().unwrap_or_default();
        let parent = SpanContext::new(trace_id, span_id, TraceFlags::new(self.flags), true, state);
        Context::current().with_remote_span_context(parent)
    }
}

impl TracePropagation<fn() -> Option<TraceContext>> {
    /// Creates the interceptor with the current span of OpenTelemetry. That is also the entered span of `tracing` if the
    /// application's subscriber has the layer of `tracing-opentelemetry`, unless its activation of contexts is switched off.
    ///
    /// ```
    /// # fn example(config: &ottla::Config) -> ottla::Result<()> {
    /// use ottla::{Producer, TracePropagation};
    ///
    /// let producer = Producer::builder(config).interceptor(TracePropagation::open_telemetry()).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub const fn open_telemetry() -> Self {
        Self::new(|| TraceContext::of_context(&Context::current()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_without_a_span_has_no_trace_context() {
        assert_eq!(TraceContext::of_context(&Context::new()), None);
    }

    #[test]
    fn trace_context_survives_a_context_of_open_telemetry() {
        let context =
            TraceContext::new(7, 9, 1).expect("the IDs are not zero").with_state("vendor=x,other=y");
        let of_telemetry = context.to_context();
        assert!(of_telemetry.span().span_context().is_remote());
        assert_eq!(TraceContext::of_context(&of_telemetry), Some(context.clone()));
        let wrong = context.clone().with_state("without a value");
        assert_eq!(TraceContext::of_context(&wrong.to_context()), Some(context.with_state("")));
    }
}
