//! `cargo xtask style`: measures the structure of the sources.
//!
//! Each measure is a row of [`MEASURES`]: a description, the limit, and a function that finds the places. `cargo xtask
//! lint` fails when a measure exceeds its limit; `cargo xtask style NAME` lists the places of one measure.
//!
//! | file | measures |
//! |---|---|
//! | [`names`] | long test names, texts that must not occur |
//! | [`size`] | long files, long functions |
//! | [`cycles`] | import cycles between modules |
//! | [`floors`] | imports between the folders of the core |

mod cycles;
mod floors;
mod names;
mod size;

use std::{fs, path::Path, process::ExitCode};

use crate::{Result, shell::root};

/// The result of a measure.
pub struct Found {
    /// The number that is compared with the limit.
    pub value: f64,
    /// One line per place.
    pub places: Vec<String>,
}

impl Found {
    /// Creates a result whose value is the number of places.
    fn count(places: Vec<String>) -> Self {
        Self { value: places.len() as f64, places }
    }
}

/// A row of [`MEASURES`].
pub struct Measure {
    /// The name on the command line.
    pub name: &'static str,
    /// The description.
    pub what: &'static str,
    /// The largest value that passes.
    pub limit: f64,
    /// Computes the value and finds the places.
    pub run: fn(&[Source]) -> Found,
}

/// All measures.
pub const MEASURES: [Measure; 8] = [
    Measure {
        name: "test-names",
        what: "test names above 70 characters",
        limit: 0.0,
        run: names::long_test_names,
    },
    Measure {
        name: "files",
        what: "files above 700 lines that are not a table",
        limit: 0.0,
        run: size::files,
    },
    Measure { name: "functions", what: "functions above 90 lines", limit: 0.0, run: size::functions },
    Measure {
        name: "core-floors",
        what: "imports of ottla-core that go up or sideways between its folders",
        limit: 0.0,
        run: floors::check,
    },
    Measure {
        name: "core-cycle",
        what: "modules in the largest import cycle of ottla-core",
        limit: 8.0,
        run: |sources| cycles::largest(sources, "crates/core/src/"),
    },
    Measure {
        name: "capi-cycle",
        what: "modules in the largest import cycle of ottla-capi",
        limit: 5.0,
        run: |sources| cycles::largest(sources, "crates/capi/src/"),
    },
    Measure {
        name: "mutations",
        what: "deliberate mistakes in production code",
        limit: 0.0,
        run: |sources| names::occurrences(sources, "mutation.is("),
    },
    Measure {
        name: "bare-exports",
        what: "functions of the C library that bypass the `export!` macro",
        limit: 0.0,
        run: bare_exports,
    },
];

/// A Rust source that is not generated.
pub struct Source {
    /// The path from the root.
    pub path: String,
    /// The content.
    pub text: String,
}

impl Source {
    /// True for integration tests, scripted peers, models and examples.
    fn is_test(&self) -> bool {
        let in_folder = ["/tests/", "/scripted/", "/models/", "/examples/"]
            .iter()
            .any(|folder| self.path.contains(folder));
        in_folder || ["/scripted.rs", "/tests.rs"].iter().any(|name| self.path.ends_with(name))
    }

    /// Returns the lines before the unit tests.
    fn production(&self) -> impl Iterator<Item = &str> {
        // Tests whose helpers other modules use are `pub(in path) mod tests`.
        // Also tests of one system, or not of the models.
        let is_tests = |(line, next): (&str, &str)| {
            line.starts_with("#[cfg(") && line.contains("test") && next.ends_with("mod tests {")
        };
        let following = self.text.lines().skip(1).chain([""]);
        let pairs = self.text.lines().zip(following);
        pairs.take_while(move |pair| !is_tests(*pair)).map(|(line, _)| line)
    }
}

/// Reads all sources that git knows, except generated ones.
pub fn sources(root: &Path) -> Result<Vec<Source>> {
    read(root, &["*.rs"])
}

fn read(root: &Path, patterns: &[&str]) -> Result<Vec<Source>> {
    let mut git = std::process::Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).args(patterns).current_dir(root);
    let mut found = Vec::new();
    for path in crate::shell::read(&mut git)?.lines().filter(|path| !path.contains("/generated/")) {
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            found.push(Source { path: path.to_owned(), text });
        }
    }
    // Git lists untracked files first, but generated pages must not depend on what is committed.
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The check of `cargo xtask lint`: one finding per measure that exceeds its limit.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let sources = sources(root)?;
    let exceeded = MEASURES.iter().filter_map(|measure| {
        let found = (measure.run)(&sources);
        (found.value > measure.limit).then(|| {
            let Measure { name, what, limit, .. } = measure;
            format!("{what}: {:.2}, limit {limit}; `cargo xtask style {name}` lists them", found.value)
        })
    });
    Ok(exceeded.collect())
}

/// `cargo xtask style [MEASURE [PATH]]`.
pub fn main(args: &[String]) -> Result<ExitCode> {
    let mut sources = sources(&root())?;
    match args {
        [] => {
            for measure in &MEASURES {
                let found = (measure.run)(&sources);
                println!(
                    "{:14} {:>8.2}  limit {:>6}  {}",
                    measure.name, found.value, measure.limit, measure.what
                );
            }
        }
        [name, rest @ ..] if rest.len() <= 1 => {
            let measure = MEASURES.iter().find(|measure| measure.name == name);
            let measure =
                measure.ok_or(format!("there is no measure `{name}`; `cargo xtask style` lists them"))?;
            let prefix = rest.first().map_or("", String::as_str);
            sources.retain(|source| source.path.starts_with(prefix));
            let found = (measure.run)(&sources);
            found.places.iter().for_each(|place| println!("{place}"));
            println!("{:.2} {}", found.value, measure.what);
        }
        _ => return Err("usage: cargo xtask style [MEASURE [PATH]]".into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the functions of the C library that are exported without `export!`. The public names of the variadic functions
/// are jumps without a body; the functions behind them have guards.
fn bare_exports(sources: &[Source]) -> Found {
    let may_export = ["crates/capi/src/ffi/export.rs", "crates/capi/src/variadic.rs"];
    let mut places = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("crates/capi/src/")) {
        for (at, line) in source.text.lines().enumerate() {
            let is_bare = line.contains("no_mangle") || line.contains("pub extern \"C\" fn rd_kafka");
            let is_named = line.contains("pub unsafe extern \"C\" fn rd_kafka");
            if (is_bare || is_named) && !may_export.contains(&source.path.as_str()) {
                places.push(format!("{}:{}: {}", source.path, at + 1, line.trim()));
            }
        }
    }
    Found::count(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_without_the_macro_are_found() {
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let bare = "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn rd_kafka_name() {}\n";
        let sources = [
            source("crates/capi/src/topic.rs", bare),
            source("crates/capi/src/ffi/export.rs", bare),
            source(
                "crates/capi/src/queue.rs",
                "export!(\n    #[local(())]\n    fn rd_kafka_yield() {}\n);\n",
            ),
        ];
        let found = bare_exports(&sources);
        assert_eq!(found.places.len(), 2, "{:?}", found.places);
        assert!(found.places.iter().all(|place| place.starts_with("crates/capi/src/topic.rs")));
    }
}
