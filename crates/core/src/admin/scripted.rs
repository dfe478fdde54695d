//! Administrative calls against scripted responses.

use ottla_protocol::{
    generated::{
        create_topics::{CreateTopicsRequest, CreateTopicsResponse, response::Topic},
        delete_records::{DeleteRecordsRequest, DeleteRecordsResponse, response as deleted},
        list_offsets::{
            ListOffsetsRequest, ListOffsetsResponse,
            response::{Partition as ListedPartition, Topic as ListedTopic},
        },
        offset_for_leader_epoch::{
            OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, response as ends,
        },
    },
    primitive::Reader,
    vocabulary::LeaderEpoch,
};

use super::{
    attempts::BAD_RESPONSES,
    groups::{
        describe_many::describe_groups,
        list::{GroupFilter, list_groups},
    },
    leader_epochs::{EpochEnd, epoch_ends},
    topics::{NewTopic, TopicResults, create_topics},
    *,
};
use crate::{
    completion::{Waiting, completion},
    connection::{
        frame::Frame,
        inflight::{InFlight, Payload, RequestTag},
    },
    contract::metadata::{Node, PartitionMetadata, TopicMetadata},
    offsets::list_offsets::OffsetSpec,
};

const START: Instant = Instant::from_nanos(1_000_000_000);

fn calls() -> AdminCalls {
    AdminCalls::new(
        Duration::from_secs(60),
        (Duration::from_millis(100), Duration::from_secs(1)),
        Rng::from_seed(1),
    )
}

/// Two brokers; topic `t` has partition 0 at broker 1 and partitions 1 and 2 at broker 2.
fn metadata() -> Metadata {
    let node = |host: &str| Node { host: host.into(), port: 9092, rack: None };
    let partition =
        |leader| PartitionMetadata { leader: NodeId::from_wire(leader), ..PartitionMetadata::default() };
    let topic = TopicMetadata { partitions: [1, 2, 2].map(partition).into(), ..TopicMetadata::default() };
    Metadata {
        controller_id: NodeId::from_wire(1),
        nodes: [(1, node("a")), (2, node("b"))]
            .into_iter()
            .filter_map(|(id, node)| Some((NodeId::from_wire(id)?, node)))
            .collect(),
        topics: [(Arc::from("t"), topic)].into(),
        ..Metadata::default()
    }
}

fn response(api: ApiKey, version: i16, body: Vec<u8>) -> Result<Response, Error> {
    let request = InFlight {
        correlation_id: 1,
        api,
        version,
        tag: RequestTag::Cluster(0),
        payload: Payload::Bytes(Vec::new()),
        expects_response: true,
        queued_at: START,
        written_at: START,
        timeout: Duration::from_secs(60),
    };
    Ok(Response { request, frame: Frame { len: body.len(), bytes: body }, body: 0 })
}

/// Returns the requests that are due now, encoded in `version`.
fn requests(calls: &mut AdminCalls, now: Instant, version: i16) -> Vec<(AdminRequest, Route, Vec<u8>)> {
    calls.advance(now, &metadata());
    let mut requests = Vec::new();
    while let Some(need) = calls.poll_need() {
        if let Need::Request { route, request, owner: RequestOwner::Admin(owner) } = need {
            let mut bytes = Vec::new();
            (request.encode)(version, &mut bytes).unwrap();
            requests.push((owner, route, bytes));
        }
    }
    requests
}

fn respond(calls: &mut AdminCalls, now: Instant, owner: AdminRequest, result: Result<Response, Error>) {
    calls.handle_response(now, owner, result);
}

fn created(results: &[(&str, ErrorCode)]) -> Result<Response, Error> {
    let topic = |(name, error_code): &(&str, ErrorCode)| Topic {
        name: (*name).to_owned(),
        error_code: *error_code,
        ..Topic::default()
    };
    let topics = results.iter().map(topic).collect();
    let mut body = Vec::new();
    CreateTopicsResponse { topics, ..CreateTopicsResponse::default() }.encode(5, &mut body).unwrap();
    response(ApiKey::CreateTopics, 5, body)
}

fn create(calls: &mut AdminCalls, names: &[&str], timeout: Duration) -> Waiting<TopicResults> {
    let (done, waiting) = completion();
    let topics = names.iter().map(|name| NewTopic::new(*name, 1, 1)).collect();
    calls.start(START, create_topics(topics, false, timeout, done));
    waiting
}

#[test]
fn invalid_response_is_retried_a_few_times_with_growing_backoff() {
    let mut calls = calls();
    let waiting = create(&mut calls, &["a"], Duration::from_secs(10));
    let mut now = START;
    let mut pauses = Vec::new();
    for attempt in 1..=BAD_RESPONSES {
        let sent = requests(&mut calls, now, 5);
        assert_eq!(sent.len(), 1, "attempt {attempt}");
        respond(&mut calls, now, sent[0].0, response(ApiKey::CreateTopics, 5, vec![1, 2, 3]));
        if attempt < BAD_RESPONSES {
            let next = calls.poll_timeout().unwrap();
            pauses.push((next - now).as_millis());
            now = next;
            calls.handle_timeout(now, None);
        }
    }
    assert!(pauses.is_sorted() && pauses[0] >= 80 && pauses[2] >= 2 * pauses[0], "{pauses:?}");
    let results = waiting.try_take().unwrap();
    assert_eq!(results[0].1.as_ref().unwrap_err().kind(), ErrorKind::BadResponse);
}

#[test]
fn unfinished_work_goes_to_the_next_controller() {
    let mut calls = calls();
    let waiting = create(&mut calls, &["a", "b"], Duration::from_secs(10));
    let sent = requests(&mut calls, START, 5);
    assert_eq!(sent[0].1, Route::Controller);
    respond(
        &mut calls,
        START,
        sent[0].0,
        created(&[("a", ErrorCode::NONE), ("b", ErrorCode::NOT_CONTROLLER)]),
    );
    assert!(matches!(calls.poll_need(), Some(Need::Metadata(Urgency::Now))));
    assert!(requests(&mut calls, START, 5).is_empty(), "not without a back-off");
    let later = calls.poll_timeout().unwrap();
    calls.handle_timeout(later, None);
    let sent = requests(&mut calls, later, 5);
    let again = CreateTopicsRequest::decode(&mut Reader::new(&sent[0].2), 5).unwrap();
    assert_eq!(again.topics.iter().map(|topic| &*topic.name).collect::<Vec<_>>(), ["b"]);
    respond(&mut calls, later, sent[0].0, created(&[("b", ErrorCode::INVALID_PARTITIONS)]));
    let results = waiting.try_take().unwrap();
    assert_eq!(results[0], ("a".to_owned(), Ok(())));
    assert_eq!(results[1].1.as_ref().unwrap_err().kind(), ErrorKind::Broker(ErrorCode::INVALID_PARTITIONS));
}

#[test]
fn call_ends_at_its_deadline_with_the_last_error() {
    let mut calls = calls();
    let waiting = create(&mut calls, &["a"], Duration::from_secs(1));
    let sent = requests(&mut calls, START, 5);
    respond(&mut calls, START, sent[0].0, Err(Error::new(ErrorKind::Disconnected, "gone")));
    calls.handle_timeout(START + Duration::from_secs(1), None);
    let results = waiting.try_take().unwrap();
    assert_eq!(results[0].1.as_ref().unwrap_err().kind(), ErrorKind::Disconnected);
    assert_eq!(calls.poll_timeout(), None);
}

#[test]
fn closing_completes_all_waiting_calls() {
    let mut calls = calls();
    let waiting = create(&mut calls, &["a"], Duration::from_secs(1));
    calls.close();
    assert_eq!(waiting.try_take().unwrap()[0].1.as_ref().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn call_may_choose_its_broker_and_its_timeout() {
    let mut calls = calls();
    let (done, waiting) = completion();
    let how = How { broker: Some(2), operation_timeout: Some(Duration::from_secs(3)) };
    let topics = vec![NewTopic::new("a", 1, 1)];
    calls.start(START, create_topics(topics, true, Duration::from_secs(9), done).done(how));
    let sent = requests(&mut calls, START, 5);
    assert_eq!(sent[0].1, Route::Node(2));
    let asked = CreateTopicsRequest::decode(&mut Reader::new(&sent[0].2), 5).unwrap();
    assert_eq!((asked.timeout_ms, asked.validate_only), (3000, true));
    drop(waiting);
}

/// A call that asks each kind of broker, for `timeout`.
fn calls_to_each_kind_of_broker(timeout: Duration) -> [AdminCall; 5] {
    let questions = vec![(("t", 0).into(), OffsetSpec::Latest)];
    let query = OffsetQuery { questions, timeout, read_committed: false, refusals: None };
    let before = vec![(("t", 0).into(), 1)];
    let topics = vec![NewTopic::new("a", 1, 1)];
    let groups = vec![Arc::from("g")];
    [
        create_topics(topics, false, timeout, completion().0),
        AdminCall::list_offsets(query, completion().0),
        records::delete_records(before, timeout, completion().0),
        list_groups(GroupFilter::default(), timeout, completion().0),
        describe_groups(groups, false, false, timeout, completion().0),
    ]
}

#[test]
fn call_without_time_ends_at_once_and_keeps_its_connection() {
    for timeout in [Duration::ZERO, Duration::from_millis(1)] {
        for call in calls_to_each_kind_of_broker(timeout) {
            let mut calls = calls();
            calls.start(START, call);
            calls.handle_metadata(START, &metadata(), &MetadataChanges::default());
            calls.advance(START, &metadata());
            let mut sent = Vec::new();
            while let Some(need) = calls.poll_need() {
                if let Need::Request { request, owner: RequestOwner::Admin(owner), .. } = need {
                    let name = request.api.name();
                    assert_eq!(request.timeout, Duration::from_secs(1), "{name} would close its connection");
                    sent.push(owner);
                }
            }
            assert!(!sent.is_empty());
            calls.handle_timeout(START + timeout, None);
            assert_eq!(calls.poll_timeout(), None, "the call ends in its time");
            // What arrives afterwards is of no call.
            for owner in sent {
                respond(&mut calls, START, owner, Err(Error::new(ErrorKind::Disconnected, "")));
            }
            assert_eq!(calls.poll_timeout(), None);
        }
    }
}

fn delete(before: &[(i32, i64)], done: Completion<records::DeletedRecords>) -> AdminCall {
    let before = before.iter().map(|(partition, offset)| (("t", *partition).into(), *offset));
    records::delete_records(before.collect(), Duration::from_secs(9), done)
}

fn response_of_deletion(low: &[(i32, i64)]) -> Result<Response, Error> {
    let partitions = low.iter().map(|(partition_index, low_watermark)| deleted::Partition {
        partition_index: *partition_index,
        low_watermark: *low_watermark,
        error_code: ErrorCode::NONE,
    });
    let topics = vec![deleted::Topic { name: "t".into(), partitions: partitions.collect() }];
    let mut body = Vec::new();
    DeleteRecordsResponse { topics, ..DeleteRecordsResponse::default() }.encode(2, &mut body).unwrap();
    response(ApiKey::DeleteRecords, 2, body)
}

fn deleted(error_code: ErrorCode, low_watermark: i64) -> Result<Response, Error> {
    let partitions = vec![deleted::Partition { partition_index: 1, low_watermark, error_code }];
    let topics = vec![deleted::Topic { name: "t".into(), partitions }];
    let mut body = Vec::new();
    DeleteRecordsResponse { topics, ..DeleteRecordsResponse::default() }.encode(2, &mut body).unwrap();
    response(ApiKey::DeleteRecords, 2, body)
}

#[test]
fn records_are_deleted_at_the_partitions_leader_also_after_it_moved() {
    let mut calls = calls();
    let (done, waiting) = completion();
    calls.start(START, delete(&[(1, 7)], done));
    let sent = requests(&mut calls, START, 2);
    assert_eq!(sent[0].1, Route::Node(2));
    respond(&mut calls, START, sent[0].0, deleted(ErrorCode::NOT_LEADER_OR_FOLLOWER, -1));
    let later = START + Duration::from_secs(1);
    calls.handle_timeout(later, None);
    let sent = requests(&mut calls, later, 2);
    assert_eq!(sent.len(), 1);
    respond(&mut calls, later, sent[0].0, deleted(ErrorCode::NONE, 7));
    assert_eq!(waiting.try_take().unwrap(), [Ok(7)]);
}

#[test]
fn records_are_deleted_with_one_request_per_leader() {
    let mut calls = calls();
    let (done, waiting) = completion();
    calls.start(START, delete(&[(2, 8), (0, -1), (1, 7), (3, 9)], done));
    let sent = requests(&mut calls, START, 2);
    let decoded = |bytes: &[u8]| DeleteRecordsRequest::decode(&mut Reader::new(bytes), 2).unwrap();
    let asked = sent.iter().map(|(_, route, bytes)| {
        let mut request = decoded(bytes);
        let partitions = request.topics.remove(0).partitions.into_iter();
        (route.clone(), partitions.map(|one| (one.partition_index, one.offset)).collect::<Vec<_>>())
    });
    assert_eq!(
        asked.collect::<Vec<_>>(),
        [(Route::Node(1), vec![(0, -1)]), (Route::Node(2), vec![(1, 7), (2, 8)])]
    );
    assert!(!calls.handle_metadata(START, &metadata(), &MetadataChanges::default()));
    respond(&mut calls, START, sent[0].0, response_of_deletion(&[(0, 5), (7, 7)]));
    // Partition 2 is left out, and requested again by itself.
    respond(&mut calls, START, sent[1].0, response_of_deletion(&[(1, 7)]));
    let later = START + Duration::from_secs(1);
    calls.handle_timeout(later, None);
    let sent = requests(&mut calls, later, 2);
    assert_eq!((sent.len(), decoded(&sent[0].2).topics[0].partitions.len()), (1, 1));
    respond(&mut calls, later, sent[0].0, response_of_deletion(&[(2, 8)]));
    let results = waiting.try_take().unwrap();
    assert_eq!(results[..3], [Ok(8), Ok(5), Ok(7)]);
    assert_eq!(results[3].as_ref().unwrap_err().kind(), ErrorKind::UnknownPartition);
}

#[test]
fn deletion_of_records_ends_at_its_deadline_with_the_results_so_far() {
    let mut calls = calls();
    let (done, waiting) = completion();
    calls.start(START, delete(&[(0, 1), (1, 7)], done));
    let sent = requests(&mut calls, START, 2);
    respond(&mut calls, START, sent[0].0, response_of_deletion(&[(0, 1)]));
    let late = START + Duration::from_secs(9);
    assert!(calls.poll_timeout().is_some_and(|at| at <= late));
    calls.handle_timeout(late, None);
    let results = waiting.try_take().unwrap();
    assert_eq!(results[0], Ok(1));
    assert_eq!(results[1].as_ref().unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(calls.poll_timeout(), None);
}

#[test]
fn deleting_records_of_unknown_partition_fails_before_the_deadline() {
    let mut calls = calls();
    let (done, waiting) = completion();
    calls.start(START, delete(&[(3, 7)], done));
    assert!(requests(&mut calls, START, 2).is_empty());
    assert!(!calls.handle_metadata(START, &metadata(), &MetadataChanges::default()));
    let results = waiting.try_take().unwrap();
    assert_eq!(results[0].as_ref().unwrap_err().kind(), ErrorKind::UnknownPartition);
}

#[test]
fn offset_lookups_of_different_isolation_use_separate_requests() {
    let mut calls = calls();
    let mut waiting = Vec::new();
    for read_committed in [false, true] {
        let (done, responses) = completion();
        let questions = vec![(("t", 0).into(), OffsetSpec::Latest)];
        let query =
            OffsetQuery { questions, timeout: Duration::from_secs(5), read_committed, refusals: None };
        calls.start(START, AdminCall::list_offsets(query, done));
        waiting.push(responses);
    }
    let sent = requests(&mut calls, START, 7);
    let isolation = sent
        .iter()
        .map(|(_, _, bytes)| ListOffsetsRequest::decode(&mut Reader::new(bytes), 7).unwrap().isolation_level);
    assert_eq!(isolation.collect::<Vec<_>>(), [0, 1]);
}

fn epoch_ends_of(ends: &[(i32, ErrorCode, i64)]) -> Result<Response, Error> {
    let partitions = ends.iter().map(|(partition, error_code, end_offset)| ends::Partition {
        partition: *partition,
        error_code: *error_code,
        leader_epoch: 3,
        end_offset: *end_offset,
    });
    let topics = vec![ends::Topic { topic: "t".into(), partitions: partitions.collect() }];
    let mut body = Vec::new();
    OffsetForLeaderEpochResponse { topics, ..OffsetForLeaderEpochResponse::default() }
        .encode(4, &mut body)
        .unwrap();
    response(ApiKey::OffsetForLeaderEpoch, 4, body)
}

#[test]
fn ends_of_epochs_take_one_request_per_leader_with_partial_results() {
    let mut calls = calls();
    let (done, waiting) = completion();
    let epochs = [2, 0, 1, 3]
        .map(|partition| (("t", partition).into(), LeaderEpoch::from_wire(partition + 5).unwrap()));
    calls.start(START, epoch_ends(epochs.into(), Duration::from_secs(9), done));
    let sent = requests(&mut calls, START, 4);
    let decoded = |bytes: &[u8]| OffsetForLeaderEpochRequest::decode(&mut Reader::new(bytes), 4).unwrap();
    let asked = sent.iter().map(|(_, route, bytes)| {
        let partitions = decoded(bytes).topics.remove(0).partitions.into_iter();
        (route.clone(), partitions.map(|one| (one.partition, one.leader_epoch)).collect::<Vec<_>>())
    });
    assert_eq!(
        asked.collect::<Vec<_>>(),
        [(Route::Node(1), vec![(0, 5)]), (Route::Node(2), vec![(1, 6), (2, 7)])]
    );
    assert!(!calls.handle_metadata(START, &metadata(), &MetadataChanges::default()));
    respond(&mut calls, START, sent[0].0, epoch_ends_of(&[(0, ErrorCode::TOPIC_AUTHORIZATION_FAILED, -1)]));
    let moved = (1, ErrorCode::NOT_LEADER_OR_FOLLOWER, -1);
    respond(&mut calls, START, sent[1].0, epoch_ends_of(&[moved, (2, ErrorCode::NONE, 80)]));
    assert_eq!(waiting.try_take(), None);
    let later = START + Duration::from_secs(1);
    calls.handle_timeout(later, None);
    let sent = requests(&mut calls, later, 4);
    assert_eq!((sent.len(), decoded(&sent[0].2).topics[0].partitions.len()), (1, 1), "only where it moved");
    respond(&mut calls, later, sent[0].0, epoch_ends_of(&[(1, ErrorCode::NONE, -1)]));
    let results = waiting.try_take().unwrap();
    let end_offset = |end_offset| Ok(EpochEnd { leader_epoch: LeaderEpoch::from_wire(3), end_offset });
    assert_eq!((&results[0], &results[2]), (&end_offset(Some(80)), &end_offset(None)));
    let kinds = [&results[1], &results[3]].map(|result| result.as_ref().unwrap_err().kind());
    assert_eq!(
        kinds,
        [ErrorKind::Broker(ErrorCode::TOPIC_AUTHORIZATION_FAILED), ErrorKind::UnknownPartition]
    );
}

#[test]
fn offset_lookups_take_one_request_per_leader_and_keep_their_order() {
    let mut calls = calls();
    let (done, waiting) = completion();
    let question = |partition, spec| (("t", partition).into(), spec);
    let query = OffsetQuery {
        questions: vec![
            question(2, OffsetSpec::Latest),
            question(0, OffsetSpec::Latest),
            question(1, OffsetSpec::Latest),
            question(2, OffsetSpec::Earliest),
            question(7, OffsetSpec::Latest),
        ],
        timeout: Duration::from_secs(5),
        read_committed: false,
        refusals: None,
    };
    calls.start(START, AdminCall::list_offsets(query, done));
    let sent = requests(&mut calls, START, 7);
    assert_eq!(
        sent.iter().map(|(_, route, _)| route.clone()).collect::<Vec<_>>(),
        [Route::Node(1), Route::Node(2), Route::Node(2)]
    );
    for (number, _, bytes) in sent {
        let asked = ListOffsetsRequest::decode(&mut Reader::new(&bytes), 7).unwrap();
        let partitions = asked.topics[0].partitions.iter().map(|requested| ListedPartition {
            partition_index: requested.partition_index,
            offset: if requested.timestamp == -1 { 100 + i64::from(requested.partition_index) } else { 5 },
            ..ListedPartition::default()
        });
        let topics = vec![ListedTopic { name: "t".into(), partitions: partitions.collect() }];
        let mut body = Vec::new();
        ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }.encode(7, &mut body).unwrap();
        respond(&mut calls, START, number, response(ApiKey::ListOffsets, 7, body));
    }
    let responses = waiting.try_take().unwrap();
    let offsets: Vec<i64> =
        responses.iter().take(4).map(|response| response.as_ref().unwrap().offset.unwrap()).collect();
    assert_eq!(offsets, [102, 100, 101, 5]);
    assert_eq!(responses[4].as_ref().unwrap_err().kind(), ErrorKind::UnknownPartition);
}

#[test]
fn offsets_are_asked_again_where_the_leader_moved() {
    let mut calls = calls();
    let (done, waiting) = completion();
    let query = OffsetQuery {
        questions: vec![(("t", 0).into(), OffsetSpec::Latest)],
        timeout: Duration::from_secs(5),
        read_committed: false,
        refusals: None,
    };
    calls.start(START, AdminCall::list_offsets(query, done));
    let mut now = START;
    for error_code in [ErrorCode::NOT_LEADER_OR_FOLLOWER, ErrorCode::NONE] {
        let sent = requests(&mut calls, now, 7);
        let listed = ListedPartition { error_code, offset: 9, ..ListedPartition::default() };
        let topics = vec![ListedTopic { name: "t".into(), partitions: vec![listed] }];
        let mut body = Vec::new();
        ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }.encode(7, &mut body).unwrap();
        respond(&mut calls, now, sent[0].0, response(ApiKey::ListOffsets, 7, body));
        now += Duration::from_millis(100);
        calls.handle_timeout(now, None);
        calls.handle_metadata(now, &metadata(), &MetadataChanges::default());
    }
    assert_eq!(waiting.try_take().unwrap()[0].as_ref().unwrap().offset, Some(9));
}

#[test]
fn query_with_a_limit_fails_at_a_broker_that_does_not_lead() {
    let mut calls = calls();
    let (done, waiting) = completion();
    let query = OffsetQuery {
        questions: vec![(("t", 0).into(), OffsetSpec::Latest)],
        timeout: Duration::from_secs(5),
        read_committed: false,
        refusals: Some(3),
    };
    calls.start(START, AdminCall::list_offsets(query, done));
    let sent = requests(&mut calls, START, 7);
    let error_code = ErrorCode::NOT_LEADER_OR_FOLLOWER;
    let listed = ListedPartition { error_code, ..ListedPartition::default() };
    let topics = vec![ListedTopic { name: "t".into(), partitions: vec![listed] }];
    let mut body = Vec::new();
    ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }.encode(7, &mut body).unwrap();
    respond(&mut calls, START, sent[0].0, response(ApiKey::ListOffsets, 7, body));
    let results = waiting.try_take().expect("it does not wait for metadata");
    assert_eq!(results[0].as_ref().unwrap_err().kind(), ErrorKind::Broker(error_code));
    calls.advance(START, &metadata());
    let needs = std::iter::from_fn(|| calls.poll_need());
    assert!(
        needs.into_iter().any(|need| matches!(need, Need::Metadata(_))),
        "the next query knows the leader"
    );
}
