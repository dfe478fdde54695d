//! The client connects before the application calls it, and keeps trying until a server responds.

use std::{sync::Arc, time::Duration};

use super::{Script, metadata};
use crate::{
    cluster::{ClusterSettings, command::Command},
    error::{Error, ErrorKind},
    event::{ClusterChange, Event},
    produce::record::Record,
};

/// Creates a client with these servers and runs it for the first time.
pub(super) fn started(servers: &[&str]) -> Script {
    let response = metadata(&[(1, "seed", 9092)], 1);
    let mut script = Script::fresh(ClusterSettings::default(), response);
    let bootstrap: Vec<_> = servers.iter().map(|host| ((*host).to_owned(), 9092)).collect();
    script.replace_servers(bootstrap);
    script
}

/// Refuses every attempt to connect so far. Returns how often all servers were reported as down.
fn refuse_all(script: &mut Script, rounds: usize) -> usize {
    for _ in 0..rounds {
        for key in script.tried_in_vain.replace(Vec::new()).unwrap_or_default() {
            script.refuse(key);
        }
    }
    std::iter::from_fn(|| script.events.pop())
        .filter(|event| matches!(event, Event::AllBrokersDown(_)))
        .count()
}

#[test]
fn client_asks_for_metadata_before_the_application_asks_for_anything() {
    let mut script = started(&["seed"]);
    script.run_for(Duration::ZERO);
    assert_eq!(script.metadata_requests, 1);
    assert_eq!(script.asked_about, Some(vec![]), "the brokers, and no topic");
    script.run_for(Duration::from_secs(60));
    assert_eq!(script.metadata_requests, 1, "then nothing until the interval has passed");
}

#[test]
fn first_metadata_request_names_the_topics_that_came_while_it_waited() {
    let mut script = started(&[]);
    script.run_for(Duration::from_secs(1));
    for name in ["a", "b"] {
        let topic = script.shared.topic(name).0;
        script.command(Command::Topic(topic));
    }
    assert_eq!(script.metadata_requests, 0);
    script.command(Command::AddServers(vec![("seed".into(), 9092)]));
    let mut asked = script.asked_about.clone().expect("topics by name");
    asked.sort();
    assert_eq!((asked, script.metadata_requests), (vec!["a".to_owned(), "b".to_owned()], 1));
}

/// The application creates the topic, the cluster actor handles that and sleeps, and then the record is appended.
#[test]
fn record_times_out_without_servers_when_its_topic_came_first() {
    let mut script = started(&[]);
    let topic = script.shared.topic("a").0;
    script.command(Command::Topic(Arc::clone(&topic)));
    script.run_for(Duration::from_secs(1));
    // The driver sleeps until this time: the application's thread does not wake it.
    let wakes = script.core.poll_timeout();
    assert!(wakes.is_some_and(|at| at <= script.now + Duration::from_secs(1)), "{wakes:?}");
    script.shared.send(&topic, script.now, 0, &Record::new().value("x"), None).unwrap();
    script.run_for(Duration::from_secs(400));
    let errors = script.reports.0.lock();
    assert!(
        matches!(&errors[..], [error] if error.kind() == ErrorKind::MessageTimedOutInQueue),
        "{errors:?}"
    );
}

#[test]
fn client_without_servers_connects_when_the_first_one_is_added() {
    let mut script = started(&[]);
    script.run_for(Duration::from_secs(600));
    assert!(script.addresses.is_empty() && script.events.pop().is_none());
    script.command(Command::AddServers(vec![("seed".into(), 9092)]));
    assert_eq!((script.addresses.len(), script.metadata_requests), (1, 1));
}

#[test]
fn idle_client_reports_that_all_servers_are_down_once() {
    let mut script = started(&["seed", "two"]);
    script.starts_down = true;
    script.tried_in_vain = Some(Vec::new());
    script.run_for(Duration::ZERO);
    assert_eq!(refuse_all(&mut script, 1), 0, "one of two servers");
    assert_eq!(refuse_all(&mut script, 1), 1);
    assert_eq!(refuse_all(&mut script, 5), 0);
}

#[test]
fn added_server_that_fails_too_is_not_reported_again() {
    let mut script = started(&["seed"]);
    script.starts_down = true;
    script.tried_in_vain = Some(Vec::new());
    script.run_for(Duration::ZERO);
    assert_eq!(refuse_all(&mut script, 3), 1);
    script.command(Command::AddServers(vec![("two".into(), 9092)]));
    assert_eq!(refuse_all(&mut script, 3), 0, "librdkafka reports it once until a broker is up");
}

#[test]
fn change_of_the_cluster_id_is_reported_once_per_change() {
    let mut script = started(&["seed"]);
    script.run_for(Duration::ZERO);
    let mut changes = |reported: Option<&str>| -> Vec<Event> {
        script.response.cluster_id = reported.map(str::to_owned);
        script.refresh();
        std::iter::from_fn(|| script.events.pop()).collect()
    };
    let change = |known: &str, reported: &str| {
        let (known, reported) = (known.to_owned(), reported.to_owned());
        Event::ClusterChanged(ClusterChange { broker: "seed:9092".to_owned(), known, reported })
    };
    assert_eq!(changes(None), []);
    assert_eq!(changes(Some("one")), [], "the first one is not a change");
    assert_eq!(changes(Some("one")), []);
    assert_eq!(changes(Some("two")), [change("one", "two")]);
    assert_eq!(changes(Some("two")), []);
    assert_eq!(changes(None), [], "a broker without a cluster ID belongs to no other cluster");
    assert_eq!(changes(Some("one")), [change("two", "one")]);
}

#[test]
fn closing_while_metadata_is_in_flight_is_no_error() {
    let mut script = started(&["seed"]);
    script.starts_down = true;
    script.run_for(Duration::ZERO);
    let key = *script.addresses.keys().next().expect("the bootstrap server");
    for kind in [ErrorKind::Disconnected, ErrorKind::Closed] {
        let failed = Err(Error::new(kind, "").with_api("Metadata"));
        script.core.handle_metadata(script.now, key, failed);
    }
    let events: Vec<Event> = std::iter::from_fn(|| script.events.pop()).collect();
    assert!(
        matches!(&events[..], [Event::Error(error)] if error.kind() == ErrorKind::Disconnected),
        "{events:?}"
    );
}

#[test]
fn server_that_refuses_each_connection_is_reported_once_with_a_count() {
    let mut script = started(&["seed"]);
    script.starts_down = true;
    script.tried_in_vain = Some(Vec::new());
    let mut texts = Vec::new();
    for _ in 0..61 {
        script.run_for(Duration::from_secs(1));
        for key in script.tried_in_vain.replace(Vec::new()).unwrap_or_default() {
            script.refuse(key);
        }
        while let Some(event) = script.events.pop() {
            if let Event::Error(error) = event {
                texts.push(error.context().detail.clone());
            }
        }
    }
    assert_eq!(texts[0], "connection refused");
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[1..].iter().all(|text| text.contains("; repeated ")), "{texts:?}");
}
