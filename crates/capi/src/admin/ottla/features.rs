//! Features of the cluster (KIP-584).

use std::collections::BTreeMap;

use ottla_core::admin::features::{FeatureUpdate, FeatureUpgrade};
use ottla_sorted::SortedSet;

use super::{calls, row::Row, shown};

const UPGRADES: [(&str, FeatureUpgrade); 3] = [
    ("upgrade", FeatureUpgrade::UpgradeOnly),
    ("safe_downgrade", FeatureUpgrade::SafeDowngrade),
    ("unsafe_downgrade", FeatureUpgrade::UnsafeDowngrade),
];

calls! {
    fn rd_kafka_ottla_DescribeFeatures() |admin, rows, options| {
        drop(rows);
        Ok(shown(admin.describe_features_async(*options), |features| {
            let names: SortedSet<&String> = features.supported.keys().chain(features.finalized.keys()).collect();
            let row = |name: &String| {
                let (supported, finalized) = (features.supported.get(name), features.finalized.get(name));
                Row::new()
                    .with("feature", name)
                    .with_some("min_supported", supported.map(|range| range.0))
                    .with_some("max_supported", supported.map(|range| range.1))
                    .with_some("min_finalized", finalized.map(|range| range.0))
                    .with_some("max_finalized", finalized.map(|range| range.1))
                    .with_some("epoch", features.epoch)
            };
            names.into_iter().map(row).collect()
        }))
    }

    fn rd_kafka_ottla_UpdateFeatures("feature", "version", "upgrade") |admin, rows, options| {
        let mut updates = BTreeMap::new();
        for row in rows.some()? {
            let upgrade = row.choice("upgrade", &UPGRADES)?.unwrap_or(FeatureUpgrade::UpgradeOnly);
            let update = FeatureUpdate::new(row.number("version")?, upgrade);
            if updates.insert(row.text("feature")?.to_owned(), update).is_some() {
                return Err(row.wrong("the feature is named twice"));
            }
        }
        Ok(shown(admin.update_features_async(&updates, *options), |results| {
            let row = |(name, result): &(String, ottla::Result<()>)| {
                Row::new().with("feature", name).failed(result.as_ref().err())
            };
            results.iter().map(row).collect()
        }))
    }
}
