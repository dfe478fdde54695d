//! `cargo xtask bench`: runs the harness of `bench/`, which is a separate workspace.

use std::process::ExitCode;

use crate::{
    Result,
    shell::{cargo, root},
};

pub fn main(args: &[String]) -> Result<ExitCode> {
    let manifest = root().join("bench/Cargo.toml");
    let mut bench = cargo();
    bench.args(["run", "--quiet", "--release", "--package", "harness", "--manifest-path"]).arg(manifest);
    bench.arg("--").args(args);
    let status = bench.status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
