//! A broker that asks to be left alone is (KIP-219), by every kind of request, and by no longer than it asked.

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
    mail::{ClusterRequest, ToBroker, ToCluster},
    produce::{collector::Linger, shared::ProducerSettings},
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
    script.mail(ToBroker::Request(request));
}

fn answer_metadata(script: &mut Script, request: &Request, throttle_time_ms: i32) {
    let answer = MetadataResponse { throttle_time_ms, ..Default::default() };
    script.respond(request, |version, out| answer.encode(version, out).expect("it can be encoded"));
}

/// A Produce answer at 105 ms with a throttle time.
fn throttled_by_produce(script: &mut Script, throttle_ms: i32) {
    script.send(0, "x");
    script.run_until(at(105));
    let request = script.request();
    script.answer(&request, throttle_ms, |_| ErrorCode::NONE);
}

#[test]
fn after_a_throttled_produce_no_kind_of_request_is_sent_before_the_time_is_over() {
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
fn after_throttled_metadata_nothing_is_produced_before_the_time_is_over() {
    let mut script = script();
    ask(&mut script, ApiKey::Metadata, 10_000);
    let metadata = script.request();
    answer_metadata(&mut script, &metadata, 300);
    assert!(matches!(script.mail.last(), Some(ToCluster::Answer { result: Ok(_), .. })));
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
    answer_metadata(&mut script, first, 300);
    answer_metadata(&mut script, second, 100);
    script.send(0, "x");
    script.run_until(at(399));
    script.assert_silent();
    script.run_until(at(400));
    assert_eq!(script.request().written_at, at(400));
    let throttle = script.core.connection.statistics(at(400), false).throttle;
    assert_eq!((throttle.count(), throttle.sum()), (2, 400));
}

#[test]
fn a_request_that_can_not_wait_for_that_long_fails_and_says_why() {
    let mut script = script();
    throttled_by_produce(&mut script, 5_000);
    ask(&mut script, ApiKey::ListOffsets, 1_000);
    script.run_until(at(1_105));
    let Some(ToCluster::Answer { result: Err(error), .. }) = script.mail.last() else { panic!("an answer") };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("asked to be left alone"), "{error}");
    script.assert_silent();
}

#[test]
fn another_connection_is_not_throttled_by_what_was_said_on_the_last_one() {
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
fn a_throttled_connection_that_nobody_needs_costs_no_turns() {
    let mut script = script();
    throttled_by_produce(&mut script, 1_000);
    script.run_until(at(200));
    assert_eq!(script.core.poll_timeout(), Some(at(1_105)));
}

#[test]
fn what_was_sent_before_the_broker_held_back_is_not_timed_out_because_it_answers_nothing_meanwhile() {
    let mut script = script();
    ask(&mut script, ApiKey::Metadata, 1_000);
    ask(&mut script, ApiKey::Metadata, 1_000);
    let [first, second] = &std::mem::take(&mut script.requests)[..] else { panic!("two requests") };
    answer_metadata(&mut script, first, 5_000);
    script.run_until(at(5_500));
    answer_metadata(&mut script, second, 0);
    let answers = script.mail.iter().filter(|mail| matches!(mail, ToCluster::Answer { result: Ok(_), .. }));
    assert_eq!(answers.count(), 2);
    ask(&mut script, ApiKey::Metadata, 1_000);
    ask(&mut script, ApiKey::Metadata, 1_000);
    let [first, _] = &std::mem::take(&mut script.requests)[..] else { panic!("two requests") };
    answer_metadata(&mut script, first, 5_000);
    script.run_until(at(11_600));
    let down = script.mail.iter().find_map(|mail| match mail {
        ToCluster::Down(error) => Some(error.kind()),
        _ => None,
    });
    assert_eq!(down, Some(ErrorKind::RequestTimedOut), "the time counts from the end of the throttling");
}
