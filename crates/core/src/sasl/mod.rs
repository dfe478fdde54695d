//! SASL: proves to a broker who the client is, after ApiVersions and before every other request.
//!
//! ```text
//!   application ── credentials, tokens ──► SaslShared ◄── every connection of the client
//!                                              ▲
//!   cluster actor: TokenRefresh ── asks ───────┘          connection: Exchange
//!                                                           │ SaslHandshake: the mechanism
//!                                                           │ SaslAuthenticate: messages of Plain, Scram, OauthBearer
//!                                                           └ session lifetime: the same again on the same connection
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | [`shared`], [`settings`] | credentials, which may change at run time; the properties |
//! | [`exchange`] | one authentication: handshake, messages, result |
//! | [`plain`], [`scram`], [`oauthbearer`] | the messages of a mechanism: bytes in, bytes out |
//! | [`token`], [`unsecured`], [`refresh`] | tokens, tokens for tests, the time of the next token |
//! | [`gssapi`] | the interface to the library of Kerberos |
//! | [`aws`] | the message of AWS_MSK_IAM, signed with AWS's keys |
//!
//! # Pitfalls
//!
//! - A SCRAM server that only copies the client's nonce has not proved that it is alive: the nonce must be extended
//!   (`server_that_does_not_extend_the_nonce_is_refused`).
//! - Brokers choose the number of SCRAM iterations, and the time of a derivation is theirs: it is bounded, and divided
//!   into slices (`iterations_out_of_range_are_refused_at_once`, `derivation_continues_in_slices`).

pub mod aws;
pub mod exchange;
pub mod gssapi;
pub mod oauthbearer;
pub mod plain;
pub mod refresh;
pub mod scram;
pub mod settings;
pub mod shared;
pub mod token;
pub mod unsecured;

pub use settings::SaslSettings;
pub use shared::SaslShared;
pub use token::Token;
