//! Control records: markers that brokers write among the records, in batches whose
//! [`is_control`](super::BatchHeader::is_control) is set. They take an offset and are never handed to the application.

/// The content of a control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// The producer's transaction ended here.
    EndTransaction {
        /// True if the transaction committed; false if it aborted.
        committed: bool,
        /// The epoch of the transaction coordinator that wrote the marker.
        coordinator_epoch: i32,
    },
    /// A marker of the KRaft quorum, or a type that this client does not know.
    Other {
        /// Its type.
        kind: i16,
    },
}

/// Error: a control record is shorter than its version requires, or has no version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlRecordError;

const ABORT: i16 = 0;
const COMMIT: i16 = 1;

impl ControlRecord {
    /// Parses a control record. Later versions may only append fields, so any version can be read.
    pub fn parse(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Self, ControlRecordError> {
        let (version, rest) = int16(key)?;
        let (kind, _) = int16(Some(rest))?;
        if version < 0 {
            return Err(ControlRecordError);
        }
        if !matches!(kind, ABORT | COMMIT) {
            return Ok(Self::Other { kind });
        }
        let (version, rest) = int16(value)?;
        let coordinator_epoch = rest.first_chunk().ok_or(ControlRecordError)?;
        if version < 0 {
            return Err(ControlRecordError);
        }
        let coordinator_epoch = i32::from_be_bytes(*coordinator_epoch);
        Ok(Self::EndTransaction { committed: kind == COMMIT, coordinator_epoch })
    }

    /// Returns the key and the value, as brokers write them. The value is empty for markers other than the end of a
    /// transaction.
    pub fn encode(self) -> (Vec<u8>, Vec<u8>) {
        const VERSION: [u8; 2] = [0; 2];
        let (kind, value) = match self {
            Self::EndTransaction { committed, coordinator_epoch } => {
                (i16::from(committed), [&VERSION[..], &coordinator_epoch.to_be_bytes()].concat())
            }
            Self::Other { kind } => (kind, Vec::new()),
        };
        ([VERSION, kind.to_be_bytes()].concat(), value)
    }
}

fn int16(bytes: Option<&[u8]>) -> Result<(i16, &[u8]), ControlRecordError> {
    let (value, rest) = bytes.and_then(|bytes| bytes.split_first_chunk()).ok_or(ControlRecordError)?;
    Ok((i16::from_be_bytes(*value), rest))
}

impl std::fmt::Display for ControlRecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a control record violates the format")
    }
}

impl std::error::Error for ControlRecordError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_round_trip() {
        for committed in [false, true] {
            let marker = ControlRecord::EndTransaction { committed, coordinator_epoch: 7 };
            let (key, value) = marker.encode();
            assert_eq!((key.len(), value.len()), (4, 6));
            assert_eq!(ControlRecord::parse(Some(&key), Some(&value)), Ok(marker));
        }
        let (key, _) = ControlRecord::Other { kind: 2 }.encode();
        assert_eq!(ControlRecord::parse(Some(&key), None), Ok(ControlRecord::Other { kind: 2 }));
    }

    #[test]
    fn later_versions_may_be_longer() {
        let key = [0, 1, 0, 1, 9, 9];
        let value = [0, 3, 0, 0, 0, 5, 9];
        let marker = ControlRecord::EndTransaction { committed: true, coordinator_epoch: 5 };
        assert_eq!(ControlRecord::parse(Some(&key), Some(&value)), Ok(marker));
    }

    #[test]
    fn truncated_markers_are_errors() {
        let (key, value) = ControlRecord::EndTransaction { committed: true, coordinator_epoch: 7 }.encode();
        for end in 0..key.len() {
            assert_eq!(ControlRecord::parse(Some(&key[..end]), Some(&value)), Err(ControlRecordError));
        }
        for end in 0..value.len() {
            assert_eq!(ControlRecord::parse(Some(&key), Some(&value[..end])), Err(ControlRecordError));
        }
        assert_eq!(ControlRecord::parse(None, Some(&value)), Err(ControlRecordError));
        assert_eq!(ControlRecord::parse(Some(&key), None), Err(ControlRecordError));
        assert_eq!(ControlRecord::parse(Some(&[0xff, 0xff, 0, 1]), Some(&value)), Err(ControlRecordError));
    }
}
