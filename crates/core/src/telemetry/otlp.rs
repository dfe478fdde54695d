//! Encodes metrics as OTLP's `MetricsData`, a protobuf message.
//!
//! ```text
//! MetricsData ── ResourceMetrics ─┬─ Resource: attributes of the client
//!                                 └─ ScopeMetrics ─┬─ InstrumentationScope: name, version
//!                                                  └─ Metric: name ── Gauge or Sum ── points: times, value, node_id
//! ```

use super::{
    application::ApplicationPoint,
    registry::{MetricPoint, MetricValue, PointKind, Temporality},
    settings::TelemetrySettings,
};
use crate::stats::metrics::ClientKind;

/// The attribute of a member's ID.
const MEMBER_ID: &str = "group_member_id";
/// The attribute of a value that belongs to a broker.
const NODE_ID: &str = "node_id";

/// Encodes points; those of a metric are adjacent. `member_id` may be empty.
pub(super) fn encode(
    points: &[MetricPoint],
    of_application: &[ApplicationPoint],
    kind: ClientKind,
    settings: &TelemetrySettings,
    member_id: &str,
) -> Vec<u8> {
    let mut out = Message::default();
    out.message(1, |resource_metrics| {
        resource_metrics.message(1, |resource| {
            for (name, value) in &settings.labels {
                resource.message(1, |attribute| attribute.text_attribute(name, value));
            }
            if !member_id.is_empty() {
                resource.message(1, |attribute| attribute.text_attribute(MEMBER_ID, member_id));
            }
        });
        resource_metrics.message(2, |scope_metrics| {
            scope_metrics.message(1, |scope| {
                scope.text(1, &settings.scope.0);
                scope.text(2, &settings.scope.1);
            });
            for points in points.chunk_by(|a, b| a.name == b.name) {
                scope_metrics.message(2, |metric| put_metric(metric, points, kind));
            }
            for point in of_application {
                scope_metrics.message(2, |metric| put_of_application(metric, point));
            }
        });
    });
    out.0
}

fn put_metric(metric: &mut Message, points: &[MetricPoint], kind: ClientKind) {
    let Some(first) = points.first() else { return };
    metric.text_in_parts(1, [kind.prefix(), first.name]);
    put_values(metric, first.kind, points);
}

fn put_values(metric: &mut Message, kind: PointKind, points: &[MetricPoint]) {
    match kind {
        PointKind::Gauge => metric.message(5, |gauge| put_points(gauge, points)),
        PointKind::Sum(temporality) => metric.message(7, |sum| {
            put_points(sum, points);
            sum.number(
                2,
                match temporality {
                    Temporality::Delta => 1,
                    Temporality::Cumulative => 2,
                },
            );
            sum.number(3, 1);
        }),
    }
}

/// Writes a metric of the application, whose name is whole.
fn put_of_application(metric: &mut Message, point: &ApplicationPoint) {
    metric.text(1, &point.name);
    let ApplicationPoint { kind, value, start_unix_nanos, time_unix_nanos, .. } = *point;
    let points = [MetricPoint { name: "", node: None, kind, value, start_unix_nanos, time_unix_nanos }];
    put_values(metric, kind, &points);
}

fn put_points(out: &mut Message, points: &[MetricPoint]) {
    for point in points {
        out.message(1, |data| {
            data.fixed64(2, point.start_unix_nanos);
            data.fixed64(3, point.time_unix_nanos);
            match point.value {
                MetricValue::Double(value) => data.fixed64(4, value.to_bits()),
                MetricValue::Int(value) => data.fixed64(6, value.cast_unsigned()),
            }
            if let Some(node) = point.node {
                // As the Java client writes it.
                data.message(7, |attribute| attribute.text_attribute(NODE_ID, &format!("node-{node}")));
            }
        });
    }
}

/// A protobuf message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn fixed64(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, field: u64, text: &str) {
        self.text_in_parts(field, [text, ""]);
    }

    fn text_in_parts(&mut self, field: u64, parts: [&str; 2]) {
        self.varint(field << 3 | 2);
        self.varint(parts.iter().map(|part| part.len() as u64).sum());
        parts.iter().for_each(|part| self.0.extend_from_slice(part.as_bytes()));
    }

    fn message(&mut self, field: u64, put: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        put(&mut inner);
        self.varint(field << 3 | 2);
        self.varint(inner.0.len() as u64);
        self.0.append(&mut inner.0);
    }

    /// Writes the fields of a `KeyValue` with a text.
    fn text_attribute(&mut self, key: &str, value: &str) {
        self.text(1, key);
        self.message(2, |any| any.text(1, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{machine::Instant, telemetry::settings::WallClock};

    /// The bytes that Kafka's generated classes read in the tests with a real broker; little-endian numbers on every machine.
    #[test]
    fn message_has_these_bytes() {
        let settings = TelemetrySettings {
            labels: vec![("group_id", "g".to_owned())],
            scope: ("s".to_owned(), "1".to_owned()),
            request_timeout: std::time::Duration::ZERO,
            wall_clock: WallClock::new(Instant::as_nanos),
            application: Default::default(),
        };
        let point = |name, kind, value, node| MetricPoint {
            name,
            node,
            kind,
            value,
            start_unix_nanos: 1,
            time_unix_nanos: 0x0102,
        };
        let points = [
            point("a", PointKind::Sum(Temporality::Delta), MetricValue::Int(-2), None),
            point("b", PointKind::Gauge, MetricValue::Double(1.5), Some(7)),
        ];
        let bytes = encode(&points, &[], ClientKind::Producer, &settings, "m");
        let expected = [
            // The resource: group_id and group_member_id.
            "0acb01 0a29 0a0f 0a08 67726f75705f6964 1203 0a01 67",
            "0a16 0a0f 67726f75705f6d656d6265725f6964 1203 0a01 6d",
            // The scope: name and version.
            "129d01 0a06 0a01 73 1201 31",
            // A sum: name, point with its times and an integer, temporality, monotonic.
            "1240 0a1b 6f72672e6170616368652e6b61666b612e70726f64756365722e61",
            "3a21 0a1b 110100000000000000 190201000000000000 31feffffffffffffff 1001 1801",
            // A gauge: name, point with its times, a floating-point number, and node_id.
            "1251 0a1b 6f72672e6170616368652e6b61666b612e70726f64756365722e62",
            "2a32 0a30 110100000000000000 190201000000000000 21000000000000f83f",
            "3a13 0a07 6e6f64655f6964 1208 0a06 6e6f64652d37",
        ];
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.concat().replace(' ', ""));
        assert!(encode(&[], &[], ClientKind::Producer, &settings, "").len() < 64);
    }
}
