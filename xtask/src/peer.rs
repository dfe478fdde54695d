//! The bench's C program, which does the same work with any library.

use std::{path::Path, process::Command};

use crate::{
    Result, install,
    shell::{self, root},
};

const SOURCE: &str = "bench/peers/c/peer.c";

/// Compiles the program to `to`, linked to the library in the folder `library`, with further options for the compiler.
pub fn compile(to: &Path, library: &Path, options: &[&str]) -> Result<()> {
    install::debian("cc", "gcc")?;
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-DPEER_MAIN"]).args(options).arg("-o").arg(to).arg(root().join(SOURCE));
    compile.arg("-I").arg(root().join("crates/capi/include")).arg("-L").arg(library);
    shell::read(compile.args(["-l:librdkafka.so.1", "-lpthread"]))?;
    Ok(())
}
