//! API versions of earlier Kafka releases, so that clients can be tested against them.

use std::collections::BTreeMap;

use crate::{api::SERVED, options::ClusterOptions};

/// A release of Apache Kafka to emulate: its API versions, as far as this cluster implements them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BrokerRelease {
    V0_8_2,
    V0_9_0,
    V0_10_0,
    V0_10_1,
    V0_11_0,
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

/// The first release with record batches and idempotent producers.
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
    (32, 0, 0),
];

impl ClusterOptions {
    /// Limits all brokers to the versions that this release served.
    #[must_use]
    pub fn emulate(mut self, release: BrokerRelease) -> Self {
        self.api_versions = release.api_versions();
        self
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
            Self::V4_3_1 => return BTreeMap::new(),
        };
        let mut versions: BTreeMap<_, _> = SERVED.iter().map(|(api, _, _)| (*api as i16, (0, -1))).collect();
        versions.extend(served.iter().map(|(key, min, max)| (*key, (*min, *max))));
        versions
    }
}
