//! The scratch copy of the repository under `target/mutants/tree`, with all mistakes behind switches.
//!
//! Its crates have another version, so that cargo builds them beside those of the repository and compiles the crates
//! of other projects once for both. With the feature `ottla_loom` instead of the flag, this holds for loom, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    patch::Mutant,
    switches::{self, Changes},
};
use crate::{Result, shell, shell::root, threads};

/// The crates whose atomics and locks are loom's in the models.
pub const WITH_MODELS: [&str; 2] = ["crates/core", "crates/net"];

/// The name of the simulator's program. That of the repository is in the same folder.
pub const SIMULATOR: &str = "ottla-sim-with-mistakes";

/// The name of the C library. That of the repository is in the same folder.
const LIBRARY: &str = "rdkafka_with_mistakes";

/// The copy.
#[derive(Debug)]
pub struct Copy {
    /// Its folder.
    pub folder: PathBuf,
    /// Why these mistakes have no switch.
    pub refused: BTreeMap<u32, String>,
}

impl Copy {
    /// Copies the repository, or brings the copy up to date. The `broken` mistakes are left out.
    pub fn write(mutants: &[Mutant], broken: &BTreeMap<u32, String>) -> Result<Self> {
        let folder = threads::target("mutants/tree")?;
        let listed = shell::read(
            Command::new("git").args(["ls-files", "-co", "--exclude-standard", "-z"]).current_dir(root()),
        )?;
        let files: BTreeSet<&str> = listed.split('\0').filter(|file| !file.is_empty()).collect();
        let mut switches = Switches::read(mutants, &root(), broken)?;
        for file in &files {
            // Deleted files and links to folders cannot be read, and no crate needs them.
            let Ok(contents) = fs::read(root().join(file)) else { continue };
            let contents = match String::from_utf8(contents) {
                Ok(text) => switches.write(file, text)?.into_bytes(),
                Err(binary) => binary.into_bytes(),
            };
            let to = folder.join(file);
            // Only what changed is written, so that cargo builds only that.
            if fs::read(&to).is_ok_and(|known| known == contents) {
                continue;
            }
            fs::create_dir_all(to.parent().unwrap_or(&folder))?;
            fs::write(to, contents)?;
        }
        remove_others(&folder, &folder, &files)?;
        Ok(Self { folder, refused: switches.refused })
    }

    /// Returns the mistakes in whose code the compiler found errors, with the first of each.
    pub fn blamed(&self, output: &str) -> BTreeMap<u32, String> {
        let (mut blamed, mut error) = (BTreeMap::new(), None);
        for line in output.lines() {
            if line.starts_with("error") {
                error = Some(line);
            }
            let Some(place) = line.trim_start().strip_prefix("--> ") else { continue };
            let Some(error) = error.take() else { continue };
            let mut parts = place.split(':');
            let (file, at) = (parts.next().unwrap_or_default(), parts.next().and_then(|at| at.parse().ok()));
            let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
            if let Some(number) = at.and_then(|at| switches::mistake_at(&text, at)) {
                blamed.entry(number).or_insert_with(|| format!("does not compile: {error}"));
            }
        }
        blamed
    }
}

/// The changes of all mistakes.
#[derive(Debug, Default)]
pub struct Switches {
    /// The changes by file.
    files: BTreeMap<String, Vec<(u32, Changes)>>,
    /// The functions that are not const any more.
    no_longer_const: BTreeSet<String>,
    /// Why these mistakes have no switch.
    pub refused: BTreeMap<u32, String>,
}

impl Switches {
    /// Computes the changes of the mistakes to the files of this folder. A mistake that is refused for one of its files
    /// changes no other, either.
    pub fn read(mutants: &[Mutant], folder: &Path, broken: &BTreeMap<u32, String>) -> Result<Self> {
        let mut switches = Self { refused: broken.clone(), ..Self::default() };
        for mutant in mutants.iter().filter(|mutant| !broken.contains_key(&mutant.number)) {
            match changes(mutant, folder) {
                Ok(changed) => {
                    for (path, changes) in changed {
                        let text = fs::read_to_string(folder.join(&path))?;
                        switches.no_longer_const.extend(switches::no_longer_const(&text, &changes));
                        switches.files.entry(path).or_default().push((mutant.number, changes));
                    }
                }
                Err(error) => {
                    switches.refused.insert(mutant.number, error.to_string());
                }
            }
        }
        Ok(switches)
    }

    /// Returns what the copy has instead of a file's text.
    pub fn write(&mut self, path: &str, text: String) -> Result<String> {
        let mut text = text;
        if let Some(mistakes) = self.files.get(path) {
            let mistakes: Vec<(u32, &Changes)> =
                mistakes.iter().map(|(number, all)| (*number, all)).collect();
            text = switches::switched(&text, &mistakes);
        }
        let has_mistakes = |folder: &str| self.files.keys().any(|file| crate_of(file) == Some(folder));
        if path.ends_with(".rs") && crate_of(path).is_some_and(has_mistakes) {
            text = switches::without_const_callers(&text, &self.no_longer_const);
        }
        if let Some(folder) = path.strip_suffix("/src/lib.rs")
            && has_mistakes(folder)
        {
            // The code after a mistake may be unused or unreachable.
            text = format!("#![allow(warnings)]\n{text}{}", switches::MODULE);
        }
        if WITH_MODELS.iter().any(|folder| path.starts_with(&format!("{folder}/"))) {
            text = match path.ends_with("/Cargo.toml") {
                true => with_loom(path, &text)?,
                false if path.ends_with(".rs") => {
                    without_tests_of_loom(&text).replace("ottla_loom", "feature = \"ottla_loom\"")
                }
                false => text,
            };
        }
        match path {
            "Cargo.toml" => with_version(&text),
            "crates/sim/Cargo.toml" => {
                let name = "[[bin]]\nname = \"ottla-sim\"";
                let text = replaced(path, &text, name, &format!("[[bin]]\nname = \"{SIMULATOR}\""))?;
                with_features(path, &text, "rustls = { workspace = true, features = [\"logging\"] }")
            }
            "crates/core/Cargo.toml" => with_features(path, &text, "log.workspace = true"),
            // Neither the library nor the C programs have a version in their names.
            "crates/capi/Cargo.toml" => {
                replaced(path, &text, "name = \"rdkafka\"", &format!("name = \"{LIBRARY}\""))
            }
            "crates/capi/tests/abi.rs" => {
                let found = "deps.join(\"librdkafka.so\"), deps.parent().unwrap().join(\"librdkafka.so\")";
                let text = replaced(path, &text, found, &format!("deps.join(\"lib{LIBRARY}.so\")"))?;
                let folder = "Path::new(env!(\"CARGO_TARGET_TMPDIR\")).join(name)";
                // Several mistakes are tried at a time, and all without a mistake afterwards.
                let own = "(format!(\"{name}-{}\", std::process::id()))";
                replaced(path, &text, folder, &folder.replace("(name)", own))
            }
            _ => Ok(text),
        }
    }
}

/// Returns what a mistake changes in each of its files.
fn changes(mutant: &Mutant, folder: &Path) -> Result<Vec<(String, Changes)>> {
    let mut changed = Vec::new();
    for file in &mutant.files {
        if crate_of(&file.path).is_none() {
            return Err(format!("{} is in no library", file.path).into());
        }
        let right =
            fs::read_to_string(folder.join(&file.path)).map_err(|error| format!("{}: {error}", file.path))?;
        let changes = Changes::between(&right, &file.apply(&right)?);
        changed.push((file.path.clone(), changes.map_err(|error| format!("{}: {error}", file.path))?));
    }
    Ok(changed)
}

/// Returns the folder of the library that a file belongs to.
fn crate_of(path: &str) -> Option<&str> {
    path.split_once("/src/").map(|(folder, _)| folder).filter(|folder| folder.starts_with("crates/"))
}

/// Gives the crates of the copy a version that fits the requirements of the others.
fn with_version(manifest: &str) -> Result<String> {
    // The requirements have the same version, but not on a line of their own.
    let line =
        manifest.lines().find(|line| line.starts_with("version = ")).ok_or("Cargo.toml has no version")?;
    let (compatible, _) = line.rsplit_once('.').ok_or("the version has no dot")?;
    replaced("Cargo.toml", manifest, &format!("\n{line}\n"), &format!("\n{compatible}.9999\"\n"))
}

/// Makes a feature of the flag for loom. The flag would compile all crates of other projects once more.
fn with_loom(path: &str, manifest: &str) -> Result<String> {
    let dependency = "[target.'cfg(ottla_loom)'.dependencies]\nloom.workspace = true";
    let optional = "[target.'cfg(all())'.dependencies]\nloom = { workspace = true, optional = true }";
    let text = replaced(path, manifest, dependency, optional)?;
    let feature = "ottla_loom = [\"dep:loom\"]\n";
    Ok(match text.contains("[features]\n") {
        true => text.replacen("[features]\n", &format!("[features]\n{feature}"), 1),
        false => format!("{text}\n[features]\n{feature}"),
    })
}

/// Adds a dependency, with the features that it has when the whole workspace is built: then it is not compiled again.
fn with_features(path: &str, manifest: &str, dependency: &str) -> Result<String> {
    replaced(path, manifest, "[dependencies]\n", &format!("[dependencies]\n{dependency}\n"))
}

/// Leaves the modules with other tests out of the program with the models: compiling them takes longer than the models.
fn without_tests_of_loom(text: &str) -> String {
    text.replace("#[cfg(test)]\nmod ", "#[cfg(all(test, not(ottla_loom)))]\nmod ")
}

fn replaced(path: &str, text: &str, from: &str, to: &str) -> Result<String> {
    match text.matches(from).count() {
        1 => Ok(text.replacen(from, to, 1)),
        count => Err(format!("{path} has `{from}` {count} times").into()),
    }
}

/// Removes the files of the copy that the repository does not have.
fn remove_others(top: &Path, folder: &Path, files: &BTreeSet<&str>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(top, &path, files)?;
        } else if path.strip_prefix(top).ok().and_then(Path::to_str).is_some_and(|name| !files.contains(name))
        {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files, which is removed in the end.
    struct Folder(PathBuf);

    impl Folder {
        fn with(name: &str, files: &[(&str, &str)]) -> Self {
            let folder = Self(std::env::temp_dir().join(format!("ottla-copy-{}-{name}", std::process::id())));
            for (path, text) in files {
                let path = folder.0.join(path);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, text).expect("a file");
            }
            folder
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mutant(number: u32, files: &[(&str, &str)]) -> Mutant {
        let mut text = "mistake: A.\nnoticed by: wire\nrun: simulator 1..=9\n".to_owned();
        for (path, hunk) in files {
            text += &format!("\n--- a/{path}\n+++ b/{path}\n@@\n{hunk}");
        }
        Mutant { number, ..Mutant::parse("sim/x", &text).expect("a patch") }
    }

    const ONE: &str = "crates/a/src/one.rs";
    const TWO: &str = "crates/a/src/two.rs";
    const SOURCE: &str = "const A: u8 = 0;\nfn a() {\n    b();\n}\n";

    #[test]
    fn mistake_in_two_files_has_one_number_and_its_crate_a_switch() {
        let folder = Folder::with("two", &[(ONE, SOURCE), (TWO, SOURCE)]);
        let mutants = [mutant(7, &[(ONE, "-    b();\n"), (TWO, "-    b();\n")])];
        let mut switches = Switches::read(&mutants, &folder.0, &BTreeMap::new()).unwrap();
        for file in [ONE, TWO] {
            assert!(
                switches.write(file, SOURCE.to_owned()).unwrap().contains("ottla_mistake::is(7)"),
                "{file}"
            );
        }
        assert!(switches.write("crates/a/src/lib.rs", String::new()).unwrap().contains("mod ottla_mistake"));
        assert_eq!(switches.write("crates/b/src/lib.rs", String::new()).unwrap(), "");
    }

    #[test]
    fn mistake_that_is_refused_in_one_file_is_in_none() {
        let folder = Folder::with("refused", &[(ONE, SOURCE), (TWO, SOURCE)]);
        let constant = "-const A: u8 = 0;\n+const A: u8 = 1;\n";
        let mutants = [mutant(7, &[(ONE, "-    b();\n"), (TWO, constant)])];
        let mut switches = Switches::read(&mutants, &folder.0, &BTreeMap::new()).unwrap();
        let reason = &switches.refused[&7];
        assert!(reason.starts_with("crates/a/src/two.rs: changes `0; fn a()"), "{reason}");
        assert_eq!(switches.write(ONE, SOURCE.to_owned()).unwrap(), SOURCE);
    }

    #[test]
    fn mistake_outside_of_a_library_is_refused() {
        let folder = Folder::with("outside", &[("crates/a/tests/a.rs", SOURCE)]);
        let mutants = [mutant(7, &[("crates/a/tests/a.rs", "-    b();\n")])];
        let switches = Switches::read(&mutants, &folder.0, &BTreeMap::new()).unwrap();
        assert_eq!(switches.refused[&7], "crates/a/tests/a.rs is in no library");
    }

    #[test]
    fn error_of_the_compiler_is_blamed_on_the_mistake_in_its_line() {
        let (mark, end) = (switches::MARK, switches::END_MARK);
        let text = format!("fn a() {{ if x {mark}7\n{{ b() }}\nelse {end}\n{{ c() }} }}\n");
        let folder = Folder::with("blamed", &[(ONE, &text)]);
        let copy = Copy { folder: folder.0.clone(), refused: BTreeMap::new() };
        let error = "warning: w\n  --> crates/a/src/one.rs:2:1\nerror[E1]: gone\n   --> crates/a/src/one.rs";
        let blamed = |line: u32| copy.blamed(&format!("{error}:{line}:3\n   --> {ONE}:2:9\n"));
        assert_eq!(blamed(2), [(7, "does not compile: error[E1]: gone".to_owned())].into());
        assert!(blamed(4).is_empty());
        assert!(copy.blamed("error: could not compile\n").is_empty());
    }

    #[test]
    fn manifests_of_the_copy_have_another_version_and_loom_as_a_feature() {
        let mut switches = Switches::default();
        let mut written = |path: &str| {
            let text = fs::read_to_string(root().join(path)).expect("a manifest");
            switches.write(path, text).expect("it fits")
        };
        assert_eq!(written("Cargo.toml").matches(".9999\"").count(), 1);
        for folder in WITH_MODELS {
            let manifest = written(&format!("{folder}/Cargo.toml"));
            assert!(manifest.contains("[features]\nottla_loom = [\"dep:loom\"]"), "{manifest}");
            assert!(!manifest.contains("cfg(ottla_loom)"), "{manifest}");
        }
        assert!(written("crates/sim/Cargo.toml").contains(SIMULATOR));
    }
}
