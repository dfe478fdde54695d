//! What a failing world is reduced to: its smallest plan, the story of the finding, the command that repeats it, and the skeleton of
//! a test.

use std::fmt::Write;

use crate::{
    Broken,
    incidents::Incident,
    plan::Plan,
    shrink::{Effort, Shrunk, break_plan, kind_of, shrink},
    story,
};

/// Shrinks a plan whose world breaks this, and returns the report.
pub fn of_plan(plan: Plan, broken: Broken, effort: Effort) -> String {
    let before = sizes(&plan);
    let Shrunk { plan, broken, worlds, took } = shrink(plan, broken, effort, break_plan);
    let mut text = format!(
        "{broken}\nshrunk from {before}\nto {} in {:.1} s, {worlds} worlds\n",
        sizes(&plan),
        took.as_secs_f64()
    );
    let (incidents, lines) = replay(&plan, &broken);
    // Writing to a String can't fail.
    let _ = writeln!(text, "\nWhat happened ({} lines):", lines.len());
    lines.iter().for_each(|line| text += &format!("{line}\n"));
    let _ = writeln!(text, "\nIt is repeated by:\n  {}", command(&plan));
    let tests = skeleton(&plan, &broken, &incidents);
    let _ = write!(text, "\nA test of the world, and the skeleton of a test of the machine:\n{tests}");
    text
}

/// Returns the story of what a plan breaks.
pub fn story_of(plan: &Plan, broken: &Broken) -> Vec<String> {
    replay(plan, broken).1
}

/// Runs a plan, and returns the incidents that happened and the story.
fn replay(plan: &Plan, broken: &Broken) -> (Vec<Incident>, Vec<String>) {
    // A world that panics has no trace.
    let ran = std::panic::catch_unwind(|| plan.run(true));
    let (incidents, mut lines) =
        ran.map_or_else(|_| Default::default(), |ran| (ran.incidents, story::tell(&ran.trace, broken)));
    lines.push(format!("{:>12}  {broken}", "finding"));
    (incidents, lines)
}

/// Returns the command that repeats a plan.
pub fn command(plan: &Plan) -> String {
    format!("cargo xtask sim --plan '{}'", plan.one_line())
}

fn sizes(plan: &Plan) -> String {
    let incidents = plan.incidents.as_deref().unwrap_or_default();
    let effective = incidents.iter().filter(|incident| !incident.what.is_empty()).count();
    let shown =
        ["producers", "consumers", "members", "copiers", "readers", "brokers", "partitions", "records"];
    let mut text = format!("{effective} incidents");
    for setting in plan.settings.iter().filter(|setting| shown.contains(&setting.name)) {
        let _ = write!(text, ", {} {}", setting.value, setting.name);
    }
    for setting in plan.settings.iter().filter(|setting| setting.name.ends_with("s-ms")).take(1) {
        let _ = write!(text, ", {:.1} s of incidents", setting.value as f64 / 1e3);
    }
    text
}

/// The scripts of the machines: the checkers whose findings belong to each, by kind of world.
const SCRIPTS: [(&str, &[&str], &str, &str); 9] = [
    ("transaction", &[], "crates/core/src/txn/scripted.rs", "Script::ready()"),
    ("share", &[], "crates/core/src/share/scripted.rs", "Script::new()"),
    ("streams-group", &[], "crates/core/src/streams/scripted.rs", "Script::new()"),
    ("group", &["continuity", "skipped"], "crates/core/src/fetch/manager/scripted.rs", "Script::new()"),
    ("group", &[], "crates/core/src/group/membership/scripted.rs", "Script::new()"),
    ("telemetry", &["telemetry"], "crates/core/src/telemetry/scripted.rs", "Script::new()"),
    ("", &["consume"], "crates/core/src/fetch/scripted.rs", "Script::new()"),
    (
        "",
        &["wire", "misrouting", "authentication", "busy"],
        "crates/core/src/broker/scripted",
        "Script::new()",
    ),
    ("", &[], "crates/core/src/produce/scripted.rs", "Script::new(settings())"),
];

/// Returns a test of the world, and the skeleton of a test of the machine that is most probably at fault.
fn skeleton(plan: &Plan, broken: &Broken, incidents: &[Incident]) -> String {
    let is_of = |(kind, checkers, ..): &&(&str, &[&str], &str, &str)| {
        (kind.is_empty() || *kind == plan.kind.name)
            && (checkers.is_empty() || checkers.contains(&broken.checker))
    };
    let (_, _, file, script) = SCRIPTS.iter().find(is_of).copied().unwrap_or(SCRIPTS[SCRIPTS.len() - 1]);
    let name = kind_of(broken).replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let name = name.split('_').filter(|word| !word.is_empty()).take(8).collect::<Vec<_>>().join("_");
    let mut text = format!(
        "// crates/sim/tests/plans.rs\n#[test]\nfn {name}_world() {{\n    keeps_all_guarantees(\n        \"{}\",\n    );\n}}\n\n",
        plan.one_line().replace("; ", ";\\\n         ")
    );
    let _ = write!(text, "// {file}\n#[test]\nfn {name}() {{\n    let mut script = {script};\n");
    for incident in incidents.iter().filter(|incident| !incident.what.is_empty()) {
        let seconds = incident.at.as_nanos() as f64 / 1e9;
        let _ = writeln!(text, "    // {seconds:.3} s: {}", incident.what);
    }
    let _ = write!(
        text,
        "    // It must not happen that: {broken}\n    panic!(\"the calls of the story above\");\n}}\n"
    );
    text
}
