//! Decodes the metrics that clients push (KIP-714): OTLP's `MetricsData`, a protobuf message, without copying it.
//!
//! ```text
//! MetricsData ── ResourceMetrics ── Resource: attributes
//!                               └── ScopeMetrics ── Metric: name, unit ── Gauge, Sum ── points: attributes, value
//! ```
//!
//! Unknown fields are skipped, as protobuf requires. Invalid messages are an error.

use std::fmt;

/// The value of a gauge or a sum that a client pushed.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// The metric's name, such as `org.apache.kafka.producer.connection.creation.total`.
    pub name: String,
    /// The kind of the metric.
    pub kind: MetricKind,
    /// The value; integers are converted to floating point.
    pub value: f64,
    /// The attributes of the value, such as `node_id`. Only text and integer attributes are included.
    pub attributes: Vec<(String, String)>,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A current value.
    Gauge,
    /// The increase since the previous value.
    DeltaSum,
    /// The total since the start of the client.
    CumulativeSum,
}

/// Error: the bytes are not a valid `MetricsData`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtlpError {
    /// The message that was being decoded.
    pub message: &'static str,
    /// The reason for the failure.
    pub problem: &'static str,
}

impl fmt::Display for OtlpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "these are not OTLP metrics: {}, in {}", self.problem, self.message)
    }
}

impl std::error::Error for OtlpError {}

/// Returns the values of gauges and sums in pushed metrics. Histograms and summaries are skipped.
pub(crate) fn points(bytes: &[u8]) -> Result<Vec<MetricPoint>, OtlpError> {
    let mut points = Vec::new();
    walk(bytes, |metric, point| {
        points.push(MetricPoint {
            name: metric.name.to_owned(),
            kind: metric.kind,
            value: point.value,
            attributes: attributes(point.bytes, POINT_ATTRIBUTES, "NumberDataPoint")?,
        });
        Ok(())
    })?;
    Ok(points)
}

/// Returns the client's resource attributes, such as `client_rack`.
pub(crate) fn resource_attributes(bytes: &[u8]) -> Result<Vec<(String, String)>, OtlpError> {
    let mut found = Vec::new();
    each_message(bytes, 1, "MetricsData", |resource_metrics| {
        each_message(resource_metrics, 1, "ResourceMetrics", |resource| {
            found.append(&mut attributes(resource, 1, "Resource")?);
            Ok(())
        })
    })?;
    Ok(found)
}

/// Fails if the bytes are not valid `MetricsData`. Allocates no memory.
pub(crate) fn check(bytes: &[u8]) -> Result<(), OtlpError> {
    walk(bytes, |_, _| Ok(()))
}

struct Metric<'a> {
    name: &'a str,
    kind: MetricKind,
}

struct Point<'a> {
    value: f64,
    bytes: &'a [u8],
}

const POINT_ATTRIBUTES: u64 = 7;

fn walk<'a>(
    bytes: &'a [u8],
    mut visit: impl FnMut(&Metric<'a>, &Point<'a>) -> Result<(), OtlpError>,
) -> Result<(), OtlpError> {
    each_message(bytes, 1, "MetricsData", |resource_metrics| {
        each_message(resource_metrics, 2, "ResourceMetrics", |scope_metrics| {
            each_message(scope_metrics, 2, "ScopeMetrics", |metric| walk_metric(metric, &mut visit))
        })
    })
}

fn walk_metric<'a>(
    bytes: &'a [u8],
    visit: &mut impl FnMut(&Metric<'a>, &Point<'a>) -> Result<(), OtlpError>,
) -> Result<(), OtlpError> {
    const MESSAGE: &str = "Metric";
    let (mut name, mut data) = ("", None);
    let mut fields = Fields { bytes, message: MESSAGE };
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(text)) => name = utf8(text, MESSAGE)?,
            (2 | 3, Value::Bytes(text)) => _ = utf8(text, MESSAGE)?,
            (5, Value::Bytes(gauge)) => data = Some((gauge, MetricKind::Gauge)),
            (7, Value::Bytes(sum)) => data = Some((sum, sum_kind(sum)?)),
            _ => {}
        }
    }
    let Some((data, kind)) = data else { return Ok(()) };
    let metric = Metric { name, kind };
    each_message(data, 1, "Gauge or Sum", |point| {
        let mut fields = Fields { bytes: point, message: "NumberDataPoint" };
        let mut value = None;
        while let Some((number, field)) = fields.next()? {
            match (number, field) {
                (4, Value::Fixed64(bits)) => value = Some(f64::from_bits(bits)),
                #[allow(
                    clippy::cast_precision_loss,
                    reason = "the floating number next to it is near enough"
                )]
                (6, Value::Fixed64(bits)) => value = Some(bits.cast_signed() as f64),
                _ => {}
            }
        }
        value.map_or(Ok(()), |value| visit(&metric, &Point { value, bytes: point }))
    })
}

fn sum_kind(sum: &[u8]) -> Result<MetricKind, OtlpError> {
    let mut kind = MetricKind::CumulativeSum;
    let mut fields = Fields { bytes: sum, message: "Sum" };
    while let Some(field) = fields.next()? {
        if let (2, Value::Varint(temporality)) = field {
            kind = if temporality == 1 { MetricKind::DeltaSum } else { MetricKind::CumulativeSum };
        }
    }
    Ok(kind)
}

/// Returns the text and integer attributes in a message's field.
fn attributes(bytes: &[u8], field: u64, message: &'static str) -> Result<Vec<(String, String)>, OtlpError> {
    let mut attributes = Vec::new();
    each_message(bytes, field, message, |attribute| {
        const MESSAGE: &str = "KeyValue";
        let (mut key, mut text) = ("", None);
        let mut fields = Fields { bytes: attribute, message: MESSAGE };
        while let Some(field) = fields.next()? {
            match field {
                (1, Value::Bytes(name)) => key = utf8(name, MESSAGE)?,
                (2, Value::Bytes(any)) => text = any_value(any)?,
                _ => {}
            }
        }
        attributes.extend(text.map(|text| (key.to_owned(), text)));
        Ok(())
    })?;
    Ok(attributes)
}

fn any_value(bytes: &[u8]) -> Result<Option<String>, OtlpError> {
    const MESSAGE: &str = "AnyValue";
    let mut fields = Fields { bytes, message: MESSAGE };
    let mut found = None;
    while let Some(field) = fields.next()? {
        match field {
            (1, Value::Bytes(text)) => found = Some(utf8(text, MESSAGE)?.to_owned()),
            (3, Value::Varint(number)) => found = Some(number.cast_signed().to_string()),
            _ => {}
        }
    }
    Ok(found)
}

/// Calls a function with each message of this field.
fn each_message<'a>(
    bytes: &'a [u8],
    field: u64,
    message: &'static str,
    mut visit: impl FnMut(&'a [u8]) -> Result<(), OtlpError>,
) -> Result<(), OtlpError> {
    let mut fields = Fields { bytes, message };
    while let Some((number, value)) = fields.next()? {
        if let Value::Bytes(inner) = value
            && number == field
        {
            visit(inner)?;
        }
    }
    Ok(())
}

fn utf8<'a>(bytes: &'a [u8], message: &'static str) -> Result<&'a str, OtlpError> {
    std::str::from_utf8(bytes).map_err(|_| OtlpError { message, problem: "a text that is not UTF-8" })
}

/// An iterator over the fields of a protobuf message.
struct Fields<'a> {
    bytes: &'a [u8],
    message: &'static str,
}

enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Fields<'a> {
    /// Returns the next field's number and value.
    fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, OtlpError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire_type) = (tag >> 3, tag & 7);
        if number == 0 || number >= 1 << 29 {
            return Err(self.error("a field number that can't be"));
        }
        let value = match wire_type {
            0 => Value::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                Value::Fixed64(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
            }
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => {
                self.take(4)?;
                Value::Fixed32
            }
            _ => return Err(self.error("a wire type that OTLP doesn't have")),
        };
        Ok(Some((number, value)))
    }

    fn varint(&mut self) -> Result<u64, OtlpError> {
        let mut value = 0;
        for (i, byte) in self.bytes.iter().take(10).enumerate() {
            if i == 9 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[i + 1..];
                return Ok(value);
            }
        }
        Err(self.error("a number without end"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], OtlpError> {
        let (taken, rest) =
            self.bytes.split_at_checked(length).ok_or_else(|| self.error("a field that is cut off"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn error(&self, problem: &'static str) -> OtlpError {
        OtlpError { message: self.message, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend_from_slice(bytes);
        out
    }

    fn fixed(number: u8, bits: u64) -> Vec<u8> {
        let mut out = vec![number << 3 | 1];
        out.extend_from_slice(&bits.to_le_bytes());
        out
    }

    fn metrics(of_one: &[u8]) -> Vec<u8> {
        let attribute = field(1, &[field(1, b"rack"), field(2, &field(1, b"r1"))].concat());
        let scope = field(2, &field(2, of_one));
        field(1, &[field(1, &attribute), scope].concat())
    }

    fn example() -> Vec<u8> {
        let node = field(7, &[field(1, b"node_id"), field(2, &[3 << 3, 7])].concat());
        let point = field(1, &[node, fixed(3, 99), fixed(4, 2.5f64.to_bits())].concat());
        let sum = field(7, &[point, vec![2 << 3, 1]].concat());
        metrics(&[field(1, b"a.total"), field(3, b"1"), sum].concat())
    }

    #[test]
    fn values_are_parsed_with_names_and_attributes() {
        let bytes = example();
        let expected = MetricPoint {
            name: "a.total".to_owned(),
            kind: MetricKind::DeltaSum,
            value: 2.5,
            attributes: vec![("node_id".to_owned(), "7".to_owned())],
        };
        assert_eq!(points(&bytes), Ok(vec![expected]));
        assert_eq!(resource_attributes(&bytes), Ok(vec![("rack".to_owned(), "r1".to_owned())]));
        let gauge = field(5, &field(1, &fixed(6, (-3i64).cast_unsigned())));
        let read = points(&metrics(&[field(1, b"g"), gauge].concat())).unwrap();
        assert_eq!((read[0].kind, read[0].value), (MetricKind::Gauge, -3.0));
    }

    #[test]
    fn truncated_metrics_are_rejected_or_a_part_of_the_whole() {
        let bytes = example();
        for len in 1..bytes.len() {
            assert!(check(&bytes[..len]).is_err(), "{len} bytes");
        }
        assert_eq!(check(&[]), Ok(()));
    }

    #[test]
    fn invalid_metrics_are_refused_with_the_reason() {
        for (bytes, problem) in [
            (&[0xff; 11][..], "a number without end"),
            (b"hello", "a wire type that OTLP doesn't have"),
            (&[0x02, 0], "a field number that can't be"),
            (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], "a field that is cut off"),
            (&[0x0d, 1, 2], "a field that is cut off"),
        ] {
            assert_eq!(check(bytes).unwrap_err().problem, problem, "{bytes:?}");
        }
        let error = check(&metrics(&field(1, &[0xff]))).unwrap_err();
        assert_eq!(error.to_string(), "these are not OTLP metrics: a text that is not UTF-8, in Metric");
    }
}
