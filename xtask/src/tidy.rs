//! The rules that no compiler checks: one function per rule, each a test of `cargo xtask test` and `cargo xtask lint`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use memchr::memmem;

use crate::{
    Result,
    shell::{self, cargo},
};

/// A rule, and the function that finds violations.
pub struct Check {
    pub what: &'static str,
    pub run: fn(&Path) -> Result<Vec<String>>,
}

/// All rules.
pub const CHECKS: [Check; 15] = [
    Check { what: "crates depend on each other in one direction", run: dependency_rule },
    Check { what: "no clock, thread, socket, file or randomness in the crates without I/O", run: no_io },
    Check { what: "maps and sets are those that cost little code", run: standard_trees },
    Check { what: "unsafe code is forbidden where it is not needed", run: unsafe_is_forbidden },
    Check { what: "the C library takes its locks from its module `lock`", run: capi_locks },
    Check { what: "the command line prints with functions that can't panic", run: printing },
    Check { what: "no markers of unfinished work, and no ignored tests", run: markers },
    Check { what: "every Rust file belongs to a module", run: dead_files },
    Check {
        what: "builds that share dependencies want the same features of them",
        run: crate::features::check,
    },
    Check { what: "links in the documents lead somewhere", run: links },
    Check { what: "files that the documents name are there", run: named_files },
    Check { what: "the site has every page of docs", run: crate::site::check_pages },
    Check { what: "code blocks that name a file are parts of it", run: crate::site::check_blocks },
    Check { what: "every pitfall in a module's head names a test that exists", run: crate::pitfalls::check },
    Check {
        what: "sizes, names and import cycles stay within the limits of `cargo xtask style`",
        run: crate::style::check,
    },
];

/// The permitted dependencies between the crates, except in tests: a crate and the crates that it may use.
const MAY_USE: [(&str, &[&str]); 14] = [
    ("ottla-sorted", &[]),
    ("ottla-p521", &[]),
    ("ottla-schema-registry", &[]),
    ("ottla-protocol", &[]),
    ("ottla-core", &["ottla-protocol", "ottla-sorted"]),
    ("ottla-net", &["ottla-core", "ottla-protocol", "ottla-p521", "ottla-sorted"]),
    ("ottla", &["ottla-net", "ottla-core", "ottla-protocol", "ottla-sorted"]),
    ("ottla-embedded-broker", &["ottla-protocol", "ottla-p521", "ottla-sorted"]),
    ("ottla-sim", &["ottla-embedded-broker", "ottla-core", "ottla-protocol", "ottla-sorted"]),
    ("ottla-scenarios", &["ottla", "ottla-core", "ottla-protocol", "ottla-embedded-broker", "ottla-sim"]),
    (
        "ottla-capi",
        &["ottla", "ottla-net", "ottla-core", "ottla-protocol", "ottla-sorted", "ottla-embedded-broker"],
    ),
    ("ottla-rdkafka-performance", &["ottla-capi"]),
    (
        "ottla-cli",
        &[
            "ottla",
            "ottla-net",
            "ottla-core",
            "ottla-protocol",
            "ottla-sorted",
            "ottla-embedded-broker",
            "ottla-schema-registry",
            "ottla-rdkafka-performance",
        ],
    ),
    ("xtask", &[]),
];

/// Crates without I/O, whose callers pass them time and bytes.
const WITHOUT_IO: [&str; 5] =
    ["crates/sorted/src", "crates/p521/src", "crates/protocol/src", "crates/core/src", "crates/sim/src"];

/// The files with values of the Rust API, whose users expect the maps of the standard library, and those that pass them on.
const WITH_STANDARD_TREES: [&str; 14] = [
    "crates/capi/src/admin/ottla/",
    "crates/capi/src/mock/share_groups.rs",
    "crates/core/src/admin/",
    "crates/core/src/broker/every_version.rs",
    "crates/core/src/group/assignor/",
    "crates/core/src/group/membership/scripted/custom.rs",
    "crates/core/src/share/ticket.rs",
    "crates/core/src/stats/",
    "crates/embedded-broker/src/control.rs",
    "crates/embedded-broker/src/options.rs",
    "crates/embedded-broker/src/releases.rs",
    "crates/embedded-broker/src/share_groups.rs",
    "crates/core/src/streams/",
    "crates/embedded-broker/src/streams_progress.rs",
];

/// Names that these crates must not use outside of their tests. `HashMap` takes its seed from the operating system, so
/// iterating over one would make the simulator differ between runs: use `SortedMap`, or a hasher with a fixed seed.
const BANNED: [&str; 12] = [
    "Instant::now",
    "SystemTime",
    "std::time::Instant",
    "TcpStream",
    "UdpSocket",
    "ToSocketAddrs",
    "std::thread",
    "thread::spawn",
    "std::fs",
    "std::process",
    "RandomState",
    "HashMap::new()",
];

/// The exceptions, with their reasons.
const EXCEPTIONS: [(&str, &str, &str); 3] = [
    ("crates/core/src/models/asking.rs", "thread::spawn", "loom's threads, in tests only"),
    ("crates/core/src/models/receiving.rs", "thread::spawn", "loom's threads, in tests only"),
    ("crates/core/src/models/sending.rs", "thread::spawn", "loom's threads, in tests only"),
];

fn dependency_rule(_: &Path) -> Result<Vec<String>> {
    let text = shell::read(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let rules: BTreeMap<&str, &[&str]> = MAY_USE.into_iter().collect();
    let mut found = Vec::new();
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let names: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some(allowed) = rules.get(name) else {
            found.push(format!("{name} has no row in MAY_USE of xtask/src/tidy.rs"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let in_tests = dependency["kind"].as_str() == Some("dev");
            if names.contains(&used) && !in_tests && !allowed.contains(&used) {
                found.push(format!("{name} uses {used}"));
            }
        }
    }
    Ok(found)
}

fn no_io(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in WITHOUT_IO {
        for path in files(&root.join(folder), "rs")? {
            let name = relative(root, &path);
            for (number, line) in code_with(&BANNED, &fs::read_to_string(&path)?) {
                for banned in BANNED.iter().filter(|banned| line.contains(**banned)) {
                    if !EXCEPTIONS.iter().any(|(file, allowed, _)| name == *file && allowed == banned) {
                        found.push(format!("{name}:{number}: {banned}"));
                    }
                }
            }
        }
    }
    Ok(found)
}

/// The trees of the standard library cost ten times the code of a `SortedMap`, for every type of key and value.
fn standard_trees(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in ["crates/core/src", "crates/embedded-broker/src", "crates/capi/src"] {
        for path in files(&root.join(folder), "rs")? {
            let name = relative(root, &path);
            if WITH_STANDARD_TREES.iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            for (number, _) in code_with(&["BTreeMap", "BTreeSet"], &fs::read_to_string(&path)?) {
                found.push(format!("{name}:{number}: a tree of the standard library"));
            }
        }
    }
    Ok(found)
}

fn unsafe_is_forbidden(root: &Path) -> Result<Vec<String>> {
    let may_be_unsafe = ["crates/net", "crates/capi", "crates/rdkafka-performance"];
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root.join("crates"))?.flatten().map(|entry| entry.path()).collect();
    folders.push(root.join("xtask"));
    for folder in folders {
        let name = relative(root, &folder);
        if may_be_unsafe.contains(&name.as_str()) {
            continue;
        }
        let head =
            ["src/lib.rs", "src/main.rs"].iter().find_map(|head| fs::read_to_string(folder.join(head)).ok());
        // One file of the protocol contains an `expect`, which `forbid` would not permit.
        let wanted =
            if name == "crates/protocol" { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
        if head.is_none_or(|head| !head.contains(wanted)) {
            found.push(format!("{name} doesn't say {wanted}"));
        }
    }
    Ok(found)
}

/// The locks of this module are counted, so that a callback under a lock is detected; other locks are not.
fn capi_locks(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for path in files(&root.join("crates/capi/src"), "rs")? {
        let name = relative(root, &path);
        if name == "crates/capi/src/ffi/lock.rs" {
            continue;
        }
        let locks = ["std::sync::Mutex", "std::sync::RwLock", "core::lock", "parking_lot"];
        for (number, line) in code_with(&locks, &fs::read_to_string(&path)?) {
            found.push(format!("{name}:{number}: {}", line.trim()));
        }
    }
    Ok(found)
}

/// `eprintln!` and `println!` panic when their stream is closed or full: `note!` of `standard_error.rs` ignores that, and an error
/// of standard output is a [`Failure`](../../crates/cli/src/failure.rs).
fn printing(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in ["crates/cli/src", "crates/rdkafka-performance/src"] {
        for path in files(&root.join(folder), "rs")? {
            for (number, line) in code_with(&["print!(", "println!("], &fs::read_to_string(&path)?) {
                found.push(format!("{}:{number}: {}", relative(root, &path), line.trim()));
            }
        }
    }
    Ok(found)
}

fn markers(root: &Path) -> Result<Vec<String>> {
    // Split in two, so that this file does not match.
    let markers = [
        ["FIX", "ME"],
        ["XX", "X "],
        ["TO", "DO"],
        ["#[ign", "ore"],
        ["todo", "!("],
        ["unimple", "mented!("],
    ]
    .map(|halves| halves.concat());
    let mut found = Vec::new();
    for folder in ["crates", "xtask", "bench", "fuzz", "tests"] {
        for path in files(&root.join(folder), "rs")? {
            let text = fs::read_to_string(&path)?;
            for marker in
                markers.iter().filter(|marker| memmem::find(text.as_bytes(), marker.as_bytes()).is_some())
            {
                for (number, _) in text.lines().enumerate().filter(|(_, line)| line.contains(marker.as_str()))
                {
                    found.push(format!("{}:{}: {marker}", relative(root, &path), number + 1));
                }
            }
        }
    }
    Ok(found)
}

fn dead_files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for source in fs::read_dir(root.join("crates"))?.flatten().map(|entry| entry.path().join("src")) {
        let paths = files(&source, "rs")?;
        let mut declared = BTreeSet::new();
        for path in &paths {
            declared.extend(declarations(&fs::read_to_string(path)?).map(str::to_owned));
        }
        for path in &paths {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let module = if stem == "mod" {
                path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy()
            } else {
                stem
            };
            let is_root =
                ["lib", "main"].contains(&&*module) || path.parent().is_some_and(|it| it.ends_with("bin"));
            if !is_root && !declared.contains(&*module) {
                found.push(relative(root, path));
            }
        }
    }
    Ok(found)
}

/// Returns the names of the modules, and of files in attributes, that a source declares.
fn declarations(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let by_name = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod ")).map(|(_, name)| name);
        let file = || line.strip_suffix(".rs\"]").and_then(|line| line.rsplit(['"', '/']).next());
        by_name.or_else(file)
    })
}

fn links(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for page in pages(root)? {
        let text = fs::read_to_string(&page)?;
        for target in link_targets(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let path = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            let there = path.exists()
                && (anchor.is_empty()
                    || path.extension().is_none_or(|extension| extension != "md")
                    || fs::read_to_string(&path)?
                        .lines()
                        .any(|line| line.starts_with('#') && slug(line) == anchor));
            if !there {
                found.push(format!("{}: {target}", relative(root, &page)));
            }
        }
    }
    Ok(found)
}

/// Finds paths in backticks, such as `crates/core/src/machine.rs`, in the documents, and checks that the files exist.
fn named_files(root: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root.join(page)).map_err(|error| format!("{page}: {error}"))?;
        for quoted in text.split('`').skip(1).step_by(2) {
            let starts =
                ["crates/", "xtask/", "bench/", "fuzz/", "tests/", "schema/", "docs/", "examples/", ".ci/"];
            let path = quoted.split(&[':', '#'][..]).next().unwrap_or_default();
            let is_path = starts.iter().any(|start| quoted.starts_with(start))
                && !path.contains(&[' ', '*', '<', 'N'][..]);
            if is_path && !root.join(path).exists() {
                found.push(format!("{page}: {quoted}"));
            }
        }
    }
    Ok(found)
}

/// Returns the documents in the working tree that git does not ignore.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "*.md"]).current_dir(root);
    let paths = shell::read(&mut git)?.lines().map(|line| root.join(line)).collect::<Vec<_>>();
    Ok(paths.into_iter().filter(|path| path.exists()).collect())
}

fn link_targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Returns the anchor of a heading: lower case, words joined by dashes, other characters removed.
fn slug(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|it| it.is_alphanumeric() || [' ', '-', '_'].contains(it));
    kept.map(|it| if it == ' ' { '-' } else { it }).collect()
}

/// Returns the lines of a Rust file before its tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).enumerate();
    lines.map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Returns the lines of [`code`] that contain one of the words. Few files do: the others are not divided into lines.
fn code_with<'a>(words: &'a [&str], text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let words = words.iter().filter(|word| memmem::find(text.as_bytes(), word.as_bytes()).is_some());
    let words: Vec<&str> = words.copied().collect();
    let lines = if words.is_empty() { "" } else { text };
    code(lines).filter(move |(_, line)| words.iter().any(|word| line.contains(word)))
}

fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                if !["target", "runs", "node_modules"].iter().any(|name| path.ends_with(name)) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|it| it == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heading_becomes_its_anchor() {
        assert_eq!(slug("## What is `here`, and why"), "what-is-here-and-why");
    }

    #[test]
    fn links_are_found_anywhere_in_a_line() {
        let found: Vec<_> = link_targets("see [a](b.md) and [c](d.md#e), [f]").collect();
        assert_eq!(found, ["b.md", "d.md#e"]);
    }

    #[test]
    fn modules_are_declared_by_name_and_by_file() {
        let text = "mod a;\n    pub(crate) mod b;\n#[path = \"x/c.rs\"]\nmod d {\n";
        assert_eq!(declarations(text).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn lines_with_one_of_the_words_are_found() {
        let text = "a();\nb();\n// c();\nc(); b();\n";
        assert_eq!(code_with(&["b(", "c("], text).map(|(at, _)| at).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(code_with(&["d("], text).count(), 0);
    }

    #[test]
    fn tests_and_comments_do_not_count_as_code() {
        let text = "use a;\n// Instant::now\nb();\n#[cfg(test)]\nmod tests { Instant::now }\n";
        assert_eq!(code(text).collect::<Vec<_>>(), [(1, "use a;"), (3, "b();")]);
    }
}
