//! `ottla profile`: the clusters with names.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use ottla::Config;

use super::table::Table;
use crate::client_options::{ClientOptions, set_pair};
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::profiles::{FORMATS, Profile, REGISTRY_URL, Store, import, is_registry_secret};
use crate::standard_error::note;

/// List, choose, add, import, show and remove profiles: clusters with names
#[derive(Args, Debug)]
#[command(after_help = format!("Examples:\n  \
    ottla profile add dev -b localhost:9092\n  \
    ottla profile add prod -b kafka:9093 -F client.properties --password-command 'pass show kafka' --confirm-word prod\n  \
    ottla profile add shop -b kafka:9092 --registry https://registry:8081 --registry-secret-command basic.auth.user.info='pass show registry'\n  \
    ottla profile import prod client.properties\n  \
    ottla profile import ~/.config/rpk/rpk.yaml\n  \
    ottla profile use dev\n  \
    ottla topics list --profile prod\n\n\
    The file is ~/.config/ottla/config.toml, or that of OTTLA_CONFIG; only its owner can read it. Commands use --profile NAME,\n\
    or else OTTLA_PROFILE or the default profile if neither -b nor -F is given.\n\n{EXIT_CODES}"))]
pub struct ProfileOptions {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    List(ListOptions),
    Use(UseOptions),
    Add(AddOptions),
    Import(ImportOptions),
    Show(ShowOptions),
    Remove(RemoveOptions),
}

/// Print the profiles; a star marks the default
#[derive(Args, Debug)]
struct ListOptions {
    /// Print the profiles as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

/// Choose the profile that commands use if none is named
#[derive(Args, Debug)]
struct UseOptions {
    /// The name of the profile
    #[arg(value_name = "NAME", required_unless_present = "none", add = crate::completion::profiles())]
    name: Option<String>,

    /// Use no profile unless one is named
    #[arg(long, conflicts_with = "name")]
    none: bool,
}

/// The protection of a profile.
#[derive(Args, Debug)]
struct Protection {
    /// Refuse commands that change something
    #[arg(long)]
    read_only: bool,

    /// Ask for this word before a command that changes something; in a script, --confirm WORD gives it
    #[arg(long, value_name = "WORD")]
    confirm_word: Option<String>,

    /// The command that prints the password (sasl.password). It runs when a client starts
    #[arg(long, value_name = "COMMAND")]
    password_command: Option<String>,

    /// The command that prints the value of another property; can be repeated
    #[arg(long, value_name = "PROPERTY=COMMAND", value_parser = super::admin_command::pair)]
    secret_command: Vec<(String, String)>,

    /// The address of the cluster's schema registry; several are separated by commas
    #[arg(long, short = 'r', visible_alias = "schema-registry", value_name = "URL")]
    registry: Option<String>,

    /// A property of the registry's client, as `ottla schema --property` has them; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::admin_command::pair)]
    registry_property: Vec<(String, String)>,

    /// The command that prints the value of a property of the registry's client, for example
    /// basic.auth.user.info=COMMAND; can be repeated
    #[arg(long, value_name = "PROPERTY=COMMAND", value_parser = super::admin_command::pair)]
    registry_secret_command: Vec<(String, String)>,

    /// Replace a profile of this name
    #[arg(long)]
    force: bool,
}

/// Add a profile. The first one becomes the default
#[derive(Args, Debug)]
struct AddOptions {
    #[command(flatten)]
    protection: Protection,

    /// The name of the profile
    #[arg(value_name = "NAME")]
    name: String,

    /// Brokers to connect to first, separated by commas; can be repeated
    #[arg(
        short = 'b',
        long = "bootstrap-server",
        visible_alias = "bootstrap-servers",
        value_name = "HOST:PORT,..."
    )]
    bootstrap_server: Vec<String>,

    /// Set a property of the client; can be repeated
    #[arg(short = 'X', value_name = "NAME=VALUE")]
    property: Vec<String>,

    /// Take the properties of a file of name=value lines, as those of Java, librdkafka and kcat
    #[arg(short = 'F', value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Add profiles from a file of another client
#[derive(Args, Debug)]
struct ImportOptions {
    #[command(flatten)]
    protection: Protection,

    /// The name of the profile, if the file has none; then the file
    #[arg(value_name = "[NAME] FILE", num_args = 1..=2, required = true)]
    arguments: Vec<String>,

    /// The format of the file [default: rpk for .yaml, and the others, which are alike, for all else]
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS)]
    format: Option<String>,
}

/// Print the settings of a profile; secrets are masked
#[derive(Args, Debug)]
struct ShowOptions {
    /// The name of the profile [default: the default profile]
    #[arg(value_name = "NAME", add = crate::completion::profiles())]
    name: Option<String>,
}

/// Remove a profile
#[derive(Args, Debug)]
struct RemoveOptions {
    /// The name of the profile
    #[arg(value_name = "NAME", add = crate::completion::profiles())]
    name: String,
}

/// Runs the command.
pub fn run(options: &ProfileOptions, outer: &ClientOptions) -> Outcome {
    outer.refuse("profile")?;
    let mut store = Store::load()?;
    match &options.action {
        Action::List(options) => list(&store, options.json),
        Action::Use(options) => choose(&mut store, options.name.as_deref()),
        Action::Add(options) => add(&mut store, options),
        Action::Import(options) => import_file(&mut store, options),
        Action::Show(options) => show(&store, options.name.as_deref()),
        Action::Remove(options) => remove(&mut store, &options.name),
    }
}

fn list(store: &Store, as_json: bool) -> Outcome {
    let mut table = Table::new(&[
        ("DEFAULT", "default", 0),
        ("NAME", "name", 0),
        ("BOOTSTRAP", "bootstrap", 0),
        ("PROTECTION", "protection", 0),
    ]);
    for (name, profile) in &store.profiles {
        let is_default = store.default.as_ref() == Some(name);
        let protection = match (profile.read_only, &profile.confirm) {
            (true, _) => "read-only",
            (false, Some(_)) => "asks for a word",
            (false, None) => "none",
        };
        table.add([
            if as_json { is_default.into() } else { (if is_default { "*" } else { "" }).into() },
            name.as_str().into(),
            profile.properties.get("bootstrap.servers").map(String::as_str).into(),
            protection.into(),
        ]);
    }
    if store.profiles.is_empty() && !as_json {
        note!("% no profiles yet; `ottla profile add NAME -b HOST:PORT` adds one");
    }
    table.print(as_json)
}

fn choose(store: &mut Store, name: Option<&str>) -> Outcome {
    if let Some(missing) = name.filter(|name| !store.profiles.contains_key(*name)) {
        return Err(store.missing(missing));
    }
    store.default = name.map(str::to_owned);
    store.save()?;
    match name {
        Some(name) => writeln!(io::stdout(), "profile \"{name}\" is the default")?,
        None => writeln!(io::stdout(), "no default profile is set")?,
    }
    Ok(())
}

fn add(store: &mut Store, options: &AddOptions) -> Outcome {
    let mut profile = match &options.file {
        Some(file) => {
            import(file, Some("java"))?.into_iter().next().map(|(_, profile)| profile).unwrap_or_default()
        }
        None => Profile::default(),
    };
    let mut config = Config::new();
    for pair in &options.property {
        set_pair(&mut config, pair)?;
    }
    if !options.bootstrap_server.is_empty() {
        config.set("bootstrap.servers", &options.bootstrap_server.join(","))?;
    }
    profile.properties.extend(Profile::of(&config).properties);
    if !["bootstrap.servers", "bootstrap.controllers"]
        .iter()
        .any(|name| profile.properties.contains_key(*name))
    {
        return Err(Failure::Usage(
            "no broker is named: add -b HOST:PORT, or -F with a file that names one".to_owned(),
        ));
    }
    insert(store, &options.name, profile, &options.protection)?;
    saved(store, std::slice::from_ref(&options.name))
}

fn import_file(store: &mut Store, options: &ImportOptions) -> Outcome {
    let (named, file) = match &options.arguments[..] {
        [name, file] => (Some(name), PathBuf::from(file)),
        [file] => (None, PathBuf::from(file)),
        _ => return Err(Failure::Usage("name the file".to_owned())),
    };
    let found = import(&file, options.format.as_deref())?;
    let is_single = found.len() == 1;
    let mut names = Vec::new();
    for (name, profile) in found {
        let name = match (named, name) {
            (Some(named), _) if is_single => named.clone(),
            (Some(_), None) | (None, None) => {
                return Err(Failure::Usage(format!(
                    "{} has no name: write `ottla profile import NAME FILE`",
                    file.display()
                )));
            }
            (None, Some(name)) => name,
            (Some(named), Some(name)) if *named == name => name,
            (Some(_), Some(_)) => continue,
        };
        insert(store, &name, profile, &options.protection)?;
        names.push(name);
    }
    if names.is_empty() {
        return Err(Failure::Usage(format!("{} has no profile of that name", file.display())));
    }
    saved(store, &names)
}

fn insert(store: &mut Store, name: &str, mut profile: Profile, protection: &Protection) -> Outcome {
    if name.is_empty() || !name.chars().all(|letter| letter.is_alphanumeric() || "-_.".contains(letter)) {
        return Err(Failure::Usage(format!(
            "\"{name}\" can't be the name of a profile: use letters, digits, -, _ and ."
        )));
    }
    if store.profiles.contains_key(name) && !protection.force {
        return Err(Failure::Usage(format!("profile \"{name}\" exists; --force replaces it")));
    }
    profile.read_only = protection.read_only;
    profile.confirm = protection.confirm_word.clone().filter(|word| !word.is_empty());
    for (property, command) in &protection.secret_command {
        profile.commands.insert(property.clone(), command.clone());
    }
    if let Some(command) = &protection.password_command {
        profile.commands.insert("sasl.password".to_owned(), command.clone());
        profile.properties.remove("sasl.password");
    }
    add_registry(&mut profile, protection);
    profile.check(name, &mut Config::new())?;
    if profile.has_secret() {
        note!(
            "% profile \"{name}\": the file has a secret, which only you can read; --password-command keeps it elsewhere"
        );
    }
    store.profiles.insert(name.to_owned(), profile);
    Ok(())
}

/// Adds what the options say about the registry.
fn add_registry(profile: &mut Profile, protection: &Protection) {
    let url = protection.registry.iter().map(|url| (REGISTRY_URL.to_owned(), url.clone()));
    profile.registry.extend(url.chain(protection.registry_property.iter().cloned()));
    for (property, command) in &protection.registry_secret_command {
        profile.registry.remove(property);
        profile.registry_commands.insert(property.clone(), command.clone());
    }
}

fn saved(store: &mut Store, names: &[String]) -> Outcome {
    if store.default.is_none() && store.profiles.len() == names.len() {
        store.default = names.first().cloned();
    }
    let path = store.save()?;
    for name in names {
        let default = if store.default.as_ref() == Some(name) { ", the default" } else { "" };
        writeln!(io::stdout(), "added profile \"{name}\"{default} ({})", path.display())?;
    }
    Ok(())
}

fn show(store: &Store, name: Option<&str>) -> Outcome {
    let Some(name) = name.or(store.default.as_deref()) else {
        return Err(Failure::Usage("no default profile is set: name one of `ottla profile list`".to_owned()));
    };
    let mut profile = store.profiles.get(name).cloned().ok_or_else(|| store.missing(name))?;
    for (property, value) in &mut profile.properties {
        if ottla_core::config::is_secret(property) && !property.contains("username") {
            *value = "***".to_owned();
        }
    }
    for (property, value) in &mut profile.registry {
        if is_registry_secret(property) {
            *value = "***".to_owned();
        } else if property == REGISTRY_URL {
            *value = without_user(value);
        }
    }
    write!(io::stdout(), "{}", profile.to_table())?;
    Ok(())
}

/// Masks users and passwords in addresses.
fn without_user(urls: &str) -> String {
    let one = |url: &str| match url
        .split_once("://")
        .and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?)))
    {
        Some((scheme, (_, host))) => format!("{scheme}://***@{host}"),
        None => url.to_owned(),
    };
    urls.split(',').map(one).collect::<Vec<_>>().join(",")
}

fn remove(store: &mut Store, name: &str) -> Outcome {
    if store.profiles.remove(name).is_none() {
        return Err(store.missing(name));
    }
    if store.default.as_deref() == Some(name) {
        store.default = None;
    }
    store.save()?;
    writeln!(io::stdout(), "removed profile \"{name}\"")?;
    Ok(())
}
