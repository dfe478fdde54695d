//! `cargo xtask codegen`: writes `crates/protocol/src/generated/` from `schema/`.
//!
//! [`schema`] reads a file into a tree of fields, [`names`] gives every struct in it a type name, [`message`] writes
//! one API's Rust file, [`index`] writes the module around them and the error codes. The generator has no code for
//! particular APIs. [`compare`] compares `schema/` with the definitions inside a Kafka client jar.

mod compare;
mod index;
mod message;
mod names;
mod schema;

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use schema::Schema;

const GENERATED: &str = "crates/protocol/src/generated";

/// Writes crates/protocol/src/generated from schema/.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Only compare the files, and fail if one is stale.
    #[arg(long)]
    check: bool,
    /// Only compare schema/ with the messages inside this jar of kafka-clients, and fail if they differ.
    #[arg(long, value_name = "JAR", conflicts_with = "check")]
    compare: Option<PathBuf>,
}

pub fn main(options: &Options) -> crate::Result<ExitCode> {
    let Some(jar) = &options.compare else {
        run(options.check)?;
        return Ok(ExitCode::SUCCESS);
    };
    let schemas = read_schemas(&crate::shell::root().join("schema"))?;
    let differences = compare::differences(&schemas, jar)?;
    differences.iter().for_each(|difference| println!("{difference}"));
    println!("{} APIs and data structures, {} differences", schemas.len(), differences.len());
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the generated files; with `check`, only compares them.
pub fn run(check: bool) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("xtask is not in a workspace")?;
    let schemas = read_schemas(&root.join("schema"))?;
    let mut files = BTreeMap::new();
    for schema in &schemas {
        files.insert(format!("{}.rs", schema.stem), message::file(schema)?);
    }
    let errors = fs::read_to_string(root.join("schema/errors.tsv"))?;
    files.insert("errors.rs".to_owned(), index::errors(&errors)?);
    files.insert("mod.rs".to_owned(), index::module(&schemas));

    let folder = root.join(GENERATED);
    let mut stale = Vec::new();
    for (name, text) in &files {
        let text = format_rust(text).map_err(|error| format!("{name}: {error}"))?;
        let path = folder.join(name);
        if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            stale.push(name.clone());
            if !check {
                fs::create_dir_all(&folder)?;
                fs::write(path, text)?;
            }
        }
    }
    for path in files_in(&folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !files.contains_key(&name) {
            if !check {
                fs::remove_file(&path)?;
            }
            stale.push(name);
        }
    }
    match (check, stale.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => {
            Err(format!("out of date in {GENERATED}, run `cargo xtask codegen`: {}", stale.join(", ")).into())
        }
        (false, _) => {
            println!("{} files in {GENERATED}, {} of them changed", files.len(), stale.len());
            Ok(())
        }
    }
}

fn read_schemas(folder: &Path) -> Result<Vec<Schema>, Box<dyn Error>> {
    let mut schemas = Vec::new();
    for path in files_in(folder)? {
        if path.extension().is_some_and(|extension| extension == "txt") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path)?;
            schemas
                .push(Schema::parse(&stem, &text).map_err(|error| format!("{}: {error}", path.display()))?);
        }
    }
    Ok(schemas)
}

/// Returns the files in `folder`, sorted by name.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    Ok(paths)
}

fn format_rust(text: &str) -> Result<String, Box<dyn Error>> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config", "max_width=110,use_small_heuristics=Max"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| {
            format!("rustfmt does not start ({error}); `rustup component add rustfmt` installs it")
        })?;
    rustfmt.stdin.take().ok_or("rustfmt has no stdin")?.write_all(text.as_bytes())?;
    let output = rustfmt.wait_with_output()?;
    if !output.status.success() {
        return Err("rustfmt rejects the generated code".into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
