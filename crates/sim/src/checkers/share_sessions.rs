//! Checks the requests of share consumers: epochs of sessions, one request at a time, ranges, and rates.

use std::{collections::VecDeque, time::Duration};

use ottla_core::machine::Instant;
use ottla_protocol::{
    api::ApiKey,
    generated::{
        share_acknowledge::ShareAcknowledgeRequest, share_fetch::ShareFetchRequest,
        share_group_heartbeat::ShareGroupHeartbeatRequest,
    },
    primitive::{DecodeError, Reader},
};
use ottla_sorted::SortedMap;

use super::Broken;

/// A request of a share consumer, as far as it is checked.
#[derive(Debug)]
pub(super) struct ShareRequest {
    api: ApiKey,
    /// The epoch of the session, or of the member.
    epoch: i32,
    /// The acknowledged ranges of each partition.
    acknowledged: Vec<Vec<(i64, i64)>>,
    /// True for a fetch that may wait at the broker.
    may_wait: bool,
}

impl ShareRequest {
    /// Decodes a request; `None` for one of another kind.
    pub(super) fn decode(
        api: ApiKey,
        version: i16,
        reader: &mut Reader<'_>,
    ) -> Option<Result<Self, DecodeError>> {
        Some(match api {
            ApiKey::ShareFetch => ShareFetchRequest::decode(reader, version).map(|request| {
                let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
                let ranges = partitions.map(|partition| {
                    let batches = partition.acknowledgement_batches.iter();
                    batches.map(|batch| (batch.first_offset, batch.last_offset)).collect()
                });
                Self {
                    api,
                    epoch: request.share_session_epoch,
                    acknowledged: ranges.collect(),
                    may_wait: request.max_wait_ms > 0,
                }
            }),
            ApiKey::ShareAcknowledge => ShareAcknowledgeRequest::decode(reader, version).map(|request| {
                let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
                let ranges = partitions.map(|partition| {
                    let batches = partition.acknowledgement_batches.iter();
                    batches.map(|batch| (batch.first_offset, batch.last_offset)).collect()
                });
                let epoch = request.share_session_epoch;
                Self { api, epoch, acknowledged: ranges.collect(), may_wait: false }
            }),
            ApiKey::ShareGroupHeartbeat => {
                ShareGroupHeartbeatRequest::decode(reader, version).map(|request| Self {
                    api,
                    epoch: request.member_epoch,
                    acknowledged: Vec::new(),
                    may_wait: false,
                })
            }
            _ => return None,
        })
    }

    /// Returns the line for the trace.
    pub(super) fn details(&self) -> String {
        format!(", epoch {}, acknowledges {:?}", self.epoch, self.acknowledged)
    }
}

/// The share sessions of all connections.
#[derive(Debug, Default)]
pub struct ShareSessions {
    /// The epoch of the next request of each connection that has a session.
    next: SortedMap<u64, i32>,
    /// The times of the fetches that may wait, by connection.
    fetches: SortedMap<u64, VecDeque<Instant>>,
}

/// The maximum number of fetches that may wait on one connection within a second. A fetch waits for at least 100 ms unless
/// there are records.
const FETCHES: usize = 400;

impl ShareSessions {
    /// Checks a request; `open` are the requests of the connection without a response, with this one.
    pub(super) fn sent(
        &mut self,
        now: Instant,
        client: usize,
        link: u64,
        request: &ShareRequest,
        open: impl Iterator<Item = ApiKey>,
    ) -> Result<(), Broken> {
        if request.api == ApiKey::ShareGroupHeartbeat {
            return Ok(());
        }
        let name = request.api.name();
        let broken = |what: String| {
            Err(Broken::new("share sessions", format!("client {client}, link {link}: {name} {what}")))
        };
        let is_share = |api: &ApiKey| matches!(api, ApiKey::ShareFetch | ApiKey::ShareAcknowledge);
        let in_flight = open.filter(is_share).count();
        if in_flight > 1 {
            return broken(format!("while {in_flight} requests of the session are in flight"));
        }
        let has_acknowledgements = request.acknowledged.iter().any(|ranges| !ranges.is_empty());
        match (request.epoch, self.next.get(&link)) {
            (0, _) if request.api != ApiKey::ShareFetch => return broken("opens a session".to_owned()),
            (0, _) if has_acknowledgements => {
                return broken("opens a session with acknowledgements".to_owned());
            }
            (0, _) => drop(self.next.insert(link, 1)),
            (-1, Some(_)) => drop(self.next.remove(&link)),
            (epoch, Some(next)) if epoch == *next => {
                let next = epoch.checked_add(1).unwrap_or(1);
                self.next.insert(link, next);
            }
            (epoch, next) => return broken(format!("with epoch {epoch} instead of {next:?}")),
        }
        for ranges in &request.acknowledged {
            let is_valid = |pair: &[(i64, i64)]| pair[0].1 < pair[1].0;
            if ranges.iter().any(|(first, last)| first > last) || !ranges.windows(2).all(is_valid) {
                return broken(format!("acknowledges {ranges:?}"));
            }
        }
        if request.may_wait {
            let times = self.fetches.entry(link).or_default();
            while times.front().is_some_and(|at| *at + Duration::from_secs(1) <= now) {
                times.pop_front();
            }
            times.push_back(now);
            if times.len() > FETCHES {
                return broken(format!("is the {}th within a second", times.len()));
            }
        }
        Ok(())
    }

    /// Removes a closed connection.
    pub fn close(&mut self, link: u64) {
        self.next.remove(&link);
        self.fetches.remove(&link);
    }
}
