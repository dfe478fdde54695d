//! The extensions of SASL/OAUTHBEARER.

use crate::shown::quoted;

/// Checks the names and values of extensions (RFC 7628, section 3.1). Error: the wrong one.
pub(crate) fn check_extensions(extensions: &[(String, String)]) -> Result<(), String> {
    for (index, (key, value)) in extensions.iter().enumerate() {
        if key == "auth" || key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(format!(
                "SASL/OAUTHBEARER extension keys must only consist of A-Z or a-z, and not be \"auth\": \"{}\"",
                quoted(key)
            ));
        }
        if !value.bytes().all(is_value) {
            return Err(format!(
                "the value of the SASL/OAUTHBEARER extension \"{key}\" must be printable ASCII or white space"
            ));
        }
        if extensions[..index].iter().any(|(earlier, _)| earlier == key) {
            return Err(format!("the SASL/OAUTHBEARER extension \"{key}\" is given twice"));
        }
    }
    Ok(())
}

/// Returns true for the bytes of a value.
pub(crate) const fn is_value(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e | b'\t' | b'\r' | b'\n')
}
