//! Invalid metadata, and leaders that move or are lost.

use super::*;

#[test]
fn leader_that_is_no_broker_is_reported_once_and_awaited() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092)], 99));
    assert_waits(&mut script, "it names node 99 as the leader of t [0], and lists no such node");
    assert_eq!(script.addresses.len(), 1);
}

#[test]
fn leader_without_a_host_is_reported_once_and_awaited() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "", 9092)], 2));
    assert_waits(&mut script, "it lists node 2 at `:9092`, which is not an address");
}

#[test]
fn leader_at_an_invalid_port_is_reported_once_and_awaited() {
    for port in [0, -1, 65_536, i32::MAX] {
        let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "two", port)], 2));
        assert_waits(&mut script, &format!("it lists node 2 at `two:{port}`, which is not an address"));
    }
}

#[test]
fn invalid_metadata_is_reported_again_after_valid_metadata() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092)], 99));
    script.run_for(Duration::from_secs(2));
    assert_eq!(script.reported().len(), 1);
    script.response = metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2);
    script.run_for(Duration::from_secs(2));
    assert!(script.addresses.values().any(|(host, port)| (&**host, *port) == ("two", 9092)));
    let asked = script.metadata_requests;
    script.run_for(Duration::from_secs(20));
    assert_eq!(script.metadata_requests, asked, "nothing is missing any more");
    assert!(script.reported().is_empty() && script.reports.0.lock().is_empty());
}

#[test]
fn metadata_with_an_older_epoch_do_not_take_a_partition_from_its_leader() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2));
    assert_eq!(script.core.metadata().leader_numbers("t", 0), Some((2, 3)));
    let mut older = metadata(&[(1, "seed", 9092), (2, "two", 9092)], 1);
    older.topics[0].partitions[0].leader_epoch = 2;
    script.response = older;
    script.run_for(Duration::from_secs(301));
    assert_eq!(script.metadata_requests, 2, "the refresh of every 300 s");
    assert_eq!(script.core.metadata().leader_numbers("t", 0), Some((2, 3)));
}

#[test]
fn unreachable_leader_requests_metadata_until_another_is_elected() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = Script::new(metadata(&brokers, 2));
    let leader = script.kill_leader();
    // The cluster takes time to notice. Each attempt to connect fails, with the longest backoff in between.
    let down = |script: &mut Script| {
        script.refuse(leader);
        script.run_for(Duration::from_secs(10));
    };
    down(&mut script);
    assert_eq!(script.core.metadata().leader_numbers("t", 0), Some((2, 3)));
    script.response = metadata(&brokers, 1);
    script.response.topics[0].partitions[0].leader_epoch = 4;
    down(&mut script);
    assert_eq!(script.core.metadata().leader_numbers("t", 0), Some((1, 4)));
    assert!(script.metadata_requests <= 5, "{} requests in 20 s", script.metadata_requests);
}

#[test]
fn leader_lost_while_idle_requests_metadata_at_the_next_write() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = Script::new(metadata(&brokers, 2));
    let leader = script.kill_leader();
    script.response = metadata(&brokers, 1);
    script.response.topics[0].partitions[0].leader_epoch = 4;
    // All connections were closed because they were idle.
    let all: Vec<BrokerKey> = script.addresses.keys().copied().collect();
    all.into_iter().for_each(|key| {
        script.core.handle_message(
            script.now,
            key,
            ToCluster::Connection(ConnectionReport::Idle { reconnects: false }),
        )
    });
    script.refuse(leader);
    script.run_for(Duration::from_secs(1));
    assert_eq!(script.core.metadata().leader_numbers("t", 0), Some((1, 4)));
}

#[test]
fn idle_client_reports_that_all_brokers_are_down() {
    let brokers = [(1, "seed", 9092), (2, "two", 9092)];
    let mut script = Script::new(metadata(&brokers, 2));
    while script.events.pop().is_some() {}
    script.tried_in_vain = Some(Vec::new());
    // The brokers closed the connections and refuse new ones.
    let all: Vec<BrokerKey> = script.addresses.keys().copied().collect();
    for key in all {
        script.core.handle_message(
            script.now,
            key,
            ToCluster::Connection(ConnectionReport::Idle { reconnects: true }),
        );
        script.refuse(key);
    }
    for _ in 0..5 {
        script.run_for(Duration::from_secs(1));
        for key in script.tried_in_vain.replace(Vec::new()).expect("all are dead") {
            script.refuse(key);
        }
    }
    let (mut errors, mut all_down) = (0, 0);
    while let Some(event) = script.events.pop() {
        match event {
            Event::Error(_) => errors += 1,
            Event::AllBrokersDown(_) => all_down += 1,
            event => panic!("{event:?}"),
        }
    }
    assert!(errors >= 2, "{errors}");
    assert_eq!(all_down, 1);
}

#[test]
fn broker_actor_gets_a_changed_address_once() {
    let mut script = Script::new(metadata(&[(1, "seed", 9092), (2, "two", 9092)], 2));
    let leader = script.kill_leader();
    script.response = metadata(&[(1, "seed", 9092), (2, "elsewhere", 9093)], 2);
    script.refresh();
    script.refresh();
    assert_eq!(script.moved, [(leader, "elsewhere".to_owned(), 9093)]);
}

/// Asserts that the client keeps requesting metadata, reports the error once, and lets the record time out while the
/// partition has no usable leader.
fn assert_waits(script: &mut Script, reported: &str) {
    script.run_for(Duration::from_secs(20));
    let asked = script.metadata_requests;
    assert!((15..=40).contains(&asked), "{asked} in 20 s, with a back-off from 100 ms to 1 s");
    assert_eq!(
        script.reported(),
        [format!("seed:9092: Metadata: the peer's response violates Kafka's protocol ({reported})")]
    );
    assert!(
        script.addresses.values().all(|(host, port)| !host.is_empty() && *port > 0),
        "{:?}",
        script.addresses
    );
    script.run_for(Duration::from_secs(15));
    let errors = script.reports.0.lock();
    assert!(
        matches!(&errors[..], [error] if error.kind() == ErrorKind::MessageTimedOutInQueue
        && error.to_string().contains("the partition has no leader")),
        "{errors:?}"
    );
}
