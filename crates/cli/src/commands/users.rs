//! `ottla users`: the SCRAM credentials of users.

use ottla_sorted::SortedMap;
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use ottla::admin::{ScramAlteration, ScramMechanism, scram_password};
use ottla::{Admin, Secret};

use super::admin_command::{Common, finish, subcommands, texts};
use super::table::Table;
use crate::client_options::call_timeout;
use crate::failure::{EXIT_CODES, Failure, Outcome};
use crate::signals::Interrupt;

subcommands! {
    /// List users of SCRAM, set their passwords, and delete their credentials
    #[command(after_help = format!("Examples:\n  \
        ottla users -b localhost:9092 list\n  \
        ottla users -b localhost:9092 set-password alice --mechanism SCRAM-SHA-512 < password\n  \
        ottla users -b localhost:9092 delete alice --mechanism SCRAM-SHA-256 --dry-run\n\n{EXIT_CODES}"))]
    UsersOptions { List(ListOptions), SetPassword(SetPasswordOptions), Delete(DeleteOptions) }
}

/// Print users with their mechanisms and iterations
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    common: Common,

    /// Names of the users [default: all users]
    #[arg(value_name = "USER")]
    users: Vec<String>,
}

impl ListOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let names: Vec<&str> = self.users.iter().map(String::as_str).collect();
        let named = (!names.is_empty()).then_some(&names[..]);
        let mut table = Table::new(&[
            ("USER", "user", 0),
            ("MECHANISM", "mechanism", 0),
            ("ITERATIONS", "iterations", 0),
        ]);
        let mut failures = Vec::new();
        for (user, result) in admin.describe_scram_users(named, call_timeout())? {
            match result {
                Ok(credentials) => credentials.iter().for_each(|one| {
                    table.add([user.as_str().into(), one.mechanism.name().into(), one.iterations.into()]);
                }),
                Err(error) => failures.push(format!("user \"{user}\": {error}")),
            }
        }
        table.print(self.common.json)?;
        finish(failures)
    }
}

/// Set the password of a user, which is read from standard input or a file
#[derive(Args, Debug)]
struct SetPasswordOptions {
    #[command(flatten)]
    common: Common,

    /// Name of the user
    #[arg(value_name = "USER")]
    user: String,

    /// SCRAM-SHA-256 or SCRAM-SHA-512; can be repeated [default: SCRAM-SHA-512]
    #[arg(long, value_name = "MECHANISM", value_parser = mechanism)]
    mechanism: Vec<ScramMechanism>,

    /// The number of iterations, which make guessing slow; brokers accept 4096 to 16384
    #[arg(long, value_name = "COUNT", default_value_t = 8192, value_parser = clap::value_parser!(i32).range(1..=1_000_000))]
    iterations: i32,

    /// Read the password from the first line of this file
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl SetPasswordOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let password = first_line(self.password_file.as_ref(), "password")?;
        let default = [ScramMechanism::Sha512];
        let mechanisms = if self.mechanism.is_empty() { &default[..] } else { &self.mechanism[..] };
        let set = |one: &ScramMechanism| scram_password(&self.user, *one, self.iterations, &password);
        let alterations = mechanisms.iter().map(set).collect::<ottla::Result<Vec<_>>>()?;
        self.common.report("user", "changed", altered(admin, &alterations)?)
    }
}

/// Delete credentials of a user
#[derive(Args, Debug)]
struct DeleteOptions {
    #[command(flatten)]
    common: Common,

    /// Names of the users
    #[arg(value_name = "USER", required = true)]
    users: Vec<String>,

    /// SCRAM-SHA-256 or SCRAM-SHA-512; can be repeated [default: all that the user has]
    #[arg(long, value_name = "MECHANISM", value_parser = mechanism)]
    mechanism: Vec<ScramMechanism>,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,
}

impl DeleteOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let names: Vec<&str> = self.users.iter().map(String::as_str).collect();
        let mut alterations = Vec::new();
        let mut failures = Vec::new();
        for (user, result) in admin.describe_scram_users(Some(&names), call_timeout())? {
            match result {
                Ok(credentials) => {
                    let named =
                        |one: &ScramMechanism| self.mechanism.is_empty() || self.mechanism.contains(one);
                    let found: Vec<_> =
                        credentials.iter().map(|one| one.mechanism).filter(|one| named(one)).collect();
                    if found.is_empty() {
                        failures.push(format!("user \"{user}\" has no credentials of this mechanism"));
                    }
                    let delete = |mechanism| ScramAlteration::Delete { user: user.clone(), mechanism };
                    alterations.extend(found.into_iter().map(delete));
                }
                Err(error) => failures.push(format!("user \"{user}\": {error}")),
            }
        }
        if self.dry_run {
            let name = |one: &ScramAlteration| match one {
                ScramAlteration::Delete { user, mechanism } => format!("{user} ({})", mechanism.name()),
                other => other.user().to_owned(),
            };
            self.common.preview("credential of user", alterations.iter().map(name), "deleted")?;
        } else if !alterations.is_empty() {
            self.common.report("credentials of user", "deleted", altered(admin, &alterations)?)?;
        }
        finish(failures)
    }
}

/// Changes credentials, one after the other: brokers accept one alteration of a user in a request. Each user has one result,
/// which is the first error if there is one.
fn altered(admin: &Admin, alterations: &[ScramAlteration]) -> Outcome<Vec<(String, Result<(), String>)>> {
    let mut results = SortedMap::new();
    for alteration in alterations {
        for (user, result) in
            texts(admin.alter_scram_users(std::slice::from_ref(alteration), call_timeout())?, String::clone)
        {
            let known = results.entry(user).or_insert(Ok(()));
            if known.is_ok() {
                *known = result;
            }
        }
    }
    Ok(results.into_iter().collect())
}

fn mechanism(name: &str) -> Result<ScramMechanism, String> {
    match ScramMechanism::from_name(name) {
        ScramMechanism::Unknown => Err("use SCRAM-SHA-256 or SCRAM-SHA-512".to_owned()),
        mechanism => Ok(mechanism),
    }
}

/// Reads a secret from a file or standard input, without its line end. A terminal does not show what is typed.
pub fn first_line(file: Option<&PathBuf>, what: &str) -> Outcome<Secret> {
    let mut line = String::new();
    match file {
        Some(path) => {
            let unreadable = |error: io::Error| {
                Failure::Usage(format!("the file {} with the {what} can't be read: {error}", path.display()))
            };
            let file = std::fs::File::open(path).map_err(unreadable)?;
            io::BufReader::new(file).read_line(&mut line).map_err(unreadable)?;
        }
        None if io::stdin().is_terminal() => {
            // Ctrl-C has to restore the terminal first.
            let interrupt = Interrupt::catch()?;
            line = rpassword::prompt_password(format!("{what} (not shown): ")).map_err(|error| {
                let unreadable =
                    Failure::Usage(format!("the {what} can't be read from the terminal: {error}"));
                interrupt.check().err().unwrap_or(unreadable)
            })?;
        }
        None => {
            let unreadable = |error: io::Error| {
                Failure::Usage(format!("the {what} can't be read from standard input: {error}"))
            };
            io::stdin().lock().read_line(&mut line).map_err(unreadable)?;
        }
    }
    let secret = Secret::from(line.trim_end_matches(['\n', '\r']));
    if secret.is_empty() {
        return Err(Failure::Usage(format!(
            "the {what} is empty; it is the first line of standard input or a file"
        )));
    }
    Ok(secret)
}
