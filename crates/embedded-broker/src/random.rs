//! Randomness from a seed.

/// SplitMix64: small, fast, and identical on all platforms.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the 16 bytes of a random (version 4) UUID.
    pub fn uuid_bytes(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next_u64().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next_u64().to_be_bytes());
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        bytes
    }

    /// Returns a random cluster ID as Kafka writes it: a UUID as 22 characters of URL-safe base64.
    pub fn cluster_id(&mut self) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let bits = u128::from_be_bytes(self.uuid_bytes());
        let digit = |shift: u32| {
            let value = if shift == 0 { bits << 4 } else { bits >> (shift - 4) };
            char::from(DIGITS[usize::try_from(value & 63).unwrap_or(0)])
        };
        (0..22).rev().map(|place| digit(place * 6)).collect()
    }

    /// Returns a random number above 0.
    pub fn positive_i32(&mut self) -> i32 {
        i32::try_from(self.next_u64() >> 34).unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_id_is_22_characters_that_depend_on_the_seed() {
        let ids: Vec<String> = [1, 2, u64::MAX].map(|seed| Random::new(seed).cluster_id()).to_vec();
        assert!(ids.iter().all(|id| id.len() == 22), "{ids:?}");
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
        assert_eq!(ids[0], Random::new(1).cluster_id());
        assert!(
            ids.iter().all(|id| id.ends_with(['A', 'Q', 'g', 'w'])),
            "the last 4 bits are padding: {ids:?}"
        );
    }
}
