//! Where the row of a name is. The compiler builds the index: a client asks for some hundred names when it is created, and may be
//! created in a forked child, which must not wait for what another thread has begun.

use super::{Property, java, librdkafka, ottla};

/// The number of places, a power of two of which less than half is taken.
const PLACES: usize = 1024;

/// The number of each row plus one, at the first free place from the hash of its name on; 0 is a free place.
static INDEX: [u16; PLACES] = index();

/// Iterates over the rows with this name, in the order of [`properties`](super::properties).
pub(super) fn named(name: &str) -> impl Iterator<Item = &'static Property> + Clone {
    let first = hash(name.as_bytes());
    let taken = (0..PLACES).map(move |step| INDEX[(first + step) % PLACES]).take_while(|number| *number > 0);
    taken.filter_map(|number| row(usize::from(number) - 1)).filter(move |property| property.name == name)
}

const fn index() -> [u16; PLACES] {
    let mut places = [0; PLACES];
    let mut number = 0;
    while let Some(property) = row(number) {
        number += 1;
        assert!(number < PLACES / 2, "there must be more places");
        let mut at = hash(property.name.as_bytes());
        while places[at] > 0 {
            at = (at + 1) % PLACES;
        }
        places[at] = number as u16;
    }
    places
}

const fn row(number: usize) -> Option<&'static Property> {
    let (second, third) = (librdkafka::ROWS.len(), librdkafka::ROWS.len() + ottla::ROWS.len());
    if number < second {
        Some(&librdkafka::ROWS[number])
    } else if number < third {
        Some(&ottla::ROWS[number - second])
    } else if number < third + java::ROWS.len() {
        Some(&java::ROWS[number - third])
    } else {
        None
    }
}

/// FNV-1a, which is short enough for the compiler, and spreads names that end alike.
const fn hash(name: &[u8]) -> usize {
    let (mut hash, mut at) = (0x811c_9dc5_u32, 0);
    while at < name.len() {
        hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::{super::properties, *};

    #[test]
    fn index_has_the_rows_of_each_name_in_order() {
        for row in properties() {
            let same = properties().filter(|other| other.name == row.name);
            assert!(named(row.name).map(|it| it.doc).eq(same.map(|it| it.doc)), "{}", row.name);
        }
        for unknown in ["", "linger", "linger.ms ", "Linger.ms"] {
            assert_eq!(named(unknown).count(), 0, "{unknown}");
        }
    }
}
