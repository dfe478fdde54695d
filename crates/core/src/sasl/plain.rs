//! PLAIN (RFC 4616): user name and password as they are, for TLS or trusted networks.

use super::shared::Credentials;
use crate::secret::Secret;

/// Returns the only message of the client. Error: why the credentials can't be sent.
pub fn message(credentials: &Credentials) -> Result<Secret, String> {
    let (user, password) = (credentials.username.as_bytes(), credentials.password.expose());
    if user.contains(&0) || password.contains(&0) {
        return Err("sasl.username and sasl.password must not contain the character NUL".to_owned());
    }
    Ok(Secret::concat(&[b"\0", user, b"\0", password]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_an_empty_authorization_id_and_no_other_nul() {
        let message = |user: &str, password: &str| message(&Credentials::new(user, password.into()));
        assert_eq!(message("alice", "päss").unwrap().expose(), "\0alice\0päss".as_bytes());
        assert!(message("al\0ice", "x").is_err() && message("alice", "x\0").is_err());
    }
}
