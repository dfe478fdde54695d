//! Client telemetry in the worlds of [`Knobs::with_telemetry`](crate::Knobs::with_telemetry): operators who change their
//! subscriptions, brokers that refuse pushes, and responses that are lost.

use std::time::Duration;

use ottla_core::{
    cluster::command::Command,
    machine::Instant,
    rng::Rng,
    telemetry::settings::{TelemetrySettings, WallClock},
};
use ottla_embedded_broker::{ApiKey, BrokerId, ClientTelemetry, ErrorCode, Fault, FaultAction};

use crate::{checkers::Broken, world::World};

/// The telemetry of a world.
#[derive(Clone, Debug)]
pub struct TelemetryKnobs {
    /// Brokers take client metrics.
    pub is_offered: bool,
    /// The first interval.
    pub interval: Duration,
    /// Once in this number of steps the operator changes the subscription; 0 is never.
    pub change_every: u64,
    /// Once in this number of steps a request for metrics meets a fault; 0 is never.
    pub fault_every: u64,
    /// An error that ends telemetry may be among the faults.
    pub may_end: bool,
}

/// The time of the last push.
pub const LAST_PUSH: Duration = Duration::from_secs(1);

/// Intervals in milliseconds.
const INTERVALS: [u64; 4] = [500, 2_000, 5_000, 20_000];

/// Requested metrics.
const REQUESTS: [&[&str]; 5] = [
    &["*"],
    &["org.apache.kafka.producer."],
    &["org.apache.kafka.consumer.fetch.", "org.apache.kafka.producer.connection."],
    &["com.example."],
    &[],
];

/// Errors after which a client goes on.
const ERRORS: [ErrorCode; 5] = [
    ErrorCode::UNKNOWN_SUBSCRIPTION_ID,
    ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode::TELEMETRY_TOO_LARGE,
    ErrorCode::CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode::UNKNOWN_SERVER_ERROR,
];

impl TelemetryKnobs {
    /// Draws every knob.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x7e_1e);
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        Self {
            is_offered: pick(&[0, 1, 1, 1, 1, 1, 1, 1]) == 1,
            interval: Duration::from_millis(pick(&INTERVALS)),
            change_every: pick(&[0, 50, 300]),
            fault_every: pick(&[0, 20, 100]),
            may_end: pick(&[0, 0, 0, 1]) == 1,
        }
    }

    /// Returns the handling of client metrics by the brokers.
    pub const fn of_brokers(&self) -> ClientTelemetry {
        if self.is_offered { ClientTelemetry::Kafka } else { ClientTelemetry::None }
    }

    /// Returns the settings of a client.
    pub fn of_client() -> TelemetrySettings {
        TelemetrySettings {
            labels: vec![("client_rack", "r".to_owned())],
            scope: ("simulated".to_owned(), "1".to_owned()),
            request_timeout: Duration::from_secs(5),
            wall_clock: WallClock::new(Instant::as_nanos),
            application: Default::default(),
        }
    }
}

/// The operator of the brokers.
#[derive(Debug)]
pub struct Operator {
    knobs: TelemetryKnobs,
    rng: Rng,
}

impl Operator {
    /// Creates the operator, with the first subscription.
    pub fn new(knobs: &TelemetryKnobs, seed: u64, world: &mut World) -> Self {
        let mut control = world.cluster.control();
        control.telemetry().set_requested_metrics(["*"]);
        control.telemetry().set_push_interval(knobs.interval);
        world.closing_timeout = LAST_PUSH;
        Self { knobs: knobs.clone(), rng: Rng::from_seed(seed ^ 0x0_9e7a) }
    }

    /// Lets the operator act; there are faults only where there `may` be.
    pub fn step(&mut self, world: &mut World, may: bool, brokers: i32) {
        if !may {
            return;
        }
        if self.chance_once_in(self.knobs.change_every) {
            let metrics = REQUESTS[self.rng.below(REQUESTS.len() as u64) as usize];
            let interval = Duration::from_millis(INTERVALS[self.rng.below(INTERVALS.len() as u64) as usize]);
            world.trace.note(world.now, format_args!("{metrics:?} are requested every {interval:?}"));
            let mut control = world.cluster.control();
            control.telemetry().set_requested_metrics(metrics.iter().copied());
            control.telemetry().set_push_interval(interval);
        }
        if self.chance_once_in(self.knobs.fault_every) {
            let api = [ApiKey::PushTelemetry, ApiKey::GetTelemetrySubscriptions][self.rng.below(2) as usize];
            let broker = BrokerId(1 + self.rng.below(brokers as u64) as i32);
            let action = self.action();
            world.trace.note(
                world.now,
                format_args!("a {} of broker {} will meet {action:?}", api.name(), broker.0),
            );
            world.cluster.control().inject(Fault::new(action).api(api).broker(broker).times(1));
        }
    }

    fn action(&mut self) -> FaultAction {
        match self.rng.below(if self.knobs.may_end { 40 } else { 39 }) {
            0..30 => FaultAction::Error(ERRORS[self.rng.below(ERRORS.len() as u64) as usize]),
            30..34 => FaultAction::LoseResponse,
            34..36 => FaultAction::CloseConnection,
            36..38 => FaultAction::Throttle(Duration::from_millis(200)),
            38 => FaultAction::Delay(Duration::from_millis(700)),
            _ => FaultAction::Error(ErrorCode::INVALID_REQUEST),
        }
    }

    fn chance_once_in(&mut self, steps: u64) -> bool {
        steps > 0 && self.rng.chance(1, steps)
    }
}

/// Closes all clients after everything has healed: each ends in time, and one that pushes metrics pushes once more.
pub fn say_goodbye(world: &mut World) -> Result<(), Broken> {
    // Metrics that are requested again, and an exchange in progress, settle.
    let until = world.now + Duration::from_secs(60);
    world.cluster.control().telemetry().set_requested_metrics(["*"]);
    world.cluster.control().telemetry().set_push_interval(Duration::from_secs(5));
    world.run_until(until)?;
    let open: Vec<usize> =
        (0..world.clients.len()).filter(|client| !world.clients[*client].closing).collect();
    let connected: Vec<usize> =
        open.iter().copied().filter(|client| world.wire.is_connected(*client)).collect();
    world.wire.telemetry.close(&connected);
    for client in &open {
        if let Some(producer) = &world.clients[*client].parts.producer {
            producer.close(None);
        }
        world.clients[*client].closing = true;
        world.clients[*client].commands.push(Command::Close { timeout: LAST_PUSH });
    }
    world.run_until(world.now + LAST_PUSH + Duration::from_secs(1))?;
    if let Some(client) = open.iter().find(|client| !world.clients[**client].closed) {
        let what = format!("client {client} is not closed a second after the time of its last push");
        return Err(Broken::new("telemetry", what));
    }
    world.wire.telemetry.check_last_pushes()
}
