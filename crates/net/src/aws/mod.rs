//! Finds the keys of an AWS identity, in the order of AWS's tools, on a thread that may block.
//!
//! | source | found by |
//! |---|---|
//! | properties | `sasl.aws.access.key.id` and its siblings |
//! | a profile | `sasl.aws.profile`; the files of [`profile`] |
//! | environment | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` |
//! | web identity (Kubernetes) | `AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_ROLE_ARN`: AWS's token service |
//! | a profile | `AWS_PROFILE`, or `default` |
//! | container | `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` or `_FULL_URI` |
//! | machine | the metadata service of EC2, version 2 |

mod profile;
#[cfg(test)]
mod tests;

use std::{env, fmt, fs, time::Duration};

use ottla_core::{
    config::sasl::{
        aws::{AwsKeys, AwsSettings},
        oidc::Endpoint,
    },
    error::Error,
    secret::Secret,
    shown::quoted,
};
use serde_json::Value;

use crate::{
    oidc::{
        Form, TokenFailure,
        http::{Answer, Http, Method, Request},
    },
    tls,
};

/// Returns the value of an environment variable, if it is set and not empty.
type Environment = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Finds keys.
pub struct AwsClient {
    settings: AwsSettings,
    environment: Environment,
}

/// Keys with the end of their life.
#[derive(Clone, Debug)]
pub struct FoundKeys {
    /// The keys.
    pub keys: AwsKeys,
    /// The end of their life in milliseconds since 1970; `None` for keys that do not end.
    pub expires_ms: Option<i64>,
}

/// The time of an exchange with a token service.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time of an exchange on this machine or with its metadata service.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_TOKEN_BYTES: usize = 64 << 10;

impl AwsClient {
    /// Creates the client.
    pub fn new(settings: AwsSettings) -> Self {
        let environment = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Self { settings, environment: Box::new(environment) }
    }

    /// Finds keys. Blocks for at most 30 seconds.
    pub fn fetch(&self) -> Result<FoundKeys, TokenFailure> {
        let found = self
            .find()
            .map_err(|failure| TokenFailure { reason: format!("AWS keys: {}", failure.reason), ..failure })?;
        if found.expires_ms.is_some_and(|at| at <= super::oidc::unix_ms()) {
            return Err(TokenFailure::permanent(
                "AWS keys: they have expired; renew them, or compare the clocks",
            ));
        }
        Ok(found)
    }

    fn find(&self) -> Result<FoundKeys, TokenFailure> {
        let forever = |keys| FoundKeys { keys, expires_ms: None };
        if let Some(keys) = &self.settings.keys {
            return Ok(forever(self.with_region(keys.clone())));
        }
        if let Some(name) = &self.settings.profile {
            let found = profile::read(&self.environment, name).map_err(TokenFailure::permanent)?;
            let missing = || {
                TokenFailure::permanent(format!(
                    "the profile \"{name}\" (sasl.aws.profile) has no keys in the files of AWS_SHARED_CREDENTIALS_FILE and \
                     AWS_CONFIG_FILE"
                ))
            };
            return found.map(|keys| forever(self.with_region(keys))).ok_or_else(missing);
        }
        let var = &self.environment;
        if let (Some(access_key), Some(secret)) = (var("AWS_ACCESS_KEY_ID"), var("AWS_SECRET_ACCESS_KEY")) {
            let session_token = var("AWS_SESSION_TOKEN").map(|token| Secret::new(token.into_bytes()));
            let secret_key = Secret::new(secret.into_bytes());
            let keys = AwsKeys { access_key, secret_key, session_token, region: None };
            return Ok(forever(self.with_region(keys)));
        }
        if let (Some(file), Some(role)) = (var("AWS_WEB_IDENTITY_TOKEN_FILE"), var("AWS_ROLE_ARN")) {
            return self.web_identity(&file, &role);
        }
        let name = var("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        if let Some(keys) = profile::read(var, &name).map_err(TokenFailure::permanent)? {
            return Ok(forever(self.with_region(keys)));
        }
        match self.container_url()? {
            Some(url) => self.container(&url),
            None => self.machine(),
        }
    }

    /// Sets the region that is configured; that of the broker's name is the default.
    fn with_region(&self, mut keys: AwsKeys) -> AwsKeys {
        let configured = self.settings.region.clone().or_else(|| (self.environment)("AWS_REGION"));
        keys.region = configured.or_else(|| (self.environment)("AWS_DEFAULT_REGION")).or(keys.region);
        keys
    }

    fn web_identity(&self, file: &str, role: &str) -> Result<FoundKeys, TokenFailure> {
        let var = &self.environment;
        let read = fs::metadata(file).and_then(|data| {
            if data.len() > MAX_TOKEN_BYTES as u64 { Ok(Vec::new()) } else { fs::read(file) }
        });
        let token = read.map(Secret::new).map_err(|error| {
            TokenFailure::permanent(format!("can't read \"{file}\" (AWS_WEB_IDENTITY_TOKEN_FILE): {error}"))
        })?;
        let region =
            self.settings.region.clone().or_else(|| var("AWS_REGION")).or_else(|| var("AWS_DEFAULT_REGION"));
        let url = var("AWS_ENDPOINT_URL_STS").unwrap_or_else(|| match region {
            Some(region) if region.starts_with("cn-") => format!("https://sts.{region}.amazonaws.com.cn/"),
            Some(region) => format!("https://sts.{region}.amazonaws.com/"),
            None => "https://sts.amazonaws.com/".to_owned(),
        });
        let session = var("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "ottla".to_owned());
        let form = Form::starting_with("Action", "AssumeRoleWithWebIdentity")
            .add("Version", b"2011-06-15")
            .add("RoleArn", role.as_bytes())
            .add("RoleSessionName", session.as_bytes())
            .add("WebIdentityToken", token.expose().trim_ascii())
            .finish();
        let request =
            Request { url: &url, header: ("Accept", "text/xml"), form: Some(&form), method: Method::Post };
        let answer = exchange(&url, REMOTE_TIMEOUT, request)?;
        let text = String::from_utf8_lossy(answer.body.expose());
        if answer.status != 200 {
            let code = element(&text, "Code").filter(|code| code.len() < 100).map(quoted).unwrap_or_default();
            return Err(status(
                &url,
                answer.status,
                &format!("{code}; check AWS_ROLE_ARN and the role's trust policy"),
            ));
        }
        let field = |name| {
            element(&text, name)
                .map(str::to_owned)
                .ok_or_else(|| TokenFailure::permanent(format!("{url}: the response has no {name}")))
        };
        let keys = AwsKeys {
            access_key: field("AccessKeyId")?,
            secret_key: Secret::new(field("SecretAccessKey")?.into_bytes()),
            session_token: Some(Secret::new(field("SessionToken")?.into_bytes())),
            region: None,
        };
        let expires_ms = expiration(&url, &field("Expiration")?)?;
        Ok(FoundKeys { keys: self.with_region(keys), expires_ms: Some(expires_ms) })
    }

    /// Returns the address of the container's credentials, if there is one.
    fn container_url(&self) -> Result<Option<String>, TokenFailure> {
        if let Some(path) = (self.environment)("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            return Ok(Some(format!("http://169.254.170.2{path}")));
        }
        let name = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
        let Some(url) = (self.environment)(name) else { return Ok(None) };
        let endpoint =
            Endpoint::parse(&url).map_err(|why| TokenFailure::permanent(format!("{name}: {why}")))?;
        let is_of_aws = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"].contains(&endpoint.host());
        if endpoint.is_https() || endpoint.is_loopback() || is_of_aws {
            return Ok(Some(url));
        }
        Err(TokenFailure::permanent(format!("{name}: {endpoint} is neither https nor on this machine")))
    }

    fn container(&self, url: &str) -> Result<FoundKeys, TokenFailure> {
        let token = match (self.environment)("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(file) => {
                let name = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
                let bytes = tls::read_file(name, &file)
                    .map_err(|error: Error| TokenFailure::permanent(error.context().detail.clone()))?;
                String::from_utf8_lossy(bytes.expose().trim_ascii()).into_owned()
            }
            None => (self.environment)("AWS_CONTAINER_AUTHORIZATION_TOKEN").unwrap_or_default(),
        };
        let header =
            if token.is_empty() { ("Accept", "application/json") } else { ("Authorization", &*token) };
        let answer = exchange(url, LOCAL_TIMEOUT, Request { url, header, form: None, method: Method::Get })?;
        self.json_keys(url, &answer)
    }

    /// Asks the metadata service of EC2.
    fn machine(&self) -> Result<FoundKeys, TokenFailure> {
        let var = &self.environment;
        let nowhere = "found neither in properties nor in the environment, profiles, or a container";
        if var("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(TokenFailure::permanent(nowhere));
        }
        let base =
            var("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or_else(|| "http://169.254.169.254".to_owned());
        let base = base.trim_end_matches('/');
        let get = |path: &str, header, method| {
            let url = format!("{base}/latest/{path}");
            let answer = exchange(&url, LOCAL_TIMEOUT, Request { url: &url, header, form: None, method })?;
            if answer.status == 200 {
                Ok(answer)
            } else {
                Err(status(&url, answer.status, "the machine has no role"))
            }
        };
        let ttl = ("X-aws-ec2-metadata-token-ttl-seconds", "300");
        let session = get("api/token", ttl, Method::Put).map_err(|failure| TokenFailure {
            reason: format!(
                "{nowhere}, and the metadata service of EC2 does not respond: {}",
                failure.reason
            ),
            ..failure
        })?;
        let session = String::from_utf8_lossy(session.body.expose()).into_owned();
        let header = ("X-aws-ec2-metadata-token", session.trim());
        let roles = "meta-data/iam/security-credentials/";
        let role = get(roles, header, Method::Get)?;
        let role =
            String::from_utf8_lossy(role.body.expose()).lines().next().unwrap_or_default().trim().to_owned();
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "+=,.@_-".contains(letter);
        if role.is_empty() || role.len() > 128 || !role.chars().all(is_name) {
            return Err(TokenFailure::permanent("the metadata service of EC2 has no role with keys"));
        }
        let path = format!("{roles}{role}");
        let answer = get(&path, header, Method::Get)?;
        self.json_keys(&format!("{base}/latest/{path}"), &answer)
    }

    /// Reads keys in JSON.
    fn json_keys(&self, url: &str, answer: &Answer) -> Result<FoundKeys, TokenFailure> {
        if answer.status != 200 {
            return Err(status(url, answer.status, ""));
        }
        let json: Value = serde_json::from_slice(answer.body.expose())
            .map_err(|_| TokenFailure::permanent(format!("{url}: the response is not JSON")))?;
        let field = |name: &str| {
            json[name]
                .as_str()
                .ok_or_else(|| TokenFailure::permanent(format!("{url}: the response has no {name}")))
        };
        let keys = AwsKeys {
            access_key: field("AccessKeyId")?.to_owned(),
            secret_key: field("SecretAccessKey")?.into(),
            session_token: json["Token"].as_str().map(Secret::from),
            region: None,
        };
        let expires_ms = json["Expiration"].as_str().map(|text| expiration(url, text)).transpose()?;
        Ok(FoundKeys { keys: self.with_region(keys), expires_ms })
    }
}

fn exchange(url: &str, timeout: Duration, request: Request<'_>) -> Result<Answer, TokenFailure> {
    let endpoint =
        Endpoint::parse(url).map_err(|why| TokenFailure::permanent(format!("\"{url}\": {why}")))?;
    let roots =
        if endpoint.is_https() { tls::https_roots(None, None).unwrap_or_default() } else { Vec::new() };
    let http = Http::new(&roots, &endpoint, endpoint.is_https(), timeout, timeout);
    http.send(request)
        .map_err(|failure| TokenFailure { reason: format!("{endpoint}: {}", failure.reason), ..failure })
}

fn status(url: &str, status: u16, advice: &str) -> TokenFailure {
    TokenFailure {
        reason: format!("{url}: HTTP status {status} {advice}"),
        is_transient: status == 429 || status >= 500,
    }
}

/// Returns the text of the first XML element with this name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once('<')?.0.trim()).filter(|text| !text.is_empty())
}

/// Parses `2026-11-23T15:00:00Z` to milliseconds since 1970.
fn expiration(url: &str, text: &str) -> Result<i64, TokenFailure> {
    let wrong = || TokenFailure::permanent(format!("{url}: Expiration is no time: {}", quoted(text)));
    let number = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<i64>().ok());
    let parts = [number(0, 4), number(5, 7), number(8, 10), number(11, 13), number(14, 16), number(17, 19)];
    let [Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)] = parts else {
        return Err(wrong());
    };
    if !text.ends_with('Z') || !(1..=12).contains(&month) || !(1970..=9999).contains(&year) {
        return Err(wrong());
    }
    let days = crate::credentials::x509::days_from_1970(year, month, day);
    Ok((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000)
}

impl fmt::Debug for AwsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsClient").field("settings", &self.settings).finish_non_exhaustive()
    }
}
