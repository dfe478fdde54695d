//! The interface between a broker actor and its halves, [`Sender`](crate::produce::sender::Sender),
//! [`Fetcher`](crate::fetch::fetcher::Fetcher) and [`ShareFetcher`](crate::share::fetcher::ShareFetcher).

use std::time::Duration;

use crate::{
    error::Error,
    fetch::message::FetchReport,
    message::{BrokerNews, ToCluster},
    produce::message::ProduceReport,
};

/// A request of a half to its broker actor.
#[derive(Debug)]
pub enum HalfOutput {
    /// Send this message to the cluster actor.
    ToCluster(ToCluster),
    /// The broker throttles the client: send nothing for this duration.
    Throttle(Duration),
    /// A response can't be decoded: drop the connection.
    Misbehaved(Error),
}

impl From<ProduceReport> for HalfOutput {
    fn from(report: ProduceReport) -> Self {
        Self::ToCluster(ToCluster::Produce(report))
    }
}

impl From<FetchReport> for HalfOutput {
    fn from(report: FetchReport) -> Self {
        Self::ToCluster(ToCluster::Fetch(report))
    }
}

impl From<BrokerNews> for HalfOutput {
    fn from(news: BrokerNews) -> Self {
        Self::ToCluster(ToCluster::News(news))
    }
}
