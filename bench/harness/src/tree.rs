//! A source tree of Ottla, and the measured programs that are built from it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Result, folder, peer, server};

/// A source tree and the folders that it is built in.
pub struct Tree {
    root: PathBuf,
    /// Target folder of the workspace `bench/`.
    bench: PathBuf,
    /// Target folder of the main workspace: the two would rebuild each other's crates in a shared one.
    library: PathBuf,
}

impl Tree {
    /// The tree that this harness belongs to.
    pub fn here() -> Self {
        Self { root: folder().join(".."), bench: peer::target(), library: server::own_target() }
    }

    /// Checks out another commit. The tree and its builds stay in the target folder, so that a second run is quick.
    pub fn of_commit(commit: &str) -> Result<Self> {
        let home = peer::target().join("compare");
        let root = home.join(commit);
        if !root.exists() {
            let mut checkout = Command::new("git");
            checkout
                .args(["clone", "--quiet", "--no-checkout", "--shared"])
                .arg(folder().join(".."))
                .arg(&root);
            peer::succeed(&mut checkout)?;
            peer::succeed(Command::new("git").args(["checkout", "--quiet", commit]).current_dir(&root))?;
        }
        Ok(Self { root, bench: home.join("target-bench"), library: home.join("target-library") })
    }

    /// Builds the Rust program and the C program.
    pub fn build(&self) -> Result<()> {
        self.cargo("bench", &self.bench, "peer-ottla")?;
        self.build_c_program()
    }

    /// Builds the C library as it is released, and the C program linked to it: statically and without unused sections, as
    /// Cargo links the same program to librdkafka.
    pub fn build_c_program(&self) -> Result<()> {
        self.cargo("", &self.library, "ottla-capi")?;
        let mut compile = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compile.args(["-O2", "-DPEER_MAIN", "-Wl,--gc-sections", "-o"]).arg(self.c_program());
        compile
            .arg(self.root.join("bench/peers/c/peer.c"))
            .arg("-I")
            .arg(self.root.join("crates/capi/include"));
        compile.arg(self.library.join("release/librdkafka.a"));
        compile.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]);
        peer::succeed(&mut compile)
    }

    pub fn rust_program(&self) -> PathBuf {
        self.bench.join("release/peer-ottla")
    }

    pub fn c_program(&self) -> PathBuf {
        self.bench.join("peer-c-ottla")
    }

    fn cargo(&self, workspace: &str, target: &Path, package: &str) -> Result<()> {
        let mut build = peer::cargo_command();
        build.args(["build", "--quiet", "--release", "--package", package]);
        peer::succeed(build.current_dir(self.root.join(workspace)).env("CARGO_TARGET_DIR", target))
    }
}
