//! Where an embedded registry keeps its records.

use std::sync::{Arc, Mutex, PoisonError};

/// A record of the topic `_schemas`: a key, and a value unless the key is deleted.
pub type StoredRecord = (Vec<u8>, Option<Vec<u8>>);

/// Keeps the records of a registry, in order. Kafka's registry keeps them in the compacted topic `_schemas`.
pub trait Storage: Send {
    /// Returns all records.
    ///
    /// # Errors
    ///
    /// They can't be read; the text says why.
    fn load(&mut self) -> Result<Vec<StoredRecord>, String>;

    /// Adds a record, and returns when it is kept.
    ///
    /// # Errors
    ///
    /// It can't be written; the text says why.
    fn append(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), String>;
}

/// Keeps records in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    records: Arc<Mutex<Vec<StoredRecord>>>,
}

impl Storage for MemoryStorage {
    fn load(&mut self) -> Result<Vec<StoredRecord>, String> {
        Ok(self.records.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn append(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), String> {
        let record = (key.to_vec(), value.map(<[u8]>::to_vec));
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        Ok(())
    }
}
