//! The worlds of seeds.

use std::time::Duration;

use ottla_core::rng::Rng;

use super::member::Manners;
use crate::network::NetworkKnobs;

/// The properties of a world that its seed decides.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) brokers: i32,
    pub(super) partitions: i32,
    pub(super) members: usize,
    pub(super) has_faults: bool,
    pub(super) lock: Duration,
    pub(super) delivery_count_limit: i16,
    pub(super) max_record_locks: i32,
    pub(super) permits_renewals: bool,
    pub(super) renews_locks: bool,
    pub(super) is_strict: bool,
    pub(super) max_poll_records: i32,
    pub(super) max_poll_interval: Duration,
    pub(super) fetch_wait: Duration,
    /// The newest version of ShareFetch and ShareAcknowledge.
    pub(super) version: i16,
    pub(super) manners: Manners,
    pub(super) network: NetworkKnobs,
    pub(super) suffers: Duration,
    pub(super) event_interval: Duration,
    /// The mean time between records of the producer.
    pub(super) writes: Duration,
}

impl Setup {
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x73_6861_7265);
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        Self {
            brokers: pick(&[1, 2, 3, 3]) as i32,
            partitions: pick(&[1, 2, 4]) as i32,
            members: pick(&[1, 2, 3]) as usize,
            has_faults: pick(&[0, 1, 1]) == 1,
            lock: Duration::from_millis(pick(&[900, 3_000, 30_000])),
            delivery_count_limit: pick(&[2, 5, 10_000]) as i16,
            max_record_locks: pick(&[20, 2_000]) as i32,
            permits_renewals: pick(&[0, 1, 1]) == 1,
            renews_locks: pick(&[0, 1]) == 1,
            is_strict: pick(&[0, 0, 1]) == 1,
            max_poll_records: pick(&[1, 10, 500]) as i32,
            max_poll_interval: Duration::from_millis(pick(&[5_000, 300_000])),
            fetch_wait: Duration::from_millis(pick(&[100, 500])),
            version: pick(&[1, 2, 2]) as i16,
            manners: Manners {
                is_implicit: pick(&[0, 0, 1]) == 1,
                processes: Duration::from_millis(pick(&[1, 50, 1_000])),
                rests: Duration::from_millis(pick(&[5, 30, 400])),
                releases: pick(&[0, 10]),
                rejects: pick(&[0, 5]),
                delays: pick(&[0, 10]),
            },
            network: NetworkKnobs {
                latency: Duration::from_micros(pick(&[100, 1_000, 10_000])),
                jitter: Duration::from_micros(pick(&[50, 2_000, 20_000])),
                window: 1 << 20,
                cut_percent: pick(&[0, 5, 30]),
            },
            suffers: Duration::from_secs(pick(&[10, 25])),
            event_interval: Duration::from_millis(pick(&[200, 700, 2_000])),
            writes: Duration::from_millis(pick(&[5, 30, 200])),
        }
    }

    /// Returns true if nothing but the end of a lock takes a record from a member.
    pub(super) const fn is_calm(&self) -> bool {
        !self.has_faults
    }
}
