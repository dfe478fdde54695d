//! Statistics through serde: `cargo test -p ottla-core --features serde --test serde`.

use ottla_core::stats::{
    BrokerStatistics, ConsumerStatistics, EosStatistics, GroupStatistics, PartitionStatistics, Statistics,
    TopicStatistics,
};
use ottla_protocol::vocabulary::TopicPartition;

#[test]
fn serde_writes_what_the_json_has() {
    let mut statistics = Statistics::default();
    statistics.client_id = "a\"b\\c\n".to_owned();
    let mut broker = BrokerStatistics::default();
    broker.name = "h:9092/1".to_owned();
    broker.requests = [("Produce", 3)].into();
    broker.toppars = vec![TopicPartition::new("t", 2)];
    statistics.brokers.push(broker);
    let mut topic = TopicStatistics::default();
    topic.partitions.insert(2, PartitionStatistics::default());
    statistics.topics.insert("t".into(), topic);
    let of_json: serde_json::Value = serde_json::from_str(&statistics.to_json()).unwrap();
    assert!(of_json.get("eos").is_none() && of_json["brokers"]["h:9092/1"]["toppars"]["t-2"].is_object());
    assert_eq!(serde_json::to_value(&statistics).unwrap(), of_json);

    statistics.eos = Some(EosStatistics::default());
    statistics.group = Some(GroupStatistics::default());
    statistics.consumer = Some(ConsumerStatistics::default());
    let of_json: serde_json::Value = serde_json::from_str(&statistics.to_json()).unwrap();
    assert!(of_json["eos"].is_object() && of_json["cgrp"].is_object());
    assert_eq!(serde_json::to_value(&statistics).unwrap(), of_json);
}
