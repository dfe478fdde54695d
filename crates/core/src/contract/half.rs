//! The interface between a broker actor and its halves, [`Sender`](crate::produce::sender::Sender),
//! [`Fetcher`](crate::fetch::fetcher::Fetcher) and [`ShareFetcher`](crate::share::fetcher::ShareFetcher).

use std::time::Duration;

use super::broker::BrokerNews;
use crate::error::Error;

/// An output of a half, whose reports to the cluster actor are of type `R`.
#[derive(Debug)]
pub enum HalfOutput<R> {
    /// Report this to the cluster actor.
    Report(R),
    /// The broker sent this along with a response.
    News(BrokerNews),
    /// The broker throttles the client: send nothing for this duration.
    Throttle(Duration),
    /// A response can't be decoded: drop the connection.
    Misbehaved(Error),
}

impl<R> From<BrokerNews> for HalfOutput<R> {
    fn from(news: BrokerNews) -> Self {
        Self::News(news)
    }
}
