//! The calls of an observer of a client's connections.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ottla::{ApiKey, Config, Consumer, ErrorKind, Exchange, Observer, Offset, Peer, Producer, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster, Fault, FaultAction};

const SOON: Duration = Duration::from_secs(20);

/// Records the calls.
#[derive(Debug, Default)]
struct Diary {
    sent: Mutex<Vec<(String, Exchange)>>,
    received: Mutex<Vec<(String, Exchange, Duration)>>,
    lost: Mutex<Vec<(Exchange, ErrorKind)>>,
    states: Mutex<Vec<(String, &'static str)>>,
    /// The threads that serve the client, and the number of those that started.
    threads: Mutex<(Vec<String>, usize)>,
}

impl Observer for Diary {
    fn request_sent(&self, peer: &Peer<'_>, request: &Exchange) {
        assert!(peer.socket.is_some_and(|number| number > 2), "{peer:?}");
        self.sent.lock().unwrap().push((peer.to_string(), *request));
    }

    fn response_received(&self, peer: &Peer<'_>, response: &Exchange, round_trip: Duration) {
        self.received.lock().unwrap().push((peer.to_string(), *response, round_trip));
    }

    fn response_lost(&self, _: &Peer<'_>, request: &Exchange, why: ErrorKind) {
        self.lost.lock().unwrap().push((*request, why));
    }

    fn state_changed(&self, peer: &Peer<'_>, state: &'static str) {
        self.states.lock().unwrap().push((format!("{}:{}", peer.host, peer.port), state));
    }

    fn thread_starts(&self, name: &str) {
        assert!(name.starts_with("ottla-io-"), "{name}");
        let mut threads = self.threads.lock().unwrap();
        threads.0.push(name.to_owned());
        threads.1 += 1;
    }

    fn thread_ends(&self, name: &str) {
        let threads = &mut self.threads.lock().unwrap().0;
        let at = threads.iter().position(|known| known == name).expect("it started before");
        threads.remove(at);
    }
}

fn start() -> (EmbeddedCluster, Config, Arc<Diary>) {
    let cluster = EmbeddedCluster::start(ClusterOptions { brokers: 1, ..ClusterOptions::default() }).unwrap();
    let mut config = Config::new();
    config.set("bootstrap.servers", &cluster.bootstrap_servers()).unwrap();
    (cluster, config, Arc::default())
}

#[test]
fn observer_sees_each_request_and_its_response() {
    let (_cluster, config, diary) = start();
    let producer = Producer::builder(&config).observer(Arc::clone(&diary) as _).build().unwrap();
    let value = vec![b'v'; 5000];
    producer.topic("t").send_tracked(Record::new().value(&value)).unwrap().wait(SOON).unwrap();
    producer.close(SOON).unwrap();
    let (sent, received) = (diary.sent.lock().unwrap(), diary.received.lock().unwrap());
    for (peer, response, round_trip) in &*received {
        // A bootstrap server's node may have become known in between.
        let host = peer.rsplit_once('/').unwrap().0;
        let mut asked = sent.iter().filter(|(to, request)| {
            to.starts_with(host)
                && (request.api, request.version, request.correlation_id)
                    == (response.api, response.version, response.correlation_id)
        });
        assert!(asked.next().is_some(), "{response:?} has no request");
        assert!(response.size > 8 && *round_trip < SOON, "{response:?}, {round_trip:?}");
    }
    let produced: Vec<_> = sent.iter().filter(|(_, request)| request.api == ApiKey::Produce).collect();
    assert_eq!(produced.len(), 1);
    assert!((5000..6000).contains(&produced[0].1.size), "{produced:?}");
    assert_eq!(received.iter().filter(|(_, response, _)| response.api == ApiKey::Produce).count(), 1);
    for api in [ApiKey::ApiVersions, ApiKey::Metadata, ApiKey::InitProducerId] {
        assert!(sent.iter().any(|(_, request)| request.api == api), "{api:?}");
    }
}

#[test]
fn observer_sees_a_lost_response_once_with_the_reason() {
    for (action, expected) in [
        (FaultAction::NeverRespond, ErrorKind::RequestTimedOut),
        (FaultAction::LoseResponse, ErrorKind::Disconnected),
    ] {
        let (cluster, mut config, diary) = start();
        config.set("socket.timeout.ms", "500").unwrap();
        let fault = Fault::new(action).api(ApiKey::InitProducerId).times(1);
        cluster.control(|control| control.inject(fault));
        let producer = Producer::builder(&config).observer(Arc::clone(&diary) as _).build().unwrap();
        producer.topic("t").send_tracked(Record::new().value("v")).unwrap().wait(SOON).unwrap();
        producer.close(SOON).unwrap();
        let lost = diary.lost.lock().unwrap();
        let asked: Vec<_> =
            lost.iter().filter(|(request, _)| request.api == ApiKey::InitProducerId).collect();
        assert!(asked.len() == 1 && asked[0].1 == expected, "{lost:?}");
        let (sent, received) = (diary.sent.lock().unwrap(), diary.received.lock().unwrap());
        assert_eq!(sent.len(), received.len() + lost.len(), "{sent:?}, {received:?}, {lost:?}");
    }
}

#[test]
fn observer_sees_the_states_of_a_connection_in_order() {
    let (cluster, config, diary) = start();
    let consumer = Consumer::builder(&config).observer(Arc::clone(&diary) as _).build().unwrap();
    cluster.control(|control| control.create_topic("t", 1, 1)).unwrap();
    consumer.assign(&[("t", 0, Offset::Beginning)]).unwrap();
    let until = Instant::now() + SOON;
    while !diary.states.lock().unwrap().iter().any(|(_, state)| *state == "UP") {
        assert!(Instant::now() < until, "{diary:?}");
        consumer.poll(Duration::from_millis(10)).unwrap();
    }
    consumer.close(SOON).unwrap();
    let states = diary.states.lock().unwrap();
    let of_first: Vec<_> = states.iter().filter(|(peer, _)| *peer == states[0].0).map(|(_, s)| *s).collect();
    assert_eq!(of_first[..3], ["CONNECT", "APIVERSION_QUERY", "UP"], "{states:?}");
    assert_eq!(of_first.last(), Some(&"DOWN"), "{states:?}");
}

#[test]
fn observer_sees_each_thread_end_when_the_client_is_closed() {
    let (_cluster, config, diary) = start();
    let producer = Producer::builder(&config).observer(Arc::clone(&diary) as _).build().unwrap();
    producer.topic("t").send_tracked(Record::new().value("v")).unwrap().wait(SOON).unwrap();
    {
        let threads = diary.threads.lock().unwrap();
        let mut once = threads.0.clone();
        once.sort();
        once.dedup();
        assert!(!once.is_empty() && once.len() == threads.0.len(), "{threads:?}");
    }
    producer.close(SOON).unwrap();
    let threads = diary.threads.lock().unwrap();
    assert!(threads.0.is_empty() && threads.1 > 0, "{threads:?}");
}
