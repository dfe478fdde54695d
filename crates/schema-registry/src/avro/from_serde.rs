//! Encodes types with serde.

use serde::{
    Serialize,
    ser::{Impossible, Serializer},
};

use super::{
    bytes::{write_bytes, write_long},
    compound::{Items, MapSerializer, RecordSerializer, SeqSerializer},
    from_json::described,
    plan::{Node, NodeId, Plan, simple},
};
use crate::{Error, Result};

/// Appends the encoding of a value.
#[inline]
pub fn encode<T: Serialize + ?Sized>(plan: &Plan, value: &T, out: &mut Vec<u8>) -> Result<()> {
    value.serialize(ValueSerializer { plan, node: plan.root, out })
}

/// Encodes a value of a node.
pub struct ValueSerializer<'a> {
    pub plan: &'a Plan,
    pub node: NodeId,
    pub out: &'a mut Vec<u8>,
}

impl<'a> ValueSerializer<'a> {
    /// Returns the type that takes the value: the best branch of a union. `rank` is 0 for types that can't take it, and 1 for the best.
    #[inline]
    fn node(&mut self, what: &str, rank: impl Fn(&Node) -> u8) -> Result<&'a Node> {
        let node = &self.plan.nodes[self.node];
        if let Node::Union(branches) = node {
            let ranks = branches.iter().enumerate().map(|(index, id)| (rank(&self.plan.nodes[*id]), index));
            if let Some((_, index)) = ranks.filter(|(rank, _)| *rank > 0).min() {
                write_long(self.out, index as i64);
                self.node = branches[index];
                return Ok(&self.plan.nodes[branches[index]]);
            }
        } else if rank(node) > 0 {
            return Ok(node);
        }
        Err(self.unfit(what))
    }

    #[cold]
    fn unfit(&self, what: &str) -> Error {
        match &self.plan.nodes[self.node] {
            Node::Union(branches) => {
                let names: Vec<&str> = branches.iter().map(|id| self.plan.type_name(*id)).collect();
                Error::value(format!("{what} is none of {}", names.join(", ")))
            }
            _ => Error::value(format!("{what} is not {}", described(self.plan, self.node))),
        }
    }

    #[inline]
    fn integer(mut self, value: i64) -> Result<()> {
        let is_int = i32::try_from(value).is_ok();
        let node = self.node("an integer", |node| match node {
            Node::Int if is_int => 1,
            Node::Long => 2,
            Node::Double => 3,
            Node::Float => 4,
            _ => 0,
        });
        match node {
            Ok(Node::Double) => self.out.extend_from_slice(&(value as f64).to_le_bytes()),
            Ok(Node::Float) => self.out.extend_from_slice(&(value as f32).to_le_bytes()),
            Ok(_) => write_long(self.out, value),
            Err(_) => return Err(self.unfit(&value.to_string())),
        }
        Ok(())
    }

    /// Enters the branch of a union that has the name of an enum's variant, or its number.
    fn variant(mut self, number: u32, variant: &str) -> Result<Self> {
        let Node::Union(branches) = &self.plan.nodes[self.node] else { return Err(self.unfit(variant)) };
        let name = |id: &NodeId| self.plan.type_name(*id);
        let named = branches.iter().position(|id| name(id) == variant || simple(name(id)) == variant);
        let index = named.unwrap_or(number as usize);
        let Some(node) = branches.get(index) else { return Err(self.unfit(variant)) };
        write_long(self.out, index as i64);
        self.node = *node;
        Ok(self)
    }

    fn seq(mut self, count: Option<usize>) -> Result<SeqSerializer<'a>> {
        let node = self.node("a list", |node| match node {
            Node::Array(_) => 1,
            Node::Bytes => 2,
            Node::Fixed(..) => 3,
            _ => 0,
        })?;
        let items = match (node, count) {
            (Node::Bytes, _) => Items::Bytes(Vec::with_capacity(count.unwrap_or_default())),
            (Node::Fixed(_, size), _) => Items::Fixed(Vec::with_capacity(*size), *size),
            (Node::Array(node), Some(count)) => {
                if count > 0 {
                    write_long(self.out, count as i64);
                }
                Items::Counted(*node, count)
            }
            (Node::Array(node), None) => Items::Uncounted(*node, Vec::new()),
            _ => return Err(self.unfit("a list")),
        };
        Ok(SeqSerializer { plan: self.plan, out: self.out, items, count: 0 })
    }

    fn record(mut self, name: &str) -> Result<RecordSerializer<'a>> {
        let node = self.node(name, |node| match node {
            Node::Record(record) if record.names.simple() == name => 1,
            Node::Record(_) => 2,
            _ => 0,
        })?;
        match node {
            Node::Record(record) => Ok(RecordSerializer::new(self.plan, record, self.out)),
            _ => Err(self.unfit(name)),
        }
    }
}

macro_rules! integers {
    ($($name:ident: $type:ty,)*) => {
        $(#[inline]
        fn $name(self, value: $type) -> Result<()> {
            self.integer(i64::from(value))
        })*
    };
}

impl<'a> Serializer for ValueSerializer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = SeqSerializer<'a>;
    type SerializeTuple = SeqSerializer<'a>;
    type SerializeTupleStruct = SeqSerializer<'a>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = MapSerializer<'a>;
    type SerializeStruct = RecordSerializer<'a>;
    type SerializeStructVariant = RecordSerializer<'a>;

    integers! {
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
    }

    fn serialize_u64(self, value: u64) -> Result<()> {
        match i64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => Err(self.unfit(&value.to_string())),
        }
    }

    fn serialize_bool(mut self, value: bool) -> Result<()> {
        self.node("a boolean", |node| u8::from(matches!(node, Node::Boolean)))?;
        self.out.push(u8::from(value));
        Ok(())
    }

    fn serialize_f32(mut self, value: f32) -> Result<()> {
        let node = self.node("a number", |node| match node {
            Node::Float => 1,
            Node::Double => 2,
            _ => 0,
        })?;
        match node {
            Node::Float => self.out.extend_from_slice(&value.to_le_bytes()),
            _ => self.out.extend_from_slice(&f64::from(value).to_le_bytes()),
        }
        Ok(())
    }

    fn serialize_f64(mut self, value: f64) -> Result<()> {
        let node = self.node("a number", |node| match node {
            Node::Double => 1,
            Node::Float => 2,
            _ => 0,
        })?;
        match node {
            Node::Double => self.out.extend_from_slice(&value.to_le_bytes()),
            _ => self.out.extend_from_slice(&(value as f32).to_le_bytes()),
        }
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<()> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(mut self, value: &str) -> Result<()> {
        let node = self.node("a string", |node| match node {
            Node::String => 1,
            Node::Enum(it) if it.symbols.iter().any(|symbol| symbol == value) => 2,
            _ => 0,
        });
        match node {
            Ok(Node::Enum(it)) => {
                let index = it.symbols.iter().position(|symbol| symbol == value).unwrap_or_default();
                write_long(self.out, index as i64);
            }
            Ok(_) => write_bytes(self.out, value.as_bytes()),
            Err(_) => return Err(self.unfit(&format!("{:?}", crate::error::shortened(value)))),
        }
        Ok(())
    }

    fn serialize_bytes(mut self, value: &[u8]) -> Result<()> {
        let node = self.node("bytes", |node| match node {
            Node::Bytes => 1,
            Node::Fixed(_, size) if *size == value.len() => 2,
            _ => 0,
        });
        match node {
            Ok(Node::Bytes) => write_bytes(self.out, value),
            Ok(_) => self.out.extend_from_slice(value),
            Err(_) => return Err(self.unfit(&format!("a value of {} bytes", value.len()))),
        }
        Ok(())
    }

    #[inline]
    fn serialize_none(mut self) -> Result<()> {
        self.node("no value", |node| u8::from(matches!(node, Node::Null))).map(drop)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.serialize_none()
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_none()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        number: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self.variant(number, variant)?)
    }

    fn serialize_seq(self, count: Option<usize>) -> Result<SeqSerializer<'a>> {
        self.seq(count)
    }

    fn serialize_tuple(self, count: usize) -> Result<SeqSerializer<'a>> {
        self.seq(Some(count))
    }

    fn serialize_tuple_struct(self, _: &'static str, count: usize) -> Result<SeqSerializer<'a>> {
        self.seq(Some(count))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        Err(self.unfit(variant))
    }

    fn serialize_map(mut self, _: Option<usize>) -> Result<MapSerializer<'a>> {
        let node = self.node("a map", |node| match node {
            Node::Map(_) => 1,
            Node::Record(_) => 2,
            _ => 0,
        })?;
        match node {
            Node::Map(node) => {
                let (plan, out) = (self.plan, self.out);
                Ok(MapSerializer::Map { plan, node: *node, out, entries: Vec::new(), count: 0 })
            }
            Node::Record(record) => {
                let record = RecordSerializer::new(self.plan, record, self.out);
                Ok(MapSerializer::Record(record, String::new()))
            }
            _ => Err(self.unfit("a map")),
        }
    }

    #[inline]
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<RecordSerializer<'a>> {
        self.record(name)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        number: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<RecordSerializer<'a>> {
        self.variant(number, variant)?.record(variant)
    }
}
