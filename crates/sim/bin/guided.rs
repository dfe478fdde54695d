//! `--guided MINUTES FIRST [PAGE]` and `--unguided`: a swarm that counts transitions, with or without guidance, for this time of the
//! processor. The page has those that no world took.

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use ottla_sim::{coverage, guided::Guide, plan::Plan, shrink::break_plan, transitions};

/// The interval of the lines about progress, in processor time.
const PROGRESS: Duration = Duration::from_secs(20);

/// Runs worlds for a time; `first` is the first seed.
pub fn run(first: u64, minutes: u64, is_guided: bool, page: Option<&str>) -> ExitCode {
    let begin = processor_time();
    let (mut guide, mut next_line, mut failed) = (Guide::new(first, is_guided), PROGRESS, 0_u64);
    println!("guided: {is_guided}, fresh seeds from {first} on");
    loop {
        let used = processor_time().saturating_sub(begin);
        if used >= next_line {
            println!("{:5.0} s: {}", used.as_secs_f64(), summary(&guide));
            next_line += PROGRESS;
        }
        if used >= Duration::from_secs(minutes * 60) {
            break;
        }
        let plan = guide.next_plan();
        failed += u64::from(!world(&mut guide, &plan));
    }
    if let Some(page) = page {
        let how = format!("{} minutes of one processor, guided: {is_guided}: {}.", minutes, summary(&guide));
        let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
        let source = |file: &str| std::fs::read_to_string(core.join(file));
        let written =
            transitions::page(guide.counts(), &how, source).and_then(|text| std::fs::write(page, text));
        if let Err(error) = written {
            eprintln!("{page} can't be written: {error}");
            return ExitCode::from(2);
        }
    }
    println!("{} passed, {failed} failed", guide.worlds() - failed);
    if failed > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// Runs a world. Returns false, and prints the plan, if it breaks a guarantee.
fn world(guide: &mut Guide, plan: &Plan) -> bool {
    let (broken, taken) = coverage::of(|| break_plan(plan));
    if let Some(broken) = broken {
        println!("{broken}\n  cargo xtask sim --shrink '{}'", plan.one_line());
        guide.learn(&taken);
        return false;
    }
    if guide.learn(&taken) {
        // A plan of the pool has its incidents, which only a run with a trace knows.
        let whole = plan.clone().with_incidents().0;
        guide.join(whole, &taken);
    }
    true
}

fn summary(guide: &Guide) -> String {
    let changes = guide.counts().keys().filter(|it| it.before != it.after && it.before != "-").count();
    let rare = guide.counts().values().filter(|count| **count == 1).count();
    format!(
        "{} worlds, {} transitions, {changes} of them to another state, {rare} of them in one world only",
        guide.worlds(),
        guide.counts().len()
    )
}

/// Returns how long this thread has run, which does not depend on other programs; the time of day where the system does not tell.
fn processor_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let used = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).map(Duration::from_nanos);
    used.unwrap_or_else(|| START.get_or_init(Instant::now).elapsed())
}
