//! `ottla features`: the versions of the cluster's features, with the meaning of Kafka's kafka-features.

use std::collections::BTreeMap;

use clap::Args;
use ottla::admin::{FeatureUpdate, FeatureUpgrade};
use ottla::{Admin, AdminOptions};

use super::admin_command::{Common, pair, subcommands, texts};
use super::table::Table;
use super::topics::TIMEOUT;
use crate::failure::{EXIT_CODES, Failure, Outcome};

subcommands! {
    /// List the features of the cluster, and change their versions
    #[command(after_help = format!("Examples:\n  \
        ottla features -b localhost:9092 list\n  \
        ottla features -b localhost:9092 upgrade transaction.version=2 --dry-run\n  \
        ottla features -b localhost:9092 downgrade transaction.version=1\n\n{EXIT_CODES}"))]
    FeaturesOptions { List(ListOptions), Upgrade(UpgradeOptions), Downgrade(DowngradeOptions) }
}

/// Print features with the versions that a broker supports and the cluster uses
#[derive(Args, Debug)]
struct ListOptions {
    #[command(flatten)]
    common: Common,
}

impl ListOptions {
    fn run(&self, admin: &Admin) -> Outcome {
        let features = admin.describe_features(TIMEOUT)?;
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
        _ => Err(format!("\"{version}\" is no version: a number of at least 0")),
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
    let results = admin.update_features(&updates, AdminOptions::new(TIMEOUT).validate_only(dry_run))?;
    common.report(
        "feature",
        if dry_run { "would be changed:" } else { "changed" },
        texts(results, String::clone),
    )
}
