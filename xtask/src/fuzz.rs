//! `cargo xtask fuzz [FRAMES]`: runs the fuzz tests of the decoders with this number of frames.

use std::{process::ExitCode, time::Duration};

use crate::{
    Result,
    shell::{self, cargo},
};

/// Feeds damaged and invented frames to every decoder.
///
/// Each must give a value or a typed error: no panic, no endless loop, and no allocation beyond 16 times the bytes received.
/// `cargo test` runs the same tests with fewer frames.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The number of frames, such as 100_000_000.
    #[arg(default_value = "10_000_000", value_parser = number)]
    frames: u64,
}

/// Parses a number in which `,` and `_` may separate groups of digits.
pub fn number(text: &str) -> std::result::Result<u64, String> {
    text.replace([',', '_'], "").parse().map_err(|_| format!("`{text}` is not a number"))
}

pub fn main(options: &Options) -> Result<ExitCode> {
    let frames = options.frames;
    let mut test = cargo();
    test.args(["test", "--release", "--package", "ottla-protocol", "--", "fuzz", "--nocapture"]);
    test.env("OTTLA_FUZZ_FRAMES", frames.to_string());
    let done = shell::run(&mut test, Duration::from_secs(24 * 3600), true)?;
    Ok(if done.success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
