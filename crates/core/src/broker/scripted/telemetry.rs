//! A connection without a producer: requests for client metrics do not keep it, and requests that time out may leave it.

use ottla_protocol::generated::{
    api_versions::{ApiVersionsResponse, response::ApiKey as ApiRow},
    push_telemetry::{PushTelemetryRequest, PushTelemetryResponse},
};

use super::*;
use crate::{error::ErrorKind, message::ClusterRequest};

const MAX_IDLE: Duration = millis(10_000);

/// A client with `connections.max.idle.ms` whose connection to a broker without other requests is ready.
struct Idle {
    now: Instant,
    core: BrokerCore,
    is_connected: bool,
    answered: usize,
    /// Requests get no response, and are kept.
    is_silent: bool,
    kept: Vec<u8>,
}

impl Idle {
    fn new(settings: ConnectionSettings) -> Self {
        let parts = BrokerParts {
            connection: Arc::new(settings),
            producer: None,
            consumer: None,
            share: None,
            buffers: BufferPool::default(),
        };
        let wake = WakeHandle::noop();
        let core =
            BrokerCore::new(&parts, "broker".into(), 9092, NodeId::from_wire(1), wake, Rng::from_seed(2));
        Self { now: at(1), core, is_connected: false, answered: 0, is_silent: false, kept: Vec::new() }
    }

    fn send(&mut self, message: ToBroker) -> Vec<ToCluster> {
        self.core.handle_message(self.now, message);
        self.settle()
    }

    /// Sends a request that may take a second.
    fn push(&mut self) -> Vec<ToCluster> {
        let request = PushTelemetryRequest::default();
        self.send(ToBroker::Request(ClusterRequest {
            token: 1,
            api: ApiKey::PushTelemetry,
            versions: 0..=0,
            timeout: millis(1_000),
            encode: Box::new(move |version, out| request.encode(version, out)),
        }))
    }

    fn settle(&mut self) -> Vec<ToCluster> {
        let mut reports = Vec::new();
        loop {
            let written = self.take_written();
            self.respond(&written);
            let Some(output) = self.core.poll_output() else {
                if self.core.unsent_bytes() == 0 {
                    return reports;
                }
                continue;
            };
            match output {
                BrokerOutput::Resolve { .. } => {
                    let address = "127.0.0.1:9092".parse().unwrap();
                    self.core.handle_resolved(self.now, Ok(vec![address]));
                }
                BrokerOutput::Connect(_) => {
                    self.is_connected = true;
                    self.core.handle_connected(self.now);
                }
                BrokerOutput::CloseSocket => self.is_connected = false,
                BrokerOutput::ToCluster(message) => reports.push(message),
                BrokerOutput::Done => {}
            }
        }
    }

    fn take_written(&mut self) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 4];
        let filled = self.core.unsent(&mut slices);
        let written: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter().copied()).collect();
        if !written.is_empty() {
            self.core.handle_written(self.now, written.len());
        }
        written
    }

    fn respond(&mut self, mut written: &[u8]) {
        while let Some((length, rest)) = written.split_first_chunk::<4>() {
            let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
            let whole = &written[..4 + frame.len()];
            written = rest;
            let header = RequestHeader::decode(&mut Reader::new(frame)).unwrap();
            let api = ApiKey::from_i16(header.api_key).unwrap();
            if self.is_silent && api != ApiKey::ApiVersions {
                self.kept.extend_from_slice(whole);
                continue;
            }
            let mut body = Vec::new();
            let header_out = ResponseHeader { correlation_id: header.correlation_id };
            header_out.encode(api, header.api_version, &mut body);
            if api == ApiKey::ApiVersions {
                let row =
                    |api: ApiKey, max_version| ApiRow { api_key: api as i16, min_version: 0, max_version };
                let api_keys = vec![
                    row(ApiKey::ApiVersions, 3),
                    row(ApiKey::GetTelemetrySubscriptions, 0),
                    row(ApiKey::PushTelemetry, 0),
                ];
                let response = ApiVersionsResponse { api_keys, ..ApiVersionsResponse::default() };
                response.encode(header.api_version, &mut body).unwrap();
            } else {
                self.answered += 1;
                PushTelemetryResponse::default().encode(header.api_version, &mut body).unwrap();
            }
            let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
            bytes.extend(body);
            self.core.read_space()[..bytes.len()].copy_from_slice(&bytes);
            self.core.handle_read(self.now, bytes.len());
        }
    }

    fn run_until(&mut self, until: Instant) -> Vec<ToCluster> {
        let (mut reports, mut turns) = (Vec::new(), Turns::default());
        while let Some(next) = self.core.poll_timeout().filter(|next| *next <= until) {
            turns.take(next.max(self.now), 100);
            self.now = self.now.max(next);
            self.core.handle_timeout(self.now);
            reports.extend(self.settle());
        }
        self.now = until;
        reports
    }
}

#[test]
fn telemetry_does_not_keep_a_connection() {
    let settings = ConnectionSettings { max_idle: Some(MAX_IDLE), ..ConnectionSettings::default() };
    let mut idle = Idle::new(settings);
    let reports = idle.send(ToBroker::Connection(ConnectionMessage::Connect));
    let offers =
        |message: &ToCluster| matches!(message, ToCluster::Connection(ConnectionReport::OffersTelemetry));
    assert!(reports.iter().any(offers), "{reports:?}");
    for second in 1..10 {
        idle.run_until(at(second * 1_000));
        idle.push();
        assert_eq!((idle.is_connected, idle.answered), (true, second as usize));
    }
    idle.run_until(at(10_500));
    assert!(!idle.is_connected, "pushes are not activity");

    // A push to a broker that is not connected fails, and opens no connection.
    let reports = idle.push();
    let failed = |message: &ToCluster| matches!(message, ToCluster::Response { result: Err(_), .. });
    assert!(reports.iter().any(failed) && !idle.is_connected, "{reports:?}");
}

#[test]
fn connection_survives_fewer_timeouts_than_socket_max_fails() {
    let failed = |reports: &[ToCluster]| {
        let lost = |report: &&ToCluster| match report {
            ToCluster::Response { result: Err(error), .. } => error.kind() == ErrorKind::RequestTimedOut,
            _ => false,
        };
        reports.iter().filter(lost).count()
    };
    for (max_timeouts, survived) in [(1, 0), (3, 2), (0, 5)] {
        let settings = ConnectionSettings { max_timeouts, ..ConnectionSettings::default() };
        let mut idle = Idle::new(settings);
        idle.send(ToBroker::Connection(ConnectionMessage::Connect));
        idle.is_silent = true;
        for number in 1..=survived {
            idle.push();
            let reports = idle.run_until(at(number * 2_000));
            assert_eq!((failed(&reports), idle.is_connected), (1, true), "{max_timeouts}, request {number}");
        }
        if max_timeouts > 0 {
            idle.push();
            let reports = idle.run_until(at(20_000));
            assert_eq!((failed(&reports), idle.is_connected), (1, false), "{max_timeouts}: one too many");
            continue;
        }
        // Late responses are dropped, and the next one belongs to its request.
        idle.is_silent = false;
        let kept = std::mem::take(&mut idle.kept);
        idle.respond(&kept);
        assert!(idle.settle().iter().all(|report| !matches!(report, ToCluster::Response { .. })));
        let reports = idle.push();
        let responded = |report: &ToCluster| matches!(report, ToCluster::Response { result: Ok(_), .. });
        assert!(reports.iter().any(responded) && idle.is_connected, "{reports:?}");
    }
}
