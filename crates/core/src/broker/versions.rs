//! Which version of each API to speak with a broker.

use std::ops::RangeInclusive;

use ottla_protocol::api::ApiKey;

/// The version ranges that a broker offers, from its ApiVersions answer or from a table for brokers that have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    ranges: Vec<(i16, i16, i16)>,
    /// Nobody told: they are what such a broker should speak.
    guessed: bool,
}

impl Versions {
    /// From `(api key, lowest, highest)` rows.
    pub fn new(rows: impl IntoIterator<Item = (i16, i16, i16)>) -> Self {
        let mut ranges: Vec<_> = rows.into_iter().filter(|(_, low, high)| low <= high && *low >= 0).collect();
        ranges.sort_unstable();
        ranges.dedup_by_key(|row| row.0);
        Self { ranges, guessed: false }
    }

    /// What a broker of this release (`0.8.1`, `0.9.0.1`, `0.10.0`, ...) speaks, for `broker.version.fallback`.
    pub fn of_release(release: &str) -> Self {
        let mut numbers = release.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let mut number = || numbers.next().unwrap_or(0);
        let release = (number(), number(), number());
        let row = FALLBACKS.iter().rev().find(|row| row.0 <= release).unwrap_or(&FALLBACKS[0]);
        Self { guessed: true, ..Self::new(row.1.iter().copied()) }
    }

    /// True if the broker did not tell its versions itself.
    pub const fn is_guessed(&self) -> bool {
        self.guessed
    }

    /// The highest version that both sides speak, within `usable`.
    pub fn pick(&self, api: ApiKey, usable: RangeInclusive<i16>) -> Option<i16> {
        let index = self.ranges.binary_search_by_key(&(api as i16), |row| row.0).ok()?;
        let (_, low, high) = self.ranges[index];
        let version = high.min(*usable.end());
        (version >= low && version >= *usable.start()).then_some(version)
    }

    /// The highest version that both sides speak of all that this library can encode.
    pub fn pick_any(&self, api: ApiKey) -> Option<i16> {
        self.pick(api, api.versions())
    }

    /// Lowers the highest version of an API, to do without what newer versions bring.
    pub fn cap(&mut self, api: ApiKey, highest: i16) {
        if let Ok(index) = self.ranges.binary_search_by_key(&(api as i16), |row| row.0) {
            self.ranges[index].2 = self.ranges[index].2.min(highest);
        }
    }
}

type Release = (u32, u32, u32);
type Row = (i16, i16, i16);

/// Brokers before 0.10 do not answer ApiVersions.
const FALLBACKS: &[(Release, &[Row])] = &[
    ((0, 8, 0), &[(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)]),
    ((0, 8, 1), &[(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (8, 0, 1), (9, 0, 0)]),
    ((0, 8, 2), &[(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (8, 0, 1), (9, 0, 1), (10, 0, 0)]),
    (
        (0, 9, 0),
        &[
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
        ],
    ),
    (
        (0, 10, 0),
        &[
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
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_version_is_picked() {
        let versions = Versions::new([(0, 3, 9), (3, 0, 12)]);
        assert_eq!(versions.pick(ApiKey::Produce, 3..=13), Some(9));
        assert_eq!(versions.pick(ApiKey::Produce, 0..=2), None);
        assert_eq!(versions.pick(ApiKey::Metadata, 0..=5), Some(5));
        assert_eq!(versions.pick(ApiKey::Fetch, 4..=18), None);
    }

    #[test]
    fn a_release_falls_back_to_the_newest_row_that_is_not_newer() {
        assert_eq!(Versions::of_release("0.9.0.1").pick(ApiKey::Produce, 0..=13), Some(1));
        assert_eq!(Versions::of_release("0.10.2").pick(ApiKey::Produce, 0..=13), Some(2));
        assert_eq!(Versions::of_release("0.8.2.2").pick(ApiKey::FindCoordinator, 0..=6), Some(0));
        assert_eq!(Versions::of_release("nonsense").pick(ApiKey::Metadata, 0..=13), Some(0));
    }
}
