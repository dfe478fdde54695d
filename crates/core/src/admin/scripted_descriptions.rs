//! Descriptions of the cluster and of topics, against scripted brokers.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        describe_cluster::{DescribeClusterRequest, DescribeClusterResponse, response as cluster},
        describe_topic_partitions::{
            DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, response as pages,
        },
        metadata::{MetadataRequest, MetadataResponse, response as metadata},
    },
    primitive::Reader,
    uuid::Uuid,
};

use super::{
    describe::{ClusterDescription, describe_cluster, describe_topics},
    groups::scripted::{Script, Sent, TIMEOUT},
    topic_ids::describe_topics_by_id,
};
use crate::{
    completion::Waiting,
    error::{Error, ErrorKind},
};

fn cluster_of(brokers: &[(i32, bool)]) -> DescribeClusterResponse {
    let broker = |(broker_id, is_fenced): &(i32, bool)| cluster::Broker {
        broker_id: *broker_id,
        is_fenced: *is_fenced,
        ..cluster::Broker::default()
    };
    DescribeClusterResponse {
        cluster_id: "c".into(),
        controller_id: 2,
        brokers: brokers.iter().map(broker).collect(),
        ..Default::default()
    }
}

/// A page of topics with the numbers of their partitions, and where the next one begins.
fn page(topics: &[(&str, &[i32])], next: Option<(&str, i32)>) -> DescribeTopicPartitionsResponse {
    let partition = |partition_index: &i32| pages::Partition {
        partition_index: *partition_index,
        eligible_leader_replicas: Some(vec![3]),
        ..pages::Partition::default()
    };
    let topic = |(name, partitions): &(&str, &[i32])| pages::Topic {
        name: Some((*name).to_owned()),
        topic_id: Uuid([1; 16]),
        partitions: partitions.iter().map(partition).collect(),
        topic_authorized_operations: 8,
        ..pages::Topic::default()
    };
    let next = next
        .map(|(topic, partition_index)| pages::NextCursor { topic_name: topic.to_owned(), partition_index });
    DescribeTopicPartitionsResponse {
        topics: topics.iter().map(topic).collect(),
        next_cursor: next,
        ..Default::default()
    }
}

type Waits = Waiting<Result<ClusterDescription, Error>>;

fn describe(names: &[&str]) -> (Script, Waits) {
    let names = names.iter().map(ToString::to_string).collect();
    Script::new(|done| describe_topics(names, false, TIMEOUT, done))
}

/// Returns the topics of the request, and its cursor.
fn requested(sent: &Sent) -> (Vec<String>, Option<(String, i32)>) {
    let request = DescribeTopicPartitionsRequest::decode(&mut Reader::new(&sent.body), 0).unwrap();
    let cursor = request.cursor.map(|cursor| (cursor.topic_name, cursor.partition_index));
    (request.topics.into_iter().map(|topic| topic.name).collect(), cursor)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn fenced_brokers_are_listed_on_request() {
    let (mut script, waiting) = Script::new(|done| describe_cluster(true, true, TIMEOUT, done));
    let sent = script.one(2);
    assert_eq!(sent.versions, 2..=2);
    let request = DescribeClusterRequest::decode(&mut Reader::new(&sent.body), 2).unwrap();
    assert!(request.include_fenced_brokers && request.include_cluster_authorized_operations);
    script.respond(&sent, 2, &cluster_of(&[(2, false), (1, true)]));
    let found = waiting.try_take().unwrap().unwrap();
    assert_eq!((found.cluster_id.as_deref(), found.controller_id), (Some("c"), Some(2)));
    let brokers: Vec<_> = found.brokers.iter().map(|broker| (broker.id, broker.is_fenced)).collect();
    assert_eq!(brokers, [(1, true), (2, false)]);
    assert_eq!(found.authorized_operations, None);
}

#[test]
fn cluster_is_described_by_metadata_of_older_brokers() {
    let (mut script, waiting) = Script::new(|done| describe_cluster(false, false, TIMEOUT, done));
    let sent = script.one(0);
    assert_eq!(sent.versions, 0..=2);
    script.fail(&sent, ErrorKind::UnsupportedVersion);
    let sent = script.one(9);
    let request = MetadataRequest::decode(&mut Reader::new(&sent.body), 9).unwrap();
    assert_eq!(request.topics, Some(Vec::new()));
    let broker = metadata::Broker { node_id: 1, ..metadata::Broker::default() };
    script.respond(&sent, 9, &MetadataResponse { brokers: vec![broker], ..Default::default() });
    assert_eq!(waiting.try_take().unwrap().unwrap().brokers[0].id, 1);

    // Metadata lacks the fenced brokers.
    let (mut script, waiting) = Script::new(|done| describe_cluster(false, true, TIMEOUT, done));
    let sent = script.one(2);
    script.fail(&sent, ErrorKind::UnsupportedVersion);
    assert_eq!(waiting.try_take().unwrap().unwrap_err().kind(), ErrorKind::UnsupportedVersion);
}

#[test]
fn refused_description_of_the_cluster_is_an_error() {
    let (mut script, waiting) = Script::new(|done| describe_cluster(false, false, TIMEOUT, done));
    let sent = script.one(1);
    let error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    let error_message = Some("no".to_owned());
    script.respond(&sent, 1, &DescribeClusterResponse { error_code, error_message, ..Default::default() });
    assert_eq!(waiting.try_take().unwrap().unwrap_err().kind(), ErrorKind::Broker(error_code));
}

#[test]
fn topics_are_described_page_by_page() {
    let (mut script, waiting) = describe(&["b", "a", "c"]);
    let sent = script.one(0);
    assert_eq!(requested(&sent), (names(&["a", "b", "c"]), None));
    script.respond(&sent, 0, &page(&[("a", &[0]), ("b", &[1, 0])], Some(("b", 2))));
    let sent = script.one(0);
    assert_eq!(requested(&sent), (names(&["b", "c"]), Some(("b".to_owned(), 2))));
    // The connection is lost, and the same page is requested again.
    script.fail(&sent, ErrorKind::Disconnected);
    let sent = script.one(0);
    assert_eq!(requested(&sent), (names(&["b", "c"]), Some(("b".to_owned(), 2))));
    let mut last = page(&[("b", &[2]), ("strange", &[0])], None);
    let missing = pages::Topic {
        name: Some("c".to_owned()),
        error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        ..pages::Topic::default()
    };
    last.topics.push(missing);
    script.respond(&sent, 0, &last);
    let topics = waiting.try_take().unwrap().unwrap().topics;
    let partitions: Vec<_> = topics
        .iter()
        .map(|topic| (&*topic.name, topic.partitions.iter().map(|one| one.id).collect::<Vec<_>>()))
        .collect();
    assert_eq!(partitions, [("a", vec![0]), ("b", vec![0, 1, 2]), ("c", vec![])]);
    assert_eq!(topics[2].error.as_ref().map(Error::kind), Some(ErrorKind::UnknownTopic));
    assert_eq!(topics[0].authorized_operations, None, "they were not requested");
    assert_eq!(topics[0].partitions[0].eligible_leader_replicas, Some(vec![3]));
    assert!(topics[0].id.is_some());
}

#[test]
fn pages_that_do_not_lead_on_are_refused() {
    let (mut script, waiting) = describe(&["a", "b"]);
    let sent = script.one(0);
    script.respond(&sent, 0, &page(&[("a", &[0])], Some(("b", 0))));
    for next in [("b", 0), ("a", 7), ("b", -1), ("a", 0)] {
        assert_eq!(waiting.try_take(), None);
        let sent = script.one(0);
        script.respond(&sent, 0, &page(&[("b", &[0])], Some(next)));
    }
    let topics = waiting.try_take().unwrap().expect("a topic is described").topics;
    let kinds: Vec<_> = topics.iter().map(|topic| topic.error.as_ref().map(Error::kind)).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::BadResponse)]);
}

#[test]
fn topics_that_pages_leave_out_fail_after_four_attempts() {
    let (mut script, waiting) = describe(&["a", "b"]);
    let sent = script.one(0);
    script.respond(&sent, 0, &page(&[("b", &[0])], None));
    for _ in 0..3 {
        assert_eq!(waiting.try_take(), None);
        let sent = script.one(0);
        assert_eq!(requested(&sent), (names(&["a"]), None));
        script.respond(&sent, 0, &page(&[], None));
    }
    let topics = waiting.try_take().unwrap().expect("a topic is described").topics;
    assert_eq!(topics[0].error.as_ref().map(Error::kind), Some(ErrorKind::BadResponse));
    assert_eq!(topics[1].error, None);
}

#[test]
fn older_brokers_describe_topics_by_metadata() {
    let (mut script, waiting) = describe(&["a"]);
    let sent = script.one(0);
    script.fail(&sent, ErrorKind::UnsupportedVersion);
    let sent = script.one(12);
    let topic = metadata::Topic { name: Some("a".to_owned()), ..metadata::Topic::default() };
    script.respond(&sent, 12, &MetadataResponse { topics: vec![topic], ..Default::default() });
    assert_eq!(waiting.try_take().unwrap().unwrap().topics[0].name, "a");
}

#[test]
fn topics_are_described_by_id() {
    let ids = [1, 2, 3].map(|byte| Uuid([byte; 16]));
    let (mut script, waiting) = Script::new(|done| describe_topics_by_id(ids.to_vec(), false, TIMEOUT, done));
    let sent = script.one(12);
    assert_eq!(*sent.versions.start(), 12);
    let request = MetadataRequest::decode(&mut Reader::new(&sent.body), 12).unwrap();
    let topics = request.topics.unwrap();
    assert!(topics.iter().all(|topic| topic.name.is_none()) && !request.allow_auto_topic_creation);
    let topic = |id, name: Option<&str>, error_code| metadata::Topic {
        topic_id: id,
        name: name.map(str::to_owned),
        error_code,
        ..metadata::Topic::default()
    };
    let unknown = ErrorCode::UNKNOWN_TOPIC_ID;
    let strange = topic(Uuid([9; 16]), Some("strange"), ErrorCode::NONE);
    let known = vec![strange, topic(ids[1], None, unknown), topic(ids[0], Some("a"), ErrorCode::NONE)];
    script.respond(&sent, 12, &MetadataResponse { topics: known, ..Default::default() });
    // The third one was left out.
    let sent = script.one(12);
    let refused = topic(ids[2], None, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    script.respond(&sent, 12, &MetadataResponse { topics: vec![refused], ..Default::default() });
    let results = waiting.try_take().unwrap().unwrap();
    assert_eq!(results[0].1.as_ref().map(|topic| &*topic.name), Ok("a"));
    let kinds: Vec<_> = results[1..].iter().map(|(_, result)| result.as_ref().unwrap_err().kind()).collect();
    let refused = ErrorKind::Broker(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    assert_eq!(kinds, [ErrorKind::Broker(unknown), refused]);
}
