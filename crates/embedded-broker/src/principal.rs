//! Principals: the authenticated identity of a connection's client. That of a certificate is the subject's name in the
//! order of RFC 2253, as in Kafka, unless [`PrincipalMapping`](crate::PrincipalMapping) derives another one from it.

use crate::{connection::ConnectionId, control::Control, listeners::ListenerId, sasl::SaslListener};

impl Control<'_> {
    /// Returns the mechanisms and users of the first listener, if it uses SASL, to change them.
    pub fn sasl(&mut self) -> Option<&mut SaslListener> {
        self.sasl_of(ListenerId(0))
    }

    /// Returns the mechanisms and users of a listener, if it uses SASL, to change them.
    pub fn sasl_of(&mut self, listener: ListenerId) -> Option<&mut SaslListener> {
        self.cluster.options.sasl_of_mut(listener)
    }

    /// Returns the principal of a connection's client: the name that it has proved by SASL or by its certificate, or
    /// `ANONYMOUS`; `None` without SASL and TLS,
    /// and before the end of the handshake.
    pub fn principal(&self, connection: ConnectionId) -> Option<&str> {
        self.cluster.principal(connection)
    }
}

/// Returns the subject of a certificate in DER, such as `CN=client,OU=Test,O=Example`.
pub(crate) fn of_certificate(der: &[u8]) -> Option<String> {
    let body = inside(&mut inside(&mut { der }, 0x30)?, 0x30)?;
    let mut body = body;
    if body.first() == Some(&0xa0) {
        next(&mut body)?;
    }
    // Serial number, algorithm, issuer, validity.
    for _ in 0..4 {
        next(&mut body)?;
    }
    let mut subject = inside(&mut body, 0x30)?;
    let mut parts = Vec::new();
    while !subject.is_empty() {
        let mut set = inside(&mut subject, 0x31)?;
        let mut pair = inside(&mut set, 0x30)?;
        let kind = inside(&mut pair, 6)?;
        let value = String::from_utf8_lossy(next(&mut pair)?.1).into_owned();
        parts.push(format!("{}={}", attribute(kind), escaped(&value)));
    }
    parts.reverse();
    Some(parts.join(","))
}

fn attribute(oid: &[u8]) -> String {
    let known = match oid {
        [0x55, 4, 3] => "CN",
        [0x55, 4, 6] => "C",
        [0x55, 4, 7] => "L",
        [0x55, 4, 8] => "ST",
        [0x55, 4, 9] => "STREET",
        [0x55, 4, 10] => "O",
        [0x55, 4, 11] => "OU",
        other => return other.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    known.to_owned()
}

fn escaped(value: &str) -> String {
    let mut text = String::new();
    for letter in value.chars() {
        if matches!(letter, ',' | '+' | '"' | '\\' | '<' | '>' | ';') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// Returns the content of the next value, which must have this tag.
fn inside<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    next(bytes).filter(|(found, _)| *found == tag).map(|(_, content)| content)
}

/// Returns tag and content of the next DER value.
fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (tag, first) = (*bytes.first()?, *bytes.get(1)?);
    let (length, header) = match first {
        0..=0x7f => (usize::from(first), 2),
        0x81..=0x83 => {
            let count = usize::from(first & 0x7f);
            let digits = bytes.get(2..2 + count)?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), 2 + count)
        }
        _ => return None,
    };
    let content = bytes.get(header..header + length)?;
    *bytes = &bytes[header + length..];
    Some((tag, content))
}
