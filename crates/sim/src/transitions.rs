//! The page of transitions that no world took: docs/internals/transitions.md.
//!
//! What could have been taken is known from two sources: the states are those that the code declares, and an event concerns a machine
//! if it changed the state of one in some world.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

use ottla_sorted::SortedMap;

use crate::coverage::Transition;

/// The kinds of machines, and the files in `crates/core/src` and the enums that declare their states.
pub const MACHINES: [(&str, &str, &str); 27] = [
    ("authentication", "connection/authenticate.rs", "Authentication"),
    ("classic member", "group/membership/classic.rs", "State"),
    ("connection", "connection/state.rs", "State"),
    ("consumer member", "group/membership/consumer_protocol.rs", "State"),
    ("coordinator", "cluster/coordinators.rs", "State"),
    ("countdown of a transaction", "txn/clock.rs", "Phase"),
    ("description of a topology", "streams/push.rs", "State"),
    ("end of a share membership", "share/mod.rs", "LeavePhase"),
    ("end of telemetry", "telemetry/exchange.rs", "Life"),
    ("epoch of a transaction", "txn/mod.rs", "EpochUse"),
    ("job of a transaction", "txn/ending.rs", "JobKind"),
    ("lookup of an offset", "offsets/list_offsets.rs", "LookupState"),
    ("markers of a transaction", "txn/markers.rs", "Phase"),
    ("metadata", "cluster/refresh.rs", "State"),
    ("partition of a consumer", "fetch/manager/entry.rs", "State"),
    ("partition of a producer", "produce/placement.rs", "Placement"),
    ("polls", "group/polls.rs", "State"),
    ("producer ID", "produce/producer_id.rs", "State"),
    ("rebalance", "group/rebalance.rs", "State"),
    ("registration", "txn/mod.rs", "Registered"),
    ("request of a transaction", "txn/attempt.rs", "Phase"),
    ("share member", "share/membership.rs", "State"),
    ("share partition", "share/fetcher.rs", "SlotState"),
    ("shutdown of a streams group", "streams/member.rs", "Shutdown"),
    ("streams member", "streams/member.rs", "State"),
    ("telemetry", "telemetry/exchange.rs", "State"),
    ("transaction", "produce/transaction/state.rs", "TransactionState"),
];

/// Returns the variants of an enum in a source text.
pub fn variants(source: &str, name: &str) -> Vec<String> {
    let begins =
        |line: &str| line.trim_end_matches(" {").rsplit(' ').next() == Some(name) && line.contains("enum ");
    let body = source.lines().skip_while(|line| !begins(line)).skip(1).take_while(|line| *line != "}");
    let own =
        body.filter_map(|line| line.strip_prefix("    ")).filter(|line| line.starts_with(char::is_uppercase));
    own.filter_map(|line| line.split(|letter: char| !letter.is_alphanumeric()).next())
        .map(str::to_owned)
        .collect()
}

/// What a kind of machine did.
#[derive(Debug, Default)]
struct Machine<'a> {
    states: BTreeSet<&'a str>,
    /// The pairs of different states.
    changes: BTreeSet<(&'a str, &'a str)>,
    /// The pairs of state and event.
    pairs: BTreeSet<(&'a str, &'a str)>,
    /// The events that changed a state.
    events: BTreeSet<&'a str>,
}

fn machines(counts: &SortedMap<Transition, u64>) -> BTreeMap<&str, Machine<'_>> {
    let mut machines: BTreeMap<&str, Machine<'_>> = BTreeMap::new();
    for Transition { machine, before, event, after } in counts.keys() {
        let machine = machines.entry(machine).or_default();
        machine.states.extend([*before, *after].into_iter().filter(|state| *state != "-"));
        machine.pairs.insert((before, event));
        if before != after && *before != "-" {
            machine.changes.insert((before, after));
            machine.events.insert(event);
        }
    }
    machines
}

/// Returns the page. `source` reads a file of `crates/core/src`.
///
/// # Errors
///
/// A file can't be read.
pub fn page<E>(
    counts: &SortedMap<Transition, u64>,
    how: &str,
    source: impl Fn(&str) -> Result<String, E>,
) -> Result<String, E> {
    let seen = machines(counts);
    let mut summary = format!(
        "# Transitions that no world took\n\n\
         Written by `cargo xtask swarm --guided --minutes N --page`. [simulation.md](simulation.md#coverage) explains what is counted.\n\n\
         {how}\n\n\
         | machine | states | never reached | changes taken | states × events taken |\n|---|---:|---|---:|---:|\n"
    );
    let mut never = String::new();
    for (name, file, declared) in MACHINES {
        let states = variants(&source(file)?, declared);
        let empty = Machine::default();
        let machine = seen.get(name).unwrap_or(&empty);
        let unreached: Vec<&str> =
            states.iter().map(String::as_str).filter(|state| !machine.states.contains(state)).collect();
        let possible = states.len() * machine.events.len();
        let missing = missing(machine, &states);
        let taken = possible - missing.iter().map(|(_, events)| events.len()).sum::<usize>();
        let (changes, none) = (machine.changes.len(), if unreached.is_empty() { "none" } else { "" });
        let _ = writeln!(
            summary,
            "| {name} | {} | {}{none} | {changes} | {taken} of {possible} |",
            states.len(),
            unreached.join(", ")
        );
        let _ = write!(never, "\n## {}\n\n", capitalized(name));
        for (state, events) in
            missing.iter().filter(|(state, events)| !unreached.contains(state) && !events.is_empty())
        {
            let _ = writeln!(never, "- {state}: {}", events.join("; "));
        }
    }
    let explained = "\nBelow are, by machine and state, the events that change such a machine in another state and that none was \
                     given in this one.\n";
    // An empty section says that everything was taken.
    Ok(format!("{summary}{explained}{}", never.replace("\n\n\n", "\n\nnone\n\n")))
}

/// Returns the events that no machine was given in each state.
fn missing<'a>(machine: &Machine<'a>, states: &'a [String]) -> Vec<(&'a str, Vec<&'a str>)> {
    let of = |state: &'a String| {
        let events = machine.events.iter().copied();
        (&**state, events.filter(|event| !machine.pairs.contains(&(&**state, *event))).collect())
    };
    states.iter().map(of).collect()
}

fn capitalized(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        coverage,
        plan::{Kind, Plan},
    };

    fn source(file: &str) -> std::io::Result<String> {
        std::fs::read_to_string(
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src").join(file),
        )
    }

    #[test]
    fn states_of_each_machine_are_read_from_its_source() {
        for (name, file, declared) in MACHINES {
            let text = source(file).expect("the file exists");
            assert!(variants(&text, declared).len() >= 2, "{name}: {declared} in {file}");
        }
        let source = "enum Other {\n    No,\n}\npub(super) enum State {\n    /// Idle.\n    Idle,\n    Later {\n        At: u8,\n    },\n}\n";
        assert_eq!(variants(source, "State"), ["Idle", "Later"]);
    }

    #[test]
    fn states_that_worlds_reach_are_declared() {
        for kind in ["clients", "sasl", "telemetry", "group", "transaction", "share", "streams-group"] {
            let plan = Plan::drawn(Kind::named(kind).expect("the kind exists"), 5);
            let (_, taken) = coverage::of(|| plan.run(false));
            for Transition { machine, after, .. } in taken {
                let (_, file, declared) =
                    MACHINES.into_iter().find(|(name, ..)| *name == machine).expect("the machine has a row");
                let text = source(file).expect("the file exists");
                assert!(variants(&text, declared).iter().any(|state| state == after), "{machine}: {after}");
            }
        }
    }

    #[test]
    fn page_names_what_was_never_reached_and_never_given() {
        let of = |before, event, after| (Transition { machine: "polls", before, event, after }, 1);
        let counts = [
            of("-", "a wake-up", "Off"),
            of("Off", "Fetch", "Watching"),
            of("Watching", "a timer", "Watching"),
        ];
        let page =
            page(&counts.into_iter().collect(), "Three worlds.", source).expect("the sources can be read");
        assert!(page.contains("| polls | 3 | Expired | 1 | 1 of 3 |"), "{page}");
        assert!(page.contains("\n## Polls\n\n- Watching: Fetch\n"), "{page}");
    }
}
