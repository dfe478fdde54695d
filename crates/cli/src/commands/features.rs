//! `ottla features`: the versions of the cluster's features, with the meaning of Kafka's kafka-features.

use std::collections::BTreeMap;

use clap::Args;
use ottla::admin::{FeatureUpdate, FeatureUpgrade};
use ottla::{Admin, AdminOptions};

use super::admin_command::{Common, finish, pair, subcommands, texts};
use super::table::Table;
use crate::client_options::call_timeout;
use crate::failure::{EXIT_CODES, Failure, Outcome};

subcommands! {
    /// List the features of the cluster and the APIs of its brokers, and change the versions of features
    #[command(after_help = format!("Examples:\n  \
        ottla features -b localhost:9092 list\n  \
        ottla features -b localhost:9092 apis --broker 1\n  \
        ottla features -b localhost:9092 upgrade transaction.version=2 --dry-run\n  \
        ottla features -b localhost:9092 downgrade transaction.version=1\n\n{EXIT_CODES}"))]
    FeaturesOptions { List(ListOptions), Apis(ApisOptions), Upgrade(UpgradeOptions), Downgrade(DowngradeOptions) }
}

/// Print features with the versions that a broker supports and the cluster uses
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    common: Common,
}

impl ListOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let features = admin.describe_features(call_timeout())?;
        let mut table = Table::new(&[
            ("FEATURE", "feature", 0),
            ("SUPPORTED-MIN", "supported_min", 0),
            ("SUPPORTED-MAX", "supported_max", 0),
            ("FINALIZED", "finalized", 0),
            ("EPOCH", "epoch", 0),
        ]);
        for (name, (least, most)) in &features.supported {
            let finalized = features.finalized.get(name).map_or(0, |(_, level)| *level);
            let epoch = features.epoch;
            table.add([
                name.as_str().into(),
                (*least).into(),
                (*most).into(),
                finalized.into(),
                epoch.into(),
            ]);
        }
        table.print(self.common.json)
    }
}

/// Print the APIs of brokers with their versions, and the version that this client uses
#[derive(Args, Debug)]
struct ApisOptions {
    #[command(flatten)]
    common: Common,

    /// Only this broker; can be repeated
    #[arg(long, value_name = "ID")]
    broker: Vec<i32>,
}

impl ApisOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let mut table = Table::new(&[
            ("BROKER", "broker", 0),
            ("KEY", "key", 0),
            ("API", "api", 0),
            ("MIN", "min_version", 0),
            ("MAX", "max_version", 0),
            ("USABLE", "usable", 0),
        ]);
        let mut described = admin.describe_broker_apis(call_timeout())?;
        let is_described = |id: &i32| described.iter().any(|(broker, _)| broker == id);
        let mut failures: Vec<String> = self
            .broker
            .iter()
            .filter(|id| !is_described(id))
            .map(|id| format!("broker {id} is not in the cluster"))
            .collect();
        described.retain(|(broker, _)| self.broker.is_empty() || self.broker.contains(broker));
        for (broker, apis) in described {
            let apis = match apis {
                Ok(apis) => apis,
                Err(error) => {
                    failures.push(format!("broker {broker}: {error}"));
                    continue;
                }
            };
            for api in apis {
                table.add([
                    broker.into(),
                    api.key.into(),
                    api.name.into(),
                    (*api.versions.start()).into(),
                    (*api.versions.end()).into(),
                    api.usable.into(),
                ]);
            }
        }
        table.print(self.common.json)?;
        finish(failures)
    }
}

/// Raise the versions of features
#[derive(Args, Debug)]
struct UpgradeOptions {
    #[command(flatten)]
    common: Common,

    /// Features with their new versions
    #[arg(value_name = "FEATURE=VERSION", required = true, value_parser = version)]
    features: Vec<(String, i16)>,

    /// Only let the brokers check the request
    #[arg(long)]
    dry_run: bool,
}

/// Lower the versions of features; 0 disables one
#[derive(Args, Debug)]
struct DowngradeOptions {
    #[command(flatten)]
    common: Common,

    /// Features with their new versions
    #[arg(value_name = "FEATURE=VERSION", required = true, value_parser = version)]
    features: Vec<(String, i16)>,

    /// Also if metadata is lost
    #[arg(long)]
    unsafe_downgrade: bool,

    /// Only let the brokers check the request
    #[arg(long)]
    dry_run: bool,
}

fn version(text: &str) -> Result<(String, i16), String> {
    let (name, version) = pair(text)?;
    match version.trim().parse::<i16>() {
        Ok(version @ 0..) => Ok((name, version)),
        _ => Err(format!("\"{version}\" is not a version: a number of at least 0")),
    }
}

impl UpgradeOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        update(admin, &self.common, &self.features, FeatureUpgrade::UpgradeOnly, self.dry_run)
    }
}

impl DowngradeOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let upgrade = if self.unsafe_downgrade {
            FeatureUpgrade::UnsafeDowngrade
        } else {
            FeatureUpgrade::SafeDowngrade
        };
        update(admin, &self.common, &self.features, upgrade, self.dry_run)
    }
}

fn update(
    admin: &Admin,
    common: &Common,
    features: &[(String, i16)],
    upgrade: FeatureUpgrade,
    dry_run: bool,
) -> Outcome {
    let updates: BTreeMap<_, _> = features
        .iter()
        .map(|(name, version)| (name.clone(), FeatureUpdate::new(*version, upgrade)))
        .collect();
    if updates.len() < features.len() {
        return Err(Failure::Usage("a feature is named twice".into()));
    }
    let results =
        admin.update_features(&updates, AdminOptions::new(call_timeout()).validate_only(dry_run))?;
    common.report(
        "feature",
        if dry_run { "would be changed:" } else { "changed" },
        texts(results, String::clone),
    )
}
