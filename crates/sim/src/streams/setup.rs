//! The worlds of seeds.

use std::time::Duration;

use ottla_core::rng::Rng;

use crate::network::NetworkKnobs;

/// The properties of a world that its seed decides.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) brokers: i32,
    /// The partitions of the source; there are twice as many tasks.
    pub(super) partitions: i32,
    pub(super) members: usize,
    pub(super) standby_replicas: usize,
    /// Members come and go in any world; everything else only fails with faults.
    pub(super) has_faults: bool,
    /// The longest time that an application takes to give up tasks.
    pub(super) gives_up: Duration,
    pub(super) network: NetworkKnobs,
    pub(super) suffers: Duration,
    pub(super) event_interval: Duration,
}

impl Setup {
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed ^ 0x0073_7472_6561_6d73);
        let mut pick = |choices: &[u64]| choices[rng.below(choices.len() as u64) as usize];
        let has_faults = pick(&[0, 1, 1]) == 1;
        Self {
            brokers: pick(&[1, 2, 3, 3]) as i32,
            partitions: pick(&[1, 3, 6]) as i32,
            members: pick(&[1, 2, 4]) as usize,
            standby_replicas: pick(&[0, 1, 2]) as usize,
            has_faults,
            // Longer than the rebalance timeout only with faults: the coordinator removes such a member.
            gives_up: Duration::from_millis(pick(if has_faults {
                &[10, 500, 7_000]
            } else {
                &[10, 500, 3_000]
            })),
            network: NetworkKnobs {
                latency: Duration::from_micros(pick(&[100, 1_000, 10_000])),
                jitter: Duration::from_micros(pick(&[50, 2_000, 20_000])),
                window: 1 << 20,
                cut_percent: if has_faults { pick(&[0, 5, 30]) } else { 0 },
            },
            suffers: Duration::from_secs(pick(&[10, 25])),
            event_interval: Duration::from_millis(pick(&[200, 700, 2_000])),
        }
    }
}
