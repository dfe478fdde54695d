//! Coverage: which machine of a client went from which state to which one at which event.
//!
//! ```text
//!   event ──► actor ──► states (ottla_core::states) ──► transition: machine, state, event, next state ──► Taken
//! ```
//!
//! Nothing is counted unless [`of`] runs the world, and nothing changes in a world that is counted. The event is what an actor was
//! given: a message, a timer, a wake-up, or bytes, which are named for the first response in them and its first error code.

use std::{
    cell::RefCell,
    fmt::{self, Debug, Write},
};

use ottla_core::states::See;
use ottla_sorted::{SortedMap, SortedSet};

use crate::client::Actor;

/// What a machine did: its kind, its state, the event, and its next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transition {
    /// The kind of machine.
    pub machine: &'static str,
    /// The state before; `-` for a new machine.
    pub before: &'static str,
    /// The event.
    pub event: &'static str,
    /// The state after.
    pub after: &'static str,
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, before, event, after } = self;
        write!(f, "{machine}: {before} -- {event} --> {after}")
    }
}

/// The transitions of a run.
pub type Taken = Vec<Transition>;

/// A machine of an actor of a client.
type Place = (usize, Actor, &'static str, u64);

#[derive(Default)]
struct Watch {
    states: SortedMap<Place, &'static str>,
    taken: SortedSet<Transition>,
    event: &'static str,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
    static NAMES: RefCell<SortedMap<String, &'static str>> = const { RefCell::new(SortedMap::new()) };
}

/// Runs worlds on this thread, and returns the transitions that they took, in order.
pub fn of<T>(run: impl FnOnce() -> T) -> (T, Taken) {
    WATCH.set(Some(Watch::default()));
    let result = run();
    let watch = WATCH.take().unwrap_or_default();
    (result, watch.taken.into_iter().collect())
}

/// Returns true if transitions are counted.
pub(crate) fn is_on() -> bool {
    WATCH.with_borrow(Option::is_some)
}

/// Names the event that the next actor is given.
pub(crate) fn note_event(name: &str) {
    if is_on() {
        let name = interned(name);
        WATCH.with_borrow_mut(|watch| watch.iter_mut().for_each(|watch| watch.event = name));
    }
}

/// Compares the states of an actor with those before the event.
pub(crate) fn note_states(client: usize, actor: Actor, states: impl FnOnce(&mut See<'_>)) {
    WATCH.with_borrow_mut(|watch| {
        let Some(watch) = watch else { return };
        states(&mut |machine, number, state| {
            let after = first_word(state);
            let before = watch.states.insert((client, actor, machine, number), after).unwrap_or("-");
            watch.taken.insert(Transition { machine, before, event: watch.event, after });
        });
    });
}

/// Returns the name of a response and its first error code, if the line of the [wire](crate::checkers::wire) is about one.
pub(crate) fn response_in(line: &str) -> Option<String> {
    let (_, response) = line.split_once(": to ")?;
    let name = response.split(' ').next()?;
    let mut words = response.split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_'));
    let code = words.find(|word| word.len() > 5 && word.contains('_'));
    Some(code.map_or_else(|| name.to_owned(), |code| format!("{name} {code}")))
}

/// Returns a text that lives as long as the program. There are few different ones.
fn interned(text: &str) -> &'static str {
    NAMES.with_borrow_mut(|names| {
        names.get(text).copied().unwrap_or_else(|| {
            let kept: &'static str = Box::leak(text.to_owned().into_boxed_str());
            names.insert(text.to_owned(), kept);
            kept
        })
    })
}

/// The first letters and digits of what is written. It refuses the rest, so that a state costs the same whatever it has.
struct FirstWord {
    bytes: [u8; 32],
    length: usize,
}

impl Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if !byte.is_ascii_alphanumeric() || self.length == self.bytes.len() {
                return Err(fmt::Error);
            }
            self.bytes[self.length] = byte;
            self.length += 1;
        }
        Ok(())
    }
}

fn first_word(state: &dyn Debug) -> &'static str {
    let mut word = FirstWord { bytes: [0; 32], length: 0 };
    let _ = write!(word, "{state:?}");
    interned(std::str::from_utf8(&word.bytes[..word.length]).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Kind, Plan};

    #[test]
    fn coverage_names_states_and_responses() {
        #[derive(Debug)]
        #[allow(dead_code)]
        enum State {
            Idle,
            Waiting { for_ms: u64 },
            Known(&'static str),
        }
        let states = [State::Idle, State::Waiting { for_ms: 3 }, State::Known("x")];
        assert_eq!(states.each_ref().map(|state| first_word(state)), ["Idle", "Waiting", "Known"]);
        let line = "0 receives on link 3: to Produce v9 #5: t [0]: NOT_LEADER_OR_FOLLOWER";
        assert_eq!(response_in(line).as_deref(), Some("Produce NOT_LEADER_OR_FOLLOWER"));
        assert_eq!(response_in("0 receives on link 3: to Fetch v17 #5").as_deref(), Some("Fetch"));
        assert_eq!(response_in("0 is throttled on link 1 for 2s"), None);
    }

    #[test]
    fn counted_world_has_the_trace_of_the_same_world() {
        for (kind, machine) in [("clients", "connection"), ("group", "rebalance"), ("share", "share member")]
        {
            let plan = Plan::drawn(Kind::named(kind).expect("the kind exists"), 3);
            let (ran, taken) = of(|| plan.run(false));
            assert_eq!(ran.hash, plan.run(false).hash, "{kind}");
            assert!(taken.iter().any(|it| it.machine == machine && it.before != it.after), "{kind}");
            assert!(taken.iter().any(|it| it.event == "a timer"), "{kind}");
        }
        assert!(!is_on());
    }
}
