//! Sending in transactions: begins one before the first message, and ends it after a while or at the end.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ottla::{Config, Producer, Transaction, TransactionError};

use crate::failure::{Failure, Outcome};
use crate::sending::Sending;

/// The transactions of a producer, one after the other.
pub struct Transactions<'a> {
    producer: &'a Producer,
    open: Option<Transaction<'a>>,
    began: Instant,
    duration: Duration,
    timeout: Duration,
    sending: Sending,
}

/// Returns the transactional ID of the configuration, or sets one that no other producer has.
pub fn ensure_id(config: &mut Config, prefix: &str) -> Outcome {
    if config.get("transactional.id").is_some_and(|id| !id.is_empty()) {
        return Ok(());
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    config.set("transactional.id", &format!("{prefix}-{}-{}", std::process::id(), now.as_nanos()))?;
    Ok(())
}

impl<'a> Transactions<'a> {
    /// Obtains the producer ID. Transactions are committed after `duration`.
    pub fn start(
        producer: &'a Producer,
        config: &Config,
        duration: Duration,
        sending: &Sending,
    ) -> Outcome<Transactions<'a>> {
        let timeout =
            config.get("transaction.timeout.ms").and_then(|value| value.parse().ok()).unwrap_or(60_000);
        let timeout = Duration::from_millis(timeout);
        producer
            .init_transactions(sending.bound(timeout))
            .map_err(|error| failure("can't start transactions", &error))?;
        let sending = sending.clone();
        Ok(Transactions { producer, open: None, began: Instant::now(), duration, timeout, sending })
    }

    /// Commits the transaction if it is old enough, and begins one unless one is open.
    pub fn before_message(&mut self) -> Outcome {
        if self.open.is_some() && self.began.elapsed() >= self.duration {
            self.commit()?;
        }
        if self.open.is_none() {
            let begun =
                self.producer.begin().map_err(|error| failure("can't begin a transaction", &error))?;
            self.open = Some(begun);
            self.began = Instant::now();
        }
        Ok(())
    }

    /// Commits the open transaction, if there is one.
    pub fn commit(&mut self) -> Outcome {
        let Some(open) = self.open.take() else { return Ok(()) };
        open.commit(self.sending.bound(self.timeout)).map_err(|error| match error {
            TransactionError::Retriable(_) => failure("the outcome of the transaction is unknown", &error),
            _ => failure("the transaction was not committed", &error),
        })
    }

    /// Aborts the open transaction, if there is one.
    pub fn abort(&mut self) -> Outcome {
        let Some(open) = self.open.take() else { return Ok(()) };
        open.abort(self.sending.bound(self.timeout))
            .map_err(|error| failure("the transaction was not aborted", &error))
    }
}

fn failure(what: &str, error: &TransactionError) -> Failure {
    Failure::Failed(format!("{what}: {}", error.error()))
}
