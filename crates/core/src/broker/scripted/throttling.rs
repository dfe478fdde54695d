//! The client obeys the throttle time (KIP-219) of every kind of response, and waits no longer than that.

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::{
        list_offsets::ListOffsetsRequest,
        metadata::{MetadataRequest, MetadataResponse},
    },
};

use super::{Request, Script, at, millis};
use crate::{
    error::ErrorKind,
    message::ConnectionReport,
    message::{ClusterRequest, ToBroker, ToCluster},
    produce::{collector::Linger, settings::ProducerSettings},
};

fn script() -> Script {
    let mut script =
        Script::new(2, ProducerSettings { linger: Linger::Broker(millis(5)), ..Default::default() });
    script.run_until(at(100));
    script
}

fn ask(script: &mut Script, api: ApiKey, timeout_ms: u64) {
    let request = ClusterRequest {
        token: 1,
        api,
        versions: api.versions(),
        timeout: millis(timeout_ms),
        encode: Box::new(move |version, out| match api {
            ApiKey::ListOffsets => ListOffsetsRequest::default().encode(version, out),
            _ => MetadataRequest { topics: Some(Vec::new()), ..Default::default() }.encode(version, out),
        }),
    };
    script.messages(ToBroker::Request(request));
}

fn respond_to_metadata(script: &mut Script, request: &Request, throttle_time_ms: i32) {
    let response = MetadataResponse { throttle_time_ms, ..Default::default() };
    script.respond(request, |version, out| response.encode(version, out).expect("it can be encoded"));
}

/// Responds to a Produce request at 105 ms with a throttle time.
fn throttled_by_produce(script: &mut Script, throttle_ms: i32) {
    script.send(0, "x");
    script.run_until(at(105));
    let request = script.request();
    script.respond_to_produce(&request, throttle_ms, |_| ErrorCode::NONE);
}

#[test]
fn throttled_produce_response_delays_requests_of_every_kind() {
    let mut script = script();
    throttled_by_produce(&mut script, 400);
    script.send(1, "y");
    ask(&mut script, ApiKey::ListOffsets, 10_000);
    ask(&mut script, ApiKey::Metadata, 10_000);
    script.run_until(at(504));
    script.assert_silent();
    script.run_until(at(505));
    let sent: Vec<_> = std::mem::take(&mut script.requests).iter().map(|r| (r.api, r.written_at)).collect();
    let now = at(505);
    assert_eq!(sent, [(ApiKey::ListOffsets, now), (ApiKey::Metadata, now), (ApiKey::Produce, now)]);
}

#[test]
fn throttled_metadata_delays_produce_requests() {
    let mut script = script();
    ask(&mut script, ApiKey::Metadata, 10_000);
    let metadata = script.request();
    respond_to_metadata(&mut script, &metadata, 300);
    assert!(matches!(script.messages.last(), Some(ToCluster::Response { result: Ok(_), .. })));
    script.send(0, "x");
    script.run_until(at(399));
    script.assert_silent();
    script.run_until(at(400));
    assert_eq!(script.request().values(), ["x"]);
}

#[test]
fn the_longest_of_several_throttle_times_counts_and_each_is_counted() {
    let mut script = script();
    ask(&mut script, ApiKey::Metadata, 10_000);
    ask(&mut script, ApiKey::Metadata, 10_000);
    let [first, second] = &std::mem::take(&mut script.requests)[..] else { panic!("two requests") };
    respond_to_metadata(&mut script, first, 300);
    respond_to_metadata(&mut script, second, 100);
    script.send(0, "x");
    script.run_until(at(399));
    script.assert_silent();
    script.run_until(at(400));
    assert_eq!(script.request().written_at, at(400));
    let throttle = script.core.connection.statistics(at(400), crate::stats::Purpose::Query).throttle;
    assert_eq!((throttle.count(), throttle.sum()), (2, 400));
}

#[test]
fn request_with_too_long_a_wait_fails_with_the_reason() {
    let mut script = script();
    throttled_by_produce(&mut script, 5_000);
    ask(&mut script, ApiKey::ListOffsets, 1_000);
    script.run_until(at(1_105));
    let Some(ToCluster::Response { result: Err(error), .. }) = script.messages.last() else {
        panic!("a response")
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("throttles the client"), "{error}");
    script.assert_silent();
}

#[test]
fn throttle_of_one_connection_does_not_affect_the_next() {
    let mut script = script();
    throttled_by_produce(&mut script, 60_000);
    script.send(1, "y");
    script.disconnect();
    script.run_until(at(2_000));
    assert_eq!(script.request().values(), ["y"]);
}

#[test]
fn a_negative_throttle_time_is_none() {
    let mut script = script();
    throttled_by_produce(&mut script, -5);
    script.send(1, "y");
    script.run_until(at(120));
    assert_eq!(script.request().values(), ["y"]);
}

#[test]
fn throttled_connection_without_requests_costs_no_turns() {
    let mut script = script();
    throttled_by_produce(&mut script, 1_000);
    script.run_until(at(200));
    assert_eq!(script.core.poll_timeout(), Some(at(1_105)));
}

#[test]
fn throttle_time_extends_the_timeout_of_requests_in_flight() {
    let mut script = script();
    ask(&mut script, ApiKey::Metadata, 1_000);
    ask(&mut script, ApiKey::Metadata, 1_000);
    let [first, second] = &std::mem::take(&mut script.requests)[..] else { panic!("two requests") };
    respond_to_metadata(&mut script, first, 5_000);
    script.run_until(at(5_500));
    respond_to_metadata(&mut script, second, 0);
    let responses = script
        .messages
        .iter()
        .filter(|messages| matches!(messages, ToCluster::Response { result: Ok(_), .. }));
    assert_eq!(responses.count(), 2);
    ask(&mut script, ApiKey::Metadata, 1_000);
    ask(&mut script, ApiKey::Metadata, 1_000);
    let [first, _] = &std::mem::take(&mut script.requests)[..] else { panic!("two requests") };
    respond_to_metadata(&mut script, first, 5_000);
    script.run_until(at(11_600));
    let down = script.messages.iter().find_map(|messages| match messages {
        ToCluster::Connection(ConnectionReport::Down(error)) => Some(error.kind()),
        _ => None,
    });
    assert_eq!(down, Some(ErrorKind::RequestTimedOut), "the time counts from the end of the throttling");
}
