//! How long a command waits without progress: `--timeout`, if it is set.

use std::time::{Duration, Instant};

use crate::failure::{Failure, Outcome};

/// A wait that ends when nothing has happened for `--timeout`. Without that option it does not end.
#[derive(Clone, Debug)]
pub struct Patience {
    limit: Option<Duration>,
    since: Instant,
}

impl Patience {
    /// Begins to wait.
    pub fn new(limit: Option<Duration>) -> Patience {
        Patience { limit, since: Instant::now() }
    }

    /// Begins to wait anew if something happened.
    pub fn renew_if(&mut self, happened: bool) {
        if happened {
            self.since = Instant::now();
        }
    }

    /// Error: nothing happened for too long, which `what` describes.
    pub fn check(&self, what: impl FnOnce() -> String) -> Outcome {
        match self.limit.filter(|limit| self.since.elapsed() >= *limit) {
            None => Ok(()),
            Some(limit) => {
                let seconds = limit.as_secs_f64();
                Err(Failure::Failed(format!("{}: nothing happened for {seconds} s (--timeout)", what())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_only_without_progress() {
        let mut endless = Patience::new(None);
        endless.since -= Duration::from_secs(3600);
        assert_eq!(endless.check(|| "it".into()), Ok(()));
        let mut patience = Patience::new(Some(Duration::from_secs(2)));
        patience.since -= Duration::from_secs(2);
        patience.renew_if(false);
        let text = "it: nothing happened for 2 s (--timeout)".to_owned();
        assert_eq!(patience.check(|| "it".into()), Err(Failure::Failed(text)));
        patience.renew_if(true);
        assert_eq!(patience.check(|| "it".into()), Ok(()));
    }
}
