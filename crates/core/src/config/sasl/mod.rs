//! The properties of SASL, as the mechanisms use them.
//!
//! | file | properties |
//! |---|---|
//! | [`mechanism`] | `sasl.mechanisms`: the names of the mechanisms, and why some are refused |
//! | [`jaas`] | `sasl.jaas.config` |
//! | [`oidc`], [`unsecured`], `extensions` | `sasl.oauthbearer.*` |
//! | [`kerberos`] | `sasl.kerberos.*` |
//! | [`aws`] | `sasl.aws.*` |

pub mod aws;
pub(crate) mod extensions;
pub mod jaas;
pub mod kerberos;
pub mod mechanism;
pub mod oidc;
pub mod unsecured;

pub use mechanism::Mechanism;
