//! The broker's side of SCRAM (RFC 5802).

use super::{
    Accepted, Answer, base64,
    keys::{Keys, ScramHash, is_equal},
};

/// An authentication.
#[derive(Debug)]
pub(crate) struct ScramServer {
    pub hash: ScramHash,
    nonce: String,
    state: State,
}

#[derive(Debug)]
enum State {
    First,
    Challenged { principal: String, keys: Keys, nonce: String, messages: String },
    Done,
}

impl ScramServer {
    /// Starts an authentication; `nonce` is the broker's part.
    pub fn new(hash: ScramHash, nonce: String) -> Self {
        Self { hash, nonce, state: State::First }
    }

    /// Handles a message of the client. `find` returns the principal and the keys of a user or a delegation token.
    pub fn handle(
        &mut self,
        message: &[u8],
        find: impl Fn(&str, bool) -> Option<(String, Keys)>,
    ) -> Result<Answer, ()> {
        let text = std::str::from_utf8(message).map_err(drop)?;
        match std::mem::replace(&mut self.state, State::Done) {
            State::First => self.first(text, find).ok_or(()),
            State::Challenged { principal, keys, nonce, messages } => {
                self.last(text, principal, &keys, &nonce, &messages).ok_or(())
            }
            State::Done => Err(()),
        }
    }

    fn first(&mut self, text: &str, find: impl Fn(&str, bool) -> Option<(String, Keys)>) -> Option<Answer> {
        let bare = text.strip_prefix("n,,")?;
        let mut attributes = bare.split(',');
        let name = attributes.next()?.strip_prefix("n=")?;
        let client_nonce = attributes.next()?.strip_prefix("r=").filter(|nonce| !nonce.is_empty())?;
        let is_token = attributes.any(|attribute| attribute == "tokenauth=true");
        let (principal, keys) = find(&name.replace("=2C", ",").replace("=3D", "="), is_token)?;
        let nonce = format!("{client_nonce}{}", self.nonce);
        let challenge = format!("r={nonce},s={},i={}", base64::encode(&keys.salt), keys.iterations);
        let messages = format!("{bare},{challenge}");
        self.state = State::Challenged { principal, keys, nonce, messages };
        Some(Answer::Next(challenge.into_bytes()))
    }

    fn last(
        &self,
        text: &str,
        principal: String,
        keys: &Keys,
        nonce: &str,
        messages: &str,
    ) -> Option<Answer> {
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        if without_proof != format!("c=biws,r={nonce}") {
            return None;
        }
        let messages = format!("{messages},{without_proof}");
        let signature = self.hash.hmac(&keys.stored_key, messages.as_bytes());
        let proof = base64::decode(proof).filter(|proof| proof.len() == signature.len())?;
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(proof, sign)| proof ^ sign).collect();
        if !is_equal(&self.hash.digest(&client_key), &keys.stored_key) {
            return None;
        }
        let signature = self.hash.hmac(&keys.server_key, messages.as_bytes());
        let last = format!("v={}", base64::encode(&signature)).into_bytes();
        Some(Answer::Accepted(last, Accepted { principal, expires_ms: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of RFC 7677.
    const NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    fn find(name: &str, is_token: bool) -> Option<(String, Keys)> {
        let salt = base64::decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let keys = Keys::new(ScramHash::Sha256, b"pencil", salt, 4096);
        (name == "user" && !is_token).then(|| ("user".to_owned(), keys))
    }

    fn challenged() -> ScramServer {
        let mut server = ScramServer::new(ScramHash::Sha256, NONCE.to_owned());
        let challenge = format!("r=rOprNGfwEbeRWgbNEkqO{NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        assert_eq!(server.handle(FIRST.as_bytes(), find), Ok(Answer::Next(challenge.into_bytes())));
        server
    }

    #[test]
    fn exchange_of_the_rfc_is_accepted_once() {
        let mut server = challenged();
        let Ok(Answer::Accepted(last, accepted)) = server.handle(LAST.as_bytes(), find) else { panic!() };
        assert_eq!(last, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert_eq!(accepted.principal, "user");
        assert!(server.handle(LAST.as_bytes(), find).is_err());
    }

    #[test]
    fn proof_for_another_nonce_is_refused() {
        for last in [
            LAST.replace("k0,", "k1,"),
            LAST.replace(NONCE, ""),
            LAST.replace("biws", "eSws"),
            LAST.replace("p=d", "p=e"),
            LAST.replace("p=dHzb", "p="),
            String::new(),
        ] {
            assert!(challenged().handle(last.as_bytes(), find).is_err(), "{last}");
        }
    }

    #[test]
    fn malformed_first_messages_and_unknown_users_are_refused() {
        for first in [
            "",
            "n,,",
            "y,,n=user,r=x",
            "n,,n=user",
            "n,,n=user,r=",
            "n,,n=other,r=x",
            "n,,n=user,r=x,tokenauth=true",
        ] {
            let mut server = ScramServer::new(ScramHash::Sha256, NONCE.to_owned());
            assert!(server.handle(first.as_bytes(), find).is_err(), "{first}");
        }
    }
}
