//! Seeded random numbers: the same seed repeats a run.

use std::time::Duration;

/// A small, fast generator (splitmix64). Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Creates a generator; `seed` determines its whole sequence.
    pub const fn from_seed(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the seed of a generator that continues like this one.
    pub const fn state(&self) -> u64 {
        self.state
    }

    /// Derives an independent generator for a component.
    pub fn fork(&mut self) -> Self {
        Self::from_seed(self.next_u64())
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns true with the probability `numerator` / `denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Returns `duration` scaled by a random factor between 1 - `percent`/100 and 1 + `percent`/100.
    pub fn jitter(&mut self, duration: Duration, percent: u32) -> Duration {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let spread = (u128::from(nanos) * u128::from(percent) / 100) as u64;
        Duration::from_nanos(
            nanos.saturating_sub(spread).saturating_add(self.below(spread.saturating_mul(2) + 1)),
        )
    }

    /// Puts a slice into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let (mut a, mut b) = (Rng::from_seed(7), Rng::from_seed(7));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert_ne!(Rng::from_seed(8).next_u64(), Rng::from_seed(7).next_u64());
    }

    #[test]
    fn jitter_stays_within_its_percentage() {
        let mut rng = Rng::from_seed(1);
        for _ in 0..1000 {
            let jittered = rng.jitter(Duration::from_millis(100), 20);
            assert!(
                (Duration::from_millis(80)..=Duration::from_millis(120)).contains(&jittered),
                "{jittered:?}"
            );
        }
    }
}
