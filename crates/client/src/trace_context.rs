//! Trace context in the headers of records: W3C `traceparent` and `tracestate`.
//!
//! Nothing here depends on a tracing library. [`TracePropagation`] asks a function for the context of the thread that sends;
//! [`TraceContext::of`] reads the context of a record that was received.

use std::fmt;

use ottla_core::{fetch::deliver::Message, produce::outgoing::OutgoingRecord};

use crate::interceptors::ProducerInterceptor;

/// The header with the IDs.
const TRACEPARENT: &str = "traceparent";
/// The header with the values of tracing systems.
const TRACESTATE: &str = "tracestate";
/// The longest `tracestate` that is read; systems must propagate 512 characters.
const LONGEST_STATE: usize = 8192;

/// The place of an operation in a distributed trace, as the W3C recommendation "Trace Context" defines it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TraceContext {
    /// The ID of the whole trace; not zero.
    pub trace_id: u128,
    /// The ID of the operation that sends; not zero.
    pub parent_id: u64,
    /// The flags: bit 0 is set if the trace is recorded.
    pub flags: u8,
    /// Values of tracing systems, as they are written in `tracestate`; empty without any.
    pub state: String,
}

impl TraceContext {
    /// Creates a context without `tracestate`. `None`: an ID is zero.
    pub const fn new(trace_id: u128, parent_id: u64, flags: u8) -> Option<Self> {
        if trace_id == 0 || parent_id == 0 {
            return None;
        }
        Some(Self { trace_id, parent_id, flags, state: String::new() })
    }

    /// Sets `tracestate`.
    #[must_use]
    pub fn with_state(mut self, state: impl Into<String>) -> Self {
        self.state = state.into();
        self
    }

    /// Returns true if the trace is recorded.
    pub const fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// Parses the value of `traceparent`. `None`: it is not valid. A later version is read as far as it is known.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let is_hex = |part: &str, len: usize| {
            part.len() == len && part.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        };
        let mut parts = traceparent.split('-');
        let (version, trace_id, parent_id, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let lengths = [(version, 2), (trace_id, 32), (parent_id, 16), (flags, 2)];
        if !lengths.into_iter().all(|(part, len)| is_hex(part, len)) || version == "ff" {
            return None;
        }
        if version == "00" && parts.next().is_some() {
            return None;
        }
        let trace_id = u128::from_str_radix(trace_id, 16).ok()?;
        let parent_id = u64::from_str_radix(parent_id, 16).ok()?;
        Self::new(trace_id, parent_id, u8::from_str_radix(flags, 16).ok()?)
    }

    /// Returns the context of a record that was received. `None`: it has none, or one that is not valid. Of several headers the
    /// last one counts.
    pub fn of(message: &Message) -> Option<Self> {
        let (mut parent, mut state) = (None, None);
        for header in message.headers() {
            let text = header.value.and_then(|value| std::str::from_utf8(value).ok());
            match header.key {
                key if key == TRACEPARENT.as_bytes() => parent = text,
                key if key == TRACESTATE.as_bytes() => state = text,
                _ => {}
            }
        }
        let state = state.filter(|state| state.len() <= LONGEST_STATE).unwrap_or_default();
        Some(Self::parse(parent?)?.with_state(state))
    }
}

/// Writes the value of `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.parent_id, self.flags)
    }
}

/// An interceptor that writes the trace context of the thread that sends into the headers of its records. It replaces headers of
/// an earlier context; without a context a record keeps the headers that it has.
///
/// ```
/// # fn example(config: &ottla::Config) -> ottla::Result<()> {
/// use ottla::{Producer, TraceContext, TracePropagation};
///
/// // The function takes the IDs from the tracing library in use.
/// let current = || TraceContext::new(0x4bf92f3577b34da6a3ce929d0e0e4736, 0x00f067aa0ba902b7, 1);
/// let producer = Producer::builder(config).interceptor(TracePropagation::new(current)).build()?;
/// # Ok(())
/// # }
/// ```
pub struct TracePropagation<F>(F);

impl<F: Fn() -> Option<TraceContext> + Send + Sync> TracePropagation<F> {
    /// Creates the interceptor. `current` returns the context of the thread that calls it.
    pub const fn new(current: F) -> Self {
        Self(current)
    }
}

impl<F: Fn() -> Option<TraceContext> + Send + Sync> ProducerInterceptor for TracePropagation<F> {
    fn on_send(&self, record: &mut OutgoingRecord<'_, '_>) {
        let Some(context) = (self.0)() else { return };
        record.remove_headers(TRACEPARENT);
        record.remove_headers(TRACESTATE);
        record.add_header(TRACEPARENT, Some(context.to_string().into_bytes()));
        if !context.state.is_empty() {
            record.add_header(TRACESTATE, Some(context.state.into_bytes()));
        }
    }
}

impl<F> fmt::Debug for TracePropagation<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TracePropagation").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparent_is_read_and_written_as_recommended() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::parse(text).expect("it is valid");
        assert_eq!((context.to_string().as_str(), context.is_sampled()), (text, true));
        assert_eq!(TraceContext::parse(&text.replacen("00", "cc", 1)).as_ref(), Some(&context));
        assert!(TraceContext::parse(&format!("cc{}-new", &text[2..])).is_some(), "a later version");
        for wrong in [
            String::new(),
            text.to_uppercase(),
            text.replacen("00", "ff", 1),
            format!("{text}-x"),
            text[..54].to_owned(),
            text.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            text.replace("00f067aa0ba902b7", &"0".repeat(16)),
            text.replace("4bf9", "+bf9"),
        ] {
            assert_eq!(TraceContext::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn propagation_replaces_the_headers_of_an_earlier_context() {
        use ottla_core::produce::{outgoing::PreparedRecord, record::Record};

        let context = TraceContext::new(1, 2, 0).expect("no ID is zero").with_state("vendor=x");
        let record = Record::new().header("traceparent", "old").header("other", "1");
        let mut prepared = PreparedRecord::new(record.clone());
        let mut outgoing = OutgoingRecord::new("t", &mut prepared);
        TracePropagation::new(|| Some(context.clone())).on_send(&mut outgoing);
        let texts: Vec<_> = outgoing.headers().map(|(key, value)| (key, value.unwrap_or_default())).collect();
        let parent = context.to_string();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"other", b"1"), (b"traceparent", parent.as_bytes()), (b"tracestate", b"vendor=x")];
        assert_eq!(texts, expected);
        let mut prepared = PreparedRecord::new(record);
        let mut untouched = OutgoingRecord::new("t", &mut prepared);
        TracePropagation::new(|| None).on_send(&mut untouched);
        assert_eq!(untouched.headers().count(), 2);
    }
}
