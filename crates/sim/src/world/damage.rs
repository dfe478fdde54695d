//! Damage to bytes on their way, as a broken network card causes behind the checksums of TCP.

use ottla_core::rng::Rng;

use super::World;
use crate::checkers::Broken;

/// Damage to the next bytes that it can strike.
#[derive(Clone, Debug)]
pub enum Damage {
    /// A bit of a record batch in a response is changed.
    FetchedBatch(Rng),
    /// A bit of a record batch in a request is changed.
    SentBatch(Rng),
    /// The length of a response becomes impossible: negative or nearly two gigabytes.
    ResponseLength(u8),
}

/// The offsets of a record batch's length, its format, its checksum, and of what that covers.
const LENGTH: usize = 8;
const BEHIND_LENGTH: usize = 12;
const MAGIC: usize = 16;
const CHECKSUM: usize = 17;
const COVERED: usize = 21;
/// The size of a batch without records.
const SMALLEST: usize = 61;

impl World {
    /// Damages the next bytes that fit.
    pub fn damage(&mut self, damage: Damage) {
        self.trace.note(self.now, format_args!("damage waits: {}", name(&damage)));
        self.damage.push(damage);
    }

    /// Ends all damage.
    pub fn end_damage(&mut self) {
        self.damage.clear();
    }

    /// Damages a response on its way to a link, by the first damage that fits.
    pub(super) fn damage_response(&mut self, link: u64, bytes: &mut [u8]) {
        for index in 0..self.damage.len() {
            let is_struck = match self.damage[index].clone() {
                Damage::ResponseLength(first) => self.damage_length(link, bytes, first),
                Damage::FetchedBatch(rng) => change_a_bit(bytes, rng),
                Damage::SentBatch(_) => false,
            };
            if is_struck {
                return self.strike(index, bytes.len());
            }
        }
    }

    fn damage_length(&mut self, link: u64, bytes: &mut [u8], value: u8) -> bool {
        let (Some(link), Some(first)) = (self.links.get_mut(&link), bytes.first_mut()) else { return false };
        *first = value;
        link.ends_at = Some(link.sent_to_client + 4);
        self.wire.expect_spoiled_responses();
        true
    }

    /// Damages a part of a request that has arrived at a broker.
    pub(super) fn damage_request(&mut self, bytes: &mut [u8]) {
        let index = self.damage.iter().position(|it| matches!(it, Damage::SentBatch(_)));
        if let Some(index) = index
            && let Damage::SentBatch(rng) = self.damage[index].clone()
            && change_a_bit(bytes, rng)
        {
            self.strike(index, bytes.len());
        }
    }

    fn strike(&mut self, index: usize, length: usize) {
        let damage = self.damage.remove(index);
        self.trace.note(self.now, format_args!("damaged in {length} bytes: {}", name(&damage)));
    }

    /// Checks that a client has closed a connection on which it has read an impossible length.
    pub(super) fn check_end(&mut self, id: u64, count: usize) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.read_by_client += count as u64;
        let is_due = link.ends_at.is_some_and(|at| link.read_by_client >= at);
        if is_due && self.by_actor.get(&(link.client, link.key)) == Some(&id) {
            let what = format!("client {}, link {id}: stays after an impossible length", link.client);
            self.broken.get_or_insert(Broken::new("framing", what));
        }
    }
}

const fn name(damage: &Damage) -> &'static str {
    match damage {
        Damage::FetchedBatch(_) => "a fetched batch",
        Damage::SentBatch(_) => "a sent batch",
        Damage::ResponseLength(_) => "the length of a response",
    }
}

/// Changes a bit that the checksum of a record batch covers, or of the checksum; returns false if there is no whole batch.
fn change_a_bit(bytes: &mut [u8], mut rng: Rng) -> bool {
    let Some((start, end)) = batch_in(bytes) else { return false };
    let first = start + CHECKSUM;
    let place = first + rng.below((end - first) as u64) as usize;
    bytes[place] ^= 1 << rng.below(8);
    true
}

/// Returns the first and the last place of a record batch whose checksum is right.
fn batch_in(bytes: &[u8]) -> Option<(usize, usize)> {
    let number = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    (0..bytes.len().saturating_sub(SMALLEST - 1)).find_map(|start| {
        if bytes[start + MAGIC] != 2 {
            return None;
        }
        let end = start + BEHIND_LENGTH + number(start + LENGTH)? as usize;
        let covered = bytes.get(start + COVERED..end).filter(|covered| !covered.is_empty())?;
        (crc32c::crc32c(covered) == number(start + CHECKSUM)?).then_some((start, end))
    })
}
