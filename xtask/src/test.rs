//! `cargo xtask test`: runs everything that CI runs, in steps, and counts the tests.
//!
//! A step is a row of [`STEPS`]. All steps run even if earlier ones fail, so that one run shows every failure. The
//! output of programs is shown immediately; the last lines of failed programs and the names of failed tests are
//! repeated at the end.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use crate::{
    Result, abi, codegen, docs, install, instructions, kafka, mutants, readme,
    shell::{self, Reaper, cargo, root},
    threads, tidy,
};

const HELP: &str = "\
cargo xtask test [--only STEP,...] [--skip STEP,...]

Runs these steps, or only some of them, and ends with `N passed, M failed`:

";

const BENCH: &str = "bench/Cargo.toml";

/// Set for all child processes, so that a test that runs this command is an error instead of a loop.
const INSIDE: &str = "OTTLA_XTASK_TEST";

/// A row of [`STEPS`].
pub struct Step {
    /// The name of the step for `--only`.
    pub name: &'static str,
    /// The description of the step.
    pub what: &'static str,
    /// Runs the step and counts passed and failed tests; an error counts as a failure.
    pub run: fn(&mut Session) -> Result<()>,
}

const STEPS: [Step; 15] = [
    Step { name: "format", what: "rustfmt changes nothing", run: format },
    Step {
        name: "tidy",
        what: "rules that the compiler does not check: dependencies, banned calls, links, markers",
        run: tidy,
    },
    Step { name: "codegen", what: "the generated protocol matches schema/", run: generated },
    Step {
        name: "kafka",
        what: "three brokers of Apache Kafka start; the later steps use them",
        run: start_kafka,
    },
    Step { name: "clippy", what: "clippy with warnings denied", run: clippy },
    Step { name: "test", what: "unit, golden, scenario and documentation tests of all crates", run: unit },
    Step {
        name: "abi",
        what: "tests/abi: the installed C library, compared with Debian's original and librdkafka 2.16.0",
        run: abi::scripts,
    },
    Step { name: "threads", what: "loom models of the code that threads share", run: models },
    Step {
        name: "mutants",
        what: "some deliberate mistakes in a copy of the code, which the simulator and loom must notice",
        run: mistakes,
    },
    Step { name: "docs", what: "generated pages are up to date; rustdoc has no warning", run: documents },
    Step { name: "readme", what: "the commands of README.md succeed", run: readme_commands },
    Step {
        name: "interop",
        what: "tests/interop/*.sh: other clients and Ottla with each other's brokers and records",
        run: interop,
    },
    Step {
        name: "real",
        what: "tests/kafka/*.sh: Ottla with brokers of Apache Kafka that are killed",
        run: real_kafka,
    },
    Step {
        name: "instructions",
        what: "the instructions that a message costs are at most 3 % more than bench/instructions.json says",
        run: instructions::step,
    },
    Step { name: "deny", what: "cargo deny: licences, advisories, sources, banned crates", run: deny },
];

pub fn main(args: &[String]) -> Result<ExitCode> {
    let mut chosen: Vec<&Step> = STEPS.iter().collect();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let names: Vec<&str> = match arg.as_str() {
            "--only" | "--skip" => args.next().ok_or(format!("{arg} needs steps"))?.split(',').collect(),
            "--help" | "-h" => {
                print!("{HELP}");
                STEPS.iter().for_each(|step| println!("  {:10} {}", step.name, step.what));
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(format!("`{other}`? See cargo xtask test --help").into()),
        };
        if let Some(name) = names.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
            return Err(format!("there is no step `{name}`, see cargo xtask test --help").into());
        }
        chosen.retain(|step| names.contains(&step.name) == (arg == "--only"));
    }
    if env::var_os(INSIDE).is_some() {
        return Err("the tests are being run by the tests".into());
    }
    Session::new().run(&chosen)
}

pub fn lint(args: &[String]) -> Result<ExitCode> {
    if !args.is_empty() {
        return Err("usage: cargo xtask lint".into());
    }
    let steps: Vec<&Step> =
        STEPS.iter().filter(|step| ["format", "tidy", "clippy"].contains(&step.name)).collect();
    Session::new().run(&steps)
}

/// A run: the counts, and the results of earlier steps that later ones need.
pub struct Session {
    passed: u64,
    failures: Vec<String>,
    kafka: Option<RunningKafka>,
}

struct RunningKafka {
    cluster: kafka::Cluster,
    folder: PathBuf,
    guard: Reaper,
}

impl Session {
    pub fn new() -> Self {
        Self { passed: 0, failures: Vec::new(), kafka: None }
    }

    pub fn run(mut self, steps: &[&Step]) -> Result<ExitCode> {
        let mut rows = Vec::new();
        for step in steps {
            println!("\n==> {}: {}", step.name, step.what);
            let (passed, failed, began) = (self.passed, self.failures.len(), Instant::now());
            if let Err(error) = (step.run)(&mut self) {
                self.fail(&format!("{}: {error}", step.name));
            }
            let (passed, failed) = (self.passed - passed, self.failures.len() - failed);
            let row = format!("{:10} {passed:6} passed {failed:4} failed", step.name);
            rows.push(format!("{row} {:7.1} s", began.elapsed().as_secs_f64()));
        }
        if let Some(kafka) = self.kafka.take() {
            kafka.cluster.destroy()?;
            kafka.guard.dismiss();
        }
        println!();
        self.failures.iter().for_each(|failure| println!("FAILED {failure}"));
        rows.iter().for_each(|row| println!("{row}"));
        println!("{} passed, {} failed", self.passed, self.failures.len());
        Ok(if self.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    pub fn pass(&mut self, what: &str) {
        println!("    ok: {what}");
        self.passed += 1;
    }

    pub fn fail(&mut self, what: &str) {
        println!("    FAILED: {what}");
        self.failures.push(what.to_owned());
    }

    /// Runs a program that counts as one test.
    fn one(&mut self, what: &str, command: &mut Command, minutes: u64) -> Result<()> {
        let done = shell::run(self.prepare(command), Duration::from_secs(minutes * 60), true)?;
        if done.success {
            self.pass(what);
        } else {
            // What the program said last, because the list of failures is often all that is kept of a run.
            let reason =
                done.output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output").trim();
            self.fail(&format!("{what} ({}): {reason}", done.ending));
        }
        Ok(())
    }

    /// Passes the addresses of the brokers and the folder of the jars to a program.
    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.current_dir(root()).env(INSIDE, "1");
        if let Some(kafka) = &self.kafka {
            command.env("OTTLA_BOOTSTRAP", kafka.cluster.bootstrap()).env("OTTLA_KAFKA_DATA", &kafka.folder);
        }
        command
    }

    /// Runs `cargo test` and counts its tests.
    pub fn tests(&mut self, command: &mut Command) -> Result<()> {
        let done = shell::run(self.prepare(command), Duration::from_secs(40 * 60), true)?;
        let summary = Summary::of(&done.output);
        self.passed += summary.passed;
        self.failures.extend(summary.failed.iter().map(|name| format!("test {name}")));
        if summary.ignored > 0 {
            self.fail(&format!("{} tests are ignored: a test runs or it isn't there", summary.ignored));
        }
        if !done.success && summary.failed.is_empty() {
            self.fail(&format!("cargo test ({})", done.ending));
        }
        if done.success && summary.passed == 0 {
            self.fail("cargo test ran no test");
        }
        Ok(())
    }

    /// Runs the scripts of a folder, each of which is a test.
    pub fn scripts(&mut self, folder: &str, variables: &[(&str, PathBuf)]) -> Result<()> {
        let mut scripts: Vec<PathBuf> = match fs::read_dir(root().join(folder)) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) => return Err(format!("{folder}: {error}").into()),
        };
        scripts.retain(|path| path.extension().is_some_and(|extension| extension == "sh"));
        scripts.sort();
        if scripts.is_empty() {
            return Err(format!("{folder} has no script").into());
        }
        for script in scripts {
            let name = script.strip_prefix(root()).unwrap_or(&script).display().to_string();
            println!("--- {name}");
            let mut command = Command::new("bash");
            command.arg(&script).envs(variables.iter().map(|(name, value)| (name, value)));
            self.one(&name, &mut command, 10)?;
        }
        Ok(())
    }

    /// Returns the environment of scripts that use Apache Kafka or its clients.
    fn with_kafka(&mut self) -> Result<[(&'static str, PathBuf); 2]> {
        Ok([("OTTLA", self.release_binary()?), ("OTTLA_KAFKA_JARS", kafka::fetch()?)])
    }

    fn release_binary(&mut self) -> Result<PathBuf> {
        let mut build = cargo();
        build.args(["build", "--release", "--package", "ottla-cli", "--bin", "ottla"]);
        let done = shell::run(self.prepare(&mut build), Duration::from_secs(1200), true)?;
        if !done.success {
            return Err(format!("the release build failed ({})", done.ending).into());
        }
        Ok(target_folder()?.join("release/ottla"))
    }
}

fn format(session: &mut Session) -> Result<()> {
    session.one("rustfmt", cargo().args(["fmt", "--all", "--check"]), 5)?;
    session.one("rustfmt of bench/", cargo().args(["fmt", "--all", "--check", "--manifest-path", BENCH]), 5)
}

fn tidy(session: &mut Session) -> Result<()> {
    for check in tidy::CHECKS {
        let found = (check.run)(&root())?;
        found.iter().for_each(|finding| println!("      {finding}"));
        if found.is_empty() {
            session.pass(check.what);
        } else {
            session.fail(&format!("{}: {} places, the first is {}", check.what, found.len(), found[0]));
        }
    }
    Ok(())
}

fn generated(session: &mut Session) -> Result<()> {
    codegen::run(true)?;
    session.pass("the generated code is fresh");
    Ok(())
}

fn start_kafka(session: &mut Session) -> Result<()> {
    let folder = env::temp_dir().join(format!("ottla-test-kafka-{}", std::process::id()));
    let cluster = kafka::Cluster::create(&folder, 3, &kafka::Options::default())?;
    if let Err(error) = cluster.start(&[1, 2, 3]) {
        let _ = cluster.destroy();
        return Err(error);
    }
    let guard = cluster.guard()?;
    session.pass(&format!("Apache Kafka {} runs on {}", kafka::VERSION, cluster.bootstrap()));
    session.kafka = Some(RunningKafka { cluster, folder, guard });
    Ok(())
}

fn clippy(session: &mut Session) -> Result<()> {
    session.one(
        "clippy",
        cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        30,
    )
}

fn unit(session: &mut Session) -> Result<()> {
    if session.kafka.is_none() {
        println!("    without brokers: the tests that need Apache Kafka do nothing");
    }
    // A test of the C library needs it.
    install::debian("kcat", "kcat")?;
    session.tests(cargo().args(["test", "--workspace", "--no-fail-fast"]))?;
    session.tests(cargo().args(["test", "--package", "ottla-net", "--lib", "--features", "aws-lc-rs"]))?;
    let hooks = ["test", "--package", "ottla", "--test", "metrics", "--features", "opentelemetry"];
    session.tests(cargo().args(hooks))?;
    // Only the harness of the bench is tested: building the peers takes minutes.
    session.tests(cargo().args(["test", "--package", "harness", "--manifest-path", BENCH]))
}

fn models(session: &mut Session) -> Result<()> {
    session.tests(&mut threads::models("models::")?)
}

fn mistakes(session: &mut Session) -> Result<()> {
    let (tried, failures) = mutants::try_in_ci()?;
    session.passed += tried.saturating_sub(failures.len()) as u64;
    failures.iter().for_each(|failure| session.fail(failure));
    Ok(())
}

fn documents(session: &mut Session) -> Result<()> {
    for page in &docs::PAGES {
        if docs::generate(page, true)? {
            session.pass(&format!("{} is fresh", page.name));
        } else {
            session.fail(&format!("{} is stale: run `cargo xtask docs`", page.name));
        }
    }
    let mut doc = cargo();
    doc.args(["doc", "--workspace", "--no-deps", "--document-private-items"])
        .env("RUSTDOCFLAGS", "-D warnings");
    session.one("rustdoc", &mut doc, 20)
}

fn readme_commands(session: &mut Session) -> Result<()> {
    let commands = readme::commands(&fs::read_to_string(root().join("README.md"))?);
    if commands.is_empty() {
        return Err("README.md has no command in a ```sh block".into());
    }
    for command in commands {
        println!("--- {command}");
        if command == "cargo xtask test" {
            session.pass("cargo xtask test (it is what runs here)");
            continue;
        }
        session.one(&command, Command::new("bash").args(["-e", "-o", "pipefail", "-c", &command]), 30)?;
    }
    Ok(())
}

fn interop(session: &mut Session) -> Result<()> {
    install::debian("kcat", "kcat")?;
    let [ottla, jars] = session.with_kafka()?;
    session.scripts("tests/interop", &[ottla, jars, ("OTTLA_PREFIX", abi::installed("release")?)])
}

fn real_kafka(session: &mut Session) -> Result<()> {
    if session.kafka.is_none() {
        start_kafka(session)?;
    }
    let variables = session.with_kafka()?;
    session.scripts("tests/kafka", &variables)
}

fn deny(session: &mut Session) -> Result<()> {
    let program = install::cargo_deny()?;
    let deny = |session: &mut Session, what: &[&str]| {
        let mut deny = Command::new(&program);
        // Called like a cargo subcommand.
        deny.args(["--workspace", "check", "--hide-inclusion-graph"]).args(what);
        session.one(&format!("cargo deny check {}", what.join(" ")), &mut deny, 10)
    };
    deny(session, &["bans", "licenses", "sources"])?;
    let mut fetch = Command::new(&program);
    fetch.args(["fetch", "db"]);
    let fetched = shell::run(session.prepare(&mut fetch), Duration::from_secs(300), false)?;
    if fetched.success {
        return deny(session, &["--disable-fetch", "advisories"]);
    }
    // The list of advisories is a git repository on github.com. A machine without access to it can't check the
    // dependencies, so the check is reported as skipped.
    println!("{}\n    NOT CHECKED: advisories, because their list can't be fetched", fetched.output);
    Ok(())
}

pub fn target_folder() -> Result<PathBuf> {
    let text = shell::read(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let folder = metadata["target_directory"].as_str().ok_or("cargo metadata names no target_directory")?;
    Ok(Path::new(folder).to_path_buf())
}

/// Returns the sums of the summaries of all test programs that `cargo test` ran.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    passed: u64,
    failed: Vec<String>,
    ignored: u64,
}

impl Summary {
    fn of(output: &str) -> Self {
        let mut sum = Self::default();
        let mut named = 0;
        for line in output.lines() {
            if let Some(test) = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED")) {
                sum.failed.push(test.to_owned());
                named += 1;
            }
            let Some(counts) = line.strip_prefix("test result: ") else { continue };
            let count = |name| {
                let words: Vec<&str> = counts.split_whitespace().collect();
                let found = words.windows(2).find(|pair| pair[1].trim_end_matches(';') == name);
                found.and_then(|pair| pair[0].parse::<u64>().ok()).unwrap_or(0)
            };
            sum.passed += count("passed");
            sum.ignored += count("ignored");
            // A test whose output interrupted its result line still counts.
            for unnamed in named..count("failed") {
                sum.failed.push(format!("without a name, {}", unnamed + 1));
            }
            named = 0;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_all_programs_are_summed() {
        let output = "\
running 2 tests
test a::b ... ok
test a::c ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 7 passed; 0 failed; 2 ignored; 0 measured; 3 filtered out; finished in 0.00s
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let failed = vec!["a::c".to_owned(), "without a name, 1".to_owned()];
        assert_eq!(Summary::of(output), Summary { passed: 8, failed, ignored: 2 });
    }

    #[test]
    fn output_without_a_summary_counts_nothing() {
        assert_eq!(Summary::of("error: could not compile `ottla`\n"), Summary::default());
    }

    #[test]
    fn every_step_has_its_own_name() {
        for (at, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..at].iter().all(|other| other.name != step.name), "{}", step.name);
        }
    }
}
