//! Schedules with names: worlds in which one thing happens to a share group again and again.
//!
//! | name | situation |
//! |---|---|
//! | cut-after-fetch | the connection is lost with the response to a fetch |
//! | cut-after-ack | the connection is lost with the response to an acknowledgement |
//! | leader-there-and-back | a partition's leader moves away and back within 100 ms |
//! | lock-edge | records are processed for about as long as their locks last |
//! | renewed | as lock-edge, with locks that are renewed |
//! | renew-disabled | as renewed, and the group forbids renewals |
//! | poison | members die with the records that they have |
//! | last-delivery | records are released until their last delivery |
//! | member-storm | members join and leave ten times a second |
//! | session-evict | brokers forget sessions, or have no room for them |
//! | slow-state | acknowledgements take five seconds |
//! | mixed-versions | one broker has the versions before Kafka 4.2 |
//! | no-assignment | the members have no partitions for some time, and then all |

use std::time::Duration;

use ottla_embedded_broker::{ApiKey, BrokerId, ErrorCode, FaultAction, ScriptScope, ScriptStep};

use super::{GROUP, Run, Summary, TOPIC, member::Manners, setup::Setup};
use crate::{checkers::Broken, network::NetworkKnobs};

/// The names of the schedules.
pub const NAMES: [&str; 13] = [
    "cut-after-fetch",
    "cut-after-ack",
    "leader-there-and-back",
    "lock-edge",
    "renewed",
    "renew-disabled",
    "poison",
    "last-delivery",
    "member-storm",
    "session-evict",
    "slow-state",
    "mixed-versions",
    "no-assignment",
];

/// A schedule: its world, and an event that is repeated in it.
struct Schedule {
    setup: Setup,
    event: fn(&mut Run, u64),
}

/// Runs the schedule of a name, and returns the trace if it `keeps` one. `None`: the name is unknown.
pub fn run(name: &str, keeps: bool) -> Option<(Result<Summary, Broken>, Vec<String>)> {
    let Schedule { setup, event } = schedule(name)?;
    let mut run = Run::new(1, setup, keeps);
    let result = run.go_with(event);
    let summary = run.summary();
    Some((result.map(|()| summary), run.world.trace.lines().to_vec()))
}

/// A world in which nothing happens by itself.
fn quiet() -> Setup {
    Setup {
        brokers: 3,
        partitions: 3,
        members: 2,
        has_faults: true,
        lock: Duration::from_secs(3),
        delivery_count_limit: 10_000,
        max_record_locks: 2_000,
        permits_renewals: true,
        renews_locks: false,
        is_strict: false,
        max_poll_records: 50,
        max_poll_interval: Duration::from_secs(300),
        fetch_wait: Duration::from_millis(200),
        version: 2,
        manners: Manners {
            is_implicit: false,
            processes: Duration::from_millis(20),
            rests: Duration::from_millis(20),
            releases: 5,
            rejects: 2,
            delays: 5,
        },
        network: NetworkKnobs {
            latency: Duration::from_millis(1),
            jitter: Duration::from_millis(1),
            window: 1 << 20,
            cut_percent: 5,
        },
        suffers: Duration::from_secs(8),
        event_interval: Duration::from_millis(500),
        writes: Duration::from_millis(20),
    }
}

fn refuse_session(run: &mut Run, number: u64) {
    let errors = [
        ErrorCode::SHARE_SESSION_NOT_FOUND,
        ErrorCode::INVALID_SHARE_SESSION_EPOCH,
        ErrorCode::SHARE_SESSION_LIMIT_REACHED,
    ];
    let api = if number.is_multiple_of(2) { ApiKey::ShareFetch } else { ApiKey::ShareAcknowledge };
    let step = ScriptStep::error(errors[number as usize % errors.len()]);
    run.world.cluster.control().script(ScriptScope::Cluster, api as i16, [step]);
}

fn schedule(name: &str) -> Option<Schedule> {
    let quiet = quiet();
    let slow = Manners { processes: quiet.lock, ..quiet.manners };
    Some(match name {
        "cut-after-fetch" => Schedule {
            setup: quiet,
            event: |run, _| run.inject(FaultAction::LoseResponse, ApiKey::ShareFetch, 1),
        },
        "cut-after-ack" => Schedule {
            setup: quiet,
            event: |run, _| run.inject(FaultAction::LoseResponse, ApiKey::ShareAcknowledge, 1),
        },
        "leader-there-and-back" => Schedule {
            setup: Setup { event_interval: Duration::from_millis(60), ..quiet },
            event: |run, number| {
                let broker = BrokerId(1 + (number % 2) as i32);
                run.world.cluster.control().move_leader(TOPIC, 0, Some(broker));
                run.world.settle_cluster();
            },
        },
        "lock-edge" => {
            Schedule { setup: Setup { manners: slow, has_faults: false, ..quiet }, event: |_, _| {} }
        }
        "renewed" => Schedule {
            setup: Setup { manners: slow, renews_locks: true, has_faults: false, ..quiet },
            event: |_, _| {},
        },
        "renew-disabled" => Schedule {
            setup: Setup { manners: slow, renews_locks: true, permits_renewals: false, ..quiet },
            event: |_, _| {},
        },
        "poison" => Schedule {
            setup: Setup { delivery_count_limit: 5, event_interval: Duration::from_secs(2), ..quiet },
            event: |run, _| run.crash(),
        },
        "last-delivery" => Schedule {
            setup: Setup {
                delivery_count_limit: 3,
                has_faults: false,
                manners: Manners { releases: 60, ..quiet.manners },
                ..quiet
            },
            event: |_, _| {},
        },
        "member-storm" => Schedule {
            setup: Setup { event_interval: Duration::from_millis(100), ..quiet },
            event: |run, _| run.part(),
        },
        "session-evict" => Schedule { setup: quiet, event: refuse_session },
        "slow-state" => Schedule {
            setup: Setup { event_interval: Duration::from_secs(4), ..quiet },
            event: |run, _| {
                run.inject(FaultAction::Delay(Duration::from_secs(5)), ApiKey::ShareAcknowledge, 1);
            },
        },
        "mixed-versions" => Schedule {
            setup: Setup { renews_locks: true, manners: slow, ..quiet },
            event: |run, number| {
                if number == 0 {
                    for api in [ApiKey::ShareFetch, ApiKey::ShareAcknowledge] {
                        run.world.cluster.control().set_api_versions(Some(BrokerId(2)), api, 1, 1);
                    }
                } else {
                    run.move_leaders();
                }
            },
        },
        "no-assignment" => Schedule {
            setup: Setup { event_interval: Duration::from_secs(2), ..quiet },
            event: |run, number| {
                let none = std::collections::BTreeMap::new();
                let assignments = (number % 2 == 0).then_some(&none);
                run.world.cluster.control().assign_share_group(GROUP, assignments);
                run.world.settle_cluster();
            },
        },
        _ => return None,
    })
}
