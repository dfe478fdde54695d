//! The search for a broker while none is connected: servers that do not respond must not hide the one that does.

use std::time::Duration;

use super::{Script, metadata, starting::started};
use crate::{
    cluster::ClusterSettings,
    contract::broker::BrokerKey,
    error::{Error, ErrorKind},
    event::Event,
    message::{ConnectionReport, ToCluster},
};

const MOMENT: Duration = Duration::from_millis(250);

/// A client whose attempts to connect get no response.
fn silent(servers: &[&str]) -> Script {
    let mut script = started(servers);
    script.starts_down = true;
    script.tried_in_vain = Some(Vec::new());
    script.run_for(Duration::ZERO);
    script
}

/// Returns the brokers that were tried since the last call.
fn tried(script: &mut Script) -> Vec<BrokerKey> {
    script.tried_in_vain.replace(Vec::new()).unwrap_or_default()
}

fn come_up(script: &mut Script, key: BrokerKey) {
    script.core.handle_message(script.now, key, ToCluster::Connection(ConnectionReport::Up));
    script.settle();
}

/// Breaks all connections. Attempts to connect get no response from then on.
fn lose_all(script: &mut Script) {
    script.tried_in_vain = Some(Vec::new());
    let all: Vec<BrokerKey> = script.addresses.keys().copied().collect();
    for key in all {
        let lost = Error::new(ErrorKind::Disconnected, "the peer closed the connection");
        script.core.handle_message(script.now, key, ToCluster::Connection(ConnectionReport::Down(lost)));
        script.settle();
    }
}

#[test]
fn next_server_is_tried_beside_a_silent_one_and_the_first_that_is_up_wins() {
    let mut script = silent(&["a", "b", "c"]);
    let first = tried(&mut script);
    assert_eq!(first.len(), 1, "one at first");
    script.run_for(MOMENT - Duration::from_millis(1));
    assert_eq!(tried(&mut script), []);
    script.run_for(Duration::from_millis(1));
    let second = tried(&mut script);
    assert_eq!(second.len(), 1);
    come_up(&mut script, second[0]);
    assert_eq!((script.metadata_requests, script.stopped.as_slice()), (1, first.as_slice()));
    script.run_for(Duration::from_secs(60));
    assert_eq!(tried(&mut script), [], "nothing is searched for any more");
}

#[test]
fn fourth_server_is_reached_although_three_are_silent() {
    let mut script = silent(&["a", "b", "c", "d"]);
    script.run_for(MOMENT * 3);
    let tried = tried(&mut script);
    assert_eq!(tried.len(), 4);
    assert_eq!(script.stopped, tried[..1], "three at once, so the first gave way");
    come_up(&mut script, tried[3]);
    assert_eq!((script.metadata_requests, script.stopped.as_slice()), (1, &tried[..3]));
}

#[test]
fn slow_server_among_four_gets_longer_in_each_round() {
    let mut script = silent(&["a", "b", "c", "d"]);
    let (mut since, mut longest) = (script.now, Duration::ZERO);
    let slow = tried(&mut script)[0];
    for _ in 0..2_400 {
        script.run_for(Duration::from_millis(50));
        if tried(&mut script).contains(&slow) {
            since = script.now;
        }
        if std::mem::take(&mut script.stopped).contains(&slow) {
            longest = longest.max(script.now - since);
        }
    }
    assert!(longest >= Duration::from_secs(20), "at most {longest:?} in two minutes");
}

#[test]
fn server_that_refuses_is_followed_at_once() {
    let mut script = silent(&["a", "b", "c"]);
    let first = tried(&mut script)[0];
    script.refuse(first);
    assert_eq!(tried(&mut script).len(), 1, "at once");
    assert_eq!(script.stopped, [], "a failed attempt needs no end");
}

#[test]
fn silent_server_is_not_down_while_another_refuses_twice() {
    let mut script = silent(&["a", "b"]);
    let silent = tried(&mut script)[0];
    let mut refused = 0;
    for _ in 0..10 {
        script.run_for(MOMENT);
        for key in tried(&mut script).into_iter().filter(|key| *key != silent) {
            script.refuse(key);
            refused += 1;
        }
    }
    assert!(refused >= 5, "{refused}");
    let all_down = |script: &Script| {
        let events = std::iter::from_fn(|| script.events.pop());
        events.filter(|event| matches!(event, Event::AllBrokersDown(_))).count()
    };
    assert_eq!(all_down(&script), 0);
    script.refuse(silent);
    assert_eq!(all_down(&script), 1);
}

#[test]
fn node_that_is_alive_is_found_behind_two_that_are_silent() {
    let response = metadata(&[(1, "seed", 9092), (2, "two", 9092), (3, "three", 9092)], 1);
    let mut script = Script::with(ClusterSettings::default(), response);
    script.run_for(Duration::from_secs(1));
    script.starts_down = true;
    lose_all(&mut script);
    script.refresh();
    let hosts: Vec<String> = tried(&mut script).iter().map(|key| script.addresses[key].0.clone()).collect();
    for host in ["seed", "two", "three"] {
        assert!(hosts.iter().any(|tried| tried == host), "{hosts:?} within a second");
    }
}
