//! AWS_MSK_IAM: the mechanism of Amazon MSK, a request to AWS that is signed and not sent (Signature Version 4).
//!
//! The message is one JSON object with the fields of a presigned URL. The broker asks AWS whether the signature is right, so
//! that the secret key stays on this machine.

use std::fmt::Write as _;

use super::unsecured::json;
use crate::{config::sasl::aws::AwsKeys, hash::Hash, secret::Secret};

/// The time for which a signature is valid.
const EXPIRES_SECONDS: u32 = 300;
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Returns the message to the broker with this name. Error: the region is unknown.
pub fn message(keys: &AwsKeys, host: &str, unix_seconds: i64) -> Result<Secret, String> {
    let of_host = || region_of(host).map(str::to_owned);
    let region = keys.region.clone().or_else(of_host).ok_or_else(|| {
        "the name of the broker has no AWS region; set sasl.aws.region or AWS_REGION".to_owned()
    })?;
    let request = Request {
        host,
        path: "/",
        service: "kafka-cluster",
        region: &region,
        parameters: &[("Action", "kafka-cluster:Connect")],
        payload_hash: &hex(Hash::Sha256.digest(b"").expose()),
        expires_seconds: EXPIRES_SECONDS,
    };
    let signed = request.presign(keys, unix_seconds);
    let mut out = format!("{{\"version\":\"2020_10_22\",\"host\":{},\"user-agent\":\"ottla\"", json(host));
    for (name, value) in &signed {
        let _ = write!(out, ",\"{}\":{}", name.to_ascii_lowercase(), json(value));
    }
    out.push('}');
    Ok(Secret::new(out.into_bytes()))
}

/// Returns the region in the name of a broker of MSK: `b-1.name.id.kafka.us-east-1.amazonaws.com`.
fn region_of(host: &str) -> Option<&str> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let name = host.strip_suffix(".amazonaws.com").or_else(|| host.strip_suffix(".amazonaws.com.cn"))?;
    let (rest, region) = name.rsplit_once('.')?;
    let is_msk = rest.ends_with(".kafka") || rest.ends_with(".kafka-serverless");
    (is_msk && region.contains('-')).then_some(region)
}

/// A request that is presigned.
struct Request<'a> {
    host: &'a str,
    path: &'a str,
    service: &'a str,
    region: &'a str,
    parameters: &'a [(&'a str, &'a str)],
    payload_hash: &'a str,
    expires_seconds: u32,
}

impl Request<'_> {
    /// Returns the parameters of the URL; the last one is the signature.
    fn presign(&self, keys: &AwsKeys, unix_seconds: i64) -> Vec<(String, String)> {
        let time = time(unix_seconds);
        let scope = format!("{}/{}/{}/aws4_request", &time[..8], self.region, self.service);
        let mut parameters: Vec<_> =
            self.parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        for (name, value) in [
            ("X-Amz-Algorithm", ALGORITHM.to_owned()),
            ("X-Amz-Credential", format!("{}/{scope}", keys.access_key)),
            ("X-Amz-Date", time.clone()),
            ("X-Amz-Expires", self.expires_seconds.to_string()),
            ("X-Amz-SignedHeaders", "host".to_owned()),
        ] {
            parameters.push((name.to_owned(), value));
        }
        if let Some(token) = &keys.session_token {
            let token = String::from_utf8_lossy(token.expose()).into_owned();
            parameters.push(("X-Amz-Security-Token".to_owned(), token));
        }
        parameters.sort();
        let query: Vec<_> =
            parameters.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        let canonical = format!(
            "GET\n{}\n{}\nhost:{}\n\nhost\n{}",
            self.path,
            query.join("&"),
            self.host,
            self.payload_hash
        );
        let digest = hex(Hash::Sha256.digest(canonical.as_bytes()).expose());
        let to_sign = format!("{ALGORITHM}\n{time}\n{scope}\n{digest}");
        let mut key = Secret::concat(&[b"AWS4", keys.secret_key.expose()]);
        for part in scope.split('/') {
            key = Hash::Sha256.hmac(key.expose(), part.as_bytes());
        }
        let signature = hex(Hash::Sha256.hmac(key.expose(), to_sign.as_bytes()).expose());
        parameters.push(("X-Amz-Signature".to_owned(), signature));
        parameters
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Percent-encodes all bytes but unreserved characters.
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Returns a time as `20130524T000000Z`.
fn time(unix_seconds: i64) -> String {
    let (days, second) = (unix_seconds.div_euclid(86_400), unix_seconds.rem_euclid(86_400));
    // Days since the first of March of year 0, in eras of 400 years: leap days are then the last days of their years.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(secret: &str, token: Option<&str>) -> AwsKeys {
        AwsKeys {
            access_key: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret_key: secret.into(),
            session_token: token.map(Secret::from),
            region: None,
        }
    }

    #[test]
    fn signature_is_that_of_the_published_example() {
        // The presigned URL in Amazon S3's documentation of Signature Version 4.
        let request = Request {
            host: "examplebucket.s3.amazonaws.com",
            path: "/test.txt",
            service: "s3",
            region: "us-east-1",
            parameters: &[],
            payload_hash: "UNSIGNED-PAYLOAD",
            expires_seconds: 86_400,
        };
        let signed = request.presign(&keys("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", None), 1_369_353_600);
        let (name, signature) = signed.last().unwrap();
        assert_eq!(name, "X-Amz-Signature");
        assert_eq!(signature, "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
    }

    #[test]
    fn message_has_the_fields_of_a_presigned_request() {
        let host = "b-1.demo.abc.c2.kafka.eu-central-1.amazonaws.com";
        let message = message(&keys("secret", Some("to/ken==")), host, 1_700_000_000).unwrap();
        let text = String::from_utf8(message.expose().to_vec()).unwrap();
        assert_eq!(text, EXPECTED);
    }

    /// The signature is that of Python's hmac and hashlib over the same request.
    const EXPECTED: &str = concat!(
        r#"{"version":"2020_10_22","host":"b-1.demo.abc.c2.kafka.eu-central-1.amazonaws.com","user-agent":"ottla","#,
        r#""action":"kafka-cluster:Connect","x-amz-algorithm":"AWS4-HMAC-SHA256","#,
        r#""x-amz-credential":"AKIAIOSFODNN7EXAMPLE/20231114/eu-central-1/kafka-cluster/aws4_request","#,
        r#""x-amz-date":"20231114T221320Z","x-amz-expires":"300","x-amz-security-token":"to/ken==","#,
        r#""x-amz-signedheaders":"host","#,
        r#""x-amz-signature":"c5880cb46763caab73ac8bdf4a208b77f4d5a4fe172724f200fa73c6f9c0bf4c"}"#
    );

    #[test]
    fn region_is_configured_or_in_the_name_of_the_broker() {
        for (host, region) in [
            ("b-1.demo.abc.c2.kafka.us-east-1.amazonaws.com", Some("us-east-1")),
            ("boot-x.c1.kafka-serverless.eu-west-3.amazonaws.com.", Some("eu-west-3")),
            ("b-1.demo.abc.c2.kafka.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("s3.us-east-1.amazonaws.com", None),
            ("kafka.example.org", None),
            ("", None),
        ] {
            assert_eq!(region_of(host), region, "{host}");
        }
        let mut keys = keys("secret", None);
        assert!(message(&keys, "kafka.example.org", 0).unwrap_err().contains("sasl.aws.region"));
        keys.region = Some("us-east-2".to_owned());
        let text = message(&keys, "a\"b", 0).unwrap();
        let text = String::from_utf8(text.expose().to_vec()).unwrap();
        assert!(text.contains("/19700101/us-east-2/") && text.contains(r#""host":"a\"b""#), "{text}");
        assert!(!text.contains("security-token"), "{text}");
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (4_107_542_399, "21000228T235959Z"),
            (-1, "19691231T235959Z"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }
}
