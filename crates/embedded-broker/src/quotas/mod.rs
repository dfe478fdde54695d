//! Quotas of clients: who sends or reads too much waits.
//!
//! ```text
//!   request ─► lookup: which quota is for this user and client ID? ─► rate, bucket: how much was used, how long to wait
//!                     throttle_time_ms in the response, and the connection is muted for that time (KIP-219) ◄─┘
//! ```
//!
//! As in Kafka, each broker measures for itself, over eleven windows of one second. A Produce counts with the size of its request, a
//! Fetch with the size of its records; a Fetch that would exceed the quota gets an empty response and no records. Creating topics
//! and partitions and deleting topics takes tokens from a bucket (KIP-599). `request_percentage` is a share of a thread's time,
//! which a machine without a clock can't measure: each request takes [`request_time`](crate::ClusterOptions::request_time).
//!
//! # Pitfalls
//!
//! - A client that was idle may send ten seconds' worth at once: the windows before its first request count as empty
//!   (`idle_client_may_send_ten_seconds_worth_at_once`).
//! - A batch larger than ten seconds' worth is never delivered to a consumer with that quota, as in Kafka
//!   (`batch_of_more_than_ten_seconds_worth_is_never_fetched`).

mod bucket;
mod lookup;
mod rate;

use std::time::Duration;

use ottla_protocol::{api::ApiKey, error_code::ErrorCode};
use ottla_sorted::SortedMap;

use self::{bucket::TokenBucket, lookup::Scope, rate::SampledRate};
use crate::{
    cluster::Cluster, connection::Request, control::Control, options::BrokerId, provisioning::Refusal,
};

/// The kinds of use that each broker measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Produced,
    Fetched,
    RequestTime,
}

/// What clients with a quota have used.
#[derive(Debug, Default)]
pub(crate) struct QuotaUsage {
    rates: SortedMap<(BrokerId, Kind, Scope), SampledRate>,
    /// The tokens for changes of topics, at the controller.
    tokens: SortedMap<Scope, TokenBucket>,
}

/// The number of entries from which on those without recent use are removed.
const MANY: usize = 1000;

/// The largest throttle time for `request_percentage`: one window.
const LONGEST_REQUEST_THROTTLE: Duration = Duration::from_secs(1);

impl Kind {
    const fn key(self) -> &'static str {
        match self {
            Self::Produced => "producer_byte_rate",
            Self::Fetched => "consumer_byte_rate",
            Self::RequestTime => "request_percentage",
        }
    }
}

/// APIs of the inside of a cluster and of authentication, which count for no quota.
const fn is_exempt(api: ApiKey) -> bool {
    matches!(api, ApiKey::WriteTxnMarkers | ApiKey::SaslHandshake | ApiKey::SaslAuthenticate)
}

impl Control<'_> {
    /// Sets a quota such as `producer_byte_rate`, or removes it. The entity is a list of `user` and `client-id` with their names;
    /// `None` stands for all without a quota of their own.
    pub fn set_quota(&mut self, entity: &[(&str, Option<&str>)], quota: &str, value: Option<f64>) {
        let names = entity.iter().map(|(kind, name)| ((*kind).to_owned(), name.map(str::to_owned)));
        let quotas = &mut self.cluster.administration.quotas;
        let values = quotas.entry(names.collect()).or_default();
        match value {
            Some(value) => values.insert(quota.to_owned(), value),
            None => values.remove(quota),
        };
        quotas.retain(|_, values| !values.is_empty());
    }
}

impl Cluster {
    /// Counts a request for the time that requests take, and throttles it if its client has used too much.
    pub(crate) fn charge_request(&mut self, request: &mut Request) {
        if self.administration.quotas.is_empty() || is_exempt(request.api) {
            return;
        }
        let percent_seconds = self.options.request_time.as_secs_f64() * 100.0;
        let throttle = self.charge(request, Kind::RequestTime, percent_seconds);
        let throttle = throttle.min(LONGEST_REQUEST_THROTTLE);
        request.quota_throttle = request.quota_throttle.max(throttle);
    }

    /// Counts the bytes of a Produce request, and throttles it if its client has sent too much.
    pub(crate) fn charge_produce(&mut self, request: &mut Request, bytes: usize) {
        let throttle = self.charge(request, Kind::Produced, bytes as f64);
        request.quota_throttle = request.quota_throttle.max(throttle);
    }

    /// Counts the bytes of a Fetch response. Returns true if the client has to wait: then the response must be empty, and its
    /// bytes do not count.
    pub(crate) fn charge_fetch(&mut self, request: &mut Request, bytes: usize) -> bool {
        if self.administration.quotas.is_empty() {
            return false;
        }
        let throttle = self.charge(request, Kind::Fetched, bytes as f64);
        request.quota_throttle = request.quota_throttle.max(throttle);
        if request.quota_throttle.is_zero() {
            return false;
        }
        self.charge(request, Kind::Fetched, -(bytes as f64));
        true
    }

    /// Returns the largest size of a Fetch response that the client's quota permits at all.
    pub(crate) fn fetch_quota_bytes(&self, request: &Request) -> usize {
        if self.administration.quotas.is_empty() {
            return usize::MAX;
        }
        let quota = self.quota_for(request, Kind::Fetched.key());
        quota.map_or(usize::MAX, |(_, quota)| (quota * rate::FULL_WINDOWS_SECONDS) as usize)
    }

    /// Takes tokens for the creation or deletion of partitions.
    ///
    /// # Errors
    ///
    /// The client has to wait, and its request is of a version that can say so (`is_strict`).
    pub(crate) fn charge_mutation(
        &mut self,
        request: &mut Request,
        partitions: usize,
        is_strict: bool,
    ) -> Result<(), Refusal> {
        let Some((scope, quota)) = self.quota_for(request, "controller_mutation_rate") else { return Ok(()) };
        let now = self.now;
        let bucket = self.quota_usage.tokens.entry(scope).or_insert_with(|| TokenBucket::full(quota, now));
        bucket.refill(quota, now);
        let throttle = bucket.wait(quota);
        if !throttle.is_zero() && is_strict {
            request.quota_throttle = request.quota_throttle.max(throttle);
            let error = ErrorCode::THROTTLING_QUOTA_EXCEEDED;
            return Err((error, "The throttling quota has been exceeded.".to_owned()));
        }
        bucket.take(partitions as f64);
        if !is_strict {
            request.quota_throttle = request.quota_throttle.max(bucket.wait(quota));
        }
        Ok(())
    }

    /// Counts use, and returns how long the client has to wait.
    fn charge(&mut self, request: &Request, kind: Kind, used: f64) -> Duration {
        if self.administration.quotas.is_empty() {
            return Duration::ZERO;
        }
        let Some((scope, quota)) = self.quota_for(request, kind.key()) else { return Duration::ZERO };
        let now = self.now;
        let rates = &mut self.quota_usage.rates;
        if rates.len() > MANY {
            rates.retain(|_, rate| !rate.is_unused(now));
        }
        let rate = rates.entry((request.broker, kind, scope)).or_default();
        rate.record(now, used);
        rate.wait(now, quota)
    }
}
