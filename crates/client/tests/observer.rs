//! What an observer is shown of a client's connections.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use ottla::{ApiKey, Config, Consumer, ErrorKind, Exchange, Observer, Offset, Peer, Producer, Record};
use ottla_embedded_broker::{ClusterOptions, EmbeddedCluster, Fault, FaultAction};

const SOON: Duration = Duration::from_secs(20);

/// Writes down what it is shown.
#[derive(Debug, Default)]
struct Diary {
    sent: Mutex<Vec<(String, Exchange)>>,
    received: Mutex<Vec<(String, Exchange, Duration)>>,
    lost: Mutex<Vec<(Exchange, ErrorKind)>>,
    states: Mutex<Vec<(String, &'static str)>>,
    /// Threads that serve the client, and how many began to.
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
fn every_request_is_shown_when_it_is_written_and_again_with_its_answer() {
    let (_cluster, config, diary) = start();
    let producer = Producer::builder(&config).observer(Arc::clone(&diary) as _).build().unwrap();
    let value = vec![b'v'; 5000];
    producer.topic("t").send_tracked(Record::new().value(&value)).unwrap().wait(SOON).unwrap();
    producer.close(SOON).unwrap();
    let (sent, received) = (diary.sent.lock().unwrap(), diary.received.lock().unwrap());
    for (peer, answer, round_trip) in &*received {
        // A bootstrap server's node may have become known in between.
        let host = peer.rsplit_once('/').unwrap().0;
        let mut asked = sent.iter().filter(|(to, request)| {
            to.starts_with(host)
                && (request.api, request.version, request.correlation_id)
                    == (answer.api, answer.version, answer.correlation_id)
        });
        assert!(asked.next().is_some(), "{answer:?} was never asked for");
        assert!(answer.size > 8 && *round_trip < SOON, "{answer:?}, {round_trip:?}");
    }
    let produced: Vec<_> = sent.iter().filter(|(_, request)| request.api == ApiKey::Produce).collect();
    assert_eq!(produced.len(), 1);
    assert!((5000..6000).contains(&produced[0].1.size), "{produced:?}");
    assert_eq!(received.iter().filter(|(_, answer, _)| answer.api == ApiKey::Produce).count(), 1);
    for api in [ApiKey::ApiVersions, ApiKey::Metadata, ApiKey::InitProducerId] {
        assert!(sent.iter().any(|(_, request)| request.api == api), "{api:?}");
    }
}

#[test]
fn a_request_whose_answer_never_comes_is_shown_as_lost_with_the_reason_and_each_request_is_over_once() {
    for (action, expected) in [
        (FaultAction::NeverAnswer, ErrorKind::RequestTimedOut),
        (FaultAction::LoseAnswer, ErrorKind::Disconnected),
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
fn the_states_of_a_connection_are_shown_in_order_down_to_its_end() {
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
fn a_thread_that_began_to_serve_a_client_has_ceased_to_when_the_client_is_closed() {
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
