//! A swarm that looks for rare transitions: after some hundred fresh seeds, which show what is rare, half of its worlds are fresh seeds,
//! the others are plans that took a rare transition, changed a little.
//!
//! ```text
//!   fresh seed ─┐                                  ┌─► counts: in how many worlds each transition was taken
//!               ├─► plan ──► world ──► transitions ─┤
//!   pool ──► change                                └─► a plan with a rare one joins the pool
//! ```
//!
//! Plans stay possible: incidents are those that a seed of the same kind drew, at other times and with other generators, and only
//! settings of the network change.

use ottla_core::{machine::Instant, rng::Rng};
use ottla_sorted::SortedMap;

use crate::{
    coverage::{Taken, Transition},
    incidents::Incident,
    plan::{KINDS, Kind, Plan},
};

/// A transition is rare if at most this number of worlds took it.
const RARE: u64 = 3;
/// The fresh worlds at the beginning: in the first ones every transition is rare.
const WARM_UP: u64 = 200;
/// The most plans of the pool; those with the commonest transitions go.
const MOST_PLANS: usize = 400;
/// The plans of which the best is changed.
const CANDIDATES: usize = 6;
/// The longest worlds take minutes each.
const EXCLUDED: [&str; 2] = ["sasl-outage", "sasl-week"];
/// The settings that a change takes from another seed.
const CHANGED: [&str; 5] = ["latency-us", "jitter-us", "window", "cut-percent", "slow-threads"];

/// Chooses plans, and learns from their worlds.
#[derive(Debug)]
pub struct Guide {
    rng: Rng,
    kinds: Vec<Kind>,
    /// False: every world is one of a fresh seed.
    is_guided: bool,
    /// The number of worlds from which nothing joins the pool.
    warm_up: u64,
    next_seed: u64,
    worlds: u64,
    counts: SortedMap<Transition, u64>,
    pool: Vec<Entry>,
}

/// A plan of the pool.
#[derive(Debug)]
struct Entry {
    plan: Plan,
    /// Its transitions that were rare when it joined.
    rare: Taken,
    tries: u32,
}

impl Guide {
    /// Begins with fresh seeds from `first` on. Without `is_guided` there are no others, for a comparison.
    pub fn new(first: u64, is_guided: bool) -> Self {
        let kinds = KINDS.into_iter().filter(|kind| !EXCLUDED.contains(&kind.name)).collect();
        Self {
            rng: Rng::from_seed(first ^ 0x6775_6964),
            kinds,
            is_guided,
            warm_up: WARM_UP,
            next_seed: first,
            worlds: 0,
            counts: SortedMap::new(),
            pool: Vec::new(),
        }
    }

    /// Returns the plan of the next world.
    pub fn next_plan(&mut self) -> Plan {
        if self.is_guided && !self.pool.is_empty() && self.rng.chance(1, 2) {
            return self.changed();
        }
        let seed = self.next_seed;
        self.next_seed = seed.wrapping_add(1);
        Plan::drawn(self.kinds[(seed % self.kinds.len() as u64) as usize], seed)
    }

    /// Notes the transitions of a world. Returns true if the plan should [join](Self::join) the pool.
    pub fn learn(&mut self, taken: &Taken) -> bool {
        self.worlds += 1;
        for transition in taken {
            *self.counts.entry(*transition).or_default() += 1;
        }
        let is_warm = self.is_guided && self.worlds > self.warm_up;
        is_warm && taken.iter().any(|transition| self.count(transition) <= RARE)
    }

    /// Adds a plan with all its incidents to the pool.
    pub fn join(&mut self, plan: Plan, taken: &Taken) {
        if plan.incidents.as_ref().is_none_or(Vec::is_empty) {
            return;
        }
        let rare = taken.iter().filter(|transition| self.count(transition) <= RARE).copied().collect();
        self.pool.push(Entry { plan, rare, tries: 0 });
        if self.pool.len() > MOST_PLANS {
            let scores = self.pool.iter().map(|entry| self.score(entry)).enumerate();
            if let Some((worst, _)) = scores.min_by(|(_, a), (_, b)| a.total_cmp(b)) {
                self.pool.swap_remove(worst);
            }
        }
    }

    /// Returns the number of worlds that took a transition.
    pub fn count(&self, transition: &Transition) -> u64 {
        self.counts.get(transition).copied().unwrap_or(0)
    }

    /// Returns the transitions with the numbers of worlds that took them.
    pub const fn counts(&self) -> &SortedMap<Transition, u64> {
        &self.counts
    }

    /// Returns the number of worlds.
    pub const fn worlds(&self) -> u64 {
        self.worlds
    }

    /// How promising a plan is: its transitions are rare, and it was seldom tried.
    fn score(&self, entry: &Entry) -> f64 {
        let rarity: f64 =
            entry.rare.iter().map(|transition| 1.0 / self.count(transition).max(1) as f64).sum();
        rarity / f64::from(1 + entry.tries)
    }

    fn index(&mut self, length: usize) -> usize {
        self.rng.below(length.max(1) as u64) as usize
    }

    /// Returns a plan of the pool, changed once to three times.
    fn changed(&mut self) -> Plan {
        let candidates: Vec<usize> = (0..CANDIDATES).map(|_| self.index(self.pool.len())).collect();
        let score = |index: &usize| self.score(&self.pool[*index]);
        let best = candidates.into_iter().max_by(|a, b| score(a).total_cmp(&score(b))).unwrap_or(0);
        self.pool[best].tries += 1;
        let mut plan = self.pool[best].plan.clone();
        for _ in 0..=self.rng.below(3) {
            self.change(&mut plan);
        }
        plan
    }

    fn change(&mut self, plan: &mut Plan) {
        let other = self.index(self.pool.len());
        let kind = self.rng.below(8);
        let count = plan.incidents.as_ref().map_or(0, Vec::len);
        let (one, second) = (self.index(count), self.index(count));
        let seed = self.rng.next_u64();
        let list = plan.incidents.get_or_insert_default();
        match kind {
            0 => plan.salt = 1 + seed % 1_000_000,
            1 => self.change_setting(plan, seed),
            2 if count > 1 => drop(list.remove(one)),
            3 if count > 0 => list[one].seed = seed,
            // Two incidents at nearly the same time.
            4 if count > 1 => {
                list[one].at = Instant::from_nanos(list[second].at.as_nanos() + seed % 50_000_000)
            }
            5 if count > 0 => {
                list[one].at = Instant::from_nanos(list[one].at.as_nanos() / 2 + seed % 2_000_000_000)
            }
            6 if count > 0 => {
                let again = Incident { at: list[second].at, seed, ..list[one].clone() };
                list.push(again);
            }
            _ if self.pool[other].plan.kind.name == plan.kind.name => {
                let given = self.pool[other].plan.incidents.as_deref().unwrap_or_default();
                let middle = list.get(one).map_or(Instant::ZERO, |incident| incident.at);
                list.retain(|incident| incident.at <= middle);
                list.extend(given.iter().filter(|incident| incident.at > middle).cloned());
            }
            _ => plan.salt = 1 + seed % 1_000_000,
        }
        plan.incidents.get_or_insert_default().sort_by_key(|incident| incident.at);
    }

    /// Takes a setting of the network from another seed.
    fn change_setting(&mut self, plan: &mut Plan, seed: u64) {
        let name = CHANGED[self.index(CHANGED.len())];
        let others = Plan::drawn(plan.kind, seed).settings;
        let value = others.iter().find(|setting| setting.name == name).map(|setting| setting.value);
        if let (Some(setting), Some(value)) = (plan.settings.iter_mut().find(|it| it.name == name), value) {
            setting.value = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage;

    /// A guide that begins at once.
    fn guide(is_guided: bool) -> Guide {
        Guide { warm_up: 0, ..Guide::new(1, is_guided) }
    }

    fn run(guide: &mut Guide) -> Plan {
        let plan = guide.next_plan();
        let (_, taken) = coverage::of(|| plan.run(false));
        if guide.learn(&taken) {
            guide.join(plan.clone().with_incidents().0, &taken);
        }
        plan
    }

    #[test]
    fn guided_worlds_are_fresh_seeds_and_changed_plans_that_break_nothing() {
        let mut guide = guide(true);
        let plans: Vec<Plan> = (0..12).map(|_| run(&mut guide)).collect();
        let changed: Vec<_> = plans.iter().filter(|plan| plan.incidents.is_some()).collect();
        assert!(!changed.is_empty() && changed.len() < plans.len());
        for plan in changed {
            let again = Plan::parse(&plan.one_line()).expect("a changed plan can be read");
            assert_eq!(again.run(false).broken, None, "cargo xtask sim --plan '{}'", plan.one_line());
        }
        assert!(guide.counts().len() > 100 && guide.worlds() == 12);
    }

    #[test]
    fn plan_with_a_common_transition_makes_room_for_rare_ones() {
        let mut guide = guide(true);
        let transition = |event| Transition { machine: "m", before: "a", event, after: "b" };
        let plan = Plan::parse("world clients; seed 8; incident 1.500000000 0x1 4").expect("it can be read");
        for _ in 0..MOST_PLANS {
            guide.learn(&vec![transition("common")]);
            guide.join(plan.clone(), &vec![transition("common")]);
        }
        assert!(guide.learn(&vec![transition("rare")]) && !guide.learn(&vec![transition("common")]));
        guide.join(plan, &vec![transition("rare")]);
        assert_eq!(guide.pool.len(), MOST_PLANS);
        assert!(guide.pool.iter().any(|entry| entry.rare == [transition("rare")]));
        assert!(!Guide::new(1, false).learn(&vec![transition("rare")]), "there is no pool");
    }

    #[test]
    fn nothing_is_rare_in_the_first_worlds() {
        let mut guide = Guide::new(1, true);
        let transition = vec![Transition { machine: "m", before: "a", event: "e", after: "b" }];
        (0..WARM_UP).for_each(|_| assert!(!guide.learn(&Taken::new())));
        assert!(guide.learn(&transition));
    }
}
