//! Packages for Debian, Red Hat and Alpine, made by nfpm from one table.
//!
//! The library provides and conflicts with the distribution's own, so that programs that depend on that are satisfied; both can't be
//! installed at once, and removing one and installing the other is the way back.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Workshop, archive, builds::X86_64, trees};
use crate::{
    Result, install,
    library::VERSION,
    shell::{self, root},
};

/// Where a distribution expects files, and how it writes relations between packages.
struct Distribution {
    /// The name of nfpm's packager, and the end of file names.
    packager: &'static str,
    libdir: &'static str,
    /// The name of the package of libraries, of its development files, and what they replace.
    library: &'static str,
    replaces: &'static [&'static str],
    develop: &'static str,
    replaces_develop: &'static [&'static str],
    /// What the library needs, in the distribution's words.
    needs: &'static [&'static str],
}

const DEBIAN: Distribution = Distribution {
    packager: "deb",
    libdir: "lib/x86_64-linux-gnu",
    library: "librdkafka1-ottla",
    replaces: &["librdkafka1", "librdkafka++1"],
    develop: "librdkafka-dev-ottla",
    replaces_develop: &["librdkafka-dev"],
    needs: &["libc6 (>= 2.28)", "libgcc-s1 | libgcc1", "libstdc++6"],
};

const RED_HAT: Distribution = Distribution {
    packager: "rpm",
    libdir: "lib64",
    library: "librdkafka1-ottla",
    replaces: &["librdkafka", "librdkafka1"],
    develop: "librdkafka-devel-ottla",
    replaces_develop: &["librdkafka-devel"],
    needs: &["glibc >= 2.28", "libstdc++"],
};

pub fn deb(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    packages(workshop, &DEBIAN)
}

pub fn rpm(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    packages(workshop, &RED_HAT)
}

/// Makes the packages of the library, of its development files, and of the program.
fn packages(workshop: &Workshop, distribution: &Distribution) -> Result<Vec<PathBuf>> {
    let name = distribution.packager;
    let program = workshop.empty(&format!("{name}-program"))?;
    let (library, develop) =
        (workshop.empty(&format!("{name}-library"))?, workshop.empty(&format!("{name}-develop"))?);
    trees::install(workshop, &X86_64, "/usr", distribution.libdir, &program)?;
    trees::split(&program, &workshop.empty(&format!("{name}-debug"))?, archive::is_debug)?;
    trees::split(&program, &library, |path| path.contains(".so.1") || path.contains("/doc/"))?;
    trees::split(&program, &develop, |path| !path.starts_with("usr/bin/"))?;
    trees::describe(&X86_64.build(workshop)?.join("ottla"), &program)?;

    let provided =
        |names: &[&str]| names.iter().map(|name| versioned(distribution, name)).collect::<Vec<_>>();
    let mut provides = provided(distribution.replaces);
    if name == "rpm" {
        provides.extend(["librdkafka.so.1()(64bit)".to_owned(), "librdkafka++.so.1()(64bit)".to_owned()]);
    }
    let replaced = json!(distribution.replaces);
    let mut of_library = json!({
        "description": "Kafka client library, in place of librdkafka\nPrograms that use librdkafka.so.1 run with it unchanged.",
        "provides": provides, "conflicts": replaced, "replaces": replaced, "depends": distribution.needs,
    });
    of_library["deb"] = json!({ "triggers": { "activate_noawait": ["ldconfig"] } });
    if name == "rpm" {
        let script = workshop.folder.join("trees/ldconfig.sh");
        trees::write(&script, "#!/bin/sh\n/sbin/ldconfig\n")?;
        of_library["scripts"] = json!({ "postinstall": script, "postremove": script });
    }
    let replaced = json!(distribution.replaces_develop);
    let of_develop = json!({
        "description": "Kafka client library, in place of librdkafka: headers, static libraries, pkg-config and cmake",
        "provides": provided(distribution.replaces_develop), "conflicts": replaced, "replaces": replaced,
        "depends": [same_version(workshop, distribution)],
    });
    let of_program = json!({
        "description": "Apache Kafka from the command line\n\
            Produces, consumes, measures, administers, finds out why a client can't connect, and runs a cluster for tests.",
        "depends": distribution.needs[..1],
    });
    Ok(vec![
        package(workshop, name, distribution.library, &library, of_library)?,
        package(workshop, name, distribution.develop, &develop, of_develop)?,
        package(workshop, name, "ottla", &program, of_program)?,
    ])
}

/// Alpine has no glibc, so its program is the one without libraries.
pub fn apk(workshop: &Workshop) -> Result<Vec<PathBuf>> {
    let (program, root) = (archive::alone_program(workshop)?, workshop.empty("apk-program")?);
    trees::copy_program(&program, &root.join("usr/bin/ottla"))?;
    trees::describe(&program, &root)?;
    let text = json!({ "description": "Apache Kafka from the command line" });
    Ok(vec![package(workshop, "apk", "ottla", &root, text)?])
}

/// What the package provides, so that a dependency on a version of the original is satisfied.
fn versioned(distribution: &Distribution, name: &str) -> String {
    match distribution.packager {
        "deb" => format!("{name} (= {VERSION})"),
        _ => format!("{name} = {VERSION}"),
    }
}

fn same_version(workshop: &Workshop, distribution: &Distribution) -> String {
    let (name, version) = (distribution.library, &workshop.version);
    match distribution.packager {
        "deb" => format!("{name} (= {version})"),
        _ => format!("{name} = {version}-1"),
    }
}

/// Makes a package of the files under `root`.
fn package(
    workshop: &Workshop,
    packager: &str,
    name: &str,
    root_folder: &Path,
    mut text: Value,
) -> Result<PathBuf> {
    let nfpm = install::nfpm()?;
    trees::date(workshop, root_folder)?;
    text["name"] = json!(name);
    text["arch"] = json!("amd64");
    text["version"] = json!(workshop.version);
    if packager == "rpm" {
        text["release"] = json!("1");
    }
    text["section"] = json!("libs");
    text["maintainer"] = json!("The Ottla developers <ottla@localhost>");
    text["license"] = json!("MIT OR Apache-2.0");
    text["mtime"] = json!(workshop.time()?);
    text["contents"] = json!([{ "src": root_folder, "dst": "/", "type": "tree" }]);
    let configuration = workshop.folder.join("trees").join(format!("{name}-{packager}.json"));
    trees::write(&configuration, &serde_json::to_string_pretty(&text)?)?;
    let file = workshop.folder.join(file_name(packager, name, &workshop.version));
    let mut pack = workshop.command(nfpm);
    pack.args(["package", "--packager", packager, "--config"]).arg(configuration).arg("--target").arg(&file);
    shell::read(pack.current_dir(root()))?;
    Ok(file)
}

/// Returns the name that the distribution's tools expect.
pub fn file_name(packager: &str, name: &str, version: &str) -> String {
    match packager {
        "deb" => format!("{name}_{version}_amd64.deb"),
        "rpm" => format!("{name}-{version}-1.x86_64.rpm"),
        _ => format!("{name}-{version}.x86_64.apk"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_on_a_version_of_the_original_is_provided() {
        assert_eq!(versioned(&DEBIAN, "librdkafka1"), format!("librdkafka1 (= {VERSION})"));
        assert_eq!(versioned(&RED_HAT, "librdkafka"), format!("librdkafka = {VERSION}"));
    }
}
