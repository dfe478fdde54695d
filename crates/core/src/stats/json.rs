//! Formats librdkafka's JSON from the table.

use std::fmt::Write;

use ottla_protocol::vocabulary::TopicPartition;

use super::{
    snapshot::Statistics,
    table::{BROKER, COLLECTOR, CONSUMER, EOS, Field, GROUP, PARTITION, TOP, TOPIC, Value, WINDOW},
};

/// Formats a snapshot as JSON.
pub(super) fn json(statistics: &Statistics) -> String {
    let mut out = String::with_capacity(4096);
    object(&mut out, TOP, statistics);
    out
}

fn object<T>(out: &mut String, fields: &[Field<T>], of: &T) {
    out.push('{');
    members(out, fields, of);
    out.push('}');
}

fn members<T>(out: &mut String, fields: &[Field<T>], of: &T) {
    let mut first = true;
    for field in fields {
        let value = (field.get)(of);
        if matches!(value, Value::Group(None) | Value::Eos(None) | Value::Consumer(None)) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        out.push('"');
        out.push_str(field.name);
        out.push_str("\":");
        put(out, &value);
    }
}

fn put(out: &mut String, value: &Value<'_>) {
    match value {
        Value::Number(number) => put_number(out, *number),
        Value::Text(text) => put_text(out, text),
        Value::Boolean(is) => out.push_str(if *is { "true" } else { "false" }),
        Value::Window(window) => object(out, WINDOW, window),
        Value::Numbers(numbers) => {
            entries(
                out,
                numbers.iter(),
                |out, (name, _)| out.push_str(name),
                |out, (_, n)| put_number(out, **n),
            );
        }
        Value::Brokers(brokers) => {
            let name = |out: &mut String, name: &str| escape(out, name);
            entries(out, brokers.iter(), |out, b| name(out, &b.name), |out, b| object(out, BROKER, b));
        }
        Value::Toppars(list) => entries(
            out,
            list.iter(),
            |out, TopicPartition { topic, partition }| {
                escape(out, topic);
                out.push('-');
                put_number(out, i64::from(*partition));
            },
            |out, TopicPartition { topic, partition }| {
                out.push_str("{\"topic\":");
                put_text(out, topic);
                out.push_str(",\"partition\":");
                put_number(out, i64::from(*partition));
                out.push('}');
            },
        ),
        Value::Collector(collector) => object(out, COLLECTOR, collector),
        Value::Topics(topics) => entries(
            out,
            topics.iter(),
            |out, (name, _)| escape(out, name),
            |out, (name, topic)| {
                out.push_str("{\"topic\":");
                put_text(out, name);
                out.push(',');
                members(out, TOPIC, topic);
                out.push('}');
            },
        ),
        Value::Partitions(partitions) => entries(
            out,
            partitions.iter(),
            |out, (number, _)| put_number(out, i64::from(**number)),
            |out, (number, partition)| {
                out.push_str("{\"partition\":");
                put_number(out, i64::from(**number));
                out.push(',');
                members(out, PARTITION, partition);
                out.push('}');
            },
        ),
        Value::Group(Some(group)) => object(out, GROUP, group),
        Value::Eos(Some(eos)) => object(out, EOS, eos),
        Value::Consumer(Some(consumer)) => object(out, CONSUMER, consumer),
        Value::Group(None) | Value::Eos(None) | Value::Consumer(None) => out.push_str("null"),
    }
}

fn entries<I: Iterator>(
    out: &mut String,
    list: I,
    name: impl Fn(&mut String, &I::Item),
    value: impl Fn(&mut String, &I::Item),
) {
    out.push('{');
    for (index, item) in list.enumerate() {
        out.push_str(if index == 0 { "\"" } else { ",\"" });
        name(out, &item);
        out.push_str("\":");
        value(out, &item);
    }
    out.push('}');
}

/// Formats a number. A snapshot may contain thousands of partitions with dozens of numbers each, so that formatting
/// numbers is its main cost.
fn put_number(out: &mut String, number: i64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push('-');
    }
    digits[start..].iter().for_each(|digit| out.push(char::from(*digit)));
}

fn put_text(out: &mut String, text: &str) {
    out.push('"');
    escape(out, text);
    out.push('"');
}

fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::stats::snapshot::{BrokerStatistics, EosStatistics};

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        for number in [0, 1, -1, 10, 1_234_567_890, i64::MAX, i64::MIN, -1001] {
            let mut out = String::new();
            put_number(&mut out, number);
            assert_eq!(out, number.to_string());
        }
    }

    #[test]
    fn texts_from_outside_are_escaped() {
        let statistics = Statistics { client_id: "a\"b\\c\n".to_owned(), ..Statistics::default() };
        assert!(json(&statistics).contains(r#""client_id":"a\"b\\c\u000a""#));
    }

    #[test]
    fn brokers_topics_and_partitions_are_objects_by_name() {
        let mut statistics = Statistics::default();
        statistics.brokers.push(BrokerStatistics {
            name: "h:9092/1".to_owned(),
            requests: [("Produce", 3)].into(),
            toppars: vec![TopicPartition::new("t", 2)],
            ..BrokerStatistics::default()
        });
        statistics.partition(&Arc::from("t"), 2).txmsgs = 9;
        statistics.eos = Some(EosStatistics::default());
        let json = json(&statistics);
        for part in [
            r#""brokers":{"h:9092/1":{"name":"h:9092/1","#,
            r#""req":{"Produce":3}"#,
            r#""toppars":{"t-2":{"topic":"t","partition":2}}"#,
            r#""topics":{"t":{"topic":"t","age":0"#,
            r#""partitions":{"2":{"partition":2,"broker":-1"#,
            r#""txmsgs":9"#,
            r#""eos":{"idemp_state":"#,
        ] {
            assert!(json.contains(part), "{part} in {json}");
        }
        assert!(!json.contains("cgrp"));
        assert_eq!(json.matches('{').count(), json.matches('}').count());
    }
}
