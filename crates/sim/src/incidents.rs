//! Incidents: the faults and the other events of a run's first phase, with their times and what decides them.
//!
//! A run with a seed draws them as it goes. A run with a [plan](crate::plan) has a list of them, in which each has a generator of
//! its own: without one of them, the others stay what they were. The draws of an incident are skipped in the generator of the
//! run, so that a list with all incidents of a seed gives the trace of the seed.

use std::{collections::VecDeque, time::Duration};

use ottla_core::{machine::Instant, rng::Rng};

use crate::world::World;

/// An incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// The time at which it happens.
    pub at: Instant,
    /// The seed of what it draws.
    pub seed: u64,
    /// The number of draws for it, and for the time of the next one.
    pub draws: u32,
    /// What happened, for a reader; empty if nothing did.
    pub what: String,
}

impl Incident {
    /// Returns the generator that decides what happens.
    pub const fn rng(&self) -> Rng {
        Rng::from_seed(self.seed)
    }

    /// Moves the run's generator behind the draws of the incident.
    pub fn pass(&self, rng: &mut Rng) {
        (0..self.draws).for_each(|_| {
            rng.next_u64();
        });
    }

    /// Returns the kind of what happened: its words without numbers.
    pub fn kind(&self) -> String {
        let is_word = |word: &&str| !word.is_empty() && !word.contains(|c: char| c.is_ascii_digit());
        self.what.split(' ').filter(is_word).collect::<Vec<_>>().join(" ")
    }
}

/// The incidents of a run: drawn as it goes, or given.
#[derive(Debug, Default)]
pub struct Incidents {
    given: Option<VecDeque<Incident>>,
    noted: Vec<Incident>,
}

/// The most draws of an incident that are counted.
const MOST_DRAWS: u32 = 1_000_000;

impl Incidents {
    /// Returns incidents that are drawn, or these in the order of their times.
    pub fn new(given: Option<&[Incident]>) -> Self {
        let sorted = |given: &[Incident]| {
            let mut list = given.to_vec();
            list.sort_by_key(|incident| incident.at);
            list.into()
        };
        Self { given: given.map(sorted), noted: Vec::new() }
    }

    /// Returns true if they are given.
    pub const fn are_given(&self) -> bool {
        self.given.is_some()
    }

    /// Takes the next given incident whose time has come.
    pub fn next(&mut self, now: Instant) -> Option<Incident> {
        self.given.as_mut()?.pop_front_if(|incident| incident.at <= now)
    }

    /// Notes what a given incident did, which settings may have changed.
    pub fn note_given(&mut self, incident: Incident, what: &str) {
        self.noted.push(Incident { what: what.to_owned(), ..incident });
    }

    /// Notes an incident that was drawn: the run's generator before and after it.
    pub fn note(&mut self, at: Instant, mut before: Rng, after: &Rng, what: &str) {
        let (seed, mut draws) = (before.state(), 0);
        while before.state() != after.state() && draws < MOST_DRAWS {
            before.next_u64();
            draws += 1;
        }
        self.noted.push(Incident { at, seed, draws, what: what.to_owned() });
    }

    /// Returns the incidents that happened.
    pub fn happened(&self) -> &[Incident] {
        &self.noted
    }
}

/// A run with incidents.
pub trait Eventful: Sized {
    /// Returns the run's generator, world and incidents.
    fn parts(&mut self) -> (&mut Rng, &mut World, &mut Incidents);

    /// Lets the incidents happen whose time has come. `next` is the time of the next one that is drawn, and `interval` the mean
    /// time between two.
    fn incur(&mut self, next: &mut Instant, interval: Duration, mut event: impl FnMut(&mut Self)) {
        let (rng, world, incidents) = self.parts();
        let now = world.now;
        if incidents.are_given() {
            while let (rng, _, incidents) = self.parts()
                && let Some(incident) = incidents.next(now)
            {
                let of_run = std::mem::replace(rng, incident.rng());
                event(self);
                let (rng, ..) = self.parts();
                *rng = of_run;
                incident.pass(rng);
            }
            return;
        }
        if now < *next {
            return;
        }
        let (before, lines) = (rng.clone(), world.trace.lines().len());
        event(self);
        let (rng, world, incidents) = self.parts();
        *next = now + rng.jitter(interval, 90);
        if world.trace.keeps() {
            incidents.note(now, before, rng, world.trace.first_since(lines));
        }
    }
}
