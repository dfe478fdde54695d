//! librdkafka 2.16.0 inside of its vendor's Python wheel, which brings its own OpenSSL, and the C program linked to it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Result, folder,
    peer::{succeed, target},
};

/// The package, and its version that holds librdkafka 2.16.0.
const PACKAGE: &str = "confluent-kafka==2.16.1";

/// Returns the path of the C program.
pub fn program() -> PathBuf {
    target().join("peer-c-wheel")
}

/// Fetches the wheel if it is not there, and compiles the C program.
pub fn build() -> Result<()> {
    let home = target().join("wheel");
    if library(&home).is_none() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--target"]);
        succeed(pip.arg(&home).arg(PACKAGE))?;
    }
    let library = library(&home).ok_or_else(|| format!("{PACKAGE} holds no librdkafka"))?;
    let mut compile = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compile.args(["-O2", "-DPEER_MAIN", "-o"]).arg(program()).arg(folder().join("peers/c/peer.c"));
    compile.arg("-I").arg(folder().join("../crates/capi/include")).arg(&library);
    let folder = library.parent().unwrap_or(&home).display().to_string();
    compile.args([format!("-Wl,-rpath,{folder}"), "-lpthread".to_owned()]);
    succeed(&mut compile)
}

fn library(home: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(home.join("confluent_kafka.libs")).ok()?;
    files
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("librdkafka-")))
}
