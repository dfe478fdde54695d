//! Credentials of SCRAM users (KIP-554): with the names of mechanisms, and with salted passwords that were derived elsewhere.

use ottla::admin::{
    ScramAlteration, ScramCredential, ScramMechanism, scram_password, scram_password_with_salt,
};
use ottla_core::{admin::delegation_tokens::decode_hmac, error::Error};

use super::{calls, request::Fields, row::Row, shown};
use crate::client::event::Failure;

/// The mechanisms, by their names.
const MECHANISMS: [(&str, ScramMechanism); 2] =
    [("SCRAM-SHA-256", ScramMechanism::Sha256), ("SCRAM-SHA-512", ScramMechanism::Sha512)];
/// The iterations of a request without the field, as in Kafka's tools.
const ITERATIONS: i32 = 4096;

calls! {
    fn rd_kafka_ottla_DescribeUserScramCredentials("user") |admin, rows, options| {
        let users = rows.each(|row| row.text("user"))?;
        let users = (!users.is_empty()).then_some(users.as_slice());
        Ok(shown(admin.describe_scram_users_async(users, *options), |users| {
            users.iter().flat_map(|(user, result)| rows_of_user(user, result)).collect()
        }))
    }

    fn rd_kafka_ottla_AlterUserScramCredentials(
        "user", "mechanism", "iterations", "password", "salt", "salted_password"
    ) |admin, rows, options| {
        let alterations = rows.some()?.iter().map(alteration).collect::<Result<Vec<_>, _>>()?;
        Ok(shown(admin.alter_scram_users_async(&alterations, *options), |results| {
            let row = |user: &String| Row::new().with("user", user);
            results.iter().map(|(user, result)| row(user).failed(result.as_ref().err())).collect()
        }))
    }
}

/// Returns a row for each credential of a user, or one with the error.
fn rows_of_user(user: &str, result: &Result<Vec<ScramCredential>, Error>) -> Vec<Row> {
    let row = || Row::new().with("user", user);
    match result {
        Ok(credentials) => {
            let row_of = |one: &ScramCredential| {
                row().with("mechanism", one.mechanism.name()).with("iterations", one.iterations)
            };
            credentials.iter().map(row_of).collect()
        }
        Err(error) => vec![row().failed(Some(error))],
    }
}

fn alteration(row: &Fields<'_>) -> Result<ScramAlteration, Failure> {
    let user = row.text("user")?;
    row.text("mechanism")?;
    let mechanism = row.choice("mechanism", &MECHANISMS)?.unwrap_or_default();
    let iterations = row.optional_number("iterations")?.unwrap_or(ITERATIONS);
    let bytes = |field| {
        let decoded =
            |base64| decode_hmac(base64).ok_or_else(|| row.wrong(format_args!("\"{field}\" is not base64")));
        row.optional(field).map(|_| row.secret(field).and_then(decoded)).transpose()
    };
    let salt = bytes("salt")?;
    let password = row.optional("password").map(|_| row.secret("password")).transpose()?;
    let made = match (password, bytes("salted_password")?, salt) {
        (None, None, None) => Ok(ScramAlteration::Delete { user: user.to_owned(), mechanism }),
        (Some(password), None, None) => scram_password(user, mechanism, iterations, password),
        (Some(password), None, Some(salt)) => {
            scram_password_with_salt(user, mechanism, iterations, password, salt.expose())
        }
        (None, Some(salted_password), Some(salt)) => {
            let (user, salt) = (user.to_owned(), salt.expose().to_vec());
            Ok(ScramAlteration::Upsert { user, mechanism, iterations, salt, salted_password })
        }
        _ => return Err(row.wrong("set password, or salted_password with salt, or none of them to delete")),
    };
    made.map_err(|error| row.wrong(error))
}
