//! Schedules with names: worlds in which one thing happens to a streams group again and again.
//!
//! | name | situation |
//! |---|---|
//! | tasks-lost-responses | the connection is lost with the response to a heartbeat |
//! | tasks-member-storm | members join and leave five times a second |
//! | tasks-moving-coordinator | the coordinator moves, and loads the group |
//! | tasks-fenced | the coordinator fences members while they give up tasks |
//! | tasks-descriptions | the brokers lose the topology's description, and responses to members that send it again |
//! | tasks-slow | applications take longer to give up tasks than they may |

use std::time::Duration;

use ottla_embedded_broker::FaultAction;

use super::{Run, Summary, setup::Setup};
use crate::{checkers::Broken, network::NetworkKnobs};

/// The names of the schedules.
pub const NAMES: [&str; 6] = [
    "tasks-lost-responses",
    "tasks-member-storm",
    "tasks-moving-coordinator",
    "tasks-fenced",
    "tasks-descriptions",
    "tasks-slow",
];

/// Runs the schedule of a name, and returns the trace if it `keeps` one. `None`: the name is unknown.
pub fn run(name: &str, keeps: bool) -> Option<(Result<Summary, Broken>, Vec<String>)> {
    let (setup, event) = schedule(name)?;
    let mut run = Run::new(1, setup, keeps);
    let result = run.go_with(event);
    let summary = run.summary();
    Some((result.map(|()| summary), run.world.trace.lines().to_vec()))
}

/// A world in which nothing happens by itself.
fn quiet() -> Setup {
    Setup {
        brokers: 3,
        partitions: 4,
        members: 3,
        standby_replicas: 1,
        has_faults: true,
        gives_up: Duration::from_millis(300),
        network: NetworkKnobs {
            latency: Duration::from_millis(1),
            jitter: Duration::from_millis(1),
            window: 1 << 20,
            cut_percent: 0,
        },
        suffers: Duration::from_secs(12),
        event_interval: Duration::from_millis(500),
    }
}

/// A world, and an event that is repeated in it.
type Schedule = (Setup, fn(&mut Run, u64));

fn schedule(name: &str) -> Option<Schedule> {
    let quiet = quiet();
    Some(match name {
        "tasks-lost-responses" => (quiet, |run, number| {
            run.inject(FaultAction::LoseResponse);
            if number.is_multiple_of(3) {
                run.part();
            }
        }),
        "tasks-member-storm" => {
            let setup = Setup { event_interval: Duration::from_millis(200), has_faults: false, ..quiet };
            (setup, |run, number| if number.is_multiple_of(2) { run.part() } else { run.start_member() })
        }
        "tasks-moving-coordinator" => (quiet, |run, number| {
            run.move_coordinator();
            if number.is_multiple_of(3) {
                run.part();
            }
        }),
        "tasks-fenced" => (quiet, |run, number| {
            run.refuse_heartbeats();
            if number.is_multiple_of(2) {
                run.start_member();
            } else {
                run.part();
            }
        }),
        "tasks-descriptions" => (quiet, |run, number| {
            run.lose_description();
            match number % 3 {
                0 => run.refuse_descriptions(),
                1 => run.move_coordinator(),
                _ => run.part(),
            }
            run.inject_into_descriptions(FaultAction::LoseResponse);
        }),
        "tasks-slow" => {
            let setup =
                Setup { gives_up: Duration::from_secs(9), event_interval: Duration::from_secs(2), ..quiet };
            (setup, |run, _| run.part())
        }
        _ => return None,
    })
}
