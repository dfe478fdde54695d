//! Features of the cluster (KIP-584): describes their versions, and changes the finalized ones.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ottla_protocol::generated::update_features::{
    UpdateFeaturesRequest, request::FeatureUpdate as UpdateOfRequest,
};

use super::{
    AdminCall,
    broker_apis::api_versions_request,
    check,
    item_results::{ItemResults, Items},
    one_result::OneResult,
};
use crate::{completion::Completion, contract::route::Route, error::Error};

/// The features of the cluster, as one broker knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Features {
    /// The lowest and the highest version of each feature that the broker supports.
    pub supported: BTreeMap<String, (i16, i16)>,
    /// The lowest and the highest version of each feature that the whole cluster uses.
    pub finalized: BTreeMap<String, (i16, i16)>,
    /// The epoch of the finalized features, which rises with each change; `None` if there are none.
    pub epoch: Option<i64>,
}

/// The permitted directions of a change of a feature's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeatureUpgrade {
    /// Only raise the version.
    UpgradeOnly = 1,
    /// Also lower the version, if no metadata is lost.
    SafeDowngrade = 2,
    /// Also lower the version if metadata is lost.
    UnsafeDowngrade = 3,
}

/// A change of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeatureUpdate {
    /// The new version; 0 disables the feature.
    pub version: i16,
    /// The permitted directions.
    pub upgrade: FeatureUpgrade,
}

impl FeatureUpdate {
    /// Creates the change to this version.
    pub const fn new(version: i16, upgrade: FeatureUpgrade) -> Self {
        Self { version, upgrade }
    }
}

/// The first version of ApiVersions with features.
const FIRST_WITH_FEATURES: i16 = 3;
/// The first version of UpdateFeatures with types of upgrades and validation.
const FIRST_WITH_UPGRADE_TYPES: i16 = 1;

/// Describes the features.
pub fn describe_features(timeout: Duration, done: Completion<Result<Features, Error>>) -> AdminCall {
    let call = OneResult::new(
        Route::Any,
        |_, _| api_versions_request(),
        |response, _| {
            check(response.error_code, None)?;
            let supported = response.supported_features.into_iter();
            let finalized = response.finalized_features.into_iter();
            Ok(Features {
                supported: supported.map(|one| (one.name, (one.min_version, one.max_version))).collect(),
                finalized: finalized
                    .map(|one| (one.name, (one.min_version_level, one.max_version_level)))
                    .collect(),
                epoch: (response.finalized_features_epoch >= 0).then_some(response.finalized_features_epoch),
            })
        },
    );
    call.since_version(FIRST_WITH_FEATURES).call(timeout, done)
}

/// Changes finalized features. With `validate_only` the broker only checks the request, which needs Kafka 3.3 or later, like
/// [`FeatureUpgrade::UnsafeDowngrade`].
pub fn update_features(
    updates: BTreeMap<String, FeatureUpdate>,
    validate_only: bool,
    timeout: Duration,
    done: Completion<Result<ItemResults<String, ()>, Error>>,
) -> AdminCall {
    let is_unsafe = |update: &FeatureUpdate| update.upgrade == FeatureUpgrade::UnsafeDowngrade;
    let first = if validate_only || updates.values().any(is_unsafe) { FIRST_WITH_UPGRADE_TYPES } else { 0 };
    let keys = updates.keys().cloned().collect();
    let updates = Arc::new(updates);
    let request = move |keys: &[String], version, timeout_ms| {
        let update = |(feature, update): (&String, &FeatureUpdate)| {
            let has_types = version >= FIRST_WITH_UPGRADE_TYPES;
            let may_lower = update.upgrade != FeatureUpgrade::UpgradeOnly;
            UpdateOfRequest {
                feature: feature.clone(),
                max_version_level: update.version,
                upgrade_type: if has_types { update.upgrade as i8 } else { 1 },
                allow_downgrade: !has_types && may_lower,
            }
        };
        let requested = keys.iter().filter_map(|key| updates.get_key_value(key));
        UpdateFeaturesRequest { timeout_ms, feature_updates: requested.map(update).collect(), validate_only }
    };
    let call = Items::new(keys, request, |keys, response| {
        check(response.error_code, response.error_message.as_deref())?;
        // From version 2 on, all updates succeed or none.
        if response.results.is_empty() {
            return Ok(keys.iter().map(|key| (key.clone(), Ok(()))).collect());
        }
        let results = response.results.into_iter();
        Ok(results.map(|one| (one.feature, check(one.error_code, one.error_message.as_deref()))).collect())
    });
    call.since_version(first).call(timeout, done)
}
