//! The static library: one object without names that could meet those of a program.
//!
//! What rustc writes holds thousands of objects with global names of Ottla, of the standard library and of C libraries such as
//! zstd, which a program may contain in another version. [`one_object`] links what the interface needs into one object, in which
//! only the names of the interface stay global. It is a third of the size, and linking a program with it takes a quarter of the time.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{Result, shell};

/// Joins the sections of functions and variables, and leaves out debug information and the bitcode and comments of compilers.
/// Nothing refers to `.eh_frame`: the linker would drop it, and no panic could be caught.
const SCRIPT: &str = "\
SECTIONS
{
  .text 0 : { *(.text .text.*) }
  .rodata 0 : { *(.rodata .rodata.*) }
  .data.rel.ro 0 : { *(.data.rel.ro .data.rel.ro.*) }
  .data 0 : { *(.data .data.*) }
  .bss 0 : { *(.bss .bss.* COMMON) }
  .tdata 0 : { *(.tdata .tdata.*) }
  .tbss 0 : { *(.tbss .tbss.*) }
  .init_array 0 : { KEEP(*(.init_array .init_array.*)) }
  .eh_frame 0 : { KEEP(*(.eh_frame)) }
  .gcc_except_table 0 : { *(.gcc_except_table .gcc_except_table.*) }
  .note.GNU-stack 0 : { *(.note.GNU-stack) }
  /DISCARD/ : { *(.llvmbc) *(.llvmcmd) *(.comment) *(.rustc*) *(.debug_* .zdebug_*) }
}
";

/// Makes a static library in `folder` of an archive that rustc wrote. Its interface is that of the shared library of the same build.
/// The names of binutils begin with `tools`.
pub fn one_object(tools: &str, archive: &Path, shared: &Path, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let at = |name: &str| folder.join(name);
    let names = interface(shared)?;
    fs::write(at("interface.txt"), names.join("\n") + "\n")?;
    fs::write(at("one_object.ld"), SCRIPT)?;
    let (linked, object) = (at("linked.o"), at("rdkafka.o"));
    let mut link = Command::new(format!("{tools}ld"));
    link.args(["-r", "--gc-sections", "-T"]).arg(at("one_object.ld")).arg("-o").arg(&linked);
    link.args(names.iter().flat_map(|name| ["-u", name])).arg("--whole-archive").arg(archive);
    let mut hide = Command::new(format!("{tools}objcopy"));
    hide.arg(format!("--keep-global-symbols={}", at("interface.txt").display()));
    hide.arg("--strip-unneeded").args([&linked, &object]);
    let made = at("librdkafka.a");
    let _ = fs::remove_file(&made);
    let mut pack = Command::new(format!("{tools}ar"));
    pack.arg("rcsD").args([&made, &object]);
    for mut command in [link, hide, pack] {
        let done = shell::run(&mut command, Duration::from_secs(600), false)?;
        if !done.success {
            let program = command.get_program().to_string_lossy();
            return Err(format!("{program} {}: {}\n{}", archive.display(), done.ending, done.output).into());
        }
    }
    fs::remove_file(linked)?;
    Ok(made)
}

/// Returns the names that a shared library exports.
pub fn interface(shared: &Path) -> Result<Vec<String>> {
    let mut nm = Command::new("nm");
    let listed = shell::read(nm.args(["--dynamic", "--defined-only", "--format=posix"]).arg(shared))?;
    let names: Vec<String> =
        listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    if names.is_empty() {
        return Err(format!("{} exports nothing", shared.display()).into());
    }
    Ok(names)
}
