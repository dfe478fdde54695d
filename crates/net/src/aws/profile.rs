//! The files of AWS's tools: `~/.aws/credentials` with `[name]` and `~/.aws/config` with `[profile name]`.

use std::io;

use ottla_core::{config::sasl::aws::AwsKeys, secret::Secret};

use super::Environment;

/// The largest file.
const MAX_BYTES: u64 = 1 << 20;

/// Returns the keys of a profile, if it has some. Error: it needs what this library has not, or a file can't be read.
pub fn read(var: &Environment, name: &str) -> Result<Option<AwsKeys>, String> {
    let home = var("HOME").or_else(|| var("USERPROFILE")).unwrap_or_default();
    let path = |variable: &str, file: &str| var(variable).unwrap_or_else(|| format!("{home}/.aws/{file}"));
    let credentials = text(&path("AWS_SHARED_CREDENTIALS_FILE", "credentials"))?;
    let config = text(&path("AWS_CONFIG_FILE", "config"))?;
    let mut fields = section(&config, &format!("profile {name}"));
    if name == "default" {
        fields.extend(section(&config, name));
    }
    fields.extend(section(&credentials, name));
    // Later lines win.
    let field =
        |name: &str| fields.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    let (Some(access_key), Some(secret_key)) = (field("aws_access_key_id"), field("aws_secret_access_key"))
    else {
        for unsupported in ["role_arn", "credential_process", "sso_session", "sso_start_url"] {
            if field(unsupported).is_some() {
                return Err(format!(
                    "the profile \"{name}\" has `{unsupported}`, which is not supported; `aws configure export-credentials` \
                     writes its keys as environment variables"
                ));
            }
        }
        return Ok(None);
    };
    Ok(Some(AwsKeys {
        access_key,
        secret_key: Secret::new(secret_key.into_bytes()),
        session_token: field("aws_session_token").map(|token| Secret::new(token.into_bytes())),
        region: field("region"),
    }))
}

/// Returns the text of a file, or none if it does not exist.
fn text(path: &str) -> Result<String, String> {
    let read = || {
        if std::fs::metadata(path)?.len() > MAX_BYTES {
            return Err(io::Error::other("it has more than 1 MiB"));
        }
        std::fs::read_to_string(path)
    };
    match read() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(String::new())
        }
        result => result.map_err(|error| format!("can't read \"{path}\": {error}")),
    }
}

/// Returns the fields of a section.
fn section<'a>(text: &'a str, name: &str) -> Vec<(&'a str, &'a str)> {
    let mut is_inside = false;
    let mut fields = Vec::new();
    for line in text.lines() {
        let line_text = line.trim();
        if line_text.starts_with(['#', ';']) {
            continue;
        }
        if let Some(head) = line_text.strip_prefix('[') {
            let head = head.split(']').next().unwrap_or_default();
            is_inside = head.split_whitespace().eq(name.split_whitespace());
        } else if is_inside
            && !line.starts_with([' ', '\t'])
            && let Some((key, value)) = line_text.split_once('=')
        {
            fields.push((key.trim(), value.trim()));
        }
    }
    fields
}
