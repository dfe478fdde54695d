//! Runs seeds on all processors, and names those that fail with the command that repeats them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use ottla_sim::Broken;

/// Runs these seeds, and returns their results. `world` is the flag of `cargo xtask sim` for them, with a space behind it.
pub fn check<T: Send>(
    world: &str,
    seeds: impl IntoIterator<Item = u64>,
    run: impl Fn(u64) -> Result<T, Broken> + Sync,
) -> Vec<T> {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let (mut passed, mut failed) = (Vec::new(), Vec::new());
    for (seed, result) in spread(&seeds, run) {
        match result {
            Ok(result) => passed.push(result),
            Err(failure) => failed.push(format!("{failure}\n    cargo xtask sim {world}{seed}")),
        }
    }
    assert!(failed.is_empty(), "{} of {} seeds failed:\n{}", failed.len(), seeds.len(), failed.join("\n"));
    passed
}

/// Like [`check`], with this number of seeds that did not run before. `OTTLA_SEED` is the first one instead, if it is set.
pub fn check_fresh<T: Send>(
    world: &str,
    count: u64,
    run: impl Fn(u64) -> Result<T, Broken> + Sync,
) -> Vec<T> {
    let first = match std::env::var("OTTLA_SEED") {
        Ok(text) => text.parse().expect("OTTLA_SEED is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is right").as_nanos() as u64,
    };
    println!("{count} from {first} on: cargo xtask sim {world}{first}");
    check(world, (0..count).map(|number| first.wrapping_add(number)), run)
}

/// Runs the seeds on all processors. Returns what each gave, or how it failed, in their order.
fn spread<T: Send>(
    seeds: &[u64],
    run: impl Fn(u64) -> Result<T, Broken> + Sync,
) -> Vec<(u64, Result<T, String>)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(seed) = seeds.get(place) else { return done };
            let result = catch_unwind(AssertUnwindSafe(|| run(*seed)));
            let result = match result {
                Ok(result) => result.map_err(|broken| broken.to_string()),
                Err(_) => Err("the simulator panicked, see above".to_owned()),
            };
            done.push((place, (*seed, result)));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(seeds.len());
    let mut done = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("panics are caught")).collect::<Vec<_>>()
    });
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, done)| done).collect()
}
