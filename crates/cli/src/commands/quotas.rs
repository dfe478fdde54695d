//! `ottla quotas`: the limits of users, client IDs and addresses.

use std::collections::BTreeMap;

use clap::Args;
use ottla::Admin;
use ottla::AdminOptions;
use ottla::admin::{QuotaChanges, QuotaEntity, QuotaFilter, QuotaMatch};

use super::admin_command::{Common, pair, subcommands, texts};
use super::table::Table;
use crate::client_options::call_timeout;
use crate::failure::{EXIT_CODES, Failure, Outcome};

subcommands! {
    /// List, set and remove quotas of users, client IDs and addresses
    #[command(after_help = format!("Examples:\n  \
        ottla quotas -b localhost:9092 list\n  \
        ottla quotas -b localhost:9092 set --user alice producer_byte_rate=1048576 consumer_byte_rate=2097152\n  \
        ottla quotas -b localhost:9092 set --default-ip connection_creation_rate=10\n  \
        ottla quotas -b localhost:9092 remove --user alice producer_byte_rate --dry-run\n\n{EXIT_CODES}"))]
    QuotasOptions { List(ListOptions), Set(SetOptions), Remove(RemoveOptions) }
}

/// The clients that quotas are for.
#[derive(Args, Debug)]
struct Entity {
    /// This user
    #[arg(long, value_name = "USER", conflicts_with = "default_user")]
    user: Option<String>,

    /// All users without a quota of their own
    #[arg(long)]
    default_user: bool,

    /// This client.id
    #[arg(long, value_name = "ID", conflicts_with = "default_client_id")]
    client_id: Option<String>,

    /// All client IDs without a quota of their own
    #[arg(long)]
    default_client_id: bool,

    /// This address
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["default_ip", "user", "default_user", "client_id", "default_client_id"])]
    ip: Option<String>,

    /// All addresses without a quota of their own
    #[arg(long, conflicts_with_all = ["user", "default_user", "client_id", "default_client_id"])]
    default_ip: bool,
}

impl Entity {
    /// Returns the names by type; `None` is the default.
    fn names(&self) -> QuotaEntity {
        let all = [
            ("user", &self.user, self.default_user),
            ("client-id", &self.client_id, self.default_client_id),
            ("ip", &self.ip, self.default_ip),
        ];
        let named = all.into_iter().filter(|(_, name, is_default)| name.is_some() || *is_default);
        named.map(|(kind, name, _)| (kind.to_owned(), name.clone())).collect()
    }

    fn required(&self) -> Outcome<QuotaEntity> {
        let names = self.names();
        if names.is_empty() {
            let text = "no clients; add --user, --client-id, --ip, or one of --default-user, --default-client-id, --default-ip";
            return Err(Failure::Usage(text.into()));
        }
        Ok(names)
    }
}

/// Returns an entity as text, such as `user=alice client-id=<default>`.
fn shown(entity: &QuotaEntity) -> String {
    let name = |name: &Option<String>| name.as_deref().unwrap_or("<default>").to_owned();
    entity.iter().map(|(kind, of)| format!("{kind}={}", name(of))).collect::<Vec<_>>().join(" ")
}

/// Print quotas
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    entity: Entity,

    /// Only quotas for exactly these types of clients
    #[arg(long)]
    strict: bool,
}

impl ListOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let mut filter = QuotaFilter::default();
        for (kind, name) in self.entity.names() {
            filter = filter.matching(kind, name.map_or(QuotaMatch::Default, QuotaMatch::Name));
        }
        let filter = if self.strict { filter.strict() } else { filter };
        let mut table =
            Table::new(&[("CLIENTS", "clients", 0), ("QUOTA", "quota", 0), ("VALUE", "value", 0)]);
        for (entity, values) in admin.describe_client_quotas(&filter, call_timeout())? {
            for (key, value) in values {
                table.add([shown(&entity).into(), key.into(), value.into()]);
            }
        }
        table.print(self.common.json)
    }
}

/// Set quotas, such as producer_byte_rate=1048576
#[derive(Args, Debug)]
struct SetOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    entity: Entity,

    /// Names and values: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate, or
    /// connection_creation_rate of addresses
    #[arg(value_name = "NAME=VALUE", required = true, value_parser = quota)]
    quotas: Vec<(String, f64)>,

    /// Only let the brokers check the request
    #[arg(long)]
    dry_run: bool,
}

fn quota(text: &str) -> Result<(String, f64), String> {
    let (name, value) = pair(text)?;
    match value.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok((name, number)),
        _ => Err(format!("\"{value}\" is not a number of at least 0")),
    }
}

impl SetOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let entity = self.entity.required()?;
        let changes: QuotaChanges =
            self.quotas.iter().map(|(name, value)| (name.clone(), Some(*value))).collect();
        if changes.len() < self.quotas.len() {
            return Err(Failure::Usage("a quota is named twice".into()));
        }
        alter(admin, &self.common, entity, changes, self.dry_run, "set quotas of")
    }
}

fn alter(
    admin: &Admin,
    common: &Common,
    entity: QuotaEntity,
    changes: QuotaChanges,
    dry_run: bool,
    done: &str,
) -> Outcome {
    let options = AdminOptions::new(call_timeout()).validate_only(dry_run);
    let results = admin.alter_client_quotas(&BTreeMap::from([(entity, changes)]), options)?;
    let done = if dry_run { format!("would have {done}") } else { done.to_owned() };
    common.report("clients", &done, texts(results, shown))
}

/// Remove quotas
#[derive(Args, Debug)]
struct RemoveOptions {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    entity: Entity,

    /// Names of quotas [default: all that the clients have]
    #[arg(value_name = "NAME")]
    quotas: Vec<String>,

    /// Only let the brokers check the request
    #[arg(long)]
    dry_run: bool,
}

impl RemoveOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let entity = self.entity.required()?;
        let mut names = self.quotas.clone();
        if names.is_empty() {
            let mut filter = QuotaFilter::default().strict();
            for (kind, name) in &entity {
                filter = filter.matching(kind, name.clone().map_or(QuotaMatch::Default, QuotaMatch::Name));
            }
            let found = admin.describe_client_quotas(&filter, call_timeout())?;
            names = found.into_iter().flat_map(|(_, values)| values.into_keys()).collect();
        }
        if names.is_empty() {
            return Err(Failure::Failed(format!("{} has no quotas", shown(&entity))));
        }
        let changes = names.into_iter().map(|name| (name, None)).collect();
        alter(admin, &self.common, entity, changes, self.dry_run, "removed quotas of")
    }
}
