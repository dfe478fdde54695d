//! Serializes a snapshot with the names of the JSON, through serde: for other formats, and for fields chosen by a program.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{
    snapshot::{
        BrokerStatistics, CollectorStatistics, ConsumerStatistics, EosStatistics, GroupStatistics,
        PartitionStatistics, Statistics, TopicStatistics,
    },
    table::{BROKER, COLLECTOR, CONSUMER, EOS, Field, GROUP, PARTITION, TOP, TOPIC, Value, WINDOW},
    window::Window,
};

/// Adds the fields of an object.
fn members<M: SerializeMap, T>(map: &mut M, fields: &[Field<T>], of: &T) -> Result<(), M::Error> {
    for field in fields {
        match (field.get)(of) {
            Value::Group(None) | Value::Eos(None) | Value::Consumer(None) => {}
            value => map.serialize_entry(field.name, &Serialized(value))?,
        }
    }
    Ok(())
}

macro_rules! objects {
    ($($type:ident: $fields:ident),* $(,)?) => {$(
        /// With the names of the JSON.
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                members(&mut map, $fields, self)?;
                map.end()
            }
        }
    )*};
}

objects! {
    Statistics: TOP,
    BrokerStatistics: BROKER,
    CollectorStatistics: COLLECTOR,
    TopicStatistics: TOPIC,
    PartitionStatistics: PARTITION,
    GroupStatistics: GROUP,
    ConsumerStatistics: CONSUMER,
    EosStatistics: EOS,
    Window: WINDOW,
}

/// A value of a field.
struct Serialized<'a>(Value<'a>);

/// An object that begins with its own name, as topics and partitions do.
struct Named<'a, N, T: 'static>(&'static str, N, &'a [Field<T>], &'a T);

impl<N: Serialize, T> Serialize for Named<'_, N, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(self.0, &self.1)?;
        members(&mut map, self.2, self.3)?;
        map.end()
    }
}

/// A partition that a broker leads.
struct Toppar<'a>(&'a str, i32);

impl Serialize for Toppar<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("topic", self.0)?;
        map.serialize_entry("partition", &self.1)?;
        map.end()
    }
}

impl Serialize for Serialized<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Value::Number(number) => serializer.serialize_i64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Boolean(is) => serializer.serialize_bool(*is),
            Value::Window(window) => window.serialize(serializer),
            Value::Numbers(numbers) => serializer.collect_map(numbers.iter()),
            Value::Brokers(brokers) => {
                serializer.collect_map(brokers.iter().map(|broker| (&broker.name, broker)))
            }
            Value::Toppars(list) => serializer.collect_map(
                list.iter()
                    .map(|it| (format!("{}-{}", it.topic, it.partition), Toppar(&it.topic, it.partition))),
            ),
            Value::Collector(collector) => collector.serialize(serializer),
            Value::Topics(topics) => serializer.collect_map(
                topics.iter().map(|(name, topic)| (&**name, Named("topic", &**name, TOPIC, topic))),
            ),
            Value::Partitions(partitions) => {
                serializer.collect_map(partitions.iter().map(|(number, partition)| {
                    (number.to_string(), Named("partition", *number, PARTITION, partition))
                }))
            }
            Value::Group(group) => group.serialize(serializer),
            Value::Eos(eos) => eos.serialize(serializer),
            Value::Consumer(consumer) => consumer.serialize(serializer),
        }
    }
}
