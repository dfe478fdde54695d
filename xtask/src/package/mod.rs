//! `cargo xtask package`: what users install, in `target/packages`, from one table.
//!
//! ```text
//!   builds.rs      cargo with zig as linker: one tree of programs and libraries per platform
//!   trees.rs       the files of a package where they belong, times and owners made equal
//!   archive.rs     tarballs                        native.rs   deb, rpm, apk (nfpm)
//!   wheel.rs       for Python                      image.rs    for containers (OCI)
//!   windows.rs     for Windows                     platforms.rs   type-checks the crates for Windows and macOS
//!   checks.rs      installs them into fresh systems and runs programs there
//! ```
//!
//! Packing the same build again gives the same bytes: times are `SOURCE_DATE_EPOCH`, or the time of the last commit. Paths of this
//! machine are not part of programs. What can't be built or checked on a machine says which program is missing.

mod archive;
mod builds;
mod checks;
mod image;
mod native;
mod platforms;
mod trees;
mod wheel;
mod windows;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use crate::{
    Result,
    shell::{self, root},
    test::target_folder,
};

/// Builds the packages that users install into target/packages: deb, rpm, apk, tarballs, a Python wheel, an image for containers.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The artefacts whose name contains the text; `--list` names them.
    #[arg(long, default_value = "", value_name = "TEXT")]
    only: String,
    /// Print the artefacts.
    #[arg(long)]
    list: bool,
    /// Install what was built into fresh systems under target/packages/roots, and run programs there. Fails if something could
    /// not be checked.
    #[arg(long)]
    check: bool,
    /// With --check: make nothing, and try the files that are there.
    #[arg(long, requires = "check")]
    made: bool,
    /// Build nothing; type-check the crates for Windows and macOS, and say what is missing for that on this machine.
    #[arg(long, conflicts_with_all = ["list", "check"])]
    check_platforms: bool,
}

/// A row of [`ARTEFACTS`].
pub struct Artefact {
    pub name: &'static str,
    pub what: &'static str,
    /// Makes the files, and returns them.
    pub make: fn(&Workshop) -> Result<Vec<PathBuf>>,
    /// Tries the files. Returns what was checked, or why nothing was.
    pub check: fn(&Workshop) -> Result<checks::Outcome>,
}

/// What users install.
pub const ARTEFACTS: [Artefact; 10] = [
    Artefact {
        name: "tarball-x86_64",
        what: "libraries, headers and the program for Linux with glibc 2.28 or newer",
        make: archive::x86_64,
        check: checks::tarball,
    },
    Artefact {
        name: "tarball-aarch64",
        what: "the same for 64-bit ARM",
        make: archive::aarch64,
        check: checks::tarball_aarch64,
    },
    Artefact {
        name: "static",
        what: "the program alone, for any Linux on x86-64",
        make: archive::alone,
        check: checks::alone,
    },
    Artefact { name: "deb", what: "packages for Debian and Ubuntu", make: native::deb, check: checks::deb },
    Artefact {
        name: "rpm",
        what: "packages for Fedora, RHEL and SUSE",
        make: native::rpm,
        check: checks::rpm,
    },
    Artefact { name: "apk", what: "the program for Alpine", make: native::apk, check: checks::apk },
    Artefact {
        name: "wheel",
        what: "the library for Python's confluent-kafka (manylinux 2.28)",
        make: wheel::make,
        check: checks::wheel,
    },
    Artefact {
        name: "image",
        what: "the program as an image for containers (OCI)",
        make: image::make,
        check: checks::image,
    },
    Artefact {
        name: "windows",
        what: "the program, and the library with import library and headers, for Windows on x86-64",
        make: windows::make,
        check: windows::check,
    },
    Artefact {
        name: "checksums",
        what: "SHA-256 of all files",
        make: archive::checksums,
        check: checks::checksums,
    },
];

/// Where artefacts are made.
pub struct Workshop {
    /// `target/packages`.
    pub folder: PathBuf,
    /// The time of every file, in seconds since 1970.
    pub epoch: u64,
    /// The version of Ottla.
    pub version: String,
}

impl Workshop {
    fn open() -> Result<Self> {
        let folder = target_folder()?.join("packages");
        fs::create_dir_all(&folder)?;
        let epoch = match env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => {
                text.parse().map_err(|_| format!("SOURCE_DATE_EPOCH is `{text}`, not seconds since 1970"))?
            }
            Err(_) => {
                let mut log = Command::new("git");
                shell::read(log.args(["log", "-1", "--format=%ct"]).current_dir(root()))?.trim().parse()?
            }
        };
        Ok(Self { folder, epoch, version: env!("CARGO_PKG_VERSION").to_owned() })
    }

    /// Returns an empty folder of this name.
    pub fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join("trees").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Returns a command that knows the time of the files.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env("SOURCE_DATE_EPOCH", self.epoch.to_string()).env("LC_ALL", "C");
        command
    }

    /// Returns the time of the files in the form of ISO 8601.
    pub fn time(&self) -> Result<String> {
        let mut date = self.command("date");
        date.args(["--utc", "--date", &format!("@{}", self.epoch), "+%Y-%m-%dT%H:%M:%SZ"]);
        Ok(shell::read(&mut date)?.trim().to_owned())
    }

    /// Returns the artefacts that are there, without the folders in between.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(&self.folder)?.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.is_file());
        files.sort();
        Ok(files)
    }
}

pub fn main(options: &Options) -> Result<ExitCode> {
    if options.check_platforms {
        return Ok(if platforms::check()? { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let chosen: Vec<&Artefact> = ARTEFACTS.iter().filter(|it| it.name.contains(&options.only)).collect();
    if chosen.is_empty() {
        return Err(format!("no artefact has `{}` in its name; --list prints them", options.only).into());
    }
    if options.list {
        chosen.iter().for_each(|artefact| println!("{:16} {}", artefact.name, artefact.what));
        return Ok(ExitCode::SUCCESS);
    }
    let workshop = Workshop::open()?;
    let mut is_complete = true;
    for artefact in chosen.iter().filter(|_| !options.made) {
        match (artefact.make)(&workshop) {
            Ok(files) => files.iter().for_each(|file| println!("{}", line_of(file))),
            Err(error) => {
                is_complete = false;
                println!("FAILED: {}: {error}", artefact.name);
            }
        }
    }
    let holds = is_complete && (!options.check || checks::all(&workshop, &chosen));
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn line_of(file: &Path) -> String {
    let bytes = fs::metadata(file).map_or(0, |file| file.len());
    let megabytes = bytes as f64 / 1e6;
    format!("{megabytes:8.1} MB  {}", file.display())
}
