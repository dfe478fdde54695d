//! `ottla schema`: the subjects of a schema registry.

use std::{
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use ottla_schema_registry::{
    Compatibility, Error, Mode, Reference, Schema, SchemaType,
    client::{Client, Deleted, Registered, Version},
};
use serde_json::json;

use super::table::Table;
use crate::client_options::ClientOptions;
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::registry_options::{RegistryOptions, failure};

/// List, read, register, check and delete the schemas of a schema registry
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla schema --registry http://localhost:8081 list\n  \
    ottla schema get orders-value             # with SCHEMA_REGISTRY_URL, or a profile with a registry\n  \
    ottla schema list --profile prod\n  \
    ottla schema get --id 7\n  \
    ottla schema register orders-value order.avsc\n  \
    ottla schema register orders-value order.proto --reference common.proto=common:1\n  \
    ottla schema check orders-value order.avsc\n  \
    ottla schema compatibility orders-value --set FULL\n  \
    ottla schema delete orders-value --version 3\n\n{EXIT_CODES}"))]
pub struct SchemaOptions {
    #[command(flatten)]
    registry: RegistryOptions,

    /// Use the registry of this profile of `ottla profile list` [default: OTTLA_PROFILE, or the default profile]
    #[arg(long, value_name = "NAME", global = true, add = crate::completion::profiles())]
    profile: Option<String>,

    /// The word that the profile asks for before a command that changes something
    #[arg(long, value_name = "WORD", global = true)]
    confirm: Option<String>,

    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Print the subjects with their latest versions
    List(ListOptions),
    /// Print the versions of a subject
    Versions(VersionsOptions),
    /// Print a schema
    Get(GetOptions),
    /// Register a schema and print its ID
    Register(RegisterOptions),
    /// Check whether a schema is compatible with a subject's; the exit code is 1 if it is not
    Check(CheckOptions),
    /// Delete a subject or a version; what was deleted can be deleted for good with --permanent
    Delete(DeleteOptions),
    /// Print or change the compatibility level of a subject, or of all subjects without their own
    Compatibility(LevelOptions),
    /// Print or change the mode of a subject, or of all subjects without their own
    Mode(ModeOptions),
}

#[derive(Args, Debug)]
struct ListOptions {
    /// Only subjects that start with this
    prefix: Option<String>,
    /// Also those that are deleted and can be restored
    #[arg(long)]
    deleted: bool,
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

#[derive(Args, Debug)]
struct VersionsOptions {
    /// The subject
    subject: String,
    /// Also those that are deleted and can be restored
    #[arg(long)]
    deleted: bool,
    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,
}

#[derive(Args, Debug)]
struct GetOptions {
    /// The subject
    #[arg(required_unless_present = "id", conflicts_with = "id")]
    subject: Option<String>,
    /// The version
    #[arg(long, default_value = "latest", value_parser = version)]
    version: Version,
    /// The schema with this ID
    #[arg(long)]
    id: Option<u32>,
    /// Print JSON with the ID, the version and the references
    #[arg(long, short = 'J')]
    json: bool,
}

/// A schema in a file.
#[derive(Args, Debug)]
struct SchemaFile {
    /// The subject
    subject: String,
    /// The file with the schema; - is standard input
    file: PathBuf,
    /// The format: AVRO, PROTOBUF or JSON [default: by the file's name: .avsc, .proto, .json]
    #[arg(long = "type", value_name = "FORMAT", value_parser = schema_type)]
    schema_type: Option<SchemaType>,
    /// A reference: its name in the schema, and a version of a subject; can be repeated
    #[arg(long, value_name = "NAME=SUBJECT:VERSION", value_parser = reference)]
    reference: Vec<Reference>,
}

#[derive(Args, Debug)]
struct RegisterOptions {
    #[command(flatten)]
    schema: SchemaFile,
    /// Have the registry bring the schema into its normal form
    #[arg(long)]
    normalize: bool,
}

#[derive(Args, Debug)]
struct CheckOptions {
    #[command(flatten)]
    schema: SchemaFile,
    /// Only with this version [default: those that the compatibility level names]
    #[arg(long, value_parser = version)]
    version: Option<Version>,
}

#[derive(Args, Debug)]
struct DeleteOptions {
    /// The subject
    subject: String,
    /// Only this version
    #[arg(long, value_parser = version)]
    version: Option<Version>,
    /// For good, after a deletion that was not
    #[arg(long)]
    permanent: bool,
}

#[derive(Args, Debug)]
struct LevelOptions {
    /// The subject
    subject: Option<String>,
    /// The new level
    #[arg(long, value_name = "LEVEL", value_parser = |text: &str| text.parse::<Compatibility>().map_err(|it| it.to_string()))]
    set: Option<Compatibility>,
    /// Remove the subject's own level
    #[arg(long, conflicts_with = "set", requires = "subject")]
    unset: bool,
}

#[derive(Args, Debug)]
struct ModeOptions {
    /// The subject
    subject: Option<String>,
    /// The new mode
    #[arg(long, value_name = "MODE", value_parser = |text: &str| text.parse::<Mode>().map_err(|it| it.to_string()))]
    set: Option<Mode>,
    /// Set IMPORT although there are schemas
    #[arg(long, requires = "set")]
    force: bool,
    /// Remove the subject's own mode
    #[arg(long, conflicts_with = "set", requires = "subject")]
    unset: bool,
}

/// Runs it.
pub fn run(options: &SchemaOptions, outer: &ClientOptions) -> Outcome {
    let profile = options.profile.clone().or_else(|| outer.profile.clone());
    if *outer
        != (ClientOptions {
            profile: outer.profile.clone(),
            confirm: outer.confirm.clone(),
            ..Default::default()
        })
    {
        return Err(Failure::Usage(
            "-b, --bootstrap-controller, -X, -F and --timeout have no effect on `schema`, which asks a registry: use --registry and -P"
                .to_owned(),
        ));
    }
    let client = options.registry.client(&ClientOptions { profile, ..ClientOptions::default() })?;
    match &options.action {
        Action::List(it) => it.run(&client),
        Action::Versions(it) => it.run(&client),
        Action::Get(it) => it.run(&client),
        Action::Register(it) => it.run(&client),
        Action::Check(it) => it.run(&client),
        Action::Delete(it) => it.run(&client),
        Action::Compatibility(it) => it.run(&client),
        Action::Mode(it) => it.run(&client),
    }
}

fn deleted(with_deleted: bool) -> Deleted {
    if with_deleted { Deleted::With } else { Deleted::Without }
}

fn printed(text: &str) -> Outcome {
    Ok(writeln!(io::stdout(), "{text}")?)
}

impl ListOptions {
    fn run(&self, client: &Client) -> Outcome {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let mut table = Table::new(&[
            ("SUBJECT", "subject", 0),
            ("VERSION", "version", 0),
            ("ID", "id", 0),
            ("TYPE", "type", 0),
        ]);
        for subject in client.subjects(prefix, deleted(self.deleted)).map_err(failure)? {
            match client.version(&subject, Version::Latest) {
                Ok(found) => table.add([
                    json!(subject),
                    json!(found.version),
                    json!(found.id),
                    json!(found.schema.schema_type.name()),
                ]),
                // Deleted, or just now.
                Err(error) if error.is_not_found() => {
                    table.add([json!(subject), json!(null), json!(null), json!("deleted")])
                }
                Err(error) => return Err(failure(error)),
            }
        }
        table.print(self.json)
    }
}

impl VersionsOptions {
    fn run(&self, client: &Client) -> Outcome {
        let mut table = Table::new(&[("VERSION", "version", 0), ("ID", "id", 0)]);
        for version in client.versions(&self.subject, deleted(self.deleted)).map_err(failure)? {
            let found = client.version(&self.subject, Version::Number(version));
            let id = found.as_ref().ok().map(|it| it.id);
            table.add([json!(version), json!(id)]);
        }
        table.print(self.json)
    }
}

impl GetOptions {
    fn run(&self, client: &Client) -> Outcome {
        let found = match (self.id, &self.subject) {
            (Some(id), _) => {
                let schema = client.schema_by_id(id).map_err(failure)?;
                Registered { subject: String::new(), version: None, id, guid: None, schema }
            }
            (None, subject) => {
                client.version(subject.as_deref().unwrap_or_default(), self.version).map_err(failure)?
            }
        };
        if !self.json {
            return printed(&found.schema.text);
        }
        let mut shown = found.schema.to_json();
        shown["id"] = json!(found.id);
        if let Some(version) = found.version {
            shown["subject"] = json!(found.subject);
            shown["version"] = json!(version);
        }
        printed(&shown.to_string())
    }
}

impl SchemaFile {
    fn read(&self) -> Outcome<Schema> {
        read_schema(&self.file, self.schema_type, self.reference.clone())
    }
}

/// Reads a schema; without a type, the file's name says it.
pub fn read_schema(
    file: &Path,
    schema_type: Option<SchemaType>,
    references: Vec<Reference>,
) -> Outcome<Schema> {
    let failed = |error: io::Error| Failure::Failed(format!("{}: {error}", file.display()));
    let text = if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(failed)?;
        text
    } else {
        std::fs::read_to_string(file).map_err(failed)?
    };
    let by_name = match file.extension().and_then(|it| it.to_str()) {
        Some("proto") => SchemaType::Protobuf,
        Some("json") => SchemaType::Json,
        _ => SchemaType::Avro,
    };
    Ok(Schema { schema_type: schema_type.unwrap_or(by_name), text, references })
}

impl RegisterOptions {
    fn run(&self, client: &Client) -> Outcome {
        let schema = self.schema.read()?;
        let found = client.register(&self.schema.subject, &schema, self.normalize).map_err(failure)?;
        printed(&found.id.to_string())
    }
}

impl CheckOptions {
    fn run(&self, client: &Client) -> Outcome {
        let schema = self.schema.read()?;
        let subject = &self.schema.subject;
        let report = client.check_compatibility(subject, self.version, &schema).map_err(failure)?;
        if report.is_compatible {
            return printed("compatible");
        }
        let why = if report.messages.is_empty() {
            String::new()
        } else {
            format!(": {}", report.messages.join("; "))
        };
        Err(Failure::Failed(format!("the schema is not compatible with {subject}{why}")))
    }
}

impl DeleteOptions {
    fn run(&self, client: &Client) -> Outcome {
        let versions = match self.version {
            Some(version) => {
                vec![client.delete_version(&self.subject, version, self.permanent).map_err(failure)?]
            }
            None => client.delete_subject(&self.subject, self.permanent).map_err(failure)?,
        };
        let versions: Vec<String> = versions.iter().map(i32::to_string).collect();
        printed(&format!("{}: deleted {}", self.subject, versions.join(", ")))
    }
}

impl LevelOptions {
    fn run(&self, client: &Client) -> Outcome {
        let subject = self.subject.as_deref();
        match (self.set, subject) {
            (Some(level), _) => client.set_compatibility(subject, level).map_err(failure)?,
            (None, Some(subject)) if self.unset => client.delete_compatibility(subject).map_err(failure)?,
            _ => {}
        }
        printed(client.compatibility(subject).map_err(failure)?.name())
    }
}

impl ModeOptions {
    fn run(&self, client: &Client) -> Outcome {
        let subject = self.subject.as_deref();
        match (self.set, subject) {
            (Some(mode), _) => client.set_mode(subject, mode, self.force).map_err(failure)?,
            (None, Some(subject)) if self.unset => client.delete_mode(subject).map_err(failure)?,
            _ => {}
        }
        printed(client.mode(subject).map_err(failure)?.name())
    }
}

fn version(text: &str) -> Result<Version, String> {
    text.parse().map_err(|error: Error| error.to_string())
}

fn schema_type(text: &str) -> Result<SchemaType, String> {
    text.parse().map_err(|error: Error| error.to_string())
}

/// Parses `NAME=SUBJECT:VERSION`.
pub fn reference(text: &str) -> Result<Reference, String> {
    let parsed = text.split_once('=').and_then(|(name, at)| {
        let (subject, version) = at.rsplit_once(':')?;
        Some(Reference::new(name, subject, version.parse().ok()?))
    });
    parsed.ok_or_else(|| format!("{text:?} is not NAME=SUBJECT:VERSION"))
}
