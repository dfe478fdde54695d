//! A plan: what happens in a world, as data. A seed makes one, and it can be edited, written to a file and read.
//!
//! ```text
//!   world transaction           the kind of world
//!   seed 24                     decides everything that is not below
//!   salt 3                      another order of events in the same world; 0 is the seed's own
//!   brokers 1                   a setting, one for each of the kind's dials
//!   incident 1.250000000 0x9e37 4    # at 1.25 s: its seed, and the draws that it takes in the run of the seed
//! ```
//!
//! Lines may also be separated by semicolons, as in a command. A plan with the line `incidents drawn` draws them like the seed.

use std::{fmt, fmt::Write, time::Duration};

use ottla_core::machine::Instant;

use crate::{
    Broken, Knobs, client_dials,
    dials::{self, Dial, Setting},
    groups,
    incidents::{Eventful, Incident, Incidents},
    shares, streams, swarm, transactions,
    world::World,
};

/// A kind of world.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name: the flag that replays a seed of it, without its dashes; `clients` is the one without a flag.
    pub name: &'static str,
    worlds: Worlds,
}

#[derive(Clone, Copy)]
enum Worlds {
    Clients(fn(u64) -> Knobs),
    Others(fn(u64) -> Vec<Setting>, fn(&Plan, bool) -> Ran),
}

impl Kind {
    const fn clients(name: &'static str, knobs: fn(u64) -> Knobs) -> Self {
        Self { name, worlds: Worlds::Clients(knobs) }
    }

    const fn others(
        name: &'static str,
        settings: fn(u64) -> Vec<Setting>,
        run: fn(&Plan, bool) -> Ran,
    ) -> Self {
        Self { name, worlds: Worlds::Others(settings, run) }
    }

    /// Returns the kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        KINDS.into_iter().find(|kind| kind.name == name)
    }

    /// Returns the knobs of a world of producers and consumers.
    pub fn knobs(&self, seed: u64) -> Option<Knobs> {
        match self.worlds {
            Worlds::Clients(knobs) => Some(knobs(seed)),
            Worlds::Others(..) => None,
        }
    }

    fn settings(&self, seed: u64) -> Vec<Setting> {
        match self.worlds {
            Worlds::Clients(knobs) => dials::read(client_dials::DIALS, &knobs(seed)),
            Worlds::Others(settings, _) => settings(seed),
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The kinds of worlds that have plans.
pub const KINDS: [Kind; 15] = [
    Kind::clients("clients", Knobs::from_seed),
    Kind::clients("sasl", Knobs::with_sasl),
    Kind::clients("sasl-outage", Knobs::with_outage),
    Kind::clients("sasl-week", Knobs::with_sasl_for_a_week),
    Kind::clients("telemetry", Knobs::with_telemetry),
    Kind::clients("differing-topics", Knobs::with_differing_topics),
    Kind::clients("ceilings", Knobs::with_ceilings),
    Kind::clients("producers-only", Knobs::producers_only),
    Kind::clients("untouched-logs", Knobs::untouched_logs),
    Kind::clients("without-ids", Knobs::without_ids),
    Kind::clients("hardships", Knobs::with_hardships),
    Kind::others("group", groups::settings_of, groups::run_plan),
    Kind::others("transaction", transactions::settings_of, transactions::run_plan),
    Kind::others("share", shares::settings_of, shares::run_plan),
    Kind::others("streams-group", streams::settings_of, streams::run_plan),
];

/// What happens in a world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kind of world.
    pub kind: Kind,
    /// The seed of everything that the plan does not say.
    pub seed: u64,
    /// Another order of events in the same world; 0 is the seed's own.
    pub salt: u64,
    /// The settings of the kind's dials.
    pub settings: Vec<Setting>,
    /// The incidents; `None` lets the run draw them.
    pub incidents: Option<Vec<Incident>>,
}

/// The result of a run of a plan.
#[derive(Debug)]
pub struct Ran {
    /// The first broken guarantee.
    pub broken: Option<Broken>,
    /// The trace, if it was kept.
    pub trace: Vec<String>,
    /// The incidents that happened, with a kept trace.
    pub incidents: Vec<Incident>,
    /// The virtual time that passed.
    pub virtual_time: Duration,
    /// The hash of the trace.
    pub hash: u64,
}

impl Ran {
    /// Returns the result of a run that has ended.
    pub(crate) fn new(world: &World, incidents: &Incidents, broken: Option<Broken>) -> Self {
        Self {
            broken,
            trace: world.trace.lines().to_vec(),
            incidents: incidents.happened().to_vec(),
            virtual_time: world.now - Instant::from_nanos(1_000_000_000),
            hash: world.trace.hash(),
        }
    }
}

impl Plan {
    /// Returns the plan of a seed, which draws its incidents.
    pub fn drawn(kind: Kind, seed: u64) -> Self {
        Self { kind, seed, salt: 0, settings: kind.settings(seed), incidents: None }
    }

    /// Runs the world of a seed, and returns its plan with all incidents, and the result with the trace.
    pub fn of_seed(kind: Kind, seed: u64) -> (Self, Ran) {
        Self::drawn(kind, seed).with_incidents()
    }

    /// Runs the world of the plan, and returns the plan with the incidents that happened, and the result with the trace.
    pub fn with_incidents(self) -> (Self, Ran) {
        let ran = self.run(true);
        (Self { incidents: Some(ran.incidents.clone()), ..self }, ran)
    }

    /// Runs the world of the plan. `keeps` keeps the trace.
    pub fn run(&self, keeps: bool) -> Ran {
        match self.kind.worlds {
            Worlds::Clients(knobs) => {
                let mut knobs = self.set(client_dials::DIALS, knobs(self.seed));
                knobs.seed = self.salted_seed();
                swarm::run_plan(&knobs, self.incidents(), keeps)
            }
            Worlds::Others(_, run) => run(self, keeps),
        }
    }

    /// Returns the seed of the order of events.
    pub(crate) const fn salted_seed(&self) -> u64 {
        self.seed ^ self.salt.wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// Returns these knobs with the plan's settings.
    pub(crate) fn set<K>(&self, dials: &[Dial<K>], mut knobs: K) -> K {
        dials::apply(dials, &mut knobs, &self.settings);
        knobs
    }

    /// Runs a world with the plan's incidents.
    pub(crate) fn run_in<R: Eventful>(
        &self,
        mut run: R,
        go: impl FnOnce(&mut R) -> Result<(), Broken>,
    ) -> Ran {
        *run.parts().2 = self.incidents();
        let broken = go(&mut run).err();
        let (_, world, incidents) = run.parts();
        Ran::new(world, incidents, broken)
    }

    pub(crate) fn incidents(&self) -> Incidents {
        Incidents::new(self.incidents.as_deref())
    }

    /// Returns the plan in one line, for a command.
    pub fn one_line(&self) -> String {
        let lines = self.to_string();
        let parts = lines.lines().map(|line| line.split_once('#').map_or(line, |(line, _)| line).trim());
        parts.collect::<Vec<_>>().join("; ")
    }

    /// Reads a plan.
    ///
    /// # Errors
    ///
    /// Returns the line that can't be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines =
            text.lines().flat_map(|line| line.split_once('#').map_or(line, |(line, _)| line).split(';'));
        let lines = lines.map(str::trim).filter(|line| !line.is_empty());
        let mut words = lines.map(|line| (line, line.split_whitespace().collect::<Vec<_>>()));
        let refused = |line: &str| format!("the plan's line {line:?} can't be read");
        let kind = match words.next() {
            Some((line, words)) => match words[..] {
                ["world", name] => Kind::named(name).ok_or_else(|| refused(line))?,
                _ => return Err(refused(line)),
            },
            None => return Err("the plan is empty".to_owned()),
        };
        let seed = match words.next() {
            Some((line, words)) => match words[..] {
                ["seed", seed] => number(seed).ok_or_else(|| refused(line))?,
                _ => return Err(refused(line)),
            },
            None => return Err("the plan has no seed".to_owned()),
        };
        let mut plan = Self { incidents: Some(Vec::new()), ..Self::drawn(kind, seed) };
        for (line, words) in words {
            plan.read(&words).ok_or_else(|| refused(line))?;
        }
        Ok(plan)
    }

    fn read(&mut self, words: &[&str]) -> Option<()> {
        match *words {
            ["incidents", "drawn"] => self.incidents = None,
            ["incident", at, seed, draws] => {
                let at = Instant::from_nanos(nanos(at)?);
                let (seed, draws) = (number(seed)?, draws.parse().ok()?);
                self.incidents.as_mut()?.push(Incident { at, seed, draws, what: String::new() });
            }
            ["salt", value] => self.salt = number(value)?,
            [name, value] => {
                let setting = self.settings.iter_mut().find(|setting| setting.name == name)?;
                setting.value = number(value)?;
            }
            _ => return None,
        }
        Some(())
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "world {}\nseed {}\nsalt {}", self.kind.name, self.seed, self.salt)?;
        for Setting { name, value, .. } in &self.settings {
            writeln!(f, "{name} {value}")?;
        }
        let Some(incidents) = &self.incidents else { return f.write_str("incidents drawn") };
        for (index, Incident { at, seed, draws, what }) in incidents.iter().enumerate() {
            let (seconds, nanos) = (at.as_nanos() / 1_000_000_000, at.as_nanos() % 1_000_000_000);
            if index > 0 {
                f.write_char('\n')?;
            }
            write!(f, "incident {seconds}.{nanos:09} {seed:#x} {draws}")?;
            if !what.is_empty() {
                write!(f, "    # {what}")?;
            }
        }
        Ok(())
    }
}

/// Parses a decimal or 0x-hexadecimal number.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Parses seconds with nine decimals.
fn nanos(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.')?;
    if decimals.len() != 9 {
        return None;
    }
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(decimals.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_of_a_seed_has_the_trace_of_the_seed_in_every_kind_of_world() {
        for (name, seed) in [
            ("clients", 8),
            ("sasl", 4),
            ("group", 3),
            ("transaction", 7),
            ("share", 4),
            ("streams-group", 5),
        ] {
            let kind = Kind::named(name).expect("the kind exists");
            let (plan, ran) = Plan::of_seed(kind, seed);
            assert!(!ran.incidents.is_empty(), "{name} {seed} has incidents");
            let read = Plan::parse(&plan.to_string()).expect("the plan can be read");
            assert_eq!(read.run(false).hash, ran.hash, "{name} {seed}, from a file");
            let line = Plan::parse(&plan.one_line()).expect("the line can be read");
            assert_eq!(line.to_string(), read.to_string(), "{name} {seed}, from a command");
        }
    }

    #[test]
    fn unreadable_plans_are_refused_with_their_line() {
        for (text, refused) in [
            ("", "empty"),
            ("world nowhere", "world nowhere"),
            ("world group", "no seed"),
            ("world group; seed x", "seed x"),
            ("world group; seed 1; wheels 4", "wheels 4"),
            ("world group; seed 1; incident 1.5 0x1 1", "incident 1.5 0x1 1"),
        ] {
            let error = Plan::parse(text).expect_err(text);
            assert!(error.contains(refused), "{text:?}: {error}");
        }
    }
}
