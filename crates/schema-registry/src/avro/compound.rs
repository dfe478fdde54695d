//! Records, arrays and maps of types with serde.

use serde::{
    Serialize,
    ser::{self, SerializeSeq as _},
};

use super::{
    bytes::{write_bytes, write_long},
    from_serde::ValueSerializer,
    plan::{NodeId, Plan, RecordNode},
    scalar::{Scalar, ScalarSerializer},
};
use crate::{Error, Result};

/// Writes the fields of a record in the order of its schema.
pub struct RecordSerializer<'a> {
    plan: &'a Plan,
    record: &'a RecordNode,
    out: &'a mut Vec<u8>,
    /// The number of fields that are in `out`.
    written: usize,
    /// The fields that came too early; empty while each came in its turn.
    early: Vec<Option<Vec<u8>>>,
}

impl<'a> RecordSerializer<'a> {
    pub fn new(plan: &'a Plan, record: &'a RecordNode, out: &'a mut Vec<u8>) -> Self {
        Self { plan, record, out, written: 0, early: Vec::new() }
    }

    #[inline]
    pub fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        match self.record.fields.get(self.written) {
            Some(field) if field.name == name => {
                let serializer = ValueSerializer { plan: self.plan, node: field.node, out: self.out };
                value.serialize(serializer).map_err(|error| error.within(name))?;
                self.written += 1;
                if !self.early.is_empty() {
                    self.flush();
                }
                Ok(())
            }
            _ => self.field_out_of_turn(name, value),
        }
    }

    fn field_out_of_turn<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        let fields = &self.record.fields;
        let Some(at) = fields.iter().position(|field| field.name == name) else {
            return Err(Error::value(format!("{} has no such field", self.record.names.full)).within(name));
        };
        self.early.resize_with(fields.len(), || None);
        if at < self.written || self.early[at].is_some() {
            return Err(Error::value("the field is there twice").within(name));
        }
        let mut out = Vec::new();
        let serializer = ValueSerializer { plan: self.plan, node: fields[at].node, out: &mut out };
        value.serialize(serializer).map_err(|error| error.within(name))?;
        self.early[at] = Some(out);
        Ok(())
    }

    /// Writes the early fields whose turn has come.
    fn flush(&mut self) {
        while let Some(bytes) = self.early.get_mut(self.written).and_then(Option::take) {
            self.out.extend_from_slice(&bytes);
            self.written += 1;
        }
    }

    pub fn finish(mut self) -> Result<()> {
        loop {
            self.flush();
            let Some(field) = self.record.fields.get(self.written) else { return Ok(()) };
            match &field.encoded_default {
                Some(bytes) => self.out.extend_from_slice(bytes),
                None => {
                    return Err(Error::value("the field is missing, and has no default").within(&field.name));
                }
            }
            self.written += 1;
        }
    }
}

impl ser::SerializeStruct for RecordSerializer<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        self.field(key, value)
    }

    #[inline]
    fn skip_field(&mut self, _: &'static str) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn end(self) -> Result<()> {
        if self.written == self.record.fields.len() { Ok(()) } else { self.finish() }
    }
}

impl ser::SerializeStructVariant for RecordSerializer<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        self.field(key, value)
    }

    fn end(self) -> Result<()> {
        self.finish()
    }
}

/// Writes the items of an array, or bytes.
pub struct SeqSerializer<'a> {
    pub plan: &'a Plan,
    pub out: &'a mut Vec<u8>,
    pub items: Items,
    pub count: usize,
}

/// What a list becomes.
pub enum Items {
    /// An array whose number of items is written already.
    Counted(NodeId, usize),
    /// An array whose items are collected.
    Uncounted(NodeId, Vec<u8>),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A fixed.
    Fixed(Vec<u8>, usize),
}

impl ser::SerializeSeq for SeqSerializer<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let at = self.count;
        self.count += 1;
        match &mut self.items {
            Items::Counted(node, _) => {
                value.serialize(ValueSerializer { plan: self.plan, node: *node, out: self.out })
            }
            Items::Uncounted(node, out) => {
                value.serialize(ValueSerializer { plan: self.plan, node: *node, out })
            }
            Items::Bytes(bytes) | Items::Fixed(bytes, _) => match value.serialize(ScalarSerializer)? {
                Scalar::Byte(byte) => {
                    bytes.push(byte);
                    Ok(())
                }
                Scalar::Text(_) => Err(Error::value("the schema has bytes, and only u8 are bytes")),
            },
        }
        .map_err(|error| error.within(format_args!("[{at}]")))
    }

    fn end(self) -> Result<()> {
        match self.items {
            Items::Counted(_, expected) if expected != self.count => {
                return Err(Error::value(format!(
                    "{expected} items were announced, and {} came",
                    self.count
                )));
            }
            Items::Counted(..) => write_long(self.out, 0),
            Items::Uncounted(_, items) => {
                if self.count > 0 {
                    write_long(self.out, self.count as i64);
                    self.out.extend_from_slice(&items);
                }
                write_long(self.out, 0);
            }
            Items::Bytes(bytes) => write_bytes(self.out, &bytes),
            Items::Fixed(bytes, size) if bytes.len() != size => {
                return Err(Error::value(format!("{} bytes are not the {size} of the fixed", bytes.len())));
            }
            Items::Fixed(bytes, _) => self.out.extend_from_slice(&bytes),
        }
        Ok(())
    }
}

impl ser::SerializeTuple for SeqSerializer<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        ser::SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<()> {
        ser::SerializeSeq::end(self)
    }
}

impl ser::SerializeTupleStruct for SeqSerializer<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.serialize_element(value)
    }

    fn end(self) -> Result<()> {
        ser::SerializeSeq::end(self)
    }
}

/// Writes the entries of a map, or a record's fields that come as a map.
pub enum MapSerializer<'a> {
    Map { plan: &'a Plan, node: NodeId, out: &'a mut Vec<u8>, entries: Vec<u8>, count: usize },
    Record(RecordSerializer<'a>, String),
}

impl ser::SerializeMap for MapSerializer<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        let name = match key.serialize(ScalarSerializer)? {
            Scalar::Text(text) => text,
            Scalar::Byte(byte) => byte.to_string(),
        };
        match self {
            MapSerializer::Map { entries, count, .. } => {
                *count += 1;
                write_bytes(entries, name.as_bytes());
            }
            MapSerializer::Record(_, key) => *key = name,
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        match self {
            MapSerializer::Map { plan, node, entries, .. } => {
                value.serialize(ValueSerializer { plan, node: *node, out: entries })
            }
            MapSerializer::Record(record, key) => record.field(key, value),
        }
    }

    fn end(self) -> Result<()> {
        match self {
            MapSerializer::Map { out, entries, count, .. } => {
                if count > 0 {
                    write_long(out, count as i64);
                    out.extend_from_slice(&entries);
                }
                write_long(out, 0);
                Ok(())
            }
            MapSerializer::Record(record, _) => record.finish(),
        }
    }
}
