//! `ottla delegation-tokens`, with the meaning of Kafka's kafka-delegation-tokens. The HMAC of a token is its secret: it is read
//! from standard input or a file, and printed on request only.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ottla::admin::{DelegationToken, NewDelegationToken, Principal};
use ottla::{Admin, Secret};

use super::admin_command::{Common, subcommands};
use super::table::Table;
use super::users::first_line;
use crate::client_options::call_timeout;
use crate::failure::{EXIT_CODES, Failure, Outcome};

subcommands! {
    /// Create, renew, expire and list delegation tokens
    #[command(after_help = format!("\
        Clients authenticate with the token's ID as the user name and its HMAC as the password of SCRAM (tokenauth=true).\n\
        Brokers give tokens only to clients that authenticated with SASL or a certificate.\n\n\
        Examples:\n  \
        ottla delegation-tokens -F alice.properties create --renewer User:bob --show-hmac\n  \
        ottla delegation-tokens -F alice.properties list\n  \
        ottla delegation-tokens -F alice.properties renew --hmac-file token --hours 12\n  \
        ottla delegation-tokens -F alice.properties expire < token\n\n{EXIT_CODES}"))]
    DelegationTokensOptions {
        List(ListOptions),
        Create(CreateOptions),
        Renew(RenewOptions),
        Expire(ExpireOptions),
    }
}

fn principal(text: &str) -> Result<Principal, String> {
    Principal::parse(text).ok_or_else(|| format!("\"{text}\" is not a principal such as User:alice"))
}

fn hours(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(hours) if (0.001..=1_000_000.0).contains(&hours) => Ok(Duration::from_secs_f64(hours * 3600.0)),
        _ => Err("it must be a number of hours greater than 0".to_owned()),
    }
}

fn print(common: &Common, tokens: &[DelegationToken], with_hmac: bool) -> Outcome {
    let mut table = Table::new(match with_hmac {
        false => &[
            ("TOKEN-ID", "token_id", 0),
            ("OWNER", "owner", 0),
            ("REQUESTER", "requester", 0),
            ("RENEWERS", "renewers", 0),
            ("ISSUED", "issue_timestamp", 0),
            ("EXPIRES", "expiry_timestamp", 0),
            ("MAX", "max_timestamp", 0),
        ],
        true => &[
            ("TOKEN-ID", "token_id", 0),
            ("OWNER", "owner", 0),
            ("REQUESTER", "requester", 0),
            ("RENEWERS", "renewers", 0),
            ("ISSUED", "issue_timestamp", 0),
            ("EXPIRES", "expiry_timestamp", 0),
            ("MAX", "max_timestamp", 0),
            ("HMAC", "hmac", 0),
        ],
    });
    for token in tokens {
        let renewers: Vec<String> = token.renewers.iter().map(ToString::to_string).collect();
        let mut row = vec![
            token.token_id.as_str().into(),
            token.owner.to_string().into(),
            token.requester.as_ref().map(ToString::to_string).into(),
            renewers.join(",").into(),
            token.issued.into(),
            token.expires.into(),
            token.expires_at_the_latest.into(),
        ];
        if with_hmac {
            row.push(String::from_utf8_lossy(token.password().expose()).into_owned().into());
        }
        table.add(row);
    }
    table.print(common.json)
}

/// Print the tokens that the user may describe
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    common: Common,

    /// Only tokens of this owner, such as User:alice; can be repeated
    #[arg(long, value_name = "PRINCIPAL", value_parser = principal)]
    owner: Vec<Principal>,

    /// Print the HMACs, which are secrets
    #[arg(long)]
    show_hmac: bool,
}

impl ListOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let owners = (!self.owner.is_empty()).then_some(&self.owner[..]);
        print(&self.common, &admin.describe_delegation_tokens(owners, call_timeout())?, self.show_hmac)
    }
}

/// Create a token
#[derive(Args, Debug)]
struct CreateOptions {
    #[command(flatten)]
    common: Common,

    /// The owner, such as User:alice [default: the user of this client]
    #[arg(long, value_name = "PRINCIPAL", value_parser = principal)]
    owner: Option<Principal>,

    /// A user that may renew the token; can be repeated
    #[arg(long, value_name = "PRINCIPAL", value_parser = principal)]
    renewer: Vec<Principal>,

    /// The longest life of the token with renewals, in hours [default: the brokers']
    #[arg(long, value_name = "HOURS", value_parser = hours)]
    max_hours: Option<Duration>,

    /// Print the HMAC, which is a secret
    #[arg(long)]
    show_hmac: bool,
}

impl CreateOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let mut new = NewDelegationToken::default();
        new.owner.clone_from(&self.owner);
        new.renewers.clone_from(&self.renewer);
        new.max_lifetime = self.max_hours;
        let mut token = admin.create_delegation_token(&new, call_timeout())?;
        token.renewers.clone_from(&self.renewer);
        print(&self.common, &[token], self.show_hmac)
    }
}

/// The token that a subcommand is about.
#[derive(Args, Debug)]
struct Hmac {
    /// Read the HMAC from the first line of this file [default: standard input]
    #[arg(long, value_name = "FILE")]
    hmac_file: Option<PathBuf>,
}

impl Hmac {
    fn read(&self) -> Outcome<Secret> {
        let text = first_line(self.hmac_file.as_ref(), "HMAC of the token")?;
        ottla::admin::decode_hmac(&text).ok_or_else(|| {
            Failure::Usage("the HMAC is not base64; it is the one that `create --show-hmac` prints".into())
        })
    }
}

/// Print when a token expires.
fn print_expiry(common: &Common, expires: i64) -> Outcome {
    let mut table = Table::new(&[("EXPIRES", "expiry_timestamp", 0)]);
    table.add([expires.into()]);
    table.print(common.json)
}

/// Renew a token
#[derive(Args, Debug)]
struct RenewOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    hmac: Hmac,

    /// The time until it expires, in hours [default: the brokers']
    #[arg(long, value_name = "HOURS", value_parser = hours)]
    hours: Option<Duration>,
}

impl RenewOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        print_expiry(
            &self.common,
            admin.renew_delegation_token(&self.hmac.read()?, self.hours, call_timeout())?,
        )
    }
}

/// Let a token expire, at once or after some time
#[derive(Args, Debug)]
struct ExpireOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    hmac: Hmac,

    /// The time until it expires, in hours [default: at once]
    #[arg(long, value_name = "HOURS", value_parser = hours)]
    hours: Option<Duration>,

    /// Only print which token would expire
    #[arg(long)]
    dry_run: bool,
}

impl ExpireOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let hmac = self.hmac.read()?;
        if self.dry_run {
            let tokens = admin.describe_delegation_tokens(None, call_timeout())?;
            let found = tokens.into_iter().find(|token| token.hmac == hmac);
            let found = found.ok_or_else(|| Failure::Failed("there is no token with this HMAC".into()))?;
            return self.common.preview("token", [found.token_id], "expired");
        }
        print_expiry(&self.common, admin.expire_delegation_token(&hmac, self.hours, call_timeout())?)
    }
}
