//! Calls about the credentials of SCRAM users.

use ottla_core::{
    admin::{
        item_results::ItemResults,
        users::{ScramAlteration, ScramMechanism, ScramUsers, alter_users, describe_users, salted_password},
    },
    error::{Error, ErrorKind, Result},
    secret::Secret,
};

use super::{
    calls::{calls, check_name, invalid},
    elements::{Elements, Names, checked_names},
};

/// The most iterations that this library derives a key with: about a second of CPU time. Kafka accepts 16,384.
const MAX_ITERATIONS: i32 = 1_000_000;

/// Creates the change that sets a user's password: derives the salted password from it and a random salt. Brokers accept 4,096
/// to 16,384 iterations; 8,192 take about 10 ms.
///
/// ```
/// # fn example(admin: &ottla::Admin) -> ottla::Result<()> {
/// use std::time::Duration;
///
/// use ottla::{Secret, admin::{ScramMechanism, scram_password}};
///
/// let password = Secret::from("correct horse battery staple");
/// let change = scram_password("alice", ScramMechanism::Sha512, 8192, &password)?;
/// for (user, result) in admin.alter_scram_users(&[change], Duration::from_secs(10))? {
///     println!("{user}: {result:?}");
/// }
/// # Ok(())
/// # }
/// ```
pub fn scram_password(
    user: impl Into<String>,
    mechanism: ScramMechanism,
    iterations: i32,
    password: &Secret,
) -> Result<ScramAlteration> {
    let salt = ottla_net::sasl::random_key().map_err(|error| {
        Error::new(ErrorKind::State, format!("the system has no random numbers for a salt: {error}"))
    })?;
    scram_password_with_salt(user, mechanism, iterations, password, salt.expose())
}

/// Like [`scram_password`], with a salt of the caller's choice.
pub fn scram_password_with_salt(
    user: impl Into<String>,
    mechanism: ScramMechanism,
    iterations: i32,
    password: &Secret,
    salt: &[u8],
) -> Result<ScramAlteration> {
    let user = user.into();
    check_name("user name", &user)?;
    if password.is_empty() || salt.is_empty() {
        let what = if password.is_empty() { "password" } else { "salt" };
        return Err(invalid(format!("the {what} of user \"{user}\" is empty")));
    }
    let count = u32::try_from(iterations).ok().filter(|count| (1..=MAX_ITERATIONS as u32).contains(count));
    let Some(count) = count else {
        return Err(invalid(format!("{iterations} iterations for user \"{user}\"; use 4096 to 16384")));
    };
    let salted_password = salted_password(mechanism, password, salt, count)
        .ok_or_else(|| invalid(format!("user \"{user}\" has no mechanism; use SHA-256 or SHA-512")))?;
    Ok(ScramAlteration::Upsert { user, mechanism, iterations, salt: salt.to_vec(), salted_password })
}

calls! {
    /// Describes the SCRAM credentials of these users, or of all. A user without credentials has an error.
    fn describe_scram_users, describe_scram_users_async(&self, users: Option<&[&str]>; options) -> ScramUsers {
        const NAME: &str = "describe_scram_users";
        let describe = |users: Option<Vec<String>>| {
            self.ask(NAME, options, Ok(users), |users, done| describe_users(users, options.timeout, done))
        };
        match users {
            Some(users) => checked_names("user", users)
                .ask(NAME, |users| describe(Some(users.iter().map(ToString::to_string).collect()))),
            None => describe(None),
        }
    }

    /// Sets and deletes SCRAM credentials; [`scram_password`] creates the alteration that sets one. Each alteration has a
    /// result. Brokers accept one of a user in a call: another one of the same user is refused.
    fn alter_scram_users, alter_scram_users_async(
        &self,
        alterations: &[ScramAlteration];
        options
    ) -> ItemResults<String, ()> {
        const NAME: &str = "alter_scram_users";
        let mut users = Names::new();
        let check = |one: &&ScramAlteration| {
            check_mechanism(one).and_then(|()| users.check("user", one.user())).map(|()| (*one).clone())
        };
        let refused = |one: &&ScramAlteration, error| (one.user().to_owned(), Err(error));
        Elements::new(alterations, check, refused).required("alterations").ask(NAME, |alterations| {
            self.ask(NAME, options, Ok(alterations), |alterations, done| {
                alter_users(alterations, options.timeout, done)
            })
        })
    }
}

fn check_mechanism(alteration: &ScramAlteration) -> Result<()> {
    match alteration {
        ScramAlteration::Upsert { mechanism, .. } | ScramAlteration::Delete { mechanism, .. }
            if *mechanism != ScramMechanism::Unknown =>
        {
            Ok(())
        }
        other => Err(invalid(format!("the alteration of user \"{}\" has no mechanism", other.user()))),
    }
}
