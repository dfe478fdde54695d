//! Named schedules: worlds in which one fault is repeated at every point of a transaction, with both protocols.

use std::time::Duration;

use ottla_embedded_broker::{ApiKey, CoordinatorKey, FaultAction};

use super::{Manners, Run, Setup, Summary, transactional_id};
use crate::{checkers::Broken, network::NetworkKnobs};

/// The names of the schedules.
pub const NAMES: [&str; 17] = [
    "late-produce",
    "late-commit",
    "late-registration",
    "late-offsets",
    "lost-commit",
    "lost-producer-id",
    "coordinator-moves",
    "frozen",
    "restarts",
    "zombie",
    "epochs-used-up",
    "version-changes",
    "slow-markers",
    "copiers-come-and-go",
    "brokers-die",
    "swapped-brokers",
    "two-clusters",
];

/// A schedule: its world, and its periodic events.
struct Schedule {
    setup: Setup,
    event: fn(&mut Run, u64),
}

/// Runs the schedule of a name with both protocols, and returns the traces if it `keeps` them. `None`: there is none.
pub fn run(name: &str, keeps: bool) -> Option<(Result<Summary, Broken>, Vec<String>)> {
    let mut all = (Ok(Summary::default()), Vec::new());
    for version in [1, 2] {
        let Schedule { setup, event } = schedule(name, version)?;
        let mut run = Run::new(u64::from(version.unsigned_abs()), setup, keeps);
        let result = run.go_with(event);
        all.1.extend(run.world.trace.lines().iter().cloned());
        if let Err(broken) = result {
            let what = format!("transaction.version {version}: {}", broken.what);
            return Some((Err(Broken::new(broken.checker, what)), all.1));
        }
        let virtual_time = run.world.now - ottla_core::machine::Instant::from_nanos(1_000_000_000);
        all.0 = all.0.map(|sum| Summary { virtual_time: sum.virtual_time + virtual_time, ..run.summary });
    }
    Some(all)
}

/// A world without faults of its own.
fn calm(version: i16) -> Setup {
    Setup {
        brokers: 3,
        topics: vec![("in".to_owned(), 2), ("out0".to_owned(), 2)],
        producers: 1,
        copiers: 0,
        protocol: None,
        readers: 1,
        version,
        is_switched: false,
        batch_messages: usize::MAX,
        has_faults: false,
        is_calm: false,
        workers: false,
        loses_tails: false,
        timeout: Duration::from_secs(4),
        timeout_interval: Duration::from_millis(100),
        marker_delay: Duration::from_millis(2),
        replication_lag: Duration::ZERO,
        linger: Duration::from_millis(5),
        message_timeout: Duration::from_secs(4),
        manners: Manners {
            records: 10,
            thinks: Duration::from_millis(20),
            rests: Duration::ZERO,
            abort_percent: 10,
            timeout: Duration::from_secs(5),
        },
        network: NetworkKnobs {
            latency: Duration::from_millis(1),
            jitter: Duration::from_millis(1),
            window: 1 << 20,
            cut_percent: 5,
        },
        rereads: 0,
        suffers: Duration::from_secs(20),
        fault_interval: Duration::from_millis(700),
    }
}

fn schedule(name: &str, version: i16) -> Option<Schedule> {
    let calm = calm(version);
    Some(match name {
        // A batch is reported as timed out, its transaction is aborted, and then it arrives (KAFKA-17754).
        "late-produce" => Schedule {
            setup: Setup { message_timeout: Duration::from_millis(300), ..calm },
            event: |run, number| deliver_late(run, ApiKey::Produce, number),
        },
        "late-commit" => {
            Schedule { setup: calm, event: |run, number| deliver_late(run, ApiKey::EndTxn, number) }
        }
        "late-registration" => Schedule {
            setup: calm,
            event: |run, number| deliver_late(run, ApiKey::AddPartitionsToTxn, number),
        },
        "late-offsets" => Schedule {
            setup: Setup { copiers: 2, ..calm },
            event: |run, number| {
                let api = if number % 2 == 0 { ApiKey::TxnOffsetCommit } else { ApiKey::AddOffsetsToTxn };
                deliver_late(run, api, number);
            },
        },
        "lost-commit" => Schedule {
            setup: calm,
            event: |run, number| run.inject(FaultAction::LoseResponse, ApiKey::EndTxn, 1 + number as u32 % 3),
        },
        "lost-producer-id" => Schedule {
            setup: calm,
            event: |run, number| {
                run.inject(FaultAction::LoseResponse, ApiKey::Produce, 1);
                run.inject(FaultAction::LoseResponse, ApiKey::InitProducerId, 1 + number as u32 % 2);
                if number % 4 == 0 {
                    run.restart(0);
                }
            },
        },
        "coordinator-moves" => Schedule {
            setup: Setup { fault_interval: Duration::from_millis(90), ..calm },
            event: |run, _| run.move_coordinator(),
        },
        _ => return schedule_of_processes(name, calm),
    })
}

/// Returns a schedule in which processes, brokers or the cluster change.
fn schedule_of_processes(name: &str, calm: Setup) -> Option<Schedule> {
    Some(match name {
        // For about transaction.timeout.ms, at any point of a transaction.
        "frozen" => Schedule {
            setup: Setup { fault_interval: Duration::from_secs(6), suffers: Duration::from_secs(90), ..calm },
            event: |run, number| {
                if let Some(index) = run.some_application() {
                    run.suspend(index, Duration::from_millis(3_000 + 137 * number % 2_000));
                }
                run.replace_failed();
            },
        },
        "restarts" => Schedule {
            setup: Setup { marker_delay: Duration::from_millis(400), ..calm },
            event: |run, _| run.restart(0),
        },
        "zombie" => Schedule { setup: calm, event: |run, _| run.replace() },
        "epochs-used-up" => Schedule {
            setup: Setup { fault_interval: Duration::from_secs(3), ..calm },
            event: |run, number| {
                if let Some(index) = run.some_application() {
                    run.kill(index);
                }
                let epoch = i16::MAX - 4 + (number % 4) as i16;
                run.world.cluster.control().set_producer_epoch(&transactional_id(0), epoch);
                run.start(0);
            },
        },
        "version-changes" => Schedule {
            setup: Setup { is_switched: true, copiers: 1, ..calm },
            event: |run, number| {
                let version = [2, 1, 0, 2, 0, 1][number as usize % 6];
                run.world.cluster.control().set_transaction_version(version);
            },
        },
        "slow-markers" => Schedule {
            setup: Setup { suffers: Duration::from_secs(60), is_calm: true, ..calm },
            event: |run, number| {
                let delay = (number % 3 != 0).then(|| Duration::from_secs(number % 7));
                run.world.cluster.control().delay_markers("out0", number as i32 % 2, delay);
            },
        },
        // Learned addresses lead to other nodes, and then to nodes of another cluster (KIP-1242).
        "swapped-brokers" => Schedule {
            setup: Setup { copiers: 1, fault_interval: Duration::from_millis(1_300), ..calm },
            event: |run, number| {
                if number % 3 < 2 {
                    return run.world.swap_brokers();
                }
                let mut control = run.world.cluster.control();
                control.set_cluster_id(&format!("cluster-{number}"));
                control.close_connections(None);
                run.world.settle_cluster();
            },
        },
        // A load balancer leads each connection to one of two clusters for a while.
        "two-clusters" => Schedule {
            setup: Setup { copiers: 1, ..calm },
            event: |run, number| {
                let mut control = run.world.cluster.control();
                if number % 4 < 2 {
                    control.mix_clusters(&["one", "two"]);
                    return run.world.reset_a_link();
                }
                control.mix_clusters(&[["one", "two"][number as usize / 4 % 2]]);
                control.close_connections(None);
                run.world.settle_cluster();
            },
        },
        "copiers-come-and-go" => Schedule {
            setup: Setup { copiers: 3, fault_interval: Duration::from_millis(1_700), ..calm },
            event: |run, number| run.restart(1 + number as usize % 3),
        },
        "brokers-die" => Schedule {
            setup: Setup { loses_tails: true, replication_lag: Duration::from_millis(20), ..calm },
            event: |run, number| {
                run.take_brokers_down();
                if number % 5 == 0 {
                    let brokers = run.world.cluster.control().brokers();
                    let broker = brokers[number as usize % brokers.len()];
                    let id = transactional_id(0);
                    run.world.cluster.control().set_coordinator(CoordinatorKey::Transaction(&id), broker);
                    run.world.settle_cluster();
                }
            },
        },
        _ => return None,
    })
}

fn deliver_late(run: &mut Run, api: ApiKey, number: u64) {
    run.inject(FaultAction::DeliverLate(Duration::from_millis(37 * number % 3_000)), api, 1);
}
