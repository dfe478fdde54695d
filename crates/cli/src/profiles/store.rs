//! The file of profiles: `~/.config/ottla/config.toml`.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use ottla_sorted::SortedMap;
use toml::{Table, Value};

use super::Profile;
use crate::failure::{Failure, Outcome};
use crate::platform;

/// The profiles of a user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    /// The name of the profile that is used if none is named.
    pub default: Option<String>,
    /// The profiles by name.
    pub profiles: SortedMap<String, Profile>,
}

/// Returns the profile to use: `named`, or else that of `OTTLA_PROFILE`, or else the default one. The latter two only if
/// `is_open`, which says that the command line names no cluster: a password must not go to another one.
///
/// # Errors
///
/// The file is wrong, or has no profile of that name.
pub fn chosen(named: Option<&str>, is_open: bool) -> Outcome<Option<(String, Profile)>> {
    let of_environment = || std::env::var("OTTLA_PROFILE").ok().filter(|name| !name.is_empty() && is_open);
    let asked = named.map(str::to_owned).or_else(of_environment);
    if asked.is_none() && (!is_open || variable("OTTLA_BOOTSTRAP").is_some()) {
        return Ok(None);
    }
    let store = Store::load()?;
    let Some(name) = asked.or_else(|| store.default.clone()) else { return Ok(None) };
    match store.profiles.get(&name) {
        Some(profile) => Ok(Some((name, profile.clone()))),
        None => Err(store.missing(&name)),
    }
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

impl Store {
    /// Returns the path of the file: `OTTLA_CONFIG`, or else that of the system's convention.
    ///
    /// # Errors
    ///
    /// The user has no home folder.
    pub fn path() -> Outcome<PathBuf> {
        if let Some(path) = variable("OTTLA_CONFIG") {
            return Ok(path.into());
        }
        let folder = variable(if cfg!(windows) { "APPDATA" } else { "XDG_CONFIG_HOME" })
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or_else(|| std::env::home_dir().map(|home| home.join(".config")));
        let folder = folder
            .ok_or_else(|| Failure::Usage("the home folder is unknown: set OTTLA_CONFIG=FILE".to_owned()))?;
        Ok(folder.join("ottla").join("config.toml"))
    }

    /// Reads the file; a missing file has no profiles.
    ///
    /// # Errors
    ///
    /// It can't be read, or something in it is wrong.
    pub fn load() -> Outcome<Store> {
        // A user without a home folder has no profiles.
        let Ok(path) = Store::path() else { return Ok(Store::default()) };
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                Store::parse(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(Store::default())
            }
            Err(error) => Err(Failure::Usage(format!("{} can't be read: {error}", path.display()))),
        }
    }

    fn parse(text: &str) -> Result<Store, String> {
        // The text around an error may be a password: only the line is named.
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line =
                error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            format!("line {line}: {}", error.message())
        })?;
        let mut store = Store::default();
        for (key, value) in table {
            match (key.as_str(), value) {
                ("default", Value::String(name)) => store.default = Some(name),
                ("profiles", Value::Table(profiles)) => {
                    for (name, profile) in profiles {
                        let Value::Table(profile) = profile else {
                            return Err(format!("profiles.{name} must be a table"));
                        };
                        let profile = Profile::from_table(&profile)
                            .map_err(|error| format!("profile \"{name}\": {error}"))?;
                        store.profiles.insert(name, profile);
                    }
                }
                _ => {
                    return Err(format!(
                        "{key} is unknown or has another type; possible are default and [profiles.NAME]"
                    ));
                }
            }
        }
        Ok(store)
    }

    /// Writes the file, which only this user can read, in place of the present one.
    ///
    /// # Errors
    ///
    /// It can't be written. The present one remains then.
    pub fn save(&self) -> Outcome<PathBuf> {
        let path = Store::path()?;
        let failed =
            |error: std::io::Error| Failure::Failed(format!("{} can't be written: {error}", path.display()));
        let mut table = Table::new();
        if let Some(default) = &self.default {
            table.insert("default".into(), default.as_str().into());
        }
        let profiles: Table = self
            .profiles
            .iter()
            .map(|(name, profile)| (name.clone(), Value::Table(profile.to_table())))
            .collect();
        table.insert("profiles".into(), profiles.into());
        let text =
            format!("# Clusters of the program `ottla`; `ottla profile --help` changes them.\n{table}");
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        write_private(&path, text.as_bytes()).map_err(failed)?;
        Ok(path)
    }

    /// Returns the error about a profile that does not exist.
    pub fn missing(&self, name: &str) -> Failure {
        let names: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
        let known = if names.is_empty() {
            "there are none yet".to_owned()
        } else {
            format!("there are {}", names.join(", "))
        };
        Failure::Usage(format!(
            "profile \"{name}\" does not exist; {known}; `ottla profile add {name} -b HOST:PORT` adds it"
        ))
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = path.with_extension(format!("toml.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    platform::make_file_private(&mut options);
    let mut file = options.open(&temporary)?;
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_line_and_not_its_text() {
        let error = Store::parse("default = 'a'\n[profiles.a]\npassword hunter2\n").unwrap_err();
        assert!(error.starts_with("line 3: ") && !error.contains("hunter2"), "{error}");
        for (text, error) in [
            ("defalt = 'a'", "defalt is unknown"),
            ("profiles = 3", "profiles is unknown or has another type"),
            ("[profiles]\na = 1", "profiles.a must be a table"),
            ("[profiles.a]\nx = 1", "profile \"a\": x is unknown"),
        ] {
            assert!(Store::parse(text).unwrap_err().contains(error), "{text}");
        }
    }
}
