//! The fuzz targets under libFuzzer: `cargo xtask fuzz --coverage TARGET` builds and runs this. `OTTLA_FUZZ_TARGET` is the target.
//!
//! `targets` has their functions.

#![no_main]

// The tests read the corpus, libFuzzer does so itself.
#[allow(dead_code)]
mod targets;

use std::sync::LazyLock;

use targets::{TARGETS, Target};

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("OTTLA_FUZZ_TARGET").expect("OTTLA_FUZZ_TARGET is the name of a target");
    TARGETS.into_iter().find(|target| target.name == name).expect("the target exists")
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| CHOSEN.check(input));
