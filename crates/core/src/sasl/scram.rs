//! SCRAM (RFC 5802, RFC 7677): each side proves that it knows the password, or a key derived from it.
//!
//! ```text
//!   client                                        broker
//!   n,,n=user,r=NONCE            ───────────────►
//!                                ◄─────────────── r=NONCE+MORE,s=salt,i=iterations
//!   (derive the salted password)
//!   c=biws,r=NONCE+MORE,p=proof  ───────────────►
//!                                ◄─────────────── v=signature
//! ```
//!
//! As in Kafka, names and passwords are used as they are, without SASLprep, and there is no channel binding.

use std::sync::Arc;

use super::shared::{Credentials, SaltedPassword};
use crate::{
    base64::{self, Alphabet},
    hash::{Derivation, Hash},
    secret::Secret,
    shown::quoted,
};

/// The smallest number of iterations that a broker may ask for (RFC 7677). Kafka stores no fewer either.
pub const MIN_ITERATIONS: u32 = 4096;
/// The longest message of a broker.
const MAX_MESSAGE_BYTES: usize = 16 << 10;
/// The number of iterations that an I/O thread does before it serves others: some milliseconds.
const SLICE: u32 = 4096;

/// The client's side of one authentication.
#[derive(Debug)]
pub struct Scram {
    hash: Hash,
    credentials: Arc<Credentials>,
    max_iterations: u32,
    nonce: String,
    /// The first message without its header.
    first_bare: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The first message was made; the broker's is next.
    First,
    /// The salted password is being derived.
    Deriving {
        derivation: Box<Derivation>,
        server_first: ServerFirst,
    },
    /// The proof was made; the broker's signature is next.
    Proved {
        server_signature_key: Secret,
        auth_message: Vec<u8>,
    },
    Done,
}

/// What follows a message of the broker.
#[derive(Debug)]
pub enum Progress {
    /// The client's next message.
    Send(Secret),
    /// The salted password has to be derived: call [`Scram::derive`] until it gives something else.
    Derive,
    /// The broker has proved that it knows the password.
    Done,
}

impl Scram {
    /// Starts an authentication. `nonce` must be new and not predictable, of printable ASCII without commas. Returns the
    /// first message, too.
    pub fn new(
        hash: Hash,
        credentials: Arc<Credentials>,
        max_iterations: u32,
        nonce: String,
    ) -> (Self, Secret) {
        let user = credentials.username.replace('=', "=3D").replace(',', "=2C");
        let token = if credentials.is_delegation_token { ",tokenauth=true" } else { "" };
        let first_bare = format!("n={user},r={nonce}{token}");
        let first = Secret::concat(&[b"n,,", first_bare.as_bytes()]);
        (Self { hash, credentials, max_iterations, nonce, first_bare, state: State::First }, first)
    }

    /// Handles a message of the broker. `known` is a salted password of an earlier authentication. Error: what is wrong.
    pub fn handle(&mut self, message: &[u8], known: Option<&SaltedPassword>) -> Result<Progress, String> {
        let text = (message.len() <= MAX_MESSAGE_BYTES).then(|| std::str::from_utf8(message).ok()).flatten();
        let text = text.ok_or("the broker's message is not text, or too long")?;
        match std::mem::replace(&mut self.state, State::Done) {
            State::First => {
                let server_first = ServerFirst::parse(text, &self.nonce, self.max_iterations)?;
                if let Some(known) = known
                    && known.is_of(&self.credentials, &server_first.salt, server_first.iterations)
                {
                    return Ok(Progress::Send(self.prove(&known.key, &server_first)));
                }
                let ServerFirst { salt, iterations, .. } = &server_first;
                let derivation = Derivation::new(self.hash, &self.credentials.password, salt, *iterations);
                self.state = State::Deriving { derivation: Box::new(derivation), server_first };
                Ok(Progress::Derive)
            }
            State::Proved { server_signature_key, auth_message } => {
                self.verify(text, &server_signature_key, &auth_message)?;
                Ok(Progress::Done)
            }
            State::Deriving { .. } | State::Done => Err("the broker sent a message out of turn".to_owned()),
        }
    }

    /// Derives the salted password for some milliseconds. Returns the next message when it is derived, with the salted
    /// password for other connections.
    pub fn derive(&mut self) -> Option<(Secret, SaltedPassword)> {
        let State::Deriving { derivation, server_first } = &mut self.state else { return None };
        let key = derivation.advance(SLICE)?;
        let server_first = std::mem::take(server_first);
        let proof = self.prove(&key, &server_first);
        let ServerFirst { salt, iterations, .. } = server_first;
        Some((proof, SaltedPassword { credentials: Arc::clone(&self.credentials), salt, iterations, key }))
    }

    /// Returns true while the salted password is being derived.
    pub const fn is_deriving(&self) -> bool {
        matches!(self.state, State::Deriving { .. })
    }

    /// Returns true once the client's last message was made.
    pub const fn has_proved(&self) -> bool {
        matches!(self.state, State::Proved { .. })
    }

    fn prove(&mut self, salted_password: &Secret, server_first: &ServerFirst) -> Secret {
        let hash = self.hash;
        let client_key = hash.hmac(salted_password.expose(), b"Client Key");
        let stored_key = hash.digest(client_key.expose());
        let without_proof = format!("c=biws,r={}", server_first.nonce);
        let auth_message = [&self.first_bare, &server_first.text, &without_proof].map(|part| part.as_bytes());
        let auth_message = auth_message.join(&b","[..]);
        let signature = hash.hmac(stored_key.expose(), &auth_message);
        let proof = client_key.expose().iter().zip(signature.expose()).map(|(key, sign)| key ^ sign);
        let proof = Secret::new(proof.collect());
        let proof = base64::encode(Alphabet::Standard, proof.expose());
        self.state = State::Proved {
            server_signature_key: hash.hmac(salted_password.expose(), b"Server Key"),
            auth_message,
        };
        Secret::concat(&[without_proof.as_bytes(), b",p=", proof.as_bytes()])
    }

    fn verify(&self, text: &str, key: &Secret, auth_message: &[u8]) -> Result<(), String> {
        if let Some(error) = text.strip_prefix("e=") {
            return Err(format!("the broker refused the proof: {}", quoted(error)));
        }
        // Text behind the signature is for extensions.
        let signature = text.strip_prefix("v=").and_then(|rest| rest.split(',').next());
        let signature = signature.and_then(|digits| base64::decode(Alphabet::Standard, digits));
        let signature = signature.ok_or("the broker's last message has no signature")?;
        if !self.hash.verify(key.expose(), auth_message, &signature) {
            return Err(
                "the broker's signature is wrong: it does not know the password, and may be an impostor"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// The first message of a broker.
#[derive(Debug, Default)]
struct ServerFirst {
    text: String,
    nonce: String,
    salt: Vec<u8>,
    iterations: u32,
}

impl ServerFirst {
    fn parse(text: &str, client_nonce: &str, max_iterations: u32) -> Result<Self, String> {
        if text.starts_with("m=") {
            return Err("the broker requires an extension of SCRAM that this client does not have".to_owned());
        }
        if let Some(error) = text.strip_prefix("e=") {
            return Err(format!("the broker refused the user name: {}", quoted(error)));
        }
        let mut attributes = text.split(',');
        let mut next = |name: &str| {
            let value = attributes.next().and_then(|attribute| attribute.strip_prefix(name));
            value.ok_or_else(|| format!("the broker's first message lacks {name} in its place"))
        };
        let (nonce, salt, iterations) = (next("r=")?, next("s=")?, next("i=")?);
        let is_printable = nonce.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
        if !is_printable || nonce.len() <= client_nonce.len() || !nonce.starts_with(client_nonce) {
            return Err("the broker's nonce does not extend the client's".to_owned());
        }
        let salt = base64::decode(Alphabet::Standard, salt).filter(|salt| !salt.is_empty());
        let salt = salt.ok_or("the broker's salt is empty or no base64")?;
        let is_number = iterations.bytes().all(|byte| byte.is_ascii_digit());
        let iterations = iterations.parse::<u32>().ok().filter(|_| is_number);
        let iterations = iterations.filter(|count| (MIN_ITERATIONS..=max_iterations).contains(count));
        let iterations = iterations.ok_or_else(|| {
            format!(
                "the broker asks for a number of iterations outside of {MIN_ITERATIONS} to {max_iterations} \
                 (sasl.scram.max.iterations)"
            )
        })?;
        Ok(Self { text: text.to_owned(), nonce: nonce.to_owned(), salt, iterations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const FULL: &str = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";

    fn start(hash: Hash) -> (Scram, Secret) {
        let credentials = Arc::new(Credentials::new("user", "pencil".into()));
        Scram::new(hash, credentials, 1_000_000, NONCE.to_owned())
    }

    fn derived(scram: &mut Scram) -> Secret {
        loop {
            assert!(scram.is_deriving());
            if let Some((proof, _)) = scram.derive() {
                return proof;
            }
        }
    }

    fn proved(hash: Hash) -> (Scram, Secret) {
        let (mut scram, first) = start(hash);
        assert_eq!(first.expose(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server_first = format!("r={FULL},s={SALT},i=4096");
        assert!(matches!(scram.handle(server_first.as_bytes(), None), Ok(Progress::Derive)));
        let proof = derived(&mut scram);
        (scram, proof)
    }

    /// The exchange of RFC 7677, and the same with SHA-512, computed by Python's hashlib and hmac.
    const EXCHANGES: [(Hash, &str, &str); 2] = [
        (
            Hash::Sha256,
            "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
        (
            Hash::Sha512,
            "gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ==",
            "ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==",
        ),
    ];

    #[test]
    fn exchange_of_the_rfc_has_its_proof_and_accepts_its_signature() {
        for (hash, proof, signature) in EXCHANGES {
            let (mut scram, sent) = proved(hash);
            assert_eq!(String::from_utf8_lossy(sent.expose()), format!("c=biws,r={FULL},p={proof}"));
            let last = format!("v={signature}");
            assert!(matches!(scram.handle(last.as_bytes(), None), Ok(Progress::Done)));
            assert!(scram.handle(last.as_bytes(), None).is_err(), "nothing may follow");
        }
    }

    #[test]
    fn salted_password_is_used_again_for_the_same_salt_only() {
        let (mut scram, _) = start(Hash::Sha256);
        let server_first = format!("r={FULL},s={SALT},i=4096");
        scram.handle(server_first.as_bytes(), None).unwrap();
        let (proof, salted) = scram.derive().unwrap();
        let mut again = Scram { credentials: Arc::clone(&salted.credentials), ..start(Hash::Sha256).0 };
        match again.handle(server_first.as_bytes(), Some(&salted)) {
            Ok(Progress::Send(sent)) => assert_eq!(sent, proof),
            other => panic!("{other:?}"),
        }
        for other in [format!("r={FULL},s={SALT},i=4097"), format!("r={FULL},s=AAAA,i=4096")] {
            let mut again = Scram { credentials: Arc::clone(&salted.credentials), ..start(Hash::Sha256).0 };
            assert!(matches!(again.handle(other.as_bytes(), Some(&salted)), Ok(Progress::Derive)));
        }
        let mut of_others = start(Hash::Sha256).0;
        assert!(matches!(of_others.handle(server_first.as_bytes(), Some(&salted)), Ok(Progress::Derive)));
    }

    /// Changes up to three bytes of a message, or its end.
    fn mutated(rng: &mut Rng, message: &str) -> Vec<u8> {
        let mut bytes = message.as_bytes().to_vec();
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len().max(1) as u64) as usize;
            match rng.below(5) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), rng.below(256) as u8),
                2 => bytes.extend_from_within(at.min(bytes.len())..),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << rng.below(8)),
            }
        }
        bytes
    }

    #[test]
    fn mutated_messages_have_a_result_and_prove_nothing() {
        let (mut rng, first) = (Rng::from_seed(14), format!("r={FULL},s={SALT},i=4096"));
        let last = format!("v={}", EXCHANGES[0].2);
        let (mut scram, _) = start(Hash::Sha256);
        scram.handle(first.as_bytes(), None).unwrap();
        let (_, salted) = scram.derive().unwrap();
        for _ in 0..5_000 {
            let mut scram = Scram { credentials: Arc::clone(&salted.credentials), ..start(Hash::Sha256).0 };
            if let Err(error) = scram.handle(&mutated(&mut rng, &first), None) {
                assert!(error.len() < 1000 && !error.contains("pencil"), "{error}");
            }
            let mut scram = Scram { credentials: Arc::clone(&salted.credentials), ..start(Hash::Sha256).0 };
            assert!(matches!(scram.handle(first.as_bytes(), Some(&salted)), Ok(Progress::Send(_))));
            let bytes = mutated(&mut rng, &last);
            let proves = matches!(scram.handle(&bytes, None), Ok(Progress::Done));
            assert!(!proves || bytes.starts_with(last.as_bytes()), "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn names_are_escaped_and_tokens_marked() {
        let credentials = Credentials { is_delegation_token: true, ..Credentials::new("a=b,c", "x".into()) };
        let (_, first) = Scram::new(Hash::Sha512, Arc::new(credentials), 4096, "n".to_owned());
        assert_eq!(first.expose(), b"n,,n=a=3Db=2Cc,r=n,tokenauth=true");
    }

    #[test]
    fn iterations_out_of_range_are_refused_at_once() {
        for count in [
            "0",
            "1",
            "4095",
            "1000001",
            "1000000000",
            "2147483648",
            "99999999999",
            "-1",
            "+4096",
            "4096x",
            "",
        ] {
            let (mut scram, _) = start(Hash::Sha256);
            let message = format!("r={FULL},s={SALT},i={count}");
            let error = scram.handle(message.as_bytes(), None).unwrap_err();
            assert!(error.contains("iterations"), "{count}: {error}");
        }
    }

    #[test]
    fn server_that_does_not_extend_the_nonce_is_refused() {
        for nonce in [NONCE, "", "x", "rOprNGfwEbeRWgbNEkqP%hvYD", "rOprNGfwEbeRWgbNEkqO\u{7f}"] {
            let (mut scram, _) = start(Hash::Sha256);
            let message = format!("r={nonce},s={SALT},i=4096");
            assert!(scram.handle(message.as_bytes(), None).unwrap_err().contains("nonce"), "{nonce}");
        }
    }

    #[test]
    fn malformed_first_messages_are_refused() {
        let long = format!("r={FULL}{},s={SALT},i=4096", "x".repeat(20_000));
        for message in [
            "",
            ",",
            "e=unknown-user",
            "m=x,r=a,s=b,i=4096",
            "s=AAAA,r=x,i=4096",
            &format!("r={FULL}"),
            &format!("r={FULL},i=4096,s={SALT}"),
            &format!("r={FULL},s=,i=4096"),
            &format!("r={FULL},s=!,i=4096"),
            &long,
        ] {
            let (mut scram, _) = start(Hash::Sha256);
            assert!(scram.handle(message.as_bytes(), None).is_err(), "{message}");
        }
        assert!(start(Hash::Sha256).0.handle(&[0xff, 0xfe], None).is_err());
    }

    #[test]
    fn wrong_signatures_are_refused_without_quoting_them() {
        let (_, _, right) = EXCHANGES[0];
        for last in [
            "",
            "v=",
            "v=AAAA",
            "v=!",
            &format!("x={right}"),
            "v=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        ] {
            let (mut scram, _) = proved(Hash::Sha256);
            let error = scram.handle(last.as_bytes(), None).unwrap_err();
            assert!(error.contains("signature") && !error.contains("dHzb"), "{last}: {error}");
        }
        let (mut scram, _) = proved(Hash::Sha256);
        assert!(scram.handle(b"e=invalid-proof", None).unwrap_err().contains("invalid-proof"));
    }

    #[test]
    fn broker_may_not_continue_before_the_proof_is_made() {
        let (mut scram, _) = start(Hash::Sha256);
        let server_first = format!("r={FULL},s={SALT},i=500000");
        scram.handle(server_first.as_bytes(), None).unwrap();
        assert!(scram.derive().is_none() && scram.is_deriving(), "the derivation takes several turns");
        assert!(scram.handle(b"v=AAAA", None).unwrap_err().contains("out of turn"));
    }
}
