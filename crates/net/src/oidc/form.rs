//! The parameters of a request as `application/x-www-form-urlencoded`.

use ottla_core::secret::Secret;

/// The body of a request.
pub struct Form(Vec<Secret>);

impl Form {
    /// Starts with the parameter `grant_type`.
    pub fn new(grant: &str) -> Self {
        Self::starting_with("grant_type", grant)
    }

    /// Starts with this parameter.
    pub fn starting_with(name: &str, value: &str) -> Self {
        Self(Vec::new()).add(name, value.as_bytes())
    }

    /// Adds a parameter, unless its value is empty.
    pub fn add(mut self, name: &str, value: &[u8]) -> Self {
        if !value.is_empty() {
            let separator: &[u8] = if self.0.is_empty() { b"" } else { b"&" };
            self.0.push(Secret::concat(&[separator, name.as_bytes(), b"=", encode(value).expose()]));
        }
        self
    }

    /// Returns the body.
    pub fn finish(self) -> Secret {
        let parts: Vec<_> = self.0.iter().map(Secret::expose).collect();
        Secret::concat(&parts)
    }
}

/// Percent-encodes all bytes but unreserved characters; a space becomes `+`.
pub fn encode(text: &[u8]) -> Secret {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(text.len() * 3);
    for byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => out.push(*byte),
            b' ' => out.push(b'+'),
            _ => out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
        }
    }
    Secret::new(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_percent_encoded() {
        let form = Form::new("urn:a").add("scope", "api://x/.default ü&=+%".as_bytes()).add("empty", b"");
        let expected = "grant_type=urn%3Aa&scope=api%3A%2F%2Fx%2F.default+%C3%BC%26%3D%2B%25";
        assert_eq!(form.finish().expose(), expected.as_bytes());
    }
}
