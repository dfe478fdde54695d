//! The verification after producing: every record is read back once, and in order in its partition.

use super::payload::Numbering;

/// Verifies the records while they are read back.
#[derive(Debug)]
pub struct Verifier {
    expected: u64,
    numbering: Numbering,
    /// One bit per record number.
    seen: Vec<u64>,
    /// The number of the previous record, per partition.
    last: Vec<Option<u64>>,
    records: u64,
    bytes: u64,
    duplicates: u64,
    disordered: u64,
    strangers: u64,
}

impl Verifier {
    /// Creates a verifier for `expected` records, numbered from 0, in `partitions` partitions.
    pub fn new(expected: u64, partitions: usize, numbering: Numbering) -> Verifier {
        let distinguishes = numbering.distinguishes(expected);
        Verifier {
            expected,
            numbering: if distinguishes { numbering } else { Numbering::None },
            seen: if distinguishes { vec![0; expected.div_ceil(64) as usize] } else { Vec::new() },
            last: vec![None; partitions],
            records: 0,
            bytes: 0,
            duplicates: 0,
            disordered: 0,
            strangers: 0,
        }
    }

    /// The next record of a partition.
    #[inline]
    pub fn record(&mut self, partition: i32, payload: &[u8]) {
        self.records += 1;
        self.bytes += payload.len() as u64;
        if self.numbering == Numbering::None {
            return;
        }
        let number = self.numbering.read(payload).filter(|number| *number < self.expected);
        let last = usize::try_from(partition).ok().and_then(|partition| self.last.get_mut(partition));
        let (Some(number), Some(last)) = (number, last) else {
            self.strangers += 1;
            return;
        };
        if last.is_some_and(|last| last > number) {
            self.disordered += 1;
        }
        *last = Some(number);
        let (word, bit) = (&mut self.seen[(number / 64) as usize], 1 << (number % 64));
        if *word & bit != 0 {
            self.duplicates += 1;
        }
        *word |= bit;
    }

    /// Returns the number of records read.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the result as a sentence, or an error that describes the first problem.
    pub fn verdict(&self) -> Result<String, String> {
        let missing = self.expected
            - self.seen.iter().map(|word| u64::from(word.count_ones())).sum::<u64>().min(self.expected);
        if self.numbering == Numbering::None {
            return match self.records == self.expected {
                true => Ok(format!(
                    "{} records read back (their payloads are not unique, so they were only counted)",
                    self.records
                )),
                false => Err(format!("{} records read back, {} expected", self.records, self.expected)),
            };
        }
        let faults: Vec<String> = [
            (missing, "missing"),
            (self.duplicates, "more than once"),
            (self.disordered, "out of order"),
            (self.strangers, "not ours"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, fault)| format!("{count} {fault}"))
        .collect();
        if faults.is_empty() {
            return Ok(format!(
                "{} records read back from {} partitions, each once and in order",
                self.records,
                self.last.len()
            ));
        }
        Err(format!("{} records read back, {} expected: {}", self.records, self.expected, faults.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(expected: u64, records: &[(i32, &str)]) -> Result<String, String> {
        let mut verifier = Verifier::new(expected, 2, Numbering::WholePayload);
        for (partition, payload) in records {
            verifier.record(*partition, payload.as_bytes());
        }
        verifier.verdict()
    }

    #[test]
    fn verifier_accepts_every_record_once_and_in_order() {
        let good = verdict(4, &[(0, "0"), (1, "1"), (1, "3"), (0, "2")]);
        assert_eq!(good.unwrap(), "4 records read back from 2 partitions, each once and in order");
    }

    #[test]
    fn verifier_names_each_fault() {
        assert_eq!(verdict(2, &[(0, "0")]).unwrap_err(), "1 records read back, 2 expected: 1 missing");
        assert!(verdict(2, &[(0, "0"), (0, "0"), (0, "1")]).unwrap_err().ends_with(": 1 more than once"));
        assert!(verdict(2, &[(0, "1"), (0, "0")]).unwrap_err().ends_with(": 1 out of order"));
        assert!(verdict(2, &[(0, "0"), (0, "1"), (0, "2")]).unwrap_err().ends_with(": 1 not ours"));
        assert!(verdict(1, &[(0, "0"), (0, "x"), (7, "0")]).unwrap_err().ends_with(": 2 not ours"));
    }

    #[test]
    fn unnumbered_records_are_counted() {
        let mut verifier = Verifier::new(1000, 1, Numbering::Digits(2));
        (0..1000).for_each(|_| verifier.record(0, b"00"));
        assert!(verifier.verdict().unwrap().starts_with("1000 records read back"));
        verifier.record(0, b"00");
        assert_eq!(verifier.verdict().unwrap_err(), "1001 records read back, 1000 expected");
    }
}
