//! The floors of `ottla-core`: a folder imports only folders below its own.
//!
//! Files are nearly free of circles by themselves, folders are not: one plain value in the wrong folder is enough for two
//! features to know each other. A folder without a floor is an error, too.

use super::{Found, Source, cycles};

const CORE: &str = "crates/core/src/";

/// The floors, lowest first. The folders and files of the lowest one may import one another, and must not form a circle.
pub const FLOORS: [&[&str]; 10] = [
    &[
        "advice",
        "backoff",
        "base64",
        "callback",
        "completion",
        "config",
        "error",
        "event",
        "hash",
        "lock",
        "machine",
        "observer",
        "repeats",
        "rng",
        "secret",
        "shown",
        "states",
        "stats",
        "sync",
        "waiters",
        "wake",
        "wall_clock",
    ],
    &["contract"],
    &["sasl"],
    &["connection"],
    &["offsets", "produce", "telemetry"],
    &["admin", "fetch", "txn"],
    &["group"],
    &["share", "streams"],
    &["message"],
    &["broker", "cluster"],
];

/// For tests alone.
const TESTS: [&str; 3] = ["models", "turns", "every_version"];

/// Finds the imports that go up or sideways, and folders without a floor.
pub fn check(sources: &[Source]) -> Found {
    let mut places = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with(CORE) && !source.is_test()) {
        let module = cycles::module_path(&source.path[CORE.len()..]);
        let Some(folder) = module.first() else { continue };
        if module.iter().any(|name| TESTS.contains(&name.as_str())) {
            continue;
        }
        let Some(floor) = floor_of(folder) else {
            places.push(format!("{}: `{folder}` has no floor", source.path));
            continue;
        };
        for path in cycles::imports(source, &module) {
            let Some(imported) = path.first().filter(|imported| *imported != folder) else { continue };
            let is_below = floor_of(imported).is_none_or(|other| other < floor || floor == 0 && other == 0);
            if !is_below {
                places.push(format!("{}: `{folder}` imports {}", source.path, path.join("::")));
            }
        }
    }
    places.extend(circle_of_lowest(sources));
    Found::count(places)
}

/// Returns the folders of the lowest floor that reach each other.
fn circle_of_lowest(sources: &[Source]) -> Option<String> {
    let mut arrows: Vec<(String, String)> = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with(CORE) && !source.is_test()) {
        let module = cycles::module_path(&source.path[CORE.len()..]);
        let Some(from) = module.first().filter(|folder| floor_of(folder) == Some(0)) else { continue };
        let imported =
            cycles::imports(source, &module).into_iter().filter_map(|path| path.into_iter().next());
        arrows.extend(imported.filter(|to| to != from).map(|to| (from.clone(), to)));
    }
    // Remove, again and again, the folders that import nothing that is left: a rest is a circle.
    let mut left: Vec<&str> = FLOORS[0].to_vec();
    loop {
        let before = left.len();
        let imports_left = |folder: &str| {
            arrows.iter().any(|(from, to)| from == folder && left.iter().any(|other| other == to))
        };
        left = left.iter().copied().filter(|folder| imports_left(folder)).collect();
        if left.len() == before {
            break;
        }
    }
    (!left.is_empty()).then(|| format!("a circle among {}", left.join(", ")))
}

fn floor_of(folder: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| Source { path: format!("{CORE}{path}"), text: (*text).to_owned() };
        check(&files.iter().map(source).collect::<Vec<_>>()).places
    }

    #[test]
    fn imports_go_down_only() {
        assert_eq!(
            found(&[("group/mod.rs", "use crate::{contract::part::Need, fetch::FetchCommand};\n")]),
            [""; 0]
        );
        let up = found(&[("produce/topic.rs", "use crate::{error::Error, txn::Transactions};\n")]);
        assert_eq!(up, ["crates/core/src/produce/topic.rs: `produce` imports txn::Transactions"]);
        let beside = found(&[("produce/topic.rs", "use crate::offsets::committed::GroupOffset;\n")]);
        assert_eq!(beside.len(), 1);
        assert_eq!(
            found(&[("kitchen/mod.rs", "")]),
            ["crates/core/src/kitchen/mod.rs: `kitchen` has no floor"]
        );
    }

    #[test]
    fn circle_of_the_lowest_floor_is_found() {
        let files = [("rng.rs", "use crate::hash::Hash;\n"), ("hash.rs", "use crate::rng::Rng;\n")];
        assert_eq!(found(&files), ["a circle among hash, rng"]);
    }
}
