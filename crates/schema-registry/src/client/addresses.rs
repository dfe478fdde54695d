//! The addresses of one registry: the one that answered last is asked first.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::auth::Auth;
use crate::{
    Error, Result,
    percent::{decoded, encoded},
};

/// The addresses, without slashes at their ends.
#[derive(Debug)]
pub struct Addresses {
    list: Vec<String>,
    preferred: AtomicUsize,
}

impl Addresses {
    /// Checks addresses. A user and a password in one of them become credentials.
    pub fn new(given: &[String], auth: &mut Auth, context: Option<&str>) -> Result<Self> {
        let mut list = Vec::new();
        for address in given {
            let (scheme, rest) = match address.split_once("://") {
                Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
                Some((scheme, _)) => {
                    return Err(Error::config(format!("unknown scheme {scheme:?}; write http or https")));
                }
                None => ("http", address.as_str()),
            };
            let (authority, path) = rest.split_once('/').map_or((rest, ""), |(a, p)| (a, p));
            let host = match authority.rsplit_once('@') {
                Some((user_info, host)) => {
                    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
                    *auth = Auth::Basic { user: decoded(user), password: decoded(password).into() };
                    host
                }
                None => authority,
            };
            if host.is_empty() || host.contains(char::is_whitespace) || path.contains(['?', '#']) {
                return Err(Error::config(format!(
                    "{host:?} is not an address of a schema registry; write http://HOST:PORT"
                )));
            }
            let mut base = format!("{scheme}://{host}");
            if !path.trim_matches('/').is_empty() {
                base.push('/');
                base.push_str(path.trim_matches('/'));
            }
            if let Some(context) = context {
                base.push_str("/contexts/");
                base.push_str(&encoded(context));
            }
            list.push(base);
        }
        if list.is_empty() {
            return Err(Error::config("there is no address; set schema.registry.url"));
        }
        Ok(Self { list, preferred: AtomicUsize::new(0) })
    }

    /// Returns the addresses with their numbers, in the order in which they are tried.
    pub fn in_order(&self) -> impl Iterator<Item = (usize, &str)> {
        let first = self.preferred.load(Ordering::Relaxed);
        (0..self.list.len()).map(move |offset| {
            let number = (first + offset) % self.list.len();
            (number, self.list[number].as_str())
        })
    }

    /// Notes that this address answered.
    pub fn prefer(&self, number: usize) {
        self.preferred.store(number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(address: &str, context: Option<&str>) -> (String, Auth) {
        let mut auth = Auth::None;
        let addresses = Addresses::new(&[address.to_owned()], &mut auth, context).unwrap();
        (addresses.in_order().map(|(_, it)| it).collect(), auth)
    }

    #[test]
    fn user_in_an_address_becomes_a_credential() {
        let (address, auth) = list("https://al%40ice:pass%3Aword@registry:8081/api/", None);
        assert_eq!(address, "https://registry:8081/api");
        assert_eq!(auth, Auth::Basic { user: "al@ice".to_owned(), password: "pass:word".into() });
    }

    #[test]
    fn scheme_may_be_missing_and_context_is_added() {
        assert_eq!(list("registry:8081", Some(".a/b")).0, "http://registry:8081/contexts/.a%2Fb");
        for broken in ["ftp://x", "http://", "http://a b"] {
            assert!(Addresses::new(&[broken.to_owned()], &mut Auth::None, None).is_err(), "{broken}");
        }
    }

    #[test]
    fn address_that_answered_is_tried_first() {
        let given = ["a", "b", "c"].map(str::to_owned);
        let addresses = Addresses::new(&given, &mut Auth::None, None).unwrap();
        addresses.prefer(1);
        let order: Vec<usize> = addresses.in_order().map(|(number, _)| number).collect();
        assert_eq!(order, [1, 2, 0]);
    }
}
