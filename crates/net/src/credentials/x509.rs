//! The parts of a certificate that errors and checks need: its names, its validity, its key.
//!
//! webpki verifies certificates and refuses those that it does not support. This reader also understands what webpki
//! refuses, such as version 1, so that errors can say which certificate it is.

use std::{fmt::Write as _, net::IpAddr, time::Duration};

use super::der::{Der, DerError, tag};

/// The described parts of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The version: 1, 2 or 3.
    pub version: u32,
    /// The subject's name, such as `CN=broker,O=Example`.
    pub subject: String,
    /// The issuer's name.
    pub issuer: String,
    /// The DER encoding of the subject's name.
    pub subject_der: Vec<u8>,
    /// The DER encoding of the issuer's name.
    pub issuer_der: Vec<u8>,
    /// The subject's common name.
    pub common_name: Option<String>,
    /// The beginning of the validity, in seconds since 1970.
    pub not_before: i64,
    /// The end of the validity, in seconds since 1970.
    pub not_after: i64,
    /// The DER encoding of the subject's public key with its algorithm.
    pub public_key: Vec<u8>,
    /// The identifier of the algorithm that the certificate is signed with.
    pub signature_algorithm: Vec<u8>,
    /// True if the certificate has a keyUsage without keyCertSign, so that it must not issue others.
    pub must_not_issue: bool,
    /// True if the certificate has a subjectAltName.
    pub has_names: bool,
    /// The host names and addresses of the subjectAltName, as far as they can be read; at most 100.
    pub names: Vec<String>,
}

/// The highest number of names that are kept of a certificate.
const MAX_NAMES: usize = 100;

impl Certificate {
    /// Reads a certificate in DER.
    pub fn parse(der: &[u8]) -> Result<Self, DerError> {
        let mut body = Der::new(der).inside(tag::SEQUENCE)?.inside(tag::SEQUENCE)?;
        let version = match body.optional(tag::CONTEXT_0)? {
            Some(version) => Der::new(version).small()?.saturating_add(1),
            None => 1,
        };
        body.expect(tag::INTEGER)?;
        let signature_algorithm = body.inside(tag::SEQUENCE)?.expect(tag::OID)?.to_vec();
        let issuer = body.any()?;
        let mut validity = body.inside(tag::SEQUENCE)?;
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
        let subject = body.any()?;
        let public_key = body.any()?.whole.to_vec();
        let (subject_name, common_name) = name(subject.content)?;
        let (mut names, mut must_not_issue) = (None, false);
        while !body.is_empty() {
            let value = body.any()?;
            if value.tag == tag::CONTEXT_3 {
                names = extension(value.content, SUBJECT_ALT_NAME)?
                    // A malformed list of names is webpki's to refuse; the certificate can still be described.
                    .map(|value| general_names(value).unwrap_or_default());
                must_not_issue =
                    extension(value.content, KEY_USAGE)?.is_some_and(|usage| !signs_certificates(usage));
            }
        }
        Ok(Self {
            version,
            subject: subject_name,
            issuer: name(issuer.content)?.0,
            subject_der: subject.whole.to_vec(),
            issuer_der: issuer.whole.to_vec(),
            common_name,
            not_before,
            not_after,
            public_key,
            signature_algorithm,
            must_not_issue,
            has_names: names.is_some(),
            names: names.unwrap_or_default(),
        })
    }

    /// Returns true if subject and issuer have the same name.
    pub fn is_self_issued(&self) -> bool {
        self.subject_der == self.issuer_der
    }

    /// Describes the certificate for an error.
    pub fn describe(&self) -> String {
        format!("\"{}\" (issued by \"{}\", valid until {})", self.subject, self.issuer, date(self.not_after))
    }
}

/// Describes a certificate in DER for an error.
pub fn describe(der: &[u8]) -> String {
    Certificate::parse(der).map_or_else(|why| format!("of {} bytes ({why})", der.len()), |it| it.describe())
}

const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];

/// Returns the value of an extension, if it is among the extensions.
fn extension<'a>(extensions: &'a [u8], oid: &[u8]) -> Result<Option<&'a [u8]>, DerError> {
    let mut extensions = Der::new(extensions).inside(tag::SEQUENCE)?;
    while !extensions.is_empty() {
        let mut extension = extensions.inside(tag::SEQUENCE)?;
        if extension.expect(tag::OID)? == oid {
            extension.optional(tag::BOOLEAN)?;
            return extension.expect(tag::OCTET_STRING).map(Some);
        }
    }
    Ok(None)
}

/// Returns whether a keyUsage has keyCertSign, the sixth bit.
fn signs_certificates(usage: &[u8]) -> bool {
    const KEY_CERT_SIGN: u8 = 0x04;
    let bits = Der::new(usage).expect(tag::BIT_STRING).unwrap_or_default();
    bits.get(1).is_some_and(|first| first & KEY_CERT_SIGN != 0)
}

/// Reads host names and addresses of a subjectAltName.
fn general_names(value: &[u8]) -> Result<Vec<String>, DerError> {
    const DNS_NAME: u8 = 0x82;
    const IP_ADDRESS: u8 = 0x87;
    let mut list = Der::new(value).inside(tag::SEQUENCE)?;
    let mut names = Vec::new();
    while !list.is_empty() && names.len() < MAX_NAMES {
        let value = list.any()?;
        match (value.tag, value.content) {
            (DNS_NAME, name) => names.push(printable(name)),
            (IP_ADDRESS, bytes) => {
                let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
                let address = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
                names.extend(address.ok().map(|address| address.to_string()));
            }
            _ => {}
        }
    }
    Ok(names)
}

/// Returns text of a certificate without characters that could confuse a log, at most 100 of them.
pub fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).take(100).collect()
}

/// Returns a distinguished name in DER in words.
pub fn distinguished_name(der: &[u8]) -> String {
    let name = Der::new(der).inside(tag::SEQUENCE).and_then(|inner| name(inner.rest()));
    name.map_or_else(|why| format!("a name of {} bytes ({why})", der.len()), |(text, _)| text)
}

/// Returns a distinguished name in words, and its common name. Characters that could confuse a log are replaced.
fn name(content: &[u8]) -> Result<(String, Option<String>), DerError> {
    const LIMIT: usize = 300;
    let (mut text, mut common_name) = (String::new(), None);
    let mut parts = Der::new(content);
    while !parts.is_empty() {
        let mut set = parts.inside(tag::SET)?;
        while !set.is_empty() {
            let mut pair = set.inside(tag::SEQUENCE)?;
            let (kind, value) = (pair.expect(tag::OID)?, pair.any()?.content);
            let shown = printable(value);
            if kind == [0x55, 4, 3] {
                common_name = Some(String::from_utf8_lossy(value).into_owned());
            }
            if text.len() < LIMIT {
                let comma = if text.is_empty() { "" } else { "," };
                let _ = write!(text, "{comma}{}={shown}", attribute(kind));
            }
        }
    }
    Ok((text, common_name))
}

fn attribute(oid: &[u8]) -> String {
    match oid {
        [0x55, 4, 3] => "CN".to_owned(),
        [0x55, 4, 6] => "C".to_owned(),
        [0x55, 4, 7] => "L".to_owned(),
        [0x55, 4, 8] => "ST".to_owned(),
        [0x55, 4, 10] => "O".to_owned(),
        [0x55, 4, 11] => "OU".to_owned(),
        other => other.iter().take(12).map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Reads a time, in seconds since 1970.
fn time(der: &mut Der<'_>) -> Result<i64, DerError> {
    const BAD: DerError = "a time in the certificate is malformed";
    let value = der.any()?;
    let digits = value.content.strip_suffix(b"Z").ok_or(BAD)?;
    if !digits.is_ascii() || digits.iter().any(|digit| !digit.is_ascii_digit()) {
        return Err(BAD);
    }
    let number = |from: usize, to: usize| -> Result<i64, DerError> {
        let digits = digits.get(from..to).ok_or(BAD)?;
        Ok(digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    };
    let (year, at) = match value.tag {
        tag::UTC_TIME => {
            let year = number(0, 2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, 2)
        }
        tag::GENERALIZED_TIME => (number(0, 4)?, 4),
        _ => return Err(BAD),
    };
    let (month, day) = (number(at, at + 2)?, number(at + 2, at + 4)?);
    let (hour, minute, second) = (number(at + 4, at + 6)?, number(at + 6, at + 8)?, number(at + 8, at + 10)?);
    if !(1..=12).contains(&month) {
        return Err(BAD);
    }
    Ok(days_from_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar.
pub fn days_from_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that a leap day is the last day of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_month = (153 * month + 2) / 5;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + before_month + day
        - 1
        - 719_468
}

/// Returns a time in seconds since 1970 as `2026-11-23 07:30:00 UTC`.
pub fn date(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // An estimate of the year that is exact or one too large.
    let mut year = 1970 + days.div_euclid(365);
    while days_from_1970(year, 1, 1) > days {
        year -= 1;
    }
    let month = (1..=12).rev().find(|month| days_from_1970(year, *month, 1) <= days).unwrap_or(1);
    let day = days - days_from_1970(year, month, 1) + 1;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02} UTC", second % 60)
}

/// Returns a duration since 1970 in whole seconds.
pub fn seconds(since_1970: Duration) -> i64 {
    i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
        let parsed = |tag, text: &str| {
            let mut der = vec![tag, text.len() as u8];
            der.extend_from_slice(text.as_bytes());
            time(&mut Der::new(&der))
        };
        assert_eq!(parsed(tag::UTC_TIME, "000229000000Z"), Ok(951_782_400));
        assert_eq!(parsed(tag::GENERALIZED_TIME, "20261231235959Z"), Ok(1_798_761_599));
        assert!(
            parsed(tag::UTC_TIME, "0002290000Z").is_err() && parsed(tag::UTC_TIME, "001329000000Z").is_err()
        );
    }
}
