//! Commits of acknowledgements, and their outcomes.

use std::{future::Future, time::Duration};

use ottla_core::{
    error::{Error, ErrorKind, Result},
    share::shared::AcknowledgeOutcome,
};
use ottla_protocol::vocabulary::TopicPartition;

use super::ShareConsumer;
use crate::wait::{check_may_wait, wait_for};

/// The outcome of a commit: a result for each partition with acknowledgements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShareCommit {
    /// The results, in the order of topics and partitions. After an error the broker delivers the records again, except
    /// after a lost response, which leaves that open.
    pub partitions: Vec<(TopicPartition, Result<()>)>,
}

impl ShareCommit {
    /// Returns the first error.
    pub fn into_result(self) -> Result<()> {
        self.partitions.into_iter().try_for_each(|(_, result)| result)
    }
}

impl ShareConsumer {
    /// Sends the acknowledgements so far. It returns at once; [`ShareConsumer::take_outcomes`] returns the outcomes.
    pub fn commit_async(&self) -> Result<()> {
        self.check_open()?;
        self.inner.held.commit(&self.inner.shared);
        Ok(())
    }

    /// Sends the acknowledgements so far, and waits for their outcome. A partition without a response within `timeout` gets
    /// [`ErrorKind::TimedOut`]; its acknowledgements are not taken back.
    pub fn commit_sync(&self, timeout: Duration) -> Result<ShareCommit> {
        check_may_wait("commit_sync")?;
        self.check_open()?;
        let Some((ticket, waiting)) = self.inner.held.commit_with_outcome(&self.inner.shared) else {
            return Ok(ShareCommit::default());
        };
        let _ = wait_for(waiting, timeout);
        Ok(commit_of(ticket.outcome()))
    }

    /// Sends the acknowledgements so far, and returns their outcome. See [`ShareConsumer::commit_sync`].
    ///
    /// # Cancel safety
    ///
    /// The acknowledgements are sent by the call; a future that is dropped only loses their outcome.
    pub fn commit(&self) -> impl Future<Output = Result<ShareCommit>> + Send + use<> {
        let checked = self.check_open();
        let committed = match &checked {
            Ok(()) => self.inner.held.commit_with_outcome(&self.inner.shared),
            Err(_) => None,
        };
        async move {
            checked?;
            let Some((ticket, waiting)) = committed else { return Ok(ShareCommit::default()) };
            waiting.await;
            Ok(commit_of(ticket.outcome()))
        }
    }

    /// Returns the outcomes of acknowledgements that polls, [`ShareConsumer::commit_async`] and
    /// [`ShareConsumer::unsubscribe`] have sent, as far as they are known. The last 10,000 are kept.
    pub fn take_outcomes(&self) -> Vec<AcknowledgeOutcome> {
        self.inner.shared.take_outcomes()
    }
}

fn commit_of(outcome: ottla_core::share::ticket::CommitOutcome) -> ShareCommit {
    let late = || Err(Error::new(ErrorKind::TimedOut, "the acknowledgements have no response yet"));
    let partitions = outcome.into_iter().map(|(partition, result)| (partition, result.unwrap_or_else(late)));
    ShareCommit { partitions: partitions.collect() }
}
