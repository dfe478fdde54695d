//! Tokens that the library gets from an identity provider, and the keys of AWS.
//!
//! Each token has a thread of its own, which ends after one exchange. It holds no reference to the client: a client that
//! closes does not wait for it, and the time of an exchange is bounded (`sasl.login.read.timeout.ms`).

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::BuildHasher,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use ottla_core::{
    cluster::command::{Command, CommandQueue},
    sasl::SaslShared,
    wake::Wake,
};
use ottla_net::{Issuer, TokenFailure};

/// The delays after failures, unless properties have others.
const DEFAULT_BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Gets a token each time it is woken.
#[derive(Clone)]
pub(crate) struct IssuedTokens {
    issuer: Arc<Issuer>,
    shared: Weak<SaslShared>,
    commands: Arc<CommandQueue>,
    /// The number of failures since the last token.
    failures: Arc<AtomicU32>,
}

impl IssuedTokens {
    pub(crate) fn new(issuer: Issuer, shared: &Arc<SaslShared>, commands: &Arc<CommandQueue>) -> Self {
        Self {
            issuer: Arc::new(issuer),
            shared: Arc::downgrade(shared),
            commands: Arc::clone(commands),
            failures: Arc::default(),
        }
    }

    fn run(&self) {
        let result = catch_unwind(AssertUnwindSafe(|| self.issuer.token())).unwrap_or_else(|_| {
            Err(TokenFailure {
                reason: "the thread that gets tokens has panicked".to_owned(),
                is_transient: false,
            })
        });
        let Some(shared) = self.shared.upgrade() else { return };
        match result {
            Ok(token) => {
                self.failures.store(0, Ordering::Relaxed);
                shared.set_token(token);
                self.commands.push(Command::Credentials);
            }
            Err(failure) => self.report(failure),
        }
    }

    fn report(&self, failure: TokenFailure) {
        let (first, longest) = self.shared.upgrade().map_or((Duration::ZERO, Duration::ZERO), |shared| {
            shared.settings().oidc.as_ref().map_or(DEFAULT_BACKOFF, |oidc| oidc.backoff)
        });
        let failures = self.failures.fetch_add(1, Ordering::Relaxed);
        let retry_in = if failure.is_transient { delay(first, longest, failures) } else { longest };
        self.commands.push(Command::TokenFailed { reason: failure.reason, retry_in: spread(retry_in) });
    }
}

impl Wake for IssuedTokens {
    fn wake(&self) {
        let me = self.clone();
        let spawned = thread::Builder::new().name("ottla-token".to_owned()).spawn(move || me.run());
        if let Err(error) = spawned {
            let reason = format!("can't start the thread that gets tokens: {error}");
            self.report(TokenFailure { reason, is_transient: true });
        }
    }
}

impl fmt::Debug for IssuedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuedTokens")
    }
}

/// Returns the time until the next exchange, which doubles with each failure.
fn delay(first: Duration, longest: Duration, failures: u32) -> Duration {
    first.saturating_mul(1 << failures.min(20)).min(longest)
}

/// Returns 80 to 120 % of a time, so that many clients do not return to an identity provider together.
fn spread(time: Duration) -> Duration {
    let percent = 80 + RandomState::new().hash_one(()) % 41;
    time * percent as u32 / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_its_maximum() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(10));
        let millis: Vec<_> =
            [0, 1, 6, 7, u32::MAX].map(|failures| delay(first, longest, failures).as_millis()).into();
        assert_eq!(millis, [100, 200, 6400, 10_000, 10_000]);
        for _ in 0..100 {
            assert!((Duration::from_secs(8)..=Duration::from_secs(12)).contains(&spread(longest)));
        }
    }
}
