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
    time::{Duration, Instant},
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
}

impl Effort {
    /// Ends below two minutes.
    pub const USUAL: Self = Self { time: Duration::from_secs(100), salts: 4 };
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
    let text = broken.what.split(['[', '{', '(', '"']).next().unwrap_or_default();
    let is_word = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '\'');
    let words = text.split([' ', ':', ',', ';', '.']).filter(is_word).take(8);
    format!("{}: {}", broken.checker, words.collect::<Vec<_>>().join(" "))
}

/// Shrinks a plan whose world breaks a guarantee: `break_plan` returns which one. Returns `None` if the plan keeps all.
pub fn shrink(
    plan: Plan,
    effort: Effort,
    break_plan: impl Fn(&Plan) -> Option<Broken> + Sync,
) -> Option<Shrunk> {
    let broken = break_plan(&plan)?;
    let start = Instant::now();
    let mut search = Search {
        break_plan: &break_plan,
        kind: kind_of(&broken),
        salts: effort.salts,
        deadline: start + effort.time,
        plan,
        broken,
        worlds: 1,
    };
    search.try_everything_at_once();
    loop {
        let before = search.size();
        search.drop_incidents();
        search.simplify_settings();
        if search.size() == before || search.is_late() {
            break;
        }
    }
    let Search { plan, broken, worlds, .. } = search;
    Some(Shrunk { plan, broken, worlds, took: start.elapsed() })
}

/// A search in progress.
struct Search<'a, F> {
    break_plan: &'a F,
    /// The kind of the finding.
    kind: String,
    salts: u64,
    deadline: Instant,
    /// The smallest plan so far, and what it breaks.
    plan: Plan,
    broken: Broken,
    worlds: u64,
}

impl<F: Fn(&Plan) -> Option<Broken> + Sync> Search<'_, F> {
    fn is_late(&self) -> bool {
        Instant::now() >= self.deadline
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
        let many = 3 * self.salts;
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
        self.attempt(&smaller, self.salts)
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
            self.approach(index);
        }
    }

    /// Sets these settings to the simplest values if the world breaks the same with them.
    fn simplify(&mut self, range: std::ops::Range<usize>) -> bool {
        let mut smaller = self.plan.clone();
        smaller.settings[range].iter_mut().for_each(|setting| setting.value = setting.simplest);
        if smaller.settings == self.plan.settings {
            return false;
        }
        self.attempt(&smaller, self.salts)
    }

    /// Halves the distance of a setting from its simplest value as long as the world breaks the same.
    fn approach(&mut self, index: usize) {
        let mut refused = self.plan.settings[index].simplest;
        for _ in 0..10 {
            let value = self.plan.settings[index].value;
            let middle = refused.midpoint(value);
            if middle == value || middle == refused {
                return;
            }
            let mut smaller = self.plan.clone();
            smaller.settings[index].value = middle;
            if !self.attempt(&smaller, self.salts) {
                refused = middle;
            }
        }
    }
}

/// The dials of what does the work of a world.
const WORKERS: [&str; 5] = ["producers", "consumers", "members", "copiers", "readers"];

/// The dials of the time with incidents.
const TIMES: [&str; 2] = ["faults-ms", "suffers-ms"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Kind;

    const EFFORT: Effort = Effort { time: Duration::from_secs(600), salts: 1 };

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
        let shrunk = shrink(plan.clone(), EFFORT, fails).expect("the plan fails");
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
        let plan = plan_of("clients", 6);
        // A checker of the trace: no broker may be killed.
        let fails = |plan: &Plan| {
            let ran = plan.run(true);
            let is_killed = |line: &&String| line.contains("is killed (");
            let line = ran.trace.iter().find(is_killed)?;
            Some(Broken::new("artificial", format!("a broker is killed: {line}")))
        };
        let shrunk = shrink(plan, EFFORT, fails).expect("a broker is killed");
        let left: Vec<&Incident> = shrunk.plan.incidents.iter().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left[0].what.contains("is killed ("), "{left:?}");
        assert_eq!(setting(&shrunk.plan, "records"), 1);
        assert!(fails(&shrunk.plan).is_some(), "the smaller plan still fails");
    }

    #[test]
    fn shrinker_leaves_a_plan_that_keeps_all_guarantees() {
        assert!(shrink(plan_of("streams-group", 5), EFFORT, |_| None).is_none());
    }

    #[test]
    fn other_findings_of_the_same_checker_do_not_count() {
        let of = |checker, what: &str| kind_of(&Broken::new(checker, what));
        assert_eq!(
            of("wire", "client 1, link 7: sends nothing"),
            of("wire", "client 0, link 12: sends nothing")
        );
        assert_ne!(of("wire", "client 1 sends nothing"), of("wire", "client 1 sends too much"));
        assert_ne!(of("wire", "client 1 sends nothing"), of("busy", "client 1 sends nothing"));
    }
}
