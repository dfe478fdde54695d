//! The settings of a share consumer.

use std::{sync::Arc, time::Duration};

use crate::{
    config::EffectiveConfig,
    error::{Error, ErrorKind},
};

/// The settings of a share consumer.
#[derive(Clone, Debug)]
pub struct ShareSettings {
    /// `group.id`.
    pub group_id: Arc<str>,
    /// `client.rack`.
    pub rack: Option<Arc<str>>,
    /// `share.acknowledgement.mode=implicit`: the records of a poll are accepted by the next one.
    pub is_implicit: bool,
    /// `max.poll.records`: the number of records that a fetch asks for. Brokers return whole batches, so that a fetch may
    /// return more.
    pub max_poll_records: i32,
    /// `share.acquire.mode=record_limit`: a fetch returns at most `max.poll.records` (KIP-1206), and a poll, too.
    pub is_strict: bool,
    /// `share.renew.locks`: the locks of records that the application has are renewed.
    pub renews_locks: bool,
    /// `share.delivery.count.limit`: a record whose next delivery is the last one is handed out alone; 0 if none is.
    pub delivery_count_limit: i16,
    /// `max.poll.interval.ms`: a member that does not poll for this duration leaves the group until the next poll.
    pub max_poll_interval: Duration,
    /// `fetch.wait.max.ms`.
    pub fetch_wait_max: Duration,
    /// `fetch.min.bytes`.
    pub fetch_min_bytes: i32,
    /// `fetch.max.bytes`: the limit of one response, and of what all leaders together may have queued.
    pub fetch_max_bytes: i32,
    /// `fetch.error.backoff.ms`.
    pub fetch_error_backoff: Duration,
    /// `check.crcs`.
    pub check_crcs: bool,
    /// `receive.message.max.bytes`: a batch that decompresses to more is refused.
    pub max_batch_bytes: usize,
    /// `socket.timeout.ms`: the time that a broker may take to respond, in addition to `fetch.wait.max.ms`.
    pub request_timeout: Duration,
    /// The first and the longest wait before a failed request is repeated.
    pub backoff: (Duration, Duration),
}

impl ShareSettings {
    /// Reads the settings from the configuration. Error: there is no `group.id`, or the mode is unknown.
    pub fn new(config: &EffectiveConfig<'_>) -> Result<Self, Error> {
        let Some(group_id) = config.non_empty("group.id") else {
            let detail = "`group.id` is not set; a share consumer needs it";
            return Err(Error::new(ErrorKind::InvalidArgument, detail));
        };
        let bytes = |name| i32::try_from(config.integer(name)).unwrap_or(i32::MAX);
        let first_backoff = config.millis("retry.backoff.ms");
        Ok(Self {
            group_id: group_id.into(),
            rack: config.non_empty("client.rack").map(Arc::from),
            is_implicit: config.text("share.acknowledgement.mode") != "explicit",
            max_poll_records: bytes("max.poll.records"),
            is_strict: config.text("share.acquire.mode") == "record_limit",
            renews_locks: config.boolean("share.renew.locks"),
            delivery_count_limit: i16::try_from(config.integer("share.delivery.count.limit")).unwrap_or(0),
            max_poll_interval: config.millis("max.poll.interval.ms"),
            fetch_wait_max: config.millis("fetch.wait.max.ms"),
            fetch_min_bytes: bytes("fetch.min.bytes"),
            fetch_max_bytes: match config.positive("client.memory.max.bytes") {
                Some(most) => bytes("fetch.max.bytes").min(i32::try_from(most).unwrap_or(i32::MAX)),
                None => bytes("fetch.max.bytes"),
            },
            fetch_error_backoff: config.millis("fetch.error.backoff.ms"),
            check_crcs: config.boolean("check.crcs"),
            max_batch_bytes: config.size("receive.message.max.bytes"),
            request_timeout: config.millis("socket.timeout.ms"),
            backoff: (first_backoff, config.millis("retry.backoff.max.ms").max(first_backoff)),
        })
    }

    /// Returns the settings of a member of the group `group_id` with the defaults of the properties.
    pub fn with_defaults(group_id: impl Into<Arc<str>>) -> Self {
        Self {
            group_id: group_id.into(),
            rack: None,
            is_implicit: true,
            max_poll_records: 500,
            is_strict: false,
            renews_locks: false,
            delivery_count_limit: 5,
            max_poll_interval: Duration::from_secs(300),
            fetch_wait_max: Duration::from_millis(500),
            fetch_min_bytes: 1,
            fetch_max_bytes: 52_428_800,
            fetch_error_backoff: Duration::from_millis(500),
            check_crcs: true,
            max_batch_bytes: 100_000_000,
            request_timeout: Duration::from_secs(60),
            backoff: (Duration::from_millis(100), Duration::from_secs(1)),
        }
    }
}
