//! A record on its way through the interceptors of a producer (KIP-42).

use std::fmt;

use ottla_protocol::batch::HeaderRef;

use super::record::Record;

/// A record with the changes of interceptors.
#[derive(Clone)]
pub struct PreparedRecord<'a> {
    record: Record<'a>,
    changes: Option<Box<Changes>>,
}

/// What interceptors have replaced or added.
#[derive(Clone, Debug, Default)]
struct Changes {
    key: Option<Option<Vec<u8>>>,
    value: Option<Option<Vec<u8>>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl<'a> PreparedRecord<'a> {
    /// Creates it without changes.
    #[inline]
    pub const fn new(record: Record<'a>) -> Self {
        Self { record, changes: None }
    }

    /// Returns the record with all changes.
    pub fn record(&self) -> Record<'_> {
        let mut record = self.record.clone();
        let Some(changes) = &self.changes else { return record };
        if let Some(key) = &changes.key {
            record.key = key.as_deref();
        }
        if let Some(value) = &changes.value {
            record.value = value.as_deref();
            record.shared = None;
        }
        let added = changes.headers.iter();
        let added = added.map(|(key, value)| HeaderRef { key: key.as_bytes(), value: value.as_deref() });
        record.headers.extend(added);
        record
    }

    /// Calls `send` with the record. Without changes nothing is copied.
    #[inline]
    pub fn with<R>(&self, send: impl FnOnce(&Record<'_>) -> R) -> R {
        match self.changes {
            None => send(&self.record),
            Some(_) => send(&self.record()),
        }
    }
}

impl fmt::Debug for PreparedRecord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.record().fmt(f)
    }
}

/// A record that is being sent, which an interceptor may change.
pub struct OutgoingRecord<'r, 'a> {
    topic: &'r str,
    prepared: &'r mut PreparedRecord<'a>,
}

impl<'r, 'a> OutgoingRecord<'r, 'a> {
    /// Shows a record to an interceptor.
    pub const fn new(topic: &'r str, prepared: &'r mut PreparedRecord<'a>) -> Self {
        Self { topic, prepared }
    }

    /// Returns the topic.
    pub const fn topic(&self) -> &str {
        self.topic
    }

    /// Returns the partition, if the application chose it.
    pub const fn partition(&self) -> Option<i32> {
        self.prepared.record.partition
    }

    /// Returns the timestamp in milliseconds since 1970, if the application set it.
    pub const fn timestamp(&self) -> Option<i64> {
        self.prepared.record.timestamp
    }

    /// Returns the key.
    pub fn key(&self) -> Option<&[u8]> {
        let changed = self.prepared.changes.as_ref().and_then(|changes| changes.key.as_ref());
        changed.map_or(self.prepared.record.key, Option::as_deref)
    }

    /// Returns the value.
    pub fn value(&self) -> Option<&[u8]> {
        let changed = self.prepared.changes.as_ref().and_then(|changes| changes.value.as_ref());
        changed.map_or(self.prepared.record.value, Option::as_deref)
    }

    /// Returns the headers in their order, each with its value.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let own = self.prepared.record.headers.iter().map(|header| (header.key, header.value));
        let added = self.prepared.changes.iter().flat_map(|changes| &changes.headers);
        own.chain(added.map(|(key, value)| (key.as_bytes(), value.as_deref())))
    }

    /// Replaces the key, on which the partition may depend.
    pub fn set_key(&mut self, key: Option<Vec<u8>>) {
        self.changes().key = Some(key);
    }

    /// Replaces the value.
    pub fn set_value(&mut self, value: Option<Vec<u8>>) {
        self.changes().value = Some(value);
    }

    /// Appends a header.
    pub fn add_header(&mut self, key: impl Into<String>, value: Option<Vec<u8>>) {
        self.changes().headers.push((key.into(), value));
    }

    /// Removes all headers with this key.
    pub fn remove_headers(&mut self, key: &str) {
        self.prepared.record.headers.retain(|header| header.key != key.as_bytes());
        if let Some(changes) = &mut self.prepared.changes {
            changes.headers.retain(|(known, _)| known != key);
        }
    }

    fn changes(&mut self) -> &mut Changes {
        self.prepared.changes.get_or_insert_default()
    }
}

impl fmt::Debug for OutgoingRecord<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRecord").field("topic", &self.topic).field("record", self.prepared).finish()
    }
}

#[cfg(all(test, not(ottla_loom)))]
mod tests {
    use super::*;

    #[test]
    fn changes_replace_and_append_in_their_order() {
        let record = Record::new().key("k").value("v").header("a", "1").header("b", "2");
        let mut prepared = PreparedRecord::new(record);
        let mut outgoing = OutgoingRecord::new("t", &mut prepared);
        assert_eq!((outgoing.key(), outgoing.value()), (Some(&b"k"[..]), Some(&b"v"[..])));
        outgoing.set_value(Some(b"w".to_vec()));
        outgoing.set_key(None);
        outgoing.add_header("a", Some(b"3".to_vec()));
        outgoing.remove_headers("b");
        outgoing.add_header("c", None);
        let expected: [(&[u8], Option<&[u8]>); 3] = [(b"a", Some(b"1")), (b"a", Some(b"3")), (b"c", None)];
        assert!(outgoing.headers().eq(expected));
        outgoing.prepared.with(|record| {
            assert_eq!((record.key, record.value), (None, Some(&b"w"[..])));
            assert!(record.headers.iter().map(|header| (header.key, header.value)).eq(expected));
        });
        outgoing.remove_headers("a");
        assert!(outgoing.headers().map(|(key, _)| key).eq([b"c"]));
    }
}
