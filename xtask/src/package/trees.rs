//! The files of a package, where they belong.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::{Workshop, builds::Platform};
use crate::{
    Result,
    library::{self, Built, Layout},
    shell::{read, root},
};

/// Installs the libraries, headers and the program of a platform under `folder`, as files of this prefix.
pub fn install(
    workshop: &Workshop,
    platform: &Platform,
    prefix: &str,
    libdir: &str,
    folder: &Path,
) -> Result<()> {
    let built = platform.build(workshop)?;
    let layout = Layout::new(Path::new(prefix), libdir, folder);
    let built = Built {
        program: built.join("ottla"),
        library: built,
        compiler: format!("{}g++", platform.tools),
        tools: platform.tools.to_owned(),
    };
    library::place(&layout, &built)?;
    Ok(())
}

/// Moves the files that `of` chooses, by their path from the root of a tree, into another tree.
pub fn split(from: &Path, to: &Path, of: impl Fn(&str) -> bool) -> Result<()> {
    for path in files(from)? {
        let name = path.strip_prefix(from)?.to_string_lossy().into_owned();
        if of(&name) {
            let place = to.join(&name);
            fs::create_dir_all(place.parent().unwrap_or(to))?;
            fs::rename(&path, place)?;
        }
    }
    Ok(())
}

/// Returns the files and links under a folder, in the order of their names.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)?.flatten() {
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Adds what a shell and `man` know of the program: completions, and a page per command.
pub fn describe(program: &Path, root: &Path) -> Result<()> {
    let completions = [
        ("bash", "usr/share/bash-completion/completions/ottla"),
        ("zsh", "usr/share/zsh/vendor-completions/_ottla"),
        ("fish", "usr/share/fish/vendor_completions.d/ottla.fish"),
    ];
    for (shell, place) in completions {
        let code = read(Command::new(program).args(["completion", shell]))?;
        write(&root.join(place), &code)?;
    }
    let pages = root.join("usr/share/man/man1");
    fs::create_dir_all(&pages)?;
    read(Command::new(program).arg("man-pages").arg(&pages))?;
    Ok(())
}

/// Writes a file that everybody may read.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    Ok(())
}

/// Adds the licences.
pub fn licences(folder: &Path) -> Result<()> {
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        write(&folder.join(name), &fs::read_to_string(root().join(name))?)?;
    }
    Ok(())
}

/// Copies a program.
pub fn copy_program(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Gives all files and folders under a folder, and itself, the time of the artefacts.
pub fn date(workshop: &Workshop, folder: &Path) -> Result<()> {
    let time = format!("--date=@{}", workshop.epoch);
    read(workshop.command("find").arg(folder).args([
        "-exec",
        "touch",
        "--no-dereference",
        &time,
        "{}",
        "+",
    ]))?;
    Ok(())
}
