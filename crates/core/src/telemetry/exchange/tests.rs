//! The exchange in virtual time, with brokers that respond at once.

use ottla_protocol::error_code::ErrorCode as Code;

use super::*;
use crate::telemetry::registry::Temporality;

const INTERVAL: Duration = Duration::from_secs(100);

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn subscription(interval: Duration) -> Subscription {
    Subscription {
        id: 1,
        interval,
        codec: Compression::Zstd,
        max_bytes: 1 << 20,
        temporality: Temporality::Delta,
        is_requested: true,
        metrics: vec![0],
        prefixes: Vec::new(),
    }
}

/// An exchange whose requests a test answers, with the time of each.
struct Script {
    exchange: Exchange,
    now: Instant,
    /// The seconds at which requests were sent: `ask`, `push`, `last`.
    sent: Vec<(&'static str, f64)>,
    code: Result<Code, Failure>,
    asked: Result<Duration, Failure>,
}

impl Script {
    fn new(seed: u64) -> Self {
        let exchange = Exchange::new(Rng::from_seed(seed));
        Self { exchange, now: at(1), sent: Vec::new(), code: Ok(Code::NONE), asked: Ok(INTERVAL) }
    }

    /// An exchange that has pushed once.
    fn pushed() -> Self {
        let mut script = Self::new(1);
        script.connect();
        script.run_for(150);
        assert_eq!(script.names(), ["ask", "push"]);
        script.sent.clear();
        script
    }

    fn connect(&mut self) {
        self.exchange.handle_broker(self.now);
        self.settle();
    }

    fn names(&self) -> Vec<&'static str> {
        self.sent.iter().map(|(name, _)| *name).collect()
    }

    fn settle(&mut self) {
        while let Some(step) = self.exchange.poll_step() {
            let seconds = self.now.as_nanos() as f64 / 1e9;
            match step {
                Step::Ask => {
                    self.sent.push(("ask", seconds));
                    let _ = self.exchange.handle_subscription(self.now, self.asked.map(subscription));
                    self.exchange.take_refused_broker();
                    if self.asked == Err(Failure::Unsupported) {
                        self.asked = Err(Failure::NoBroker);
                    }
                }
                Step::Gather => {
                    assert!(self.exchange.handle_snapshot());
                }
                Step::Push { is_last } => {
                    self.sent.push((if is_last { "last" } else { "push" }, seconds));
                    let outcome = match self.code {
                        Ok(Code::NONE) => Ok(()),
                        Ok(code) => Err(Failure::Code(code)),
                        Err(failure) => Err(failure),
                    };
                    let _ = self.exchange.handle_pushed(self.now, 10_000, outcome);
                    self.exchange.take_refused_broker();
                }
            }
        }
    }

    fn run_for(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while let Some(next) = self.exchange.poll_timeout().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.exchange.handle_timeout(self.now);
            self.settle();
            assert!(self.sent.len() < 1_000, "requests without end");
        }
        self.now = until;
    }
}

#[test]
fn nothing_happens_without_a_broker_that_takes_metrics() {
    let mut script = Script::new(1);
    assert_eq!(script.exchange.poll_timeout(), None);
    script.run_for(10_000);
    assert!(script.sent.is_empty());
    assert!(!script.exchange.begin_close(script.now, script.now + INTERVAL));
}

#[test]
fn first_pushes_of_many_clients_are_spread() {
    let mut decades = [0; 10];
    for seed in 0..1_000 {
        let mut script = Script::new(seed);
        script.connect();
        script.run_for(1_000);
        let pushes: Vec<f64> = script.sent[1..].iter().map(|(_, at)| at - 1.0).collect();
        assert!((50.0..150.0).contains(&pushes[0]), "{pushes:?}");
        assert!(pushes.windows(2).all(|pair| (pair[1] - pair[0] - 100.0).abs() < 1e-6), "{pushes:?}");
        decades[((pushes[0] - 50.0) / 10.0) as usize] += 1;
    }
    assert!(decades.iter().all(|count| (60..150).contains(count)), "{decades:?}");
}

/// Each error of a push, twice in a row and endlessly: the requests of the first 1,000 s after it.
#[test]
fn every_error_of_a_push_has_a_bounded_reaction() {
    let later: &[&str] = &["push", "push", "push"];
    for (code, expected) in [
        (Code::INVALID_REQUEST, &["push"][..]),
        (Code::INVALID_RECORD, &["push"]),
        (Code::UNKNOWN_SUBSCRIPTION_ID, &["push", "ask", "push", "ask"]),
        (Code::UNSUPPORTED_COMPRESSION_TYPE, &["push", "ask", "push", "ask"]),
        (Code::TELEMETRY_TOO_LARGE, later),
        (Code::THROTTLING_QUOTA_EXCEEDED, later),
        (Code::CLUSTER_AUTHORIZATION_FAILED, &["push", "ask", "push"]),
        (Code::UNSUPPORTED_VERSION, later),
    ] {
        let mut script = Script::pushed();
        script.code = Ok(code);
        script.run_for(1_000);
        let names = script.names();
        assert_eq!(names[..expected.len().min(names.len())], *expected, "{code:?}");
        assert!(names.len() <= 12, "{code:?}: {:?}", script.sent);
        let pushes: Vec<f64> =
            script.sent.iter().filter(|(name, _)| *name == "push").map(|(_, at)| *at).collect();
        assert!(pushes.windows(2).all(|pair| pair[1] - pair[0] > 99.9), "{code:?}: {pushes:?}");
    }
    let mut script = Script::pushed();
    script.code = Err(Failure::Lost);
    script.run_for(1_000);
    assert_eq!(script.names(), ["push"; 10]);
}

#[test]
fn every_error_of_a_subscription_has_a_bounded_reaction() {
    for (failure, requests) in [
        (Failure::Code(Code::INVALID_REQUEST), 1..=1),
        (Failure::BadResponse, 1..=1),
        (Failure::Code(Code::UNKNOWN_SUBSCRIPTION_ID), 30..=42),
        (Failure::Code(Code::THROTTLING_QUOTA_EXCEEDED), 30..=42),
        (Failure::Lost, 30..=42),
        // The second time there is no other broker.
        (Failure::Unsupported, 2..=2),
        (Failure::NoBroker, 1..=1),
    ] {
        let mut script = Script::new(1);
        script.asked = Err(failure);
        script.connect();
        script.run_for(1_000);
        assert!(requests.contains(&script.sent.len()), "{failure:?}: {:?}", script.sent);
        assert!(script.names().iter().all(|name| *name == "ask"));
    }
}

#[test]
fn codec_that_the_broker_refuses_is_not_used_again() {
    let mut script = Script::pushed();
    script.code = Ok(Code::UNSUPPORTED_COMPRESSION_TYPE);
    script.run_for(1_000);
    assert_eq!(script.exchange.refused_codecs(), [Compression::Zstd]);
}

#[test]
fn too_large_pushes_become_smaller_until_the_next_subscription() {
    let mut script = Script::pushed();
    script.code = Ok(Code::TELEMETRY_TOO_LARGE);
    script.run_for(100);
    assert_eq!(script.exchange.size_limit(), 5_000);
    script.code = Ok(Code::UNKNOWN_SUBSCRIPTION_ID);
    script.run_for(100);
    assert_eq!(script.exchange.size_limit(), usize::MAX);
}

#[test]
fn shorter_interval_holds_at_once() {
    let mut script = Script::pushed();
    script.code = Ok(Code::UNKNOWN_SUBSCRIPTION_ID);
    script.asked = Ok(Duration::from_secs(2));
    script.run_for(100);
    script.code = Ok(Code::NONE);
    let since = script.sent.len();
    script.run_for(10);
    assert!(script.sent.len() >= since + 3, "{:?}", script.sent);
}

#[test]
fn broker_that_comes_back_gets_the_next_push_and_no_question() {
    let mut script = Script::pushed();
    script.code = Err(Failure::NoBroker);
    script.run_for(10_000);
    assert_eq!(script.names(), ["push"], "without a broker there is no timer");
    assert_eq!(script.exchange.poll_timeout(), None);
    script.code = Ok(Code::NONE);
    script.connect();
    script.run_for(1);
    assert_eq!(script.names(), ["push", "push"]);
}

#[test]
fn last_push_is_sent_once_and_ends_the_exchange() {
    let mut script = Script::pushed();
    assert!(script.exchange.begin_close(script.now, script.now + Duration::from_secs(1)));
    assert!(!script.exchange.begin_close(script.now, script.now + Duration::from_secs(1)));
    script.settle();
    assert!(script.exchange.has_ended());
    script.connect();
    script.run_for(10_000);
    assert_eq!(script.names(), ["last"]);
}

#[test]
fn last_push_waits_for_the_one_in_flight_until_the_deadline() {
    for responds in [true, false] {
        let mut script = Script::pushed();
        let Some(due) = script.exchange.poll_timeout() else { panic!("a push is scheduled") };
        script.now = due;
        script.exchange.handle_timeout(due);
        assert_eq!(script.exchange.poll_step(), Some(Step::Gather));
        script.exchange.handle_snapshot();
        assert_eq!(script.exchange.poll_step(), Some(Step::Push { is_last: false }));
        let deadline = due + Duration::from_secs(1);
        assert!(script.exchange.begin_close(due, deadline));
        assert_eq!(script.exchange.poll_step(), None);
        assert_eq!(script.exchange.poll_timeout(), Some(deadline));
        if responds {
            script.exchange.handle_pushed(due, 1, Ok(())).unwrap();
            script.settle();
            assert_eq!(script.names(), ["last"]);
        } else {
            script.exchange.handle_timeout(deadline);
        }
        assert!(script.exchange.has_ended());
        assert_eq!(script.exchange.poll_timeout(), None);
    }
}

#[test]
fn client_that_was_asked_for_nothing_has_no_last_push() {
    let mut script = Script::new(1);
    script.connect();
    let mut nothing = subscription(INTERVAL);
    nothing.is_requested = false;
    let mut exchange = Exchange::new(Rng::from_seed(1));
    exchange.handle_broker(script.now);
    exchange.handle_subscription(script.now, Ok(nothing)).unwrap();
    assert_eq!(exchange.poll_timeout(), Some(script.now + INTERVAL));
    assert!(!exchange.begin_close(script.now, script.now + INTERVAL));
}
