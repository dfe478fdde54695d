//! A connection that is lost, with something in flight or in quiet, and a broker that moves.

use std::sync::Arc;

use super::{Script, at, millis};
use crate::{
    broker::{
        buffer::BufferPool,
        connection::{Connection, ConnectionOutput, ConnectionSettings},
    },
    error::ErrorKind,
    mail::{ToBroker, ToCluster},
    produce::{collector::Linger, report::PersistenceStatus, shared::ProducerSettings},
    rng::Rng,
};

fn script(max_retries: u32) -> Script {
    let settings = ProducerSettings { linger: Linger::Broker(millis(5)), max_retries, ..Default::default() };
    let mut script = Script::new(1, settings);
    script.run_until(at(100));
    script
}

#[test]
fn a_broker_that_moved_is_connected_to_at_its_new_address_and_gets_what_was_in_flight_there() {
    let mut script = script(5);
    script.send(0, "x");
    script.run_for(millis(5));
    assert_eq!(script.request().values(), ["x"]);
    script.mail(ToBroker::SetAddress { host: "elsewhere".into(), port: 9093 });
    let down = script.down();
    assert_eq!(down.kind(), ErrorKind::Disconnected);
    assert!(down.to_string().contains("the broker's address changed"), "{down}");
    let request = script.request_after_back_off();
    assert_eq!(script.hosts.last().map(String::as_str), Some("elsewhere:9093"));
    assert_eq!(request.values(), ["x"]);
    script.accept(&request);
    assert_eq!(script.statuses(), [PersistenceStatus::Persisted], "reported once");
    assert_eq!(script.reported_messages(), 1);
}

#[test]
fn a_broker_that_is_said_to_be_where_it_is_stays_connected() {
    let mut script = script(5);
    script.mail(ToBroker::SetAddress { host: "broker".into(), port: 9092 });
    assert!(script.is_connected);
    assert_eq!(script.connects, 1);
}

#[test]
fn an_attempt_of_which_no_byte_left_does_not_count() {
    for (takes_bytes, status) in
        [(false, PersistenceStatus::Persisted), (true, PersistenceStatus::PossiblyPersisted)]
    {
        let mut script = script(0);
        script.takes_bytes = takes_bytes;
        script.send(0, "x");
        script.run_for(millis(5));
        assert_eq!(script.requests.len(), usize::from(takes_bytes));
        script.requests.clear();
        script.disconnect();
        script.takes_bytes = true;
        if !takes_bytes {
            let request = script.request_after_back_off();
            assert_eq!(request.values(), ["x"], "although there are no retries");
            script.accept(&request);
        }
        assert_eq!(script.statuses(), [status]);
    }
}

/// A connection over which a record was sent, long ago.
fn used_and_quiet() -> Script {
    let mut script = script(5);
    script.send(0, "x");
    script.run_for(millis(5));
    let request = script.request();
    script.accept(&request);
    script.run_for(millis(2000));
    script.mail.clear();
    script
}

#[test]
fn a_used_connection_that_is_closed_in_quiet_is_made_again_once_and_nothing_is_told() {
    let mut script = used_and_quiet();
    script.disconnect();
    assert!(
        matches!(script.mail[..], [ToCluster::Idle { looks_again: true }, ToCluster::Up]),
        "{:?}",
        script.mail
    );
    assert_eq!(script.connects, 2);
    script.mail.clear();
    script.run_for(millis(2000));
    script.disconnect();
    script.run_for(millis(20_000));
    assert!(matches!(script.mail[..], [ToCluster::Idle { looks_again: false }]), "{:?}", script.mail);
    assert_eq!(script.connects, 2, "nobody used it");
    assert_eq!(script.errors(), []);
}

#[test]
fn a_broker_that_is_gone_when_it_closed_a_quiet_connection_is_told_and_not_tried_for_ever() {
    let mut script = used_and_quiet();
    script.is_up = false;
    script.disconnect();
    let down = script.down();
    assert_eq!(down.kind(), ErrorKind::Connect);
    script.run_for(millis(60_000));
    assert!(script.mail.is_empty(), "{:?}", script.mail);
}

#[test]
fn a_broker_that_cannot_be_asked_is_taken_for_an_old_one_for_as_long_as_is_said() {
    for fallback_for in [millis(0), millis(60_000)] {
        let settings = ConnectionSettings {
            fallback_release: "0.9.0".into(),
            fallback_for,
            ..ConnectionSettings::default()
        };
        let (buffers, rng) = (BufferPool::default(), Rng::from_seed(1));
        let mut connection = Connection::new(Arc::new(settings), "b".into(), 9092, None, buffers, rng);
        let mut now = at(1);
        // Connects, and answers whether requests can be sent without asking for the versions.
        let mut connect = |connection: &mut Connection, wait| {
            now += wait;
            connection.want(now);
            if connection.is_backing_off() {
                now = connection.poll_timeout().map_or(now, |until| until.max(now));
                connection.handle_timeout(now);
            }
            while let Some(output) = connection.poll_output() {
                match output {
                    ConnectionOutput::Resolve { port, .. } => {
                        connection.handle_resolved(now, Ok(vec![([127, 0, 0, 1], port).into()]));
                    }
                    ConnectionOutput::Connect(_) => connection.handle_connected(now),
                    _ => {}
                }
            }
            let is_guessed = connection.is_ready();
            connection.handle_closed(now, "the peer closed the connection");
            is_guessed
        };
        let mut attempts =
            |wait| [wait, millis(0), millis(0), millis(0)].map(|wait| connect(&mut connection, wait));
        assert_eq!(attempts(millis(0)), [false, false, false, true]);
        let within = fallback_for > millis(0);
        assert_eq!(attempts(millis(0)), [within, within, within, true], "{fallback_for:?}");
        assert_eq!(attempts(millis(60_000)), [false, false, false, true], "it is asked again");
    }
}
