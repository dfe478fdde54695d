//! API versions of earlier Kafka releases, so that clients can be tested against them.

use std::collections::BTreeMap;

use crate::{api::SERVED, control::Control, options::ClusterOptions};

/// A release of Apache Kafka to emulate: its API versions, as far as this cluster implements them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BrokerRelease {
    V0_8_2,
    V0_9_0,
    V0_10_0,
    V0_10_1,
    V0_11_0,
    V3_9_1,
    V4_3_1,
}

/// (API key, first version, last version)
type Served = (i16, i16, i16);

const V0_8_2: &[Served] = &[(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (8, 0, 1), (9, 0, 1), (10, 0, 0)];

const V0_9_0: &[Served] = &[
    (0, 0, 1),
    (1, 0, 1),
    (2, 0, 0),
    (3, 0, 0),
    (8, 0, 2),
    (9, 0, 1),
    (10, 0, 0),
    (11, 0, 0),
    (12, 0, 0),
    (13, 0, 0),
    (14, 0, 0),
    (15, 0, 0),
    (16, 0, 0),
];

/// ApiVersions exists since 0.10.0.
const V0_10_0: &[Served] = &[
    (0, 0, 2),
    (1, 0, 2),
    (2, 0, 0),
    (3, 0, 1),
    (8, 0, 2),
    (9, 0, 1),
    (10, 0, 0),
    (11, 0, 0),
    (12, 0, 0),
    (13, 0, 0),
    (14, 0, 0),
    (15, 0, 0),
    (16, 0, 0),
    (17, 0, 0),
    (18, 0, 0),
];

const V0_10_1: &[Served] = &[
    (0, 0, 2),
    (1, 0, 3),
    (2, 0, 1),
    (3, 0, 2),
    (8, 0, 2),
    (9, 0, 1),
    (10, 0, 0),
    (11, 0, 1),
    (12, 0, 0),
    (13, 0, 0),
    (14, 0, 0),
    (15, 0, 0),
    (16, 0, 0),
    (17, 0, 0),
    (18, 0, 0),
    (19, 0, 0),
    (20, 0, 0),
];

/// The first release with record batches, idempotent producers and transactions.
const V0_11_0: &[Served] = &[
    (0, 0, 3),
    (1, 0, 5),
    (2, 0, 2),
    (3, 0, 4),
    (8, 0, 3),
    (9, 0, 3),
    (10, 0, 1),
    (11, 0, 2),
    (12, 0, 1),
    (13, 0, 1),
    (14, 0, 1),
    (15, 0, 1),
    (16, 0, 1),
    (17, 0, 0),
    (18, 0, 1),
    (19, 0, 2),
    (20, 0, 1),
    (21, 0, 0),
    (22, 0, 0),
    (23, 0, 0),
    (24, 0, 0),
    (25, 0, 0),
    (26, 0, 0),
    (27, 0, 0),
    (28, 0, 0),
    (32, 0, 0),
];

/// The last release whose transactions don't bump epochs. Leaders check partitions before the first records (KIP-890).
const V3_9_1: &[Served] = &[
    (0, 0, 11),
    (1, 0, 17),
    (2, 0, 10),
    (3, 0, 12),
    (8, 0, 9),
    (9, 0, 9),
    (10, 0, 6),
    (11, 0, 9),
    (12, 0, 4),
    (13, 0, 5),
    (14, 0, 5),
    (15, 0, 5),
    (16, 0, 5),
    (17, 0, 1),
    (18, 0, 4),
    (19, 0, 7),
    (20, 0, 6),
    (21, 0, 2),
    (22, 0, 5),
    (23, 0, 4),
    (24, 0, 5),
    (25, 0, 4),
    (26, 0, 4),
    (27, 0, 1),
    (28, 0, 4),
    (29, 0, 3),
    (30, 0, 3),
    (31, 0, 3),
    (32, 0, 4),
    (33, 0, 2),
    (36, 0, 2),
    (37, 0, 3),
    (42, 0, 2),
    (44, 0, 1),
    (46, 0, 0),
    (47, 0, 0),
    (60, 0, 1),
    (61, 0, 0),
    (65, 0, 0),
    (66, 0, 1),
    (68, 0, 0),
    (69, 0, 0),
    (71, 0, 0),
    (72, 0, 0),
    (74, 0, 0),
    (75, 0, 0),
];

impl ClusterOptions {
    /// Limits all brokers to the versions that this release served.
    #[must_use]
    pub fn emulate(mut self, release: BrokerRelease) -> Self {
        self.api_versions = release.api_versions();
        self.transaction_version = if release == BrokerRelease::V4_3_1 { 2 } else { 0 };
        self.transaction_verification = matches!(release, BrokerRelease::V3_9_1 | BrokerRelease::V4_3_1);
        self
    }
}

impl Control<'_> {
    /// Limits all brokers to the versions that this release served.
    pub fn emulate(&mut self, release: BrokerRelease) {
        for broker in self.cluster.brokers.values_mut() {
            broker.api_versions = release.api_versions().into_iter().collect();
        }
        let emulated = ClusterOptions::default().emulate(release);
        self.set_transaction_version(emulated.transaction_version);
        self.cluster.options.transaction_verification = emulated.transaction_verification;
    }
}

impl BrokerRelease {
    /// Returns the versions by API key, with an empty range for APIs that the release lacks.
    pub(crate) fn api_versions(self) -> BTreeMap<i16, (i16, i16)> {
        let served = match self {
            Self::V0_8_2 => V0_8_2,
            Self::V0_9_0 => V0_9_0,
            Self::V0_10_0 => V0_10_0,
            Self::V0_10_1 => V0_10_1,
            Self::V0_11_0 => V0_11_0,
            Self::V3_9_1 => V3_9_1,
            Self::V4_3_1 => return BTreeMap::new(),
        };
        let mut versions: BTreeMap<_, _> = SERVED.iter().map(|(api, _, _)| (*api as i16, (0, -1))).collect();
        versions.extend(served.iter().map(|(key, min, max)| (*key, (*min, *max))));
        versions
    }
}
