//! Stripped programs and libraries, and the files with their debug information.
//!
//! A debugger finds the debug information of `DIR/NAME` in two ways, and [`split`] prepares both: by the build ID, under
//! `lib/debug/.build-id/` (the layout of distributions, searched for files under /usr), and by the name in the section
//! `.gnu_debuglink`, in `DIR/.debug/`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{Result, shell};

/// A file without debug information, and the file that holds it.
#[derive(Debug)]
pub struct Stripped {
    /// The file to install.
    pub stripped: PathBuf,
    /// The debug information.
    pub debug: PathBuf,
    /// The name of the debug information that `.gnu_debuglink` has.
    pub debug_name: String,
    /// The location of the debug information, under the folder `lib/debug` of the prefix.
    pub by_build_id: PathBuf,
}

/// Splits a linked file, which will be installed as `name`, into two files in `folder`. The names of binutils begin with `tools`.
pub fn split(tools: &str, file: &Path, name: &str, folder: &Path) -> Result<Stripped> {
    fs::create_dir_all(folder)?;
    let debug_name = format!("{name}.debug");
    let (stripped, debug) = (folder.join(name), folder.join(&debug_name));
    for path in [&stripped, &debug] {
        let _ = fs::remove_file(path);
    }
    let objcopy_of = || Command::new(format!("{tools}objcopy"));
    objcopy(objcopy_of().arg("--only-keep-debug").arg(file).arg(&debug), file)?;
    let mut strip = objcopy_of();
    strip.arg("--strip-unneeded").arg(format!("--add-gnu-debuglink={}", debug.display()));
    objcopy(strip.arg(file).arg(&stripped), file)?;
    let notes = shell::read(Command::new("readelf").arg("-n").arg(file))?;
    let id = build_id(&notes)
        .ok_or_else(|| format!("{} has no build ID: link with -Wl,--build-id", file.display()))?;
    let by_build_id = Path::new(".build-id").join(&id[..2]).join(format!("{}.debug", &id[2..]));
    Ok(Stripped { stripped, debug, debug_name, by_build_id })
}

/// Copies a static library without debug information into `folder`.
pub fn strip_archive(tools: &str, file: &Path, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let stripped = folder.join(file.file_name().unwrap_or_default());
    let _ = fs::remove_file(&stripped);
    let mut strip = Command::new(format!("{tools}objcopy"));
    objcopy(strip.arg("--strip-debug").arg(file).arg(&stripped), file)?;
    Ok(stripped)
}

fn objcopy(command: &mut Command, file: &Path) -> Result<()> {
    if !shell::installed(&command.get_program().to_string_lossy()) {
        return Err(
            "`objcopy` is missing: install binutils (on Debian and Ubuntu: apt-get install binutils)".into(),
        );
    }
    let done = shell::run(command, Duration::from_secs(600), true)?;
    match done.success {
        true => Ok(()),
        false => Err(format!("objcopy {}: {}", file.display(), done.ending).into()),
    }
}

/// Returns the build ID in the output of `readelf -n`.
fn build_id(notes: &str) -> Option<&str> {
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "))?.trim();
    (id.len() > 2 && id.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_id_is_read_from_the_notes() {
        let notes = "Displaying notes found in: .note.gnu.build-id\n  Owner  Data size  Description\n  \
                     GNU  0x00000014  NT_GNU_BUILD_ID (unique build ID bitstring)\n    Build ID: 4ea1be04\n";
        assert_eq!(build_id(notes), Some("4ea1be04"));
        assert_eq!(build_id("Build ID: \n"), None);
        assert_eq!(build_id("    Build ID: ../x\n"), None);
    }
}
