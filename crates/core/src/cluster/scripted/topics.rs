//! Topics that are created, recreated, deleted or refused.

use super::*;
use crate::config::TopicRecreatePolicy;

#[test]
fn recreated_topic_with_fewer_partitions_drops_the_missing_ones() {
    let mut script = Script::new(topic_of(1, 4));
    assert_eq!(script.placed(), [0, 1, 2, 3]);
    let topic = script.shared.topic("t").0;
    let send = |script: &Script, record: &Record<'_>| script.shared.send(&topic, script.now, 0, record, None);
    let to_the_last = Record::new().partition(3).value("x");
    send(&script, &to_the_last).unwrap();
    // The one from before went somewhere; what is looked at is what comes from now on.
    script.response = topic_of(2, 2);
    script.refresh();
    assert_eq!(script.placed(), [0, 1]);
    let error = script.reports.0.lock().pop().expect("the last partition's record is reported");
    assert_eq!(error.kind(), ErrorKind::TopicRecreated);
    assert!(error.to_string().contains("t [3]") && error.to_string().contains("2 partitions"), "{error}");
    assert_eq!(send(&script, &to_the_last), Err(SendError::UnknownPartition { partition: 3, count: 2 }));
    let queued = |partition| topic.slot(partition).expect("it was there").queued().0;
    for n in 0..100u32 {
        let key = n.to_be_bytes();
        send(&script, &Record::new().key(&key).value("keyed")).unwrap();
        send(&script, &Record::new().value("x")).unwrap();
    }
    assert_eq!((queued(2), queued(3)), (0, 0));
    let asked = script.metadata_requests;
    script.run_for(Duration::from_secs(20));
    assert_eq!(script.metadata_requests, asked, "nothing is missing");
    // More are added later, under the same topic.
    script.response = topic_of(2, 4);
    script.refresh();
    assert_eq!(script.placed(), [0, 1, 2, 3]);
    send(&script, &to_the_last).unwrap();
    assert_eq!(queued(3), 1);
}

#[test]
fn records_that_wait_go_to_the_recreated_topic_unless_configured() {
    for policy in [TopicRecreatePolicy::Reset, TopicRecreatePolicy::Error] {
        let producing = ProducerSettings { topic_recreate: policy, ..producer_settings() };
        let mut script = Script::fresh_with(producing, ClusterSettings::default(), topic_of(1, 1));
        script.use_topic("t");
        let before = script.shared.queued_messages();
        script.response = topic_of(2, 1);
        script.refresh();
        assert_eq!((before, script.placed()), (1, vec![0]));
        let kinds: Vec<_> = script.reports.0.lock().iter().map(Error::kind).collect();
        match policy {
            TopicRecreatePolicy::Reset => assert_eq!((kinds, script.shared.queued_messages()), (vec![], 1)),
            TopicRecreatePolicy::Error => assert_eq!(kinds, [ErrorKind::TopicRecreated]),
        }
    }
    let default = ProducerSettings::default().topic_recreate;
    assert_eq!(default, TopicRecreatePolicy::Reset, "as in other clients");
}

#[test]
fn added_partitions_are_used_and_old_ones_keep_their_records() {
    let mut script = Script::new(topic_of(1, 2));
    let topic = script.shared.topic("t").0;
    let send = |script: &Script, record: &Record<'_>| script.shared.send(&topic, script.now, 0, record, None);
    let queued = |partition| topic.slot(partition).map_or(0, |accumulator| accumulator.queued().0);
    assert_eq!(
        send(&script, &Record::new().partition(5).value("x")),
        Err(SendError::UnknownPartition { partition: 5, count: 2 })
    );
    (0..50u32).for_each(|n| send(&script, &Record::new().key(&n.to_be_bytes()).value("x")).unwrap());
    let before = [queued(0), queued(1)];
    script.response = topic_of(1, 6);
    script.refresh();
    assert_eq!(script.placed(), [0, 1, 2, 3, 4, 5]);
    assert_eq!([queued(0), queued(1)], before, "what a key's records wait in is not torn apart");
    send(&script, &Record::new().partition(5).value("x")).unwrap();
    (0..200u32).for_each(|n| send(&script, &Record::new().key(&n.to_be_bytes()).value("x")).unwrap());
    (0..6).for_each(|partition| assert!(queued(partition) > 0, "partition {partition}"));
    let of_one_key = |n: u32| {
        let counts: Vec<_> = (0..6).map(queued).collect();
        (0..5).for_each(|_| send(&script, &Record::new().key(&n.to_be_bytes()).value("x")).unwrap());
        (0..6).filter(|partition| queued(*partition) > counts[*partition as usize]).count()
    };
    (0..20).for_each(|n| assert_eq!(of_one_key(n), 1, "a key's records go one way"));
}

/// Metadata of `t` and this number of other topics, all led by node 1.
fn topics(others: &[&str]) -> MetadataResponse {
    let mut response = metadata(&[(1, "seed", 9092)], 1);
    let t = response.topics[0].clone();
    response.topics.extend(others.iter().map(|name| Topic { name: Some((*name).into()), ..t.clone() }));
    response
}

#[test]
fn refresh_timer_requests_topics_in_use_or_all_if_configured() {
    for refresh_all_topics in [false, true] {
        let interval = Duration::from_secs(10);
        let settings =
            ClusterSettings { refresh_all_topics, refresh_interval: Some(interval), ..Default::default() };
        let mut script = Script::with(settings, topics(&["u", "v"]));
        assert_eq!(
            script.asked_about,
            Some(vec!["t".to_owned()]),
            "a topic that is new is asked for by name"
        );
        script.run_for(interval * 2);
        assert!(script.metadata_requests >= 3, "{} requests", script.metadata_requests);
        let by_timer = if refresh_all_topics { None } else { Some(vec!["t".to_owned()]) };
        assert_eq!(script.asked_about, by_timer);
        script.refresh();
        assert_eq!(script.asked_about, Some(vec!["t".to_owned()]), "and so is what is out of date");
        if refresh_all_topics {
            assert!(script.core.metadata.topics.keys().all(|name| ["t", "u", "v"].contains(&&**name)));
            script.run_for(interval * 2);
            assert_eq!(script.asked_about, None);
        }
        assert_eq!(script.placed(), [0]);
        assert_eq!(script.reported(), Vec::<String>::new());
    }
}

/// A script of a producer with these topics that leaves those out of the refresh to which nothing was sent for 15 s.
fn forgetful_producer(names: &[&str], response: MetadataResponse) -> Script {
    let producing =
        ProducerSettings { metadata_max_idle: Some(Duration::from_secs(15)), ..producer_settings() };
    let settings =
        ClusterSettings { refresh_interval: Some(Duration::from_secs(10)), ..ClusterSettings::default() };
    let mut script = Script::fresh_with(producing, settings, response);
    names.iter().for_each(|name| script.use_topic(name));
    script.run_for(Duration::from_secs(1));
    assert_eq!(
        script.asked_about.as_deref(),
        Some(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..])
    );
    script
}

#[test]
fn refresh_leaves_out_topics_without_messages_until_the_next() {
    let mut script = forgetful_producer(&["t", "u"], topics(&["u"]));
    let all = Some(vec!["t".to_owned(), "u".to_owned()]);
    // The record in `u` waits in the queue all the time.
    script.write_all("t", 0);
    script.run_for(Duration::from_secs(12));
    assert_eq!(script.asked_about, all, "the last message is not old enough");
    script.run_for(Duration::from_secs(10));
    assert_eq!(script.asked_about, Some(vec!["u".to_owned()]));
    script.write_all("u", 0);
    script.run_for(Duration::from_secs(10));
    assert_eq!(script.asked_about, Some(Vec::new()));
    assert_eq!(script.placed(), [0, 0], "the partitions stay with their brokers");

    // The sender notices the next message.
    let topic = script.shared.topic("t").0;
    script.shared.send(&topic, script.now, 0, &Record::new().value("x"), None).unwrap();
    assert!(topic.end_idle());
    let requests = script.metadata_requests;
    let (leader, end_idle) = (script.leader.unwrap(), ToCluster::Produce(ProduceReport::EndIdle));
    script.core.handle_message(script.now, leader, end_idle);
    script.settle();
    assert_eq!(
        (script.metadata_requests - requests, script.asked_about.clone()),
        (1, Some(vec!["t".to_owned()]))
    );
    script.run_for(Duration::from_secs(10));
    assert_eq!(script.asked_about, Some(vec!["t".to_owned()]));
}

#[test]
fn refresh_includes_an_idle_topic_whose_leader_disappears() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = forgetful_producer(&["t"], metadata(&brokers, 2));
    script.write_all("t", 0);
    script.run_for(Duration::from_secs(30));
    assert_eq!(script.asked_about, Some(Vec::new()));
    script.response = metadata(&brokers[..1], 1);
    script.response.topics.clear();
    script.run_for(Duration::from_secs(10));
    assert_eq!(script.asked_about, Some(vec!["t".to_owned()]));
}

#[test]
fn used_topic_missing_from_all_topics_counts_as_deleted() {
    let settings = ClusterSettings {
        refresh_all_topics: true,
        refresh_interval: Some(Duration::from_secs(10)),
        ..Default::default()
    };
    let mut script = Script::with(settings, topics(&[]));
    script.response = topics(&["u"]);
    script.response.topics.remove(0);
    assert!(!script.core.metadata.topics["t"].gone);
    script.run_for(Duration::from_secs(10));
    assert!(script.core.metadata.topics["t"].gone);
    assert!(!script.core.metadata.topics.contains_key("u"), "nobody uses it");
}

#[test]
fn metadata_of_blacklisted_topics_is_ignored() {
    let hidden_topics = TopicPatterns::parse("^nothing$,^t").unwrap();
    let settings = ClusterSettings { hidden_topics, ..Default::default() };
    let mut script = Script::with(settings, topics(&[]));
    script.run_for(Duration::from_secs(40));
    assert!(script.placed().is_empty() && script.core.metadata.topics.is_empty());
    let errors = script.reports.0.lock();
    assert!(
        matches!(&errors[..], [error] if error.kind() == ErrorKind::MessageTimedOutInQueue),
        "{errors:?}"
    );
}

/// A response in which the topic has this error.
fn failed_topic(error_code: ErrorCode) -> MetadataResponse {
    let mut response = topic_of(1, 1);
    response.topics[0].error_code = error_code;
    response.topics[0].partitions.clear();
    response
}

#[test]
fn unauthorised_topic_refuses_records_until_metadata_lists_it_again() {
    let mut script = Script::new(topic_of(1, 2));
    let topic = script.shared.topic("t").0;
    let send = |script: &Script| script.shared.send(&topic, script.now, 0, &Record::new().value("x"), None);
    script.response = failed_topic(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    script.refresh();
    assert_eq!(script.placed(), [0; 0], "its brokers gave the partitions back");
    let reports = script.reports.0.lock().len();
    assert_eq!(reports, 1, "the record that waited failed");
    let refused = |result| match result {
        Err(SendError::Topic(error)) => error.kind(),
        other => panic!("{other:?}"),
    };
    let unauthorised = ErrorKind::Broker(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    assert_eq!(refused(send(&script)), unauthorised);
    script.response = failed_topic(ErrorCode::INVALID_REPLICATION_FACTOR);
    script.refresh();
    assert_eq!(refused(send(&script)), unauthorised, "an error that may pass does not lift the refusal");
    script.response = topic_of(1, 2);
    script.refresh();
    assert_eq!(script.placed(), [0, 1]);
    send(&script).unwrap();
}

#[test]
fn deleted_topic_fails_its_records_after_the_propagation_time() {
    let mut script = Script::new(topic_of(1, 1));
    let topic = script.shared.topic("t").0;
    let send = |script: &Script| script.shared.send(&topic, script.now, 0, &Record::new().value("x"), None);
    script.run_for(Duration::from_secs(60));
    script.response = failed_topic(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    script.refresh();
    script.run_for(Duration::from_secs(15));
    send(&script).expect("the response may be from before the topic's creation");
    script.run_for(Duration::from_secs(20));
    assert!(matches!(send(&script), Err(SendError::Topic(error)) if error.kind() == ErrorKind::UnknownTopic));
    let kinds: Vec<_> = script.reports.0.lock().iter().map(Error::kind).collect();
    assert!(kinds.contains(&ErrorKind::UnknownTopic), "{kinds:?}");
    script.response = topic_of(2, 1);
    script.refresh();
    send(&script).unwrap();
}

#[test]
fn topic_error_that_may_pass_is_named_when_its_records_time_out() {
    let mut script = Script::new(failed_topic(ErrorCode::INVALID_REPLICATION_FACTOR));
    script.run_for(Duration::from_secs(20));
    assert_eq!(script.reports.0.lock().len(), 0, "brokers may still come");
    script.run_for(Duration::from_secs(20));
    let error = script.reports.0.lock().pop().expect("message.timeout.ms is over");
    assert_eq!(error.kind(), ErrorKind::MessageTimedOutInQueue);
    assert!(error.to_string().contains("INVALID_REPLICATION_FACTOR"), "{error}");
}
