//! LZ4 blocks for the higher levels: slower and smaller. The compressor searches all earlier positions with the same
//! prefix, not only the last one.

/// The first level that uses this compressor.
pub(super) const FIRST_LEVEL: i32 = 3;

const HASH_BITS: u32 = 15;
const NONE: u32 = u32::MAX;
const SHORTEST_MATCH: usize = 4;
/// The format requires that no match starts in the last 12 bytes of a block, and that the last 5 are literals.
const NO_MATCH_IN_LAST: usize = 12;
const LAST_LITERALS: usize = 5;
/// The limit of the search, as a power of two. More attempts gain next to nothing, and take seconds per batch if the
/// data has few distinct bytes.
const MOST_ATTEMPTS_LOG2: i32 = 9;
/// A match of this length in bytes ends the search for a longer one.
const LONG_ENOUGH: usize = 256;

/// The positions with the same hash, as chains. Kept between blocks.
pub(super) struct Chains {
    /// The last position, by hash.
    last: Vec<u32>,
    /// The previous position with the same hash, by position.
    before: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Match {
    from: usize,
    length: usize,
}

impl Chains {
    pub const fn new() -> Self {
        Self { last: Vec::new(), before: Vec::new() }
    }

    /// Appends `block`, of at most 64 KiB, as a compressed block to `out`.
    pub fn compress(&mut self, block: &[u8], level: i32, out: &mut Vec<u8>) {
        self.last.clear();
        self.last.resize(1 << HASH_BITS, NONE);
        self.before.clear();
        self.before.resize(block.len(), NONE);
        let attempts = 1 << (level - 1).min(MOST_ATTEMPTS_LOG2);
        let end = block.len().saturating_sub(NO_MATCH_IN_LAST);
        let (mut at, mut literals) = (0, 0);
        while at < end {
            let Some(mut found) = self.find(block, at, attempts) else {
                at += 1;
                continue;
            };
            // A longer match may start at the next byte.
            while found.length < LONG_ENOUGH && at + 1 < end {
                match self.find(block, at + 1, attempts) {
                    Some(next) if next.length > found.length => {
                        found = next;
                        at += 1;
                    }
                    _ => break,
                }
            }
            put_sequence(&block[literals..at], Some((at - found.from, found.length)), out);
            let after = at + found.length;
            for place in at + 1..after.min(end) {
                self.insert(block, place);
            }
            (at, literals) = (after, after);
        }
        put_sequence(&block[literals..], None, out);
    }

    /// Returns the longest match for the bytes at `at`, and records `at` for later searches.
    fn find(&mut self, block: &[u8], at: usize, attempts: usize) -> Option<Match> {
        let mut place = self.insert(block, at);
        let requested = &block[at..block.len() - LAST_LITERALS];
        let mut best = Match { from: 0, length: SHORTEST_MATCH - 1 };
        for _ in 0..attempts {
            // Offsets have 16 bits, and 0 is not a valid offset.
            if place == NONE || at - place as usize > usize::from(u16::MAX) {
                break;
            }
            let from = place as usize;
            if block[from + best.length] == requested[best.length] {
                let length = common_length(&block[from..], requested);
                if length > best.length {
                    best = Match { from, length };
                    if length >= LONG_ENOUGH || length == requested.len() {
                        break;
                    }
                }
            }
            place = self.before[from];
        }
        (best.length >= SHORTEST_MATCH).then_some(best)
    }

    /// Records the position `at`, and returns the last one before it with the same hash.
    fn insert(&mut self, block: &[u8], at: usize) -> u32 {
        let hash = hash(block, at);
        let last = self.last[hash];
        if last == at as u32 {
            return self.before[at];
        }
        self.last[hash] = at as u32;
        self.before[at] = last;
        last
    }
}

fn hash(block: &[u8], at: usize) -> usize {
    let start = block[at..].first_chunk().map_or(0, |start| u32::from_le_bytes(*start));
    (start.wrapping_mul(2_654_435_761) >> (32 - HASH_BITS)) as usize
}

fn common_length(a: &[u8], b: &[u8]) -> usize {
    let mut length = 0;
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        let different = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if different != 0 {
            return length + different.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    length + a[length..].iter().zip(&b[length..]).take_while(|(a, b)| a == b).count()
}

/// Writes literals, and a copy of `length` bytes from `offset` bytes back; only the last sequence has no copy.
fn put_sequence(literals: &[u8], copy: Option<(usize, usize)>, out: &mut Vec<u8>) {
    let copied = copy.map_or(0, |(_, length)| length - SHORTEST_MATCH);
    out.push((literals.len().min(15) << 4 | copied.min(15)) as u8);
    put_length(literals.len(), out);
    out.extend_from_slice(literals);
    if let Some((offset, _)) = copy {
        out.extend_from_slice(&(offset as u16).to_le_bytes());
        put_length(copied, out);
    }
}

/// Writes the part of a length that does not fit into the token.
fn put_length(length: usize, out: &mut Vec<u8>) {
    let Some(mut rest) = length.checked_sub(15) else { return };
    while rest >= 255 {
        out.push(255);
        rest -= 255;
    }
    out.push(rest as u8);
}
