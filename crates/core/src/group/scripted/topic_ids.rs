//! Committed offsets: topic IDs, and queries whose result is no longer wanted.

use ottla_protocol::{
    generated::{
        offset_commit::{OffsetCommitResponse, response as committed},
        offset_fetch::{OffsetFetchRequest, OffsetFetchResponse, response as fetched},
    },
    uuid::Uuid,
};

use super::*;

const OLD: Uuid = Uuid([1; 16]);
const NEW: Uuid = Uuid([2; 16]);
const SECOND: Duration = Duration::from_secs(1);

fn with_id(id: Uuid) -> Metadata {
    let mut metadata = metadata(&[("t", 1)]);
    metadata.topics.values_mut().for_each(|topic| topic.id = id);
    metadata
}

/// Committed offsets of a consumer whose metadata has the topic with the ID [`OLD`].
fn offsets() -> CommittedOffsets {
    let mut offsets = committed_offsets(Committer::Nobody);
    offsets.handle_metadata(&with_id(OLD));
    offsets
}

fn respond_to_commit(offsets: &mut CommittedOffsets, now: Instant, number: u64, code: ErrorCode) {
    let partitions = vec![committed::Partition { partition_index: 0, error_code: code }];
    let topics = vec![committed::Topic { topic_id: OLD, partitions, ..Default::default() }];
    let response = OffsetCommitResponse { topics, ..Default::default() };
    offsets.handle_response(now, number, Ok(as_response(now, ApiKey::OffsetCommit, 10, &response)));
}

fn respond_to_query(
    offsets: &mut CommittedOffsets,
    now: Instant,
    number: u64,
    (topic_id, error_code, committed_offset): (Uuid, ErrorCode, i64),
) {
    let partition = fetched::GroupTopicPartition { committed_offset, error_code, ..Default::default() };
    let topic = fetched::GroupTopic { topic_id, partitions: vec![partition], ..Default::default() };
    let group = fetched::Group { group_id: "g".into(), topics: vec![topic], ..Default::default() };
    let response = OffsetFetchResponse { groups: vec![group], ..Default::default() };
    offsets.handle_response(now, number, Ok(as_response(now, ApiKey::OffsetFetch, 10, &response)));
}

/// Checks that a query has this result.
fn expect_found(offsets: &mut CommittedOffsets, id: QuestionId, offset: i64) {
    let (finished, result) = offsets.poll_finished().expect("the offset is known");
    let found = result.expect("it is known").map(|committed| committed.offset);
    assert_eq!((finished, found), (id, Some(offset)));
}

#[test]
fn commit_names_the_topic_by_its_id_if_the_broker_knows_ids() {
    let mut offsets = offsets();
    let waiting = commit(&mut offsets);
    let (number, request) = offsets.poll_request(START).expect("a request");
    assert_eq!(*request.versions.end(), 10);
    for version in [9, 10] {
        let mut bytes = Vec::new();
        (request.encode)(version, &mut bytes).expect("it can be encoded");
        let sent = OffsetCommitRequest::decode(&mut Reader::new(&bytes), version).expect("a request");
        let expected = if version == 10 { (OLD, "") } else { (Uuid::ZERO, "t") };
        assert_eq!((sent.topics[0].topic_id, &*sent.topics[0].name), expected);
    }
    respond_to_commit(&mut offsets, START, number, ErrorCode::NONE);
    assert_eq!(waiting.try_take(), Some(Ok(vec![Ok(())])));
}

#[test]
fn commit_names_the_topic_by_its_name_while_its_id_is_unknown() {
    for metadata in [with_id(Uuid::ZERO), metadata(&[])] {
        let mut offsets = offsets();
        offsets.handle_metadata(&metadata);
        let _waiting = commit(&mut offsets);
        let (_, request) = offsets.poll_request(START).expect("a request");
        assert_eq!(*request.versions.end(), 9);
    }
}

#[test]
fn commit_is_refused_for_a_topic_that_was_recreated() {
    let is_recreated = |waiting: Waiting<CommitResult>| {
        let results = waiting.try_take().expect("it ended").expect("the outcome is the partition's");
        let error = results[0].as_ref().expect_err("the offset belongs to the old topic");
        assert_eq!(error.kind(), ErrorKind::TopicRecreated, "{error}");
    };
    // The consumer learns of it before the commit is sent.
    let mut before = offsets();
    let waiting = commit(&mut before);
    before.handle_metadata(&with_id(NEW));
    assert!(before.poll_request(START).is_none());
    is_recreated(waiting);

    // The coordinator learns of it first.
    let mut after = offsets();
    let waiting = commit(&mut after);
    let (number, _) = after.poll_request(START).expect("a request");
    respond_to_commit(&mut after, START, number, ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(after.take_outdated_topics(), [Arc::from("t")].into(), "newer metadata is needed");
    after.handle_metadata(&with_id(NEW));
    after.handle_timeout(START + SECOND);
    assert!(after.poll_request(START + SECOND).is_none());
    is_recreated(waiting);
}

#[test]
fn offset_of_a_record_is_refused_for_a_topic_that_was_recreated_since() {
    let mut offsets = offsets();
    let of_record = GroupOffset { topic_id: Some(OLD), ..GroupOffset::new("t", 0, 1) };
    // The consumer learns of the new topic between the application's call and the commit.
    offsets.handle_metadata(&with_id(NEW));
    let waiting = commit_offset(&mut offsets, of_record, SECOND);
    assert!(offsets.poll_request(START).is_none(), "it would be committed for the new topic");
    let results = waiting.try_take().expect("it ended").expect("the outcome is the partition's");
    let error = results[0].as_ref().expect_err("the offset belongs to the old topic");
    assert_eq!(error.kind(), ErrorKind::TopicRecreated, "{error}");
}

/// Committed offsets after metadata that report the topic as deleted.
fn offsets_of_a_deleted_topic() -> CommittedOffsets {
    let mut offsets = offsets();
    let mut deleted = with_id(OLD);
    deleted.topics.values_mut().for_each(|topic| topic.gone = true);
    offsets.handle_metadata(&deleted);
    offsets
}

#[test]
fn offset_of_a_deleted_topic_is_not_sent_by_name() {
    let mut offsets = offsets_of_a_deleted_topic();
    // Its name may be that of a new topic by now, which the consumer has not seen yet.
    let of_record = GroupOffset { topic_id: Some(OLD), ..GroupOffset::new("t", 0, 1) };
    let waiting = commit_offset(&mut offsets, of_record, SECOND);
    let (number, request) = offsets.poll_request(START).expect("a request");
    assert_eq!(*request.versions.end(), 10);
    for version in [9, 10] {
        let mut bytes = Vec::new();
        (request.encode)(version, &mut bytes).expect("it can be encoded");
        let sent = OffsetCommitRequest::decode(&mut Reader::new(&bytes), version).expect("a request");
        let named: Vec<_> = sent.topics.iter().map(|topic| (topic.topic_id, &*topic.name)).collect();
        assert_eq!(named, if version == 10 { vec![(OLD, "")] } else { vec![] });
    }
    let nothing = OffsetCommitResponse::default();
    offsets.handle_response(START, number, Ok(as_response(START, ApiKey::OffsetCommit, 9, &nothing)));
    expect_deleted(&waiting);
}

fn expect_deleted(waiting: &Waiting<CommitResult>) {
    let results = waiting.try_take().expect("it ended").expect("the outcome is the partition's");
    let error = results[0].as_ref().expect_err("the topic does not exist");
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION), "{error}");
}

#[test]
fn commit_for_a_deleted_topic_is_not_repeated() {
    let mut offsets = offsets_of_a_deleted_topic();
    let of_record = GroupOffset { topic_id: Some(OLD), ..GroupOffset::new("t", 0, 1) };
    let waiting = commit_offset(&mut offsets, of_record, SECOND);
    let (number, _) = offsets.poll_request(START).expect("a request");
    respond_to_commit(&mut offsets, START, number, ErrorCode::UNKNOWN_TOPIC_ID);
    expect_deleted(&waiting);
}

#[test]
fn commit_for_an_id_that_the_coordinator_never_knows_fails() {
    let mut offsets = offsets();
    let waiting = commit(&mut offsets);
    let mut now = START;
    let mut requests = 0;
    while let Some((number, _)) = offsets.poll_request(now) {
        requests += 1;
        respond_to_commit(&mut offsets, now, number, ErrorCode::UNKNOWN_TOPIC_ID);
        now += SECOND;
        offsets.handle_timeout(now);
    }
    assert_eq!(requests, 6);
    let results = waiting.try_take().expect("it ended").expect("the outcome is the partition's");
    let error = results[0].as_ref().expect_err("it failed");
    assert_eq!(error.kind(), ErrorKind::Broker(ErrorCode::UNKNOWN_TOPIC_ID));
}

#[test]
fn committed_offset_is_requested_by_id_and_again_after_newer_metadata() {
    let mut offsets = offsets();
    let id = offsets.start(TopicPartition::new("t", 0));
    let mut now = START;
    for (topic_id, code) in [(OLD, ErrorCode::UNKNOWN_TOPIC_ID), (NEW, ErrorCode::NONE)] {
        let (number, request) = offsets.poll_request(now).expect("a request");
        let mut bytes = Vec::new();
        (request.encode)(10, &mut bytes).expect("it can be encoded");
        let sent = OffsetFetchRequest::decode(&mut Reader::new(&bytes), 10).expect("a request");
        let topics = sent.groups[0].topics.as_ref().expect("topics");
        assert_eq!(topics[0].topic_id, topic_id);
        let offset = if code.is_error() { -1 } else { 7 };
        respond_to_query(&mut offsets, now, number, (topic_id, code, offset));
        offsets.handle_metadata(&with_id(NEW));
        now += SECOND;
        offsets.handle_timeout(now);
    }
    assert_eq!(offsets.take_outdated_topics(), [Arc::from("t")].into());
    expect_found(&mut offsets, id, 7);
}

#[test]
fn offsets_that_arrive_outside_the_group_are_queried_again() {
    let mut offsets = offsets();
    offsets.commit_as(member(3, None));
    let id = offsets.start(TopicPartition::new("t", 0));
    let (number, _) = offsets.poll_request(START).expect("a request");
    offsets.commit_as(Committer::Outside);
    respond_to_query(&mut offsets, START, number, (OLD, ErrorCode::NONE, 7));
    assert!(offsets.poll_finished().is_none());
    assert!(offsets.poll_request(START).is_none());

    offsets.commit_as(member(4, None));
    let (number, _) = offsets.poll_request(START).expect("a request");
    respond_to_query(&mut offsets, START, number, (OLD, ErrorCode::NONE, 9));
    expect_found(&mut offsets, id, 9);
}

#[test]
fn cancelled_query_in_flight_is_not_repeated() {
    let mut offsets = offsets();
    let [cancelled, wanted] = [0, 1].map(|number| offsets.start(TopicPartition::new("t", number)));
    let (number, _) = offsets.poll_request(START).expect("a request");
    offsets.cancel(cancelled);
    offsets.handle_response(START, number, Err(Error::new(ErrorKind::Disconnected, "")));
    offsets.handle_timeout(START + SECOND);
    let (number, _) = offsets.poll_request(START + SECOND).expect("a request");
    offsets.cancel(wanted);
    offsets.handle_response(START + SECOND, number, Err(Error::new(ErrorKind::Disconnected, "")));
    offsets.handle_timeout(START + SECOND + SECOND);
    assert!(offsets.poll_request(START + SECOND + SECOND).is_none());
}
