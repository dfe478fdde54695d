//! The archive of loaded classes: a JVM that maps it reads a third of Kafka's classes neither from jars nor through the
//! verifier, which is half the time of a tool and a third of a broker's start.
//!
//! It is made once, by a broker that starts and stops, and lies beside the folder of the jars in the cache. The JVM ignores
//! it if another JVM or other jars made it; its name contains the time of the program `java`, so that an update makes
//! another one.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::UNIX_EPOCH,
};

use super::{Cluster, Options, fetch, libraries};
use crate::Result;

/// Returns where the archive is, whether there is one or not.
pub fn archive() -> PathBuf {
    let time = program("java").and_then(|java| fs::metadata(java).ok()?.modified().ok());
    let time = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    PathBuf::from(format!("{}-{:x}.jsa", libraries().display(), time.as_secs()))
}

/// Returns the options of a JVM that runs Kafka's classes: its class path begins with the jars.
pub fn options() -> Vec<String> {
    let archive = archive();
    if !archive.exists() {
        return Vec::new();
    }
    // It says on standard output if it can't use the archive.
    vec![
        format!("-XX:SharedArchiveFile={}", archive.display()),
        "-Xlog:cds=off".to_owned(),
        "-Xlog:cds+dynamic=off".to_owned(),
    ]
}

/// Makes the archive if there is none. Without one everything works, and takes longer.
pub fn prepare() -> Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    fetch()?;
    let archive = archive();
    if archive.exists() {
        return Ok(());
    }
    let folder = env::temp_dir().join(format!("ottla-classes-{}", std::process::id()));
    let made = folder.join("classes.jsa");
    let options = Options { is_brief: true, ..Options::default() };
    let cluster = Cluster::create(&folder, 1, &options)?;
    let stopped = cluster.start_with(&[1], &[format!("-XX:ArchiveClassesAtExit={}", made.display())]);
    let stopped = stopped.and_then(|()| cluster.stop(&[1]));
    // Into its folder first, and then to its name: another process may do the same.
    let kept = stopped.and_then(|()| {
        let part = archive.with_extension(format!("{}.part", std::process::id()));
        fs::copy(&made, &part)?;
        Ok(fs::rename(part, &archive)?)
    });
    cluster.destroy()?;
    kept
}

/// Returns the path of a program.
fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let found = env::split_paths(&path).map(|folder| folder.join(name)).find(|file| Path::is_file(file));
    fs::canonicalize(found?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_lies_beside_the_folder_of_the_jars() {
        assert_eq!(archive().parent(), libraries().parent());
        assert!(archive().display().to_string().starts_with(&libraries().display().to_string()));
    }
}
