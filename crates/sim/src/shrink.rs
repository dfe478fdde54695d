//! Shrinks the plan of a failing world: drops incidents and simplifies settings while the same checker finds the same thing.
//!
//! ```text
//!   everything at once ─► incidents: kinds, halves, ..., single ones ─► settings: all, halves, ..., single ones, values ─┐
//!                              ▲                                                                                        │
//!                              └───────────────────────── while something was dropped ──────────────────────────────────┘
//! ```
//!
//! Without one event, all later ones come in another order, and a race may be gone by chance. So a smaller plan is tried with
//! several orders of events (`salt`), and holds if one of them fails.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::Duration,
};

use crate::{Broken, incidents::Incident, plan::Plan};

/// A smaller plan.
#[derive(Debug)]
pub struct Shrunk {
    /// The plan.
    pub plan: Plan,
    /// What its world breaks.
    pub broken: Broken,
    /// The number of worlds that were run.
    pub worlds: u64,
    /// The time that it took.
    pub took: Duration,
}

/// How long the search goes on.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The search ends after this time, even if a smaller plan may exist.
    pub time: Duration,
    /// The number of orders of events with which a smaller plan is tried.
    pub salts: u64,
    /// Returns the time since some moment.
    pub clock: fn() -> Duration,
}

impl Effort {
    /// Ends below two minutes of this clock.
    pub const fn usual(clock: fn() -> Duration) -> Self {
        Self { time: Duration::from_secs(90), salts: 4, clock }
    }
}

/// The checker's name for a world that panics.
pub const PANIC: &str = "panic";

/// Runs the world of a plan; a panic is a broken guarantee.
pub fn break_plan(plan: &Plan) -> Option<Broken> {
    match catch_unwind(AssertUnwindSafe(|| plan.run(false).broken)) {
        Ok(broken) => broken,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Some(Broken::new(PANIC, text.unwrap_or("the simulator panicked")))
        }
    }
}

/// Returns the kind of a finding: its first words without numbers, names and lists.
pub fn kind_of(broken: &Broken) -> String {
    let mut depth = 0_usize;
    let is_outside = |c: &char| {
        depth = match c {
            '(' | '[' | '{' => depth + 1,
            ')' | ']' | '}' => depth.saturating_sub(1),
            _ => return depth == 0,
        };
        false
    };
    let text: String = broken.what.chars().filter(is_outside).collect();
    let is_word = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '\'');
    let words = text.split([' ', ':', ',', ';', '.', '"']).filter(is_word).take(12);
    format!("{}: {}", broken.checker, words.collect::<Vec<_>>().join(" "))
}

/// Shrinks a plan whose world breaks this guarantee. `break_plan` returns what a plan breaks.
pub fn shrink(
    plan: Plan,
    broken: Broken,
    effort: Effort,
    break_plan: impl Fn(&Plan) -> Option<Broken> + Sync,
) -> Shrunk {
    let start = (effort.clock)();
    let mut search = Search {
        break_plan: &break_plan,
        kind: kind_of(&broken),
        salts: effort.salts,
        start,
        deadline: start + effort.time,
        clock: effort.clock,
        plan,
        broken,
        worlds: 0,
    };
    search.try_everything_at_once();
    search.lighten();
    loop {
        let before = search.size();
        search.drop_incidents();
        search.simplify_settings();
        if search.size() == before || search.is_late() {
            break;
        }
    }
    let Search { plan, broken, worlds, .. } = search;
    Shrunk { plan, broken, worlds, took: (effort.clock)().saturating_sub(start) }
}

/// A search in progress.
struct Search<'a, F> {
    break_plan: &'a F,
    /// The kind of the finding.
    kind: String,
    salts: u64,
    start: Duration,
    deadline: Duration,
    clock: fn() -> Duration,
    /// The smallest plan so far, and what it breaks.
    plan: Plan,
    broken: Broken,
    worlds: u64,
}

impl<F: Fn(&Plan) -> Option<Broken> + Sync> Search<'_, F> {
    fn is_late(&self) -> bool {
        (self.clock)() >= self.deadline
    }

    /// Returns the number of incidents, and the distances of the settings from the simplest ones.
    fn size(&self) -> (usize, u128) {
        let distance = |value: u64, simplest: u64| u128::from(value.abs_diff(simplest));
        let settings = self.plan.settings.iter().map(|setting| distance(setting.value, setting.simplest));
        (self.incidents().len(), settings.sum())
    }

    fn incidents(&self) -> &[Incident] {
        self.plan.incidents.as_deref().unwrap_or_default()
    }

    /// Keeps a smaller plan if its world breaks the same, with this number of orders of events.
    fn attempt(&mut self, smaller: &Plan, salts: u64) -> bool {
        let own = smaller.salt;
        let others = (0..).filter(|salt| *salt != own).take(salts.saturating_sub(1) as usize);
        let salts: Vec<u64> = std::iter::once(own).chain(others).collect();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        for some in salts.chunks(threads) {
            if self.is_late() {
                return false;
            }
            let plans: Vec<Plan> = some.iter().map(|salt| Plan { salt: *salt, ..smaller.clone() }).collect();
            self.worlds += plans.len() as u64;
            let break_plan = self.break_plan;
            let broken: Vec<Option<Broken>> = thread::scope(|scope| {
                let run = |plan| scope.spawn(move || break_plan(plan));
                let running: Vec<_> = plans.iter().map(run).collect();
                // Panics of a world are findings, so that a thread does not panic.
                running.into_iter().map(|thread| thread.join().ok().flatten()).collect()
            });
            let mut results = plans.into_iter().zip(broken);
            let same = results.find_map(|(plan, broken)| {
                let broken = broken.filter(|broken| kind_of(broken) == self.kind)?;
                Some((plan, broken))
            });
            if let Some((plan, broken)) = same {
                (self.plan, self.broken) = (plan, broken);
                return true;
            }
        }
        false
    }

    /// Returns the number of orders of events with which a smaller plan is tried: fewer if worlds take long.
    fn salts(&self) -> u64 {
        let each = (self.clock)().saturating_sub(self.start).as_secs_f64() / self.worlds.max(1) as f64;
        if each > SLOW.as_secs_f64() { self.salts.min(2) } else { self.salts }
    }

    /// Halves what makes a world slow, before anything is tried many times.
    fn lighten(&mut self) {
        for name in HEAVY {
            let index = self.plan.settings.iter().position(|setting| setting.name == name);
            // A time that ends right behind an incident ends before it once another one is gone.
            let steps = if TIMES.contains(&name) { 2 } else { STEPS };
            index.into_iter().for_each(|index| self.approach(index, steps));
        }
    }

    /// Most mistakes show in a simple world with one incident or without any.
    fn try_everything_at_once(&mut self) {
        let mut simplest = self.plan.clone();
        for setting in &mut simplest.settings {
            // A world without its first things does nothing.
            let does_nothing = setting.simplest == 0 && WORKERS.contains(&setting.name);
            setting.value = if does_nothing { setting.value.min(1) } else { setting.simplest };
            if TIMES.contains(&setting.name) {
                setting.value = setting.value.max(5_000);
            }
        }
        let calm = Plan { incidents: Some(Vec::new()), ..simplest.clone() };
        let many = 2 * self.salts;
        let _ = self.attempt(&calm, many) || self.attempt(&simplest, many);
    }

    // ---- incidents

    fn drop_incidents(&mut self) {
        let effective: Vec<Incident> =
            self.incidents().iter().filter(|incident| !incident.what.is_empty()).cloned().collect();
        let _ = self.keep(Vec::new()) || self.keep(effective);
        let mut kinds: Vec<String> = self.incidents().iter().map(Incident::kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds.iter().filter(|_| !self.incidents().is_empty()).cloned().collect::<Vec<_>>() {
            let others = self.incidents().iter().filter(|incident| incident.kind() != kind).cloned();
            let others = others.collect();
            self.keep(others);
        }
        let mut length = self.incidents().len().div_ceil(2);
        while length > 0 {
            let mut start = 0;
            while start < self.incidents().len() && !self.is_late() {
                let mut rest = self.incidents().to_vec();
                rest.drain(start..(start + length).min(rest.len()));
                if !self.keep(rest) {
                    start += length;
                }
            }
            length = if length == 1 { 0 } else { length.div_ceil(2) };
        }
    }

    /// Keeps only these incidents if the world breaks the same with them.
    fn keep(&mut self, incidents: Vec<Incident>) -> bool {
        if incidents.len() == self.incidents().len() {
            return false;
        }
        let smaller = Plan { incidents: Some(incidents), ..self.plan.clone() };
        self.attempt(&smaller, self.salts())
    }

    // ---- settings

    fn simplify_settings(&mut self) {
        let count = self.plan.settings.len();
        let mut length = count;
        while length > 0 {
            for start in (0..count).step_by(length) {
                self.simplify(start..(start + length).min(count));
            }
            length = if length == 1 { 0 } else { length.div_ceil(3) };
        }
        for index in 0..count {
            self.approach(index, STEPS);
        }
    }

    /// Sets these settings to the simplest values if the world breaks the same with them.
    fn simplify(&mut self, range: std::ops::Range<usize>) -> bool {
        let mut smaller = self.plan.clone();
        smaller.settings[range].iter_mut().for_each(|setting| setting.value = setting.simplest);
        if smaller.settings == self.plan.settings {
            return false;
        }
        self.attempt(&smaller, self.salts())
    }

    /// Halves the distance of a setting from its simplest value as long as the world breaks the same.
    fn approach(&mut self, index: usize, steps: usize) {
        let mut refused = self.plan.settings[index].simplest;
        for _ in 0..steps {
            let value = self.plan.settings[index].value;
            let middle = refused.midpoint(value);
            if middle == value || middle == refused {
                return;
            }
            let mut smaller = self.plan.clone();
            smaller.settings[index].value = middle;
            if !self.attempt(&smaller, self.salts()) {
                refused = middle;
            }
        }
    }
}

/// The most halvings of a setting at a time.
const STEPS: usize = 10;

/// The time for a world from which on it is slow.
const SLOW: Duration = Duration::from_millis(400);

/// The dials of what makes a world slow.
const HEAVY: [&str; 7] =
    ["records", "faults-ms", "suffers-ms", "consumers", "producers", "copiers", "partitions"];

/// The dials of what does the work of a world.
const WORKERS: [&str; 5] = ["producers", "consumers", "members", "copiers", "readers"];

/// The dials of the time with incidents.
const TIMES: [&str; 2] = ["faults-ms", "suffers-ms"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Kind;

    const EFFORT: Effort = Effort { time: Duration::from_secs(600), salts: 1, clock: || Duration::ZERO };

    fn setting(plan: &Plan, name: &str) -> u64 {
        plan.settings.iter().find(|setting| setting.name == name).expect("the setting exists").value
    }

    fn plan_of(name: &str, seed: u64) -> Plan {
        Plan::of_seed(Kind::named(name).expect("the kind exists"), seed).0
    }

    #[test]
    fn shrinker_finds_exactly_the_known_smallest_cause() {
        let plan = plan_of("clients", 6);
        let whats: Vec<String> = plan.incidents.iter().flatten().map(|it| it.what.clone()).collect();
        let effective: Vec<&String> = whats.iter().filter(|what| !what.is_empty()).collect();
        let causes = [effective[1].clone(), effective[effective.len() - 2].clone()];
        let has = |plan: &Plan, what: &String| plan.incidents.iter().flatten().any(|it| it.what == *what);
        // Two incidents together, with 7 records and two consumers.
        let fails = |plan: &Plan| {
            let is_cause = causes.iter().all(|what| has(plan, what))
                && setting(plan, "records") >= 7
                && setting(plan, "consumers") >= 2;
            is_cause.then(|| Broken::new("artificial", format!("record {} fails", setting(plan, "records"))))
        };
        let broken = fails(&plan).expect("the plan fails");
        let shrunk = shrink(plan, broken, EFFORT, fails);
        assert_eq!(shrunk.broken.what, "record 7 fails");
        let left: Vec<&String> = shrunk.plan.incidents.iter().flatten().map(|it| &it.what).collect();
        assert_eq!(left, causes.iter().collect::<Vec<_>>());
        for found in &shrunk.plan.settings {
            let least = match found.name {
                "records" => 7,
                "consumers" => 2,
                _ => found.simplest,
            };
            assert_eq!(found.value, least, "{}", found.name);
        }
    }

    #[test]
    fn shrinker_finds_the_one_incident_that_a_checker_of_a_world_notices() {
        let plan = plan_of("streams-group", 10);
        // A checker of the trace: no process may die.
        let fails = |plan: &Plan| {
            let trace = plan.run(true).trace;
            let line = trace.iter().find(|line| line.contains("is killed"))?;
            Some(Broken::new("artificial", format!("a process dies: {line}")))
        };
        let broken = fails(&plan).expect("a process dies");
        let shrunk = shrink(plan, broken, EFFORT, fails);
        let left: Vec<&Incident> = shrunk.plan.incidents.iter().flatten().collect();
        let deaths = left.iter().filter(|incident| incident.what.contains("is killed")).count();
        // The member that dies is there from the beginning, or joins.
        assert_eq!((deaths, left.len() as u64 + setting(&shrunk.plan, "members")), (1, 2), "{left:?}");
        let values = ["brokers", "partitions", "jitter-us"].map(|name| setting(&shrunk.plan, name));
        assert_eq!(values, [1, 1, 0]);
        assert!(fails(&shrunk.plan).is_some(), "the smaller plan still fails");
    }

    #[test]
    fn other_findings_of_the_same_checker_do_not_count() {
        let of = |checker, what: &str| kind_of(&Broken::new(checker, what));
        assert_eq!(
            of("wire", "client 1, link 7: sends nothing"),
            of("wire", "client 0, link 12: sends nothing")
        );
        assert_ne!(of("wire", "client 1 sends nothing"), of("wire", "client 1 sends too much"));
        assert_ne!(of("truth", "offset 1 of (0, 1) is aborted"), of("truth", "offset 2 of (0, 0) is lost"));
        assert_eq!(of("held", "[1, 2] of [(3, 4)] are"), of("held", "[] of [] are"));
        assert_ne!(of("wire", "client 1 sends nothing"), of("busy", "client 1 sends nothing"));
    }
}
