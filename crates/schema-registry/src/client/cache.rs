//! Bounded memory of answers, with one request in flight per key.

use std::{
    collections::HashMap,
    fmt,
    hash::Hash,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use crate::{Error, Result};

/// Remembers values by key. Threads that ask for the same key at the same time share one request.
pub struct Cache<K, V> {
    state: Mutex<State<K, V>>,
    capacity: usize,
}

struct State<K, V> {
    slots: HashMap<K, Slot<V>>,
    uses: u64,
}

enum Slot<V> {
    Ready { value: V, until: Option<Instant>, used: u64 },
    Loading(Arc<Flight<V>>),
}

/// A request in flight.
struct Flight<V> {
    result: Mutex<Option<Result<V>>>,
    done: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<K: Clone + Eq + Hash, V: Clone> Cache<K, V> {
    /// Creates a cache of this many values.
    pub fn new(capacity: usize) -> Self {
        Self { state: Mutex::new(State { slots: HashMap::new(), uses: 0 }), capacity: capacity.max(1) }
    }

    /// Returns the value, or loads it. Errors are shared by those who wait, and not remembered.
    ///
    /// # Errors
    ///
    /// Those of `load`.
    pub fn get(&self, key: &K, until: Option<Instant>, load: impl FnOnce() -> Result<V>) -> Result<V> {
        let flight = {
            let mut state = lock(&self.state);
            state.uses += 1;
            let now = state.uses;
            match state.slots.get_mut(key) {
                Some(Slot::Ready { value, until, used }) if until.is_none_or(|it| Instant::now() < it) => {
                    *used = now;
                    return Ok(value.clone());
                }
                Some(Slot::Loading(flight)) => {
                    let flight = Arc::clone(flight);
                    drop(state);
                    return flight.wait();
                }
                _ => {}
            }
            let flight = Arc::new(Flight { result: Mutex::new(None), done: Condvar::new() });
            state.slots.insert(key.clone(), Slot::Loading(Arc::clone(&flight)));
            flight
        };
        let mut landing = Landing { cache: self, key, until, flight: &flight, result: None };
        let result = load();
        landing.result = Some(result.clone());
        result
    }

    /// Returns a value that is there.
    #[cfg(test)]
    fn peek(&self, key: &K) -> Option<V> {
        match lock(&self.state).slots.get(key) {
            Some(Slot::Ready { value, until, .. }) if until.is_none_or(|it| Instant::now() < it) => {
                Some(value.clone())
            }
            _ => None,
        }
    }

    /// Forgets the values whose keys match.
    pub fn forget(&self, matches: impl Fn(&K) -> bool) {
        lock(&self.state).slots.retain(|key, slot| matches!(slot, Slot::Loading(_)) || !matches(key));
    }

    /// The number of values.
    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.state).slots.len()
    }

    fn settle(&self, key: &K, until: Option<Instant>, result: &Result<V>) {
        let mut state = lock(&self.state);
        let Ok(value) = result else {
            state.slots.remove(key);
            return;
        };
        let used = state.uses;
        state.slots.insert(key.clone(), Slot::Ready { value: value.clone(), until, used });
        while state.slots.len() > self.capacity {
            let ready = state.slots.iter().filter_map(|(key, slot)| match slot {
                Slot::Ready { used, .. } => Some((*used, key)),
                Slot::Loading(_) => None,
            });
            let Some(oldest) = ready.min_by_key(|(used, _)| *used).map(|(_, key)| key.clone()) else { break };
            state.slots.remove(&oldest);
        }
    }
}

impl<K, V> fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cache({})", lock(&self.state).slots.len())
    }
}

impl<V: Clone> Flight<V> {
    fn wait(&self) -> Result<V> {
        let mut result = lock(&self.result);
        loop {
            match &*result {
                Some(result) => return result.clone(),
                None => result = self.done.wait(result).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Ends a flight, also if `load` panics.
struct Landing<'a, K: Clone + Eq + Hash, V: Clone> {
    cache: &'a Cache<K, V>,
    key: &'a K,
    until: Option<Instant>,
    flight: &'a Flight<V>,
    result: Option<Result<V>>,
}

impl<K: Clone + Eq + Hash, V: Clone> Drop for Landing<'_, K, V> {
    fn drop(&mut self) {
        let result = self
            .result
            .take()
            .unwrap_or_else(|| Err(Error::config("the thread that asked the registry panicked")));
        self.cache.settle(self.key, self.until, &result);
        *lock(&self.flight.result) = Some(result);
        self.flight.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    #[test]
    fn threads_share_one_request() {
        let cache = Cache::new(10);
        let (loads, start) = (AtomicUsize::new(0), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let load = || {
                        loads.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        Ok(42)
                    };
                    assert_eq!(cache.get(&"a", None, load).unwrap(), 42);
                });
            }
        });
        assert_eq!(loads.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn failure_is_not_remembered() {
        let cache = Cache::new(10);
        assert!(cache.get(&1, None, || Err::<i32, _>(Error::config("no"))).is_err());
        assert_eq!(cache.get(&1, None, || Ok(2)).unwrap(), 2);
        assert_eq!(cache.get(&1, None, || panic!("not asked")).unwrap(), 2);
    }

    #[test]
    fn panic_of_one_thread_leaves_the_key_usable() {
        let cache = Cache::new(10);
        let panics = || cache.get(&1, None, || panic!("expected"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(cache.get(&1, None, || Ok(2)).unwrap(), 2);
    }

    #[test]
    fn least_recently_used_value_is_forgotten() {
        let cache = Cache::new(2);
        for key in [1, 2, 1, 3] {
            cache.get(&key, None, || Ok(key)).unwrap();
        }
        assert_eq!(cache.len(), 2);
        assert_eq!((cache.peek(&1), cache.peek(&2), cache.peek(&3)), (Some(1), None, Some(3)));
    }

    #[test]
    fn value_beyond_its_time_is_loaded_again() {
        let cache = Cache::new(2);
        cache.get(&1, Some(Instant::now()), || Ok(1)).unwrap();
        assert_eq!(cache.get(&1, None, || Ok(2)).unwrap(), 2);
        cache.forget(|key| *key == 1);
        assert_eq!(cache.peek(&1), None);
    }
}
