//! Authentication in the worlds of [`Knobs::with_sasl`](crate::Knobs::with_sasl): tokens that expire and can't be obtained,
//! passwords that change at the brokers first, and sessions that end while records flow.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ottla_core::{
    cluster::command::Command,
    config::sasl::{Mechanism, unsecured::UnsecuredToken},
    machine::Instant,
    rng::Rng,
    sasl::{SaslSettings, SaslShared, refresh::RETRY, shared::Credentials},
    wake::{Wake, WakeHandle},
};
use ottla_embedded_broker::{SaslListener, SaslMechanism};

use crate::world::World;

/// The authentication of a world.
#[derive(Clone, Debug)]
pub struct SaslKnobs {
    /// The mechanism.
    pub mechanism: SaslMechanism,
    /// Brokers end sessions after this time.
    pub max_session: Option<Duration>,
    /// The life of tokens in seconds.
    pub token_seconds: u64,
    /// In this number of 100 requests for a token, the identity provider is down.
    pub failing_tokens: u64,
    /// Once in this number of steps the brokers get a new password; 0 is never.
    pub new_password_every: u64,
    /// When the identity provider fails for good, after the start, and for how long.
    pub outage: Option<(Duration, Duration)>,
}

/// The Unix time of the cluster's clock at its start in milliseconds.
const UNIX_MS: i64 = 1_700_000_000_000;
const USER: &str = "alice";

impl SaslKnobs {
    /// Draws every knob.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x5a_51);
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let session = pick(&[0, 1_000, 3_000, 20_000]);
        Self {
            mechanism: SaslMechanism::ALL[pick(&[0, 1, 2, 3, 3]) as usize],
            max_session: (session > 0).then(|| Duration::from_millis(session)),
            token_seconds: pick(&[2, 5, 30, 3600]),
            failing_tokens: pick(&[0, 30, 60]),
            new_password_every: pick(&[0, 100, 400]),
            outage: None,
        }
    }

    /// Tokens of half an hour, and an identity provider that is down for an hour.
    pub const fn with_outage() -> Self {
        const MINUTE: Duration = Duration::from_secs(60);
        Self {
            mechanism: SaslMechanism::OauthBearerUnsecured,
            max_session: None,
            token_seconds: 1_800,
            failing_tokens: 0,
            new_password_every: 0,
            outage: Some((MINUTE.saturating_mul(20), MINUTE.saturating_mul(60))),
        }
    }

    /// Sessions and tokens of an hour, and nothing that fails.
    pub fn for_a_week(seed: u64) -> Self {
        Self {
            max_session: Some(Duration::from_secs(3_600)),
            token_seconds: 3_600,
            failing_tokens: 0,
            new_password_every: 0,
            ..Self::from_seed(seed)
        }
    }

    /// Returns the SASL of the brokers.
    pub fn listener(&self) -> SaslListener {
        let listener = SaslListener::new(&[self.mechanism]).user(USER, &password(0));
        match self.max_session {
            Some(time) => listener.max_session(time),
            None => listener,
        }
    }

    /// Returns the shared state of a client.
    pub fn client(&self, rng: &mut Rng) -> Arc<SaslShared> {
        let settings = SaslSettings {
            mechanism: Mechanism::parse(self.mechanism.name()).unwrap_or(Mechanism::Plain),
            credentials: Credentials::new(USER, (&*password(0)).into()),
            ..SaslSettings::default()
        };
        Arc::new(SaslShared::new(settings, (&*format!("{:032x}", rng.next_u64())).into()))
    }
}

fn password(number: u64) -> String {
    format!("password {number}")
}

/// The applications of all clients, as far as credentials are concerned.
#[derive(Debug)]
pub struct Authenticators {
    knobs: SaslKnobs,
    rng: Rng,
    /// Each client, and whether it has requested a token.
    clients: Vec<(Arc<SaslShared>, Arc<Flag>)>,
    start: Instant,
    /// The number of the brokers' password, and when the applications learn it.
    password: u64,
    learned_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Authenticators {
    /// Creates the applications of a world's clients.
    pub fn new(knobs: &SaslKnobs, seed: u64, world: &World) -> Self {
        let of_client = |shared: &Arc<SaslShared>| {
            let flag = Arc::new(Flag::default());
            // The clients have not run yet.
            let _ = shared.set_refresh(WakeHandle::new(Arc::clone(&flag) as Arc<dyn Wake>));
            (Arc::clone(shared), flag)
        };
        let clients = world.clients.iter().filter_map(|client| client.parts.connection.sasl.as_ref());
        Self {
            clients: clients.map(of_client).collect(),
            knobs: knobs.clone(),
            rng: Rng::from_seed(seed ^ 0xa0_7b),
            start: world.now,
            password: 0,
            learned_at: None,
        }
    }

    /// Lets the applications act. Passwords change, and tokens are missing, only where there `may` be faults.
    pub fn step(&mut self, world: &mut World, may: bool) {
        let every = self.knobs.new_password_every;
        if may && every > 0 && self.rng.chance(1, every) && self.learned_at.is_none() {
            self.password += 1;
            let text = password(self.password);
            if let Some(sasl) = world.cluster.control().sasl() {
                sasl.set_user(USER, &text);
            }
            world.trace.note(world.now, format_args!("the brokers have a new password"));
            self.learned_at = Some(world.now + Duration::from_millis(self.rng.below(3_000)));
        }
        if self.learned_at.is_some_and(|at| at <= world.now || !may) {
            self.learned_at = None;
            let text = password(self.password);
            for (client, (shared, _)) in self.clients.iter().enumerate() {
                shared.set_credentials(USER, (&*text).into());
                world.clients[client].commands.push(Command::Credentials);
            }
        }
        for client in 0..self.clients.len() {
            let (shared, asked) = &self.clients[client];
            if !asked.0.swap(false, Ordering::SeqCst) {
                continue;
            }
            let commands = &world.clients[client].commands;
            let is_down = self.knobs.outage.is_some_and(|(begin, time)| {
                (self.start + begin..self.start + begin + time).contains(&world.now)
            });
            if may && (self.rng.chance(self.knobs.failing_tokens, 100) || is_down) {
                world.trace.note(world.now, format_args!("{client} gets no token"));
                let reason = "the identity provider is down".to_owned();
                commands.push(Command::TokenFailed { reason, retry_in: RETRY });
                continue;
            }
            let fields = format!("principal={USER} lifeSeconds={}", self.knobs.token_seconds);
            let unix_ms = UNIX_MS + world.now.as_millis() as i64;
            let token = UnsecuredToken::parse(&fields)
                .and_then(|fields| ottla_core::sasl::unsecured::token(&fields, world.now, unix_ms));
            if let Ok(token) = token {
                shared.set_token(token);
                commands.push(Command::Credentials);
            }
        }
    }
}
