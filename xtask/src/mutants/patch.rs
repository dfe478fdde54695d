//! Patch files: a deliberate mistake, the check that must notice it, and the lines that it changes.
//!
//! The body is a unified diff without line numbers. A hunk applies where its context and its removed lines stand; they
//! must stand in the file exactly once. Indentation does not matter, so that a hunk survives moved code.

use crate::Result;

/// A deliberate mistake.
#[derive(Debug)]
pub struct Mutant {
    /// The number of its switch; 0 if it has none.
    pub number: u32,
    /// The patch file below `crates/sim/mutants`, without the extension: `sim/drop_retry`.
    pub name: String,
    /// The mistake, as a sentence.
    pub mistake: String,
    /// The checker of the simulator, or the name of the model or of the scripted test, that must notice it.
    pub noticed_by: String,
    /// How that check is run.
    pub run: Runner,
    /// The changes.
    pub files: Vec<FilePatch>,
}

/// How the check of a mistake is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// The simulator with these seeds, until the checker notices something.
    Simulator { worlds: &'static Worlds, first: u64, last: u64 },
    /// A loom model of this package.
    Loom { package: String },
    /// A unit test of this package: a script for one machine, of a course of events that hardly any seed has.
    Scripted { package: String },
    /// A C program of crates/capi/tests/c, against the library with the mistake.
    Program,
}

/// A kind of worlds of the simulator.
#[derive(Debug, PartialEq, Eq)]
pub struct Worlds {
    /// The name in the header.
    pub name: &'static str,
    /// The option of the simulator that looks for a mistake in them.
    pub option: &'static str,
    /// The words behind the name of the checker.
    pub what: &'static str,
    /// The heading in docs/internals/mistakes.md.
    pub heading: &'static str,
}

/// The kinds of worlds.
pub const WORLDS: [Worlds; 10] = [
    Worlds {
        name: "simulator",
        option: "--hunt",
        what: "",
        heading: "Producers and consumers in the simulator",
    },
    Worlds {
        name: "groups",
        option: "--hunt-groups",
        what: " of groups",
        heading: "Consumer groups in the simulator",
    },
    Worlds {
        name: "sasl",
        option: "--hunt-sasl",
        what: " with SASL",
        heading: "Authentication in the simulator",
    },
    Worlds {
        name: "telemetry",
        option: "--hunt-telemetry",
        what: " with client metrics",
        heading: "Client metrics in the simulator",
    },
    Worlds {
        name: "ceilings",
        option: "--hunt-ceilings",
        what: " with ceilings of memory",
        heading: "Ceilings of memory in the simulator",
    },
    Worlds {
        name: "hardships",
        option: "--hunt-hardships",
        what: " with hardships",
        heading: "Hardships in the simulator",
    },
    Worlds {
        name: "transactions",
        option: "--hunt-transactions",
        what: " of transactions",
        heading: "Transactions in the simulator",
    },
    Worlds {
        name: "shares",
        option: "--hunt-shares",
        what: " of share groups",
        heading: "Share groups in the simulator",
    },
    Worlds {
        name: "streams",
        option: "--hunt-streams",
        what: " of streams groups",
        heading: "Streams groups in the simulator",
    },
    Worlds {
        name: "misrouting",
        option: "--hunt-misrouting",
        what: " of schedules with addresses that lead elsewhere",
        heading: "Misrouted connections in the simulator",
    },
];

/// The changes of one file.
#[derive(Debug)]
pub struct FilePatch {
    /// The file's path in the repository.
    pub path: String,
    hunks: Vec<Hunk>,
}

#[derive(Debug, Default)]
struct Hunk {
    lines: Vec<Line>,
}

#[derive(Debug)]
enum Line {
    Context(String),
    Removed(String),
    Added(String),
}

impl Mutant {
    /// Parses the patch file of this name.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let (header, body) = text.split_once("\n\n").ok_or("there is no empty line after the header")?;
        let mut fields = Header::default();
        for line in header.lines() {
            let (key, value) = line.split_once(": ").ok_or(format!("`{line}` is not `key: value`"))?;
            fields.set(key, value.trim())?;
        }
        let files = parse_files(body)?;
        if files.is_empty() {
            return Err("the patch changes no file".into());
        }
        let missing = |key: &str| format!("the header has no `{key}:`");
        Ok(Self {
            number: 0,
            name: name.to_owned(),
            mistake: fields.mistake.ok_or_else(|| missing("mistake"))?,
            noticed_by: fields.noticed_by.ok_or_else(|| missing("noticed by"))?,
            run: fields.run.ok_or_else(|| missing("run"))?,
            files,
        })
    }
}

#[derive(Default)]
struct Header {
    mistake: Option<String>,
    noticed_by: Option<String>,
    run: Option<Runner>,
}

impl Header {
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "mistake" => self.mistake = Some(value.to_owned()),
            "noticed by" => self.noticed_by = Some(value.to_owned()),
            "run" => self.run = Some(Runner::parse(value)?),
            _ => return Err(format!("`{key}: {value}` is not a line of a header").into()),
        }
        Ok(())
    }
}

impl Runner {
    /// Parses `simulator 1..=100`, another name of [`WORLDS`] with seeds, `loom ottla-core`, `scripted ottla-core` or `C program`.
    fn parse(text: &str) -> Result<Self> {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        if text == "C program" {
            return Ok(Self::Program);
        }
        if name == "loom" && !rest.is_empty() {
            return Ok(Self::Loom { package: rest.to_owned() });
        }
        if name == "scripted" && !rest.is_empty() {
            return Ok(Self::Scripted { package: rest.to_owned() });
        }
        let Some(worlds) = WORLDS.iter().find(|worlds| worlds.name == name) else {
            let names = WORLDS.map(|worlds| worlds.name).join("`, `");
            let expected =
                format!("`loom PACKAGE`, `scripted PACKAGE`, `C program`, or FIRST..=LAST of `{names}`");
            return Err(format!("`run: {text}` must be {expected}").into());
        };
        let (first, last) = rest.split_once("..=").ok_or(format!("`{rest}` is not a range of seeds"))?;
        let (first, last) = (first.parse()?, last.parse()?);
        if first > last {
            return Err(format!("`{rest}` has no seed").into());
        }
        Ok(Self::Simulator { worlds, first, last })
    }
}

fn parse_files(body: &str) -> Result<Vec<FilePatch>> {
    let mut files: Vec<FilePatch> = Vec::new();
    for line in body.lines() {
        if let Some(path) = line.strip_prefix("--- a/") {
            files.push(FilePatch { path: path.to_owned(), hunks: Vec::new() });
            continue;
        }
        let between = files.last().is_none_or(|file| file.hunks.is_empty());
        let Some(file) = files.last_mut() else {
            if line.is_empty() {
                continue;
            }
            return Err(format!("`{line}` stands before the first file").into());
        };
        if line == "@@" {
            file.hunks.push(Hunk::default());
        } else if between {
            // The line `+++ b/...`, which says the same as the one before.
            if line.strip_prefix("+++ b/") != Some(&file.path) {
                return Err(format!("`{line}` stands where `+++ b/{}` or `@@` is expected", file.path).into());
            }
        } else if let Some(hunk) = file.hunks.last_mut() {
            hunk.lines.push(Line::parse(line)?);
        }
    }
    for file in &mut files {
        for hunk in &mut file.hunks {
            // The empty line before the next file.
            while matches!(hunk.lines.last(), Some(Line::Context(text)) if text.is_empty()) {
                hunk.lines.pop();
            }
            if hunk.old().is_empty() {
                return Err(format!("a hunk of {} has neither context nor removed lines", file.path).into());
            }
        }
        if file.hunks.is_empty() {
            return Err(format!("{} has no hunk", file.path).into());
        }
    }
    Ok(files)
}

impl Line {
    fn parse(line: &str) -> Result<Self> {
        let text = line.get(1..).unwrap_or_default().to_owned();
        match line.bytes().next() {
            Some(b' ') | None => Ok(Self::Context(text)),
            Some(b'-') => Ok(Self::Removed(text)),
            Some(b'+') => Ok(Self::Added(text)),
            Some(_) => Err(format!("`{line}` is not a line of a hunk").into()),
        }
    }

    /// Returns the text of a line that the file has before the change.
    fn old(&self) -> Option<&str> {
        match self {
            Self::Context(text) | Self::Removed(text) => Some(text),
            Self::Added(_) => None,
        }
    }
}

impl FilePatch {
    /// Returns the file with the mistake.
    pub fn apply(&self, text: &str) -> Result<String> {
        let lines: Vec<&str> = text.lines().collect();
        let mut places = Vec::new();
        for hunk in &self.hunks {
            let [place] = hunk.places(&lines)[..] else {
                let count = hunk.places(&lines).len();
                let first = hunk.old()[0].trim();
                return Err(format!("{}: the hunk with `{first}` fits in {count} places", self.path).into());
            };
            places.push((place, hunk));
        }
        places.sort_by_key(|(place, _)| *place);
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for (place, hunk) in places {
            if place < at {
                return Err(format!("{}: two hunks overlap", self.path).into());
            }
            lines[at..place].iter().for_each(|line| push_line(&mut out, line));
            at = place;
            for line in &hunk.lines {
                match line {
                    Line::Context(_) => {
                        push_line(&mut out, lines[at]);
                        at += 1;
                    }
                    Line::Removed(_) => at += 1,
                    Line::Added(added) => push_line(&mut out, added),
                }
            }
        }
        lines[at..].iter().for_each(|line| push_line(&mut out, line));
        Ok(out)
    }

    /// Returns true if each hunk applies to this text.
    pub fn fits(&self, text: &str) -> bool {
        let lines: Vec<&str> = text.lines().collect();
        self.hunks.iter().all(|hunk| hunk.places(&lines).len() == 1)
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

impl Hunk {
    /// Returns the context and the removed lines.
    fn old(&self) -> Vec<&str> {
        self.lines.iter().filter_map(Line::old).collect()
    }

    /// Returns the numbers of the lines at which the hunk applies.
    fn places(&self, lines: &[&str]) -> Vec<usize> {
        let old = self.old();
        let same = |window: &[&str]| window.iter().zip(&old).all(|(line, old)| line.trim() == old.trim());
        let windows = lines.windows(old.len()).enumerate();
        windows.filter(|(_, window)| same(window)).map(|(place, _)| place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "mistake: A is lost.\nnoticed by: delivery\nrun: simulator 1..=20\n\n";

    fn parse(body: &str) -> Result<Mutant> {
        Mutant::parse("sim/example", &format!("{HEADER}{body}"))
    }

    #[test]
    fn patch_changes_each_place_once() {
        let patch = "--- a/x.rs\n+++ b/x.rs\n@@\n     b\n+    new\n@@\n-    c\n+    changed\n";
        let mutant = parse(patch).expect("a patch");
        assert_eq!(mutant.run, Runner::Simulator { worlds: &WORLDS[0], first: 1, last: 20 });
        let file = "a\n        b\n{\n    c\n}\n";
        assert_eq!(
            mutant.files[0].apply(file).expect("it applies"),
            "a\n        b\n    new\n{\n    changed\n}\n"
        );
    }

    #[test]
    fn patch_of_two_files_keeps_their_hunks_apart() {
        let patch = "--- a/x.rs\n+++ b/x.rs\n@@\n-a\n+b\n\n--- a/y.rs\n+++ b/y.rs\n@@\n-c\n";
        let mutant = parse(patch).expect("a patch");
        let paths: Vec<&str> = mutant.files.iter().map(|file| &*file.path).collect();
        assert_eq!(paths, ["x.rs", "y.rs"]);
        assert_eq!(mutant.files[0].apply("a\n").expect("it applies"), "b\n");
        assert_eq!(mutant.files[1].apply("c\n").expect("it applies"), "");
    }

    #[test]
    fn patch_fails_unless_its_lines_stand_there_once() {
        let mutant = parse("--- a/x.rs\n+++ b/x.rs\n@@\n-a\n+b\n").expect("a patch");
        for text in ["", "c\n", "a\na\n"] {
            let error = mutant.files[0].apply(text).expect_err("it does not apply").to_string();
            assert!(error.starts_with("x.rs: the hunk with `a` fits in "), "{error}");
        }
    }

    #[test]
    fn patch_with_overlapping_hunks_fails() {
        let mutant = parse("--- a/x.rs\n+++ b/x.rs\n@@\n-a\n b\n@@\n b\n-c\n").expect("a patch");
        assert!(mutant.files[0].apply("a\nb\nc\n").is_err());
    }

    #[test]
    fn malformed_patches_are_refused() {
        assert!(Mutant::parse("x", "").is_err());
        assert!(Mutant::parse("x", "mistake: A.\nrun: loom x\n\n--- a/x\n+++ b/x\n@@\n-a\n").is_err());
        assert!(Mutant::parse("x", &HEADER.replace("1..=20", "20..=1")).is_err());
        assert!(Mutant::parse("x", &HEADER.replace("simulator", "simulators")).is_err());
        assert!(Mutant::parse("x", &HEADER.replace("simulator 1..=20", "scripted")).is_err());
        for body in [
            "",
            "stray\n",
            "--- a/x\n+++ b/x\n",
            "--- a/x\n+++ b/y\n@@\n-a\n",
            "--- a/x\n+++ b/x\n@@\n+only added\n",
            "--- a/x\n+++ b/x\n@@\n?a\n",
        ] {
            assert!(parse(body).is_err(), "{body:?}");
        }
    }
}
