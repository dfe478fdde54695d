//! Tarballs and checksums.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    Workshop,
    builds::{AARCH64, ALONE, Platform, X86_64},
    trees,
};
use crate::{Result, shell::read};

pub fn x86_64(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    complete(workshop, &X86_64)
}

pub fn aarch64(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    complete(workshop, &AARCH64)
}

/// Packs libraries, headers and the program; the debug information goes into a tarball of its own.
fn complete(workshop: &Workshop, platform: &Platform) -> Result<Vec<PathBuf>> {
    let name = format!("ottla-{}-{}", workshop.version, platform.name);
    let folder = workshop.empty(&name)?;
    trees::install(workshop, platform, "/", "lib", &folder.join(&name))?;
    let debug = workshop.empty(&format!("{name}-debug"))?;
    trees::split(&folder, &debug, is_debug)?;
    remove_empty(&folder)?;
    let (files, debug) = (pack(workshop, &folder, &name)?, pack(workshop, &debug, &format!("{name}-debug"))?);
    Ok(vec![files, debug])
}

/// True for debug information and the links to it.
pub fn is_debug(path: &str) -> bool {
    path.contains("/lib/debug/")
        || path.starts_with("lib/debug/")
        || path.contains("/.debug/")
        || path.contains(".build-id")
}

fn remove_empty(folder: &Path) -> Result<()> {
    read(Command::new("find").arg(folder).args(["-type", "d", "-empty", "-delete"]))?;
    Ok(())
}

/// Builds the program without any library, and returns its path.
pub fn alone_program(workshop: &Workshop) -> Result<PathBuf> {
    let built = ALONE.build(workshop)?.join("ottla");
    let place = workshop.empty("static-program")?.join("ottla");
    read(Command::new("objcopy").args(["--strip-unneeded"]).args([&built, &place]))?;
    Ok(place)
}

pub fn alone(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    let name = format!("ottla-{}-{}", workshop.version, ALONE.name);
    let (folder, program) = (workshop.empty(&name)?, alone_program(workshop)?);
    trees::copy_program(&program, &folder.join(&name).join("bin/ottla"))?;
    trees::licences(&folder.join(&name).join("share/doc/ottla"))?;
    Ok(vec![pack(workshop, &folder, &name)?])
}

/// Packs a folder; names, times and owners do not depend on the machine.
pub fn pack(workshop: &Workshop, folder: &Path, name: &str) -> Result<PathBuf> {
    let packed = workshop.folder.join(format!("{name}.tar.gz"));
    let mut tar = workshop.command("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+rw,go+r,go-w"]);
    tar.arg(format!("--mtime=@{}", workshop.epoch)).arg("--use-compress-program=gzip -n9");
    tar.arg("-cf").arg(&packed).arg("-C").arg(folder).arg(".");
    read(&mut tar)?;
    Ok(packed)
}

/// Writes the checksums of the artefacts that are there.
pub fn checksums(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    let place = workshop.folder.join("SHA256SUMS");
    let names = workshop.files()?;
    let names = names.iter().filter_map(|path| path.file_name()).filter(|name| *name != "SHA256SUMS");
    let text = read(Command::new("sha256sum").args(names).current_dir(&workshop.folder))?;
    trees::write(&place, &text)?;
    Ok(vec![place])
}
