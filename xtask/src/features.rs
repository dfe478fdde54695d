//! The features with which cargo compiles what several builds share.
//!
//! A dependency is compiled once for each set of features that a build asks for, and with it everything that uses it. A feature that
//! only one build turns on therefore compiles the core twice, which takes minutes. The check compares the builds of
//! `cargo xtask test` that share a target folder and a profile.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use crate::{
    Result,
    shell::{self, cargo},
};

/// The tests, and what they start.
const DEV: [&[&str]; 2] = [
    &["--workspace", "--edges", "normal,build,dev"],
    &["--package", "ottla-capi", "--package", "ottla-cli", "--edges", "normal,build"],
];
/// The library of a package, and the program and library that README and the tests build.
const RELEASE: [&[&str]; 2] = [
    &["--package", "ottla-capi", "--edges", "normal,build"],
    &[
        "--package",
        "ottla-capi",
        "--package",
        "ottla-cli",
        "--no-default-features",
        "--edges",
        "normal,build",
    ],
];

/// The sets of features of each dependency: more than one if the host's tools have others.
type Features = BTreeMap<String, BTreeSet<String>>;

/// Finds dependencies that two builds compile with different features.
pub fn check(_: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (profile, [one, other]) in [("dev", DEV), ("release", RELEASE)] {
        let (one, other) = (features(one)?, features(other)?);
        found.extend(differences(&one, &other).into_iter().map(|name| {
            format!(
                "{profile}: {name} is compiled twice: give it the same features in the workspace's Cargo.toml"
            )
        }));
    }
    Ok(found)
}

fn features(selection: &[&str]) -> Result<Features> {
    let mut tree = cargo();
    tree.args(["tree", "--locked", "--prefix", "none", "--format", "{p}\t{f}"]).args(selection);
    Ok(parse(&shell::read(&mut tree)?))
}

/// Parses lines of `cargo tree`: the package, its version and perhaps its folder, and its features.
fn parse(lines: &str) -> Features {
    let mut found = Features::new();
    for (package, features) in lines.lines().filter_map(|line| line.split_once('\t')) {
        let name = package.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let features = features.trim_end_matches("(*)").trim_end();
        found.entry(name).or_default().insert(features.to_owned());
    }
    found
}

/// Returns the packages that both have, with different features.
fn differences(one: &Features, other: &Features) -> Vec<String> {
    let differs = |(name, features): (&String, &BTreeSet<String>)| {
        other.get(name).filter(|others| *others != features).map(|_| name.clone())
    };
    one.iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_that_differ_are_found() {
        let one = parse("memchr v2.8.3\talloc,std\nlibc v0.2.1\t\nottla v0.1.0 (/ottla)\tcapi (*)\n");
        let other = parse("memchr v2.8.3\talloc\nottla v0.1.0 (/ottla)\tcapi\nsyn v2.0.1\tfull\n");
        assert_eq!(differences(&one, &other), ["memchr v2.8.3"]);
        assert!(differences(&one, &one).is_empty());
    }
}
