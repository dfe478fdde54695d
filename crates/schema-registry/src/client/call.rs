//! A call: each address in turn, repetitions within a deadline, and what an answer means.

use std::time::Duration;

use serde_json::Value;

use super::{
    Client,
    http::{Answer, Method, Request},
    path::Path,
};
use crate::{
    Error, Result,
    error::{Attempt, shortened},
};

/// The media type of the API.
const MEDIA_TYPE: &str = "application/vnd.schemaregistry.v1+json";
/// The largest number of redirects within one address.
const MAX_REDIRECTS: usize = 3;

/// What became of a request at one address.
enum Outcome {
    Done(Value),
    /// Another address, or a later try, may succeed.
    Failed(Attempt, Option<Error>),
}

impl Client {
    /// Sends a request and returns the JSON of the answer.
    pub(super) fn call(&self, method: Method, path: &Path, body: Option<&Value>) -> Result<Value> {
        let shown = format!("{} {}", method.name(), path.as_str());
        let config = &self.inner.config;
        let (http, deadline) = (&self.inner.http, self.inner.http.now() + config.timeout);
        let (mut attempts, mut last) = (Vec::new(), None);
        let mut pause = config.backoff;
        for round in 0..=config.retries {
            if round > 0 {
                let left = deadline.saturating_duration_since(http.now());
                if left <= pause {
                    break;
                }
                http.pause(pause);
                pause *= 2;
                attempts.clear();
            }
            for (number, address) in self.inner.addresses.in_order() {
                let left = deadline.saturating_duration_since(http.now());
                if left.is_zero() {
                    break;
                }
                match self.ask(address, method, path, body, left.min(config.request_timeout), &shown)? {
                    Outcome::Done(value) => {
                        self.inner.addresses.prefer(number);
                        return Ok(value);
                    }
                    Outcome::Failed(attempt, error) => {
                        attempts.push(attempt);
                        last = error;
                    }
                }
            }
        }
        Err(match (last, attempts.len()) {
            (Some(error), 0 | 1) => error,
            _ => Error::Unreachable { request: shown, attempts },
        })
    }

    /// Asks one address. Errors are those that another address would give, too.
    fn ask(
        &self,
        address: &str,
        method: Method,
        path: &Path,
        body: Option<&Value>,
        timeout: Duration,
        shown: &str,
    ) -> Result<Outcome> {
        let mut url = format!("{address}{}", path.as_str());
        let (mut redirects, mut has_renewed) = (0, false);
        loop {
            let mut headers = self.inner.authenticator.headers(&*self.inner.http, timeout)?;
            headers.push(("Accept".to_owned(), format!("{MEDIA_TYPE}, application/json").into()));
            if body.is_some() {
                headers.push(("Content-Type".to_owned(), MEDIA_TYPE.into()));
            }
            let further = self.inner.config.headers.iter();
            headers.extend(further.map(|(name, value)| (name.clone(), value.as_str().into())));
            let body = body.map(|it| it.to_string().into_bytes());
            let answer =
                match self.inner.http.exchange(&Request { method, url: url.clone(), headers, body, timeout })
                {
                    Ok(answer) => answer,
                    Err(why) => {
                        return Ok(Outcome::Failed(Attempt { address: address.to_owned(), why }, None));
                    }
                };
            if (300..400).contains(&answer.status) {
                redirects += 1;
                url = redirected(&url, &answer, redirects).map_err(|why| Error::Answer {
                    request: shown.to_owned(),
                    address: address.to_owned(),
                    why,
                })?;
                continue;
            }
            if answer.status == 401 && !has_renewed && self.inner.authenticator.renew() {
                has_renewed = true;
                continue;
            }
            return judged(&answer, shown, address);
        }
    }
}

/// Returns the URL of a redirect within the same host.
fn redirected(from: &str, answer: &Answer, redirects: usize) -> Result<String, String> {
    let Some(to) = &answer.location else {
        return Err(format!("status {} without a Location", answer.status));
    };
    let end = from.find("://").map_or(0, |at| at + 3);
    let host_end = from[end..].find('/').map_or(from.len(), |at| end + at);
    let origin = &from[..host_end];
    let to_url =
        if to.starts_with('/') && !to.starts_with("//") { format!("{origin}{to}") } else { to.clone() };
    let is_same_host = to_url.strip_prefix(origin).is_some_and(|rest| rest.starts_with('/'));
    let without_query = shortened(to.split(['?', '#']).next().unwrap_or_default());
    if !is_same_host {
        return Err(format!(
            "it redirects to {without_query}, another host, which gets no credentials; use that address"
        ));
    }
    if redirects > MAX_REDIRECTS {
        return Err(format!("it redirects again and again, at last to {without_query}"));
    }
    Ok(to_url)
}

/// Says what an answer means.
fn judged(answer: &Answer, shown: &str, address: &str) -> Result<Outcome> {
    let status = answer.status;
    let value = serde_json::from_slice::<Value>(&answer.body).ok();
    let is_success = (200..300).contains(&status);
    if is_success && let Some(value) = value {
        return Ok(Outcome::Done(value));
    }
    if is_success && answer.body.is_empty() {
        return Ok(Outcome::Done(Value::Null));
    }
    let of = |key: &str| value.as_ref().and_then(|it| it.get(key));
    let code = of("error_code").and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok());
    let message = of("message").and_then(Value::as_str);
    let message = message.map(|it| shortened(it.trim_end_matches('.')));
    let is_transient = matches!(status, 408 | 429 | 500..=599);
    let is_of_a_registry = code.is_some() || message.is_some() || matches!(status, 401 | 403);
    let error = if is_of_a_registry || is_transient {
        Error::Refused {
            request: shown.to_owned(),
            address: address.to_owned(),
            status,
            code: code.unwrap_or(status.into()),
            message: message.unwrap_or_else(|| described(answer)),
        }
    } else {
        Error::Answer {
            request: shown.to_owned(),
            address: address.to_owned(),
            why: format!("status {status}, {}", described(answer)),
        }
    };
    if is_transient {
        let why = format!("status {status}, {}", described(answer));
        return Ok(Outcome::Failed(Attempt { address: address.to_owned(), why }, Some(error)));
    }
    Err(error)
}

/// Describes a body that is not the API's.
fn described(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(2048)]).into_owned();
    let is_html = answer.content_type.contains("html") || text.trim_start().starts_with('<');
    if answer.body.is_empty() {
        "without a body".to_owned()
    } else if is_html {
        let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
        format!(
            "an HTML page{}",
            title.map_or(String::new(), |(title, _)| format!(" {:?}", shortened(title.trim())))
        )
    } else {
        format!("the text {:?}", text.chars().take(80).collect::<String>())
    }
}
