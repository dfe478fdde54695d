//! The programs of `tests/abi/side_by_side`: compiled once, run with either library.

use std::{
    env, fs,
    os::unix::{fs::symlink, process::CommandExt as _, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{DEADLINE, original::Original, transcript::Transcript};
use crate::{
    Result,
    shell::{self, root},
};

const SOURCES: &str = "tests/abi/side_by_side";
/// The program whose cases are the rows of the original's table of properties.
const PROPERTIES: &str = "properties";

/// The library that the cases about plug-ins load, and its source in [`SOURCES`].
const PLUGIN: &str = "plugin.so";
const PLUGIN_SOURCE: &str = "plugin/plugin.c";

/// The requirements and permissions of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Plain,
    Broker,
    Crash,
}

/// A case of a program.
#[derive(Clone, Debug)]
pub struct Case {
    /// `PROGRAM.CASE`
    pub name: String,
    pub kind: Kind,
    /// The reason why it cannot run.
    pub missing: Option<String>,
}

/// Which library a program runs with.
#[derive(Clone, Copy, Debug)]
pub enum Library {
    Original,
    Ottla,
}

/// A source of [`SOURCES`].
struct Program {
    name: String,
    /// The reason why it cannot run with both libraries.
    missing: Option<String>,
    is_compiled: bool,
}

/// The compiled programs, and the folders of the libraries.
pub struct Programs {
    folder: PathBuf,
    programs: Vec<Program>,
    ottla: PathBuf,
    properties: PathBuf,
}

impl Programs {
    /// Compiles all programs into a folder, and links both libraries there under the names that programs load. Programs in
    /// C++ are not compiled without our librdkafka++, which is installed if there is a C++ compiler.
    pub fn compile(folder: &Path, prefix: &Path, original: &Original, ottla: &Path) -> Result<Self> {
        let lib = prefix.join("lib");
        let ours = |file: &str| Some(lib.join(file)).filter(|library| library.exists());
        for (name, file, library) in [
            ("original", "librdkafka.so.1", original.c.clone().ok()),
            ("original", "librdkafka++.so.1", original.cxx.clone().ok()),
            ("ottla", "librdkafka.so.1", ours("librdkafka.so.1")),
            ("ottla", "librdkafka++.so.1", ours("librdkafka++.so.1")),
        ] {
            link(&folder.join(name), file, library.as_deref())?;
        }
        compile_plugin(folder, prefix)?;
        let mut sources: Vec<PathBuf> =
            fs::read_dir(root().join(SOURCES))?.flatten().map(|entry| entry.path()).collect();
        sources.retain(|path| is_cxx(path) || path.extension().is_some_and(|extension| extension == "c"));
        sources.sort();
        let mut programs = Vec::new();
        for source in sources {
            let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let mut missing = original.c.clone().err();
            let is_compiled = !is_cxx(&source) || ours("librdkafka++.so.1").is_some();
            if is_compiled {
                compile(&source, &folder.join(&name), prefix)?;
            } else {
                missing = Some("there is no C++ compiler".into());
            }
            if is_cxx(&source) {
                missing = missing.or_else(|| original.cxx.clone().err());
            }
            programs.push(Program { name, missing, is_compiled });
        }
        let properties = folder.join("properties.txt");
        let compiled =
            Self { folder: folder.to_path_buf(), programs, ottla: ottla.to_path_buf(), properties };
        // Without the original our own table still counts the cases.
        let library = if original.c.is_ok() { Library::Original } else { Library::Ottla };
        let table = shell::read(compiled.command(PROPERTIES, library).arg("--show"))?;
        fs::write(&compiled.properties, table)?;
        Ok(compiled)
    }

    fn command(&self, program: &str, library: Library) -> Command {
        let mut command = Command::new(self.folder.join(program));
        let folder = match library {
            Library::Original => "original",
            Library::Ottla => "ottla",
        };
        command
            .env("LD_LIBRARY_PATH", self.folder.join(folder))
            .env("OTTLA", &self.ottla)
            .env("SBS_PROPERTIES", &self.properties)
            .env("SBS_PLUGIN", self.folder.join(PLUGIN))
            .env_remove("RUST_BACKTRACE");
        command
    }

    /// Returns the cases that the programs list; a program that can't be compiled is one case.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        for Program { name: program, missing, is_compiled } in &self.programs {
            if !is_compiled {
                let (name, missing) = (format!("{program}.*"), missing.clone());
                cases.push(Case { name, kind: Kind::Plain, missing });
                continue;
            }
            let list = shell::read(self.command(program, Library::Ottla).arg("--list"))?;
            for line in list.lines() {
                let (name, kind) =
                    line.split_once(' ').ok_or(format!("{program} --list printed `{line}`"))?;
                let kind = match kind {
                    "plain" => Kind::Plain,
                    "broker" => Kind::Broker,
                    "crash" => Kind::Crash,
                    other => return Err(format!("{program} --list: there is no kind `{other}`").into()),
                };
                cases.push(Case { name: format!("{program}.{name}"), kind, missing: missing.clone() });
            }
        }
        Ok(cases)
    }

    /// Runs a case and returns its output.
    pub fn run(&self, case: &Case, library: Library) -> Result<Transcript> {
        let (program, name) = case.name.split_once('.').ok_or("a case has no program")?;
        // Every run gets its own folder, because some cases write files.
        let folder = self.folder.join("runs").join(format!("{}-{library:?}", case.name));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        let (output, errors) = (folder.join("transcript"), folder.join("stderr"));
        let seconds = DEADLINE.as_secs().to_string();
        let mut command = self.command(program, library);
        command
            .arg(name)
            .env("SBS_SUFFIX", format!("-{library:?}-{}", std::process::id()))
            .env("SBS_DEADLINE", seconds)
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&output)?)
            .stderr(fs::File::create(&errors)?)
            .process_group(0);
        let status = command.status().map_err(|error| format!("cannot run {program}: {error}"))?;
        let text = String::from_utf8_lossy(&fs::read(&output)?).into_owned();
        let mut transcript = Transcript::of(&text, status.signal());
        if !status.success() && status.signal().is_none() {
            transcript.lines.push(format!("exits with {status}"));
        }
        Ok(transcript)
    }
}

/// Links a library under the name that programs load; removes the link of an earlier run without one.
fn link(folder: &Path, file: &str, library: Option<&Path>) -> Result<()> {
    fs::create_dir_all(folder)?;
    let link = folder.join(file);
    let _ = fs::remove_file(&link);
    if let Some(library) = library {
        let library = fs::canonicalize(library).map_err(|error| format!("{}: {error}", library.display()))?;
        symlink(library, link)?;
    }
    Ok(())
}

fn is_cxx(source: &Path) -> bool {
    source.extension().is_some_and(|extension| extension == "cpp")
}

/// Compiles the plug-in. It takes its functions from the library that the program loaded.
fn compile_plugin(folder: &Path, prefix: &Path) -> Result<()> {
    let source = root().join(SOURCES).join(PLUGIN_SOURCE);
    let mut command = Command::new(env::var("CC").unwrap_or_else(|_| "cc".into()));
    command
        .args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(folder.join(PLUGIN))
        .arg(&source)
        .arg("-I")
        .arg(prefix.join("include"));
    shell::read(&mut command).map(drop)
}

fn compile(source: &Path, program: &Path, prefix: &Path) -> Result<()> {
    let is_cxx = is_cxx(source);
    let (variable, default, standard) =
        if is_cxx { ("CXX", "c++", "-std=gnu++11") } else { ("CC", "cc", "-std=gnu99") };
    let mut command = Command::new(env::var(variable).unwrap_or_else(|_| default.into()));
    command
        .args([standard, "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-g", "-o"])
        .arg(program)
        .arg(source)
        .arg("-I")
        .arg(prefix.join("include"))
        .arg("-L")
        .arg(prefix.join("lib"))
        .args(is_cxx.then_some("-lrdkafka++"))
        .args(["-lrdkafka", "-lpthread", "-ldl"]);
    let done = shell::run(&mut command, DEADLINE, false)?;
    if !done.success {
        return Err(
            format!("{}\n{} does not compile ({})", done.output, source.display(), done.ending).into()
        );
    }
    Ok(())
}
