//! The original libraries. librdkafka is inside the Python wheel of its vendor, which pip fetches once. The wheel has no
//! librdkafka++: that is Debian's, a layer over the functions of C that has not changed for these calls.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    Result, install,
    shell::{self, cache},
};

/// The package, and its version that holds librdkafka 2.16.0.
const PACKAGE: &str = "confluent-kafka==2.16.1";

/// Debian's package that holds librdkafka++.
const CXX_PACKAGE: &str = "librdkafka++1";

/// The paths of the original libraries, or the reasons why they are missing.
pub struct Original {
    /// librdkafka.
    pub c: std::result::Result<PathBuf, String>,
    /// librdkafka++.
    pub cxx: std::result::Result<PathBuf, String>,
}

impl Original {
    /// Fetches the libraries that are not in the cache; `c` replaces librdkafka.
    pub fn fetch(c: Option<PathBuf>) -> Self {
        let c = c.map_or_else(fetch, Ok).map_err(|error| format!("librdkafka can't be fetched: {error}"));
        let cxx = fetch_cxx().map_err(|error| format!("{CXX_PACKAGE} can't be fetched: {error}"));
        Self { c, cxx }
    }
}

/// Returns the path of librdkafka++, fetching Debian's package if it is not in the cache.
fn fetch_cxx() -> Result<PathBuf> {
    let folder = cache().join(CXX_PACKAGE);
    if let Some(library) = cxx_in(&folder) {
        return Ok(library);
    }
    println!("fetching Debian's {CXX_PACKAGE} with apt-get");
    let unpacked = cache().join(format!("{CXX_PACKAGE}.{}", std::process::id()));
    fs::create_dir_all(&unpacked)?;
    let fetched = (|| {
        shell::read(Command::new("apt-get").args(["-q", "download", CXX_PACKAGE]).current_dir(&unpacked))?;
        let package = fs::read_dir(&unpacked)?.flatten().map(|entry| entry.path()).next();
        let package = package.ok_or("apt-get downloaded no package")?;
        shell::read(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacked))?;
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&unpacked, &folder)?;
        cxx_in(&folder).ok_or_else(|| format!("{CXX_PACKAGE} holds no librdkafka++").into())
    })();
    let _ = fs::remove_dir_all(&unpacked);
    fetched
}

fn cxx_in(folder: &Path) -> Option<PathBuf> {
    let mut folders = fs::read_dir(folder.join("usr/lib")).ok()?.flatten().map(|entry| entry.path());
    folders.find_map(|folder| Some(folder.join("librdkafka++.so.1")).filter(|library| library.exists()))
}

/// Returns the path of the library, fetching it if it is not in the cache.
fn fetch() -> Result<PathBuf> {
    let folder = cache().join("librdkafka-2.16.0");
    if let Some(library) = library_in(&folder) {
        return Ok(library);
    }
    install::debian("python3", "python3")?;
    if shell::read(Command::new("python3").args(["-m", "pip", "--version"])).is_err() {
        install::debian("pip3", "python3-pip")?;
    }
    // Unpacks next to the folder and renames at the end, so that an interrupted run leaves no incomplete folder.
    let unpacked = cache().join(format!("librdkafka-2.16.0.{}", std::process::id()));
    fs::create_dir_all(&unpacked)?;
    let fetched = fetch_into(&unpacked).and_then(|()| {
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&unpacked, &folder)?;
        library_in(&folder).ok_or_else(|| format!("{PACKAGE} holds no librdkafka").into())
    });
    let _ = fs::remove_dir_all(&unpacked);
    fetched
}

fn fetch_into(folder: &Path) -> Result<()> {
    println!("fetching librdkafka 2.16.0, inside of {PACKAGE}, with pip");
    let platform = format!("manylinux_2_28_{}", env::consts::ARCH);
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
        // The wheels for all Python versions contain the same library.
        .args(["--only-binary", ":all:", "--python-version", "3.11", "--platform", &platform])
        .arg("--dest")
        .arg(folder)
        .arg(PACKAGE);
    let done = shell::run(&mut pip, Duration::from_secs(600), false)?;
    if !done.success {
        return Err(format!("{}\npip can't download {PACKAGE} ({})", done.output, done.ending).into());
    }
    let wheel = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).next();
    let wheel = wheel.ok_or("pip downloaded no wheel")?;
    shell::read(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder))?;
    fs::remove_file(wheel)?;
    Ok(())
}

fn library_in(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder.join("confluent_kafka.libs")).ok()?;
    files
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("librdkafka-")))
}
