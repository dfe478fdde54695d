//! The protection of profiles: read-only ones refuse commands that change something, others ask for a word.

use std::io::{self, IsTerminal, Write};

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::{Profile, chosen};
use crate::client_options::names_cluster;
use crate::failure::{Failure, Outcome};

/// When a command changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// It only reads.
    Never,
    /// Unless `--dry-run` is given.
    Always,
    /// With one of these options.
    With(&'static [&'static str]),
}

/// The commands that change a cluster.
pub const CHANGING: &[(&str, Changes)] = &[
    ("producer-perf-test", Changes::Always),
    ("consumer-perf-test", Changes::Always),
    ("produce", Changes::Always),
    ("consume", Changes::With(&["group", "share_group"])),
    ("copy", Changes::Always),
    ("check end-to-end", Changes::Always),
    ("topics create", Changes::Always),
    ("topics alter", Changes::Always),
    ("topics delete", Changes::Always),
    ("topics delete-records", Changes::Always),
    ("groups reset-offsets", Changes::With(&["execute"])),
    ("groups delete", Changes::Always),
    ("groups delete-offsets", Changes::Always),
    ("groups remove-members", Changes::Always),
    ("share-groups reset-offsets", Changes::With(&["execute"])),
    ("share-groups delete-offsets", Changes::Always),
    ("share-groups delete", Changes::Always),
    ("streams-groups delete", Changes::Always),
    ("transactions abort", Changes::Always),
    ("transactions terminate", Changes::Always),
    ("configs set", Changes::Always),
    ("configs delete", Changes::Always),
    ("acls add", Changes::Always),
    ("acls remove", Changes::Always),
    ("users set-password", Changes::Always),
    ("users delete", Changes::Always),
    ("quotas set", Changes::Always),
    ("quotas remove", Changes::Always),
    ("reassign execute", Changes::Always),
    ("reassign verify", Changes::Always),
    ("reassign cancel", Changes::Always),
    ("elect-leaders", Changes::Always),
    ("log-dirs move", Changes::Always),
    ("features upgrade", Changes::Always),
    ("features downgrade", Changes::Always),
    ("quorum add-controller", Changes::Always),
    ("quorum remove-controller", Changes::Always),
    ("quorum unregister-broker", Changes::Always),
    ("quorum unregister-controller", Changes::Always),
    ("delegation-tokens create", Changes::Always),
    ("delegation-tokens renew", Changes::Always),
    ("delegation-tokens expire", Changes::Always),
    #[cfg(feature = "schemas")]
    ("schema register", Changes::Always),
    #[cfg(feature = "schemas")]
    ("schema delete", Changes::Always),
    #[cfg(feature = "schemas")]
    ("schema compatibility", Changes::With(&["set", "unset"])),
    #[cfg(feature = "schemas")]
    ("schema mode", Changes::With(&["set", "unset"])),
];

/// Refuses a command that changes something on the cluster of a read-only profile, and asks for the word of a protected one.
///
/// # Errors
///
/// The command is refused.
pub fn check(matches: &ArgMatches) -> Outcome {
    let (path, leaf, levels) = walk(matches);
    if !changes(&path, leaf) {
        return Ok(());
    }
    let text = |name: &str| {
        levels.iter().rev().find_map(|level| level.try_get_one::<String>(name).ok().flatten().cloned())
    };
    // A copy changes the cluster that it writes to.
    let named = match path.as_str() {
        "copy" => text("to_profile").or_else(|| text("profile")),
        _ => text("profile"),
    };
    let is_given = |name: &str| {
        levels.iter().any(|level| {
            level.try_contains_id(name).unwrap_or(false)
                && matches!(level.value_source(name), Some(ValueSource::CommandLine))
        })
    };
    let is_perf_test = path.ends_with("-perf-test");
    // What `schema` changes is the registry.
    let is_schema = path.starts_with("schema ");
    let of_cluster = ["bootstrap_server", "bootstrap_controller", "file"];
    let naming = if is_schema { &["registry"][..] } else { &of_cluster };
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_other_registry = is_schema && is_set("SCHEMA_REGISTRY_URL") && !is_set("OTTLA_PROFILE");
    let is_open = !is_perf_test
        && !is_other_registry
        && !naming.iter().any(|name| is_given(name))
        && !levels.iter().any(|level| {
            let properties = level.try_get_many::<String>("property").ok().flatten();
            properties.into_iter().flatten().any(|property| names_cluster(property))
        });
    match chosen(named.as_deref(), is_open)? {
        Some((name, profile)) => permit(&path, &name, &profile, text("confirm").as_deref()),
        None => Ok(()),
    }
}

/// Returns the names of the subcommands, the options of the last one, and those of all.
fn walk(matches: &ArgMatches) -> (String, &ArgMatches, Vec<&ArgMatches>) {
    let (mut path, mut leaf, mut levels) = (Vec::new(), matches, vec![matches]);
    while let Some((name, inner)) = leaf.subcommand() {
        path.push(name);
        leaf = inner;
        levels.push(inner);
    }
    (path.join(" "), leaf, levels)
}

fn changes(path: &str, leaf: &ArgMatches) -> bool {
    let is_set = |name: &str| {
        leaf.try_contains_id(name).unwrap_or(false)
            && matches!(leaf.value_source(name), Some(ValueSource::CommandLine))
    };
    match CHANGING.iter().find(|(name, _)| *name == path).map_or(Changes::Never, |(_, changes)| *changes) {
        Changes::Never => false,
        Changes::Always => !is_set("dry_run"),
        Changes::With(names) => names.iter().any(|name| is_set(name)),
    }
}

fn permit(command: &str, name: &str, profile: &Profile, given: Option<&str>) -> Outcome {
    if profile.read_only {
        return Err(Failure::Usage(format!(
            "profile \"{name}\" is read-only, and `{command}` changes the cluster; `ottla profile show {name}` has its settings"
        )));
    }
    let Some(word) = &profile.confirm else { return Ok(()) };
    let given = match given {
        Some(given) => given.to_owned(),
        None if io::stdin().is_terminal() && io::stderr().is_terminal() => {
            let _ = write!(
                io::stderr(),
                "`{command}` changes the cluster of profile \"{name}\". Type {word} to continue: "
            );
            let mut line = String::new();
            io::stdin().read_line(&mut line)?;
            line.trim().to_owned()
        }
        None => {
            return Err(Failure::Usage(format!(
                "`{command}` changes the cluster of profile \"{name}\", which is protected: add --confirm {word}"
            )));
        }
    };
    match given == *word {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "not confirmed: profile \"{name}\" is protected by another word than \"{given}\""
        ))),
    }
}

/// The commands that only read.
#[cfg(test)]
const READING: &[&str] = &[
    "topics list",
    "topics describe",
    "offsets",
    "groups list",
    "groups describe",
    "groups members",
    "groups lag",
    "share-groups list",
    "share-groups describe",
    "streams-groups list",
    "streams-groups describe",
    "transactions list",
    "transactions describe",
    "transactions producers",
    "transactions find-hanging",
    "configs list",
    "configs describe",
    "acls list",
    "users list",
    "quotas list",
    "reassign plan",
    "reassign generate",
    "reassign list",
    "log-dirs describe",
    "features list",
    "features apis",
    "quorum status",
    "quorum replication",
    "quorum brokers",
    "delegation-tokens list",
    "metadata",
    "doctor",
    "top",
    "check lag",
    "check under-replicated",
    #[cfg(feature = "schemas")]
    "schema list",
    #[cfg(feature = "schemas")]
    "schema versions",
    #[cfg(feature = "schemas")]
    "schema get",
    #[cfg(feature = "schemas")]
    "schema check",
];

/// The commands that use no cluster of a profile.
#[cfg(test)]
const LOCAL: &[&str] =
    &["broker", "properties", "completion", "man-pages", "rdkafka_performance", "profile", "help", "report"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protection_refuses_or_asks_for_the_word() {
        let open = Profile::default();
        assert_eq!(permit("produce", "p", &open, None), Ok(()));
        let read_only = Profile { read_only: true, ..Profile::default() };
        assert!(matches!(permit("produce", "p", &read_only, Some("p")), Err(Failure::Usage(_))));
        let protected = Profile { confirm: Some("prod".into()), ..Profile::default() };
        assert_eq!(permit("produce", "p", &protected, Some("prod")), Ok(()));
        assert!(matches!(permit("produce", "p", &protected, Some("dev")), Err(Failure::Usage(_))));
    }

    #[test]
    fn every_command_is_known_to_change_or_to_read() {
        fn leaves(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            for inner in command.get_subcommands() {
                let path = format!("{path} {}", inner.get_name()).trim().to_owned();
                match inner.has_subcommands() {
                    true => leaves(inner, &path, found),
                    false => found.push(path),
                }
            }
        }
        let mut found = Vec::new();
        leaves(&crate::cli::command(), "", &mut found);
        for path in &found {
            let known = [
                CHANGING.iter().any(|(name, _)| name == path),
                READING.contains(&path.as_str()),
                LOCAL.iter().any(|name| path.split(' ').next() == Some(*name)),
            ];
            assert_eq!(known.iter().filter(|known| **known).count(), 1, "{path}");
        }
        for (name, _) in CHANGING {
            assert!(found.iter().any(|path| path == name), "{name} is not a command");
        }
    }
}
