//! Decodes into types with serde.

use serde::{
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
        VariantAccess, Visitor,
        value::{BorrowedStrDeserializer, SeqDeserializer, StrDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{
    bytes::Input,
    plan::simple,
    steps::{Number, RecordSteps, Step, StepId, Steps},
};
use crate::{Error, Result};

/// Decodes a whole record.
pub fn decode<T: DeserializeOwned>(steps: &Steps, bytes: &[u8]) -> Result<T> {
    let mut input = Input::new(bytes);
    let value = T::deserialize(ValueDeserializer::new(steps, steps.root, &mut input))?;
    input.end()?;
    Ok(value)
}

/// Decodes the value of a step.
struct ValueDeserializer<'a, 'de> {
    steps: &'de Steps,
    id: StepId,
    input: &'a mut Input<'de>,
    /// The name of the branch that was entered already.
    branch: Option<&'de str>,
}

impl<'a, 'de> ValueDeserializer<'a, 'de> {
    fn new(steps: &'de Steps, id: StepId, input: &'a mut Input<'de>) -> Self {
        Self { steps, id, input, branch: None }
    }

    fn step(&self) -> &'de Step {
        &self.steps.list[self.id]
    }

    /// Goes to the branch of a union. Returns the branch's name, if the reader has a union.
    fn enter_union(&mut self) -> Result<Option<&'de str>> {
        if let Step::Union(branches) = self.step() {
            self.id = branches[self.input.index(branches.len(), "branch of the union")?];
        }
        match self.step() {
            Step::Branch(name, inner) => {
                self.id = *inner;
                self.branch = Some(name);
                Ok(Some(name))
            }
            _ => Ok(None),
        }
    }

    fn symbol(&mut self) -> Result<Option<&'de str>> {
        let Step::Enum(symbols) = self.step() else { return Ok(None) };
        let symbol = &symbols[self.input.index(symbols.len(), "symbol of the enum")?];
        match symbol.is_known {
            true => Ok(Some(&symbol.text)),
            false => Err(mismatch(format!("the reader's enum has no symbol {}", symbol.text))),
        }
    }
}

/// An error about data that the reader's schema does not have.
pub fn mismatch(why: impl Into<String>) -> Error {
    Error::Resolution { path: String::new(), why: why.into() }
}

/// Reads a number of the writer's type.
pub enum Read {
    Integer(i64),
    Float(f32),
    Double(f64),
}

impl Read {
    pub fn number(input: &mut Input<'_>, from: Number, to: Number) -> Result<Self> {
        let integer = match from {
            Number::Int => i64::from(input.int()?),
            Number::Long => input.long()?,
            Number::Float => {
                let value = input.float()?;
                return Ok(if to == Number::Double {
                    Read::Double(value.into())
                } else {
                    Read::Float(value)
                });
            }
            Number::Double => return Ok(Read::Double(input.double()?)),
        };
        Ok(match to {
            Number::Int | Number::Long => Read::Integer(integer),
            Number::Float => Read::Float(integer as f32),
            Number::Double => Read::Double(integer as f64),
        })
    }
}

impl<'de> Deserializer<'de> for ValueDeserializer<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        self.enter_union()?;
        match self.step() {
            Step::Null => visitor.visit_unit(),
            Step::Boolean => visitor.visit_bool(self.input.boolean()?),
            Step::Number { from, to } => match Read::number(self.input, *from, *to)? {
                Read::Integer(value) if *to == Number::Int => visitor.visit_i32(value as i32),
                Read::Integer(value) => visitor.visit_i64(value),
                Read::Float(value) => visitor.visit_f32(value),
                Read::Double(value) => visitor.visit_f64(value),
            },
            Step::Text { to_text: true } => visitor.visit_borrowed_str(self.input.text()?),
            Step::Text { to_text: false } => visitor.visit_borrowed_bytes(self.input.bytes()?),
            Step::Fixed(size) => visitor.visit_borrowed_bytes(self.input.take(*size)?),
            Step::Enum(_) => match self.symbol()? {
                Some(symbol) => visitor.visit_borrowed_str(symbol),
                None => visitor.visit_unit(),
            },
            Step::Array(items) => {
                self.input.enter()?;
                let access =
                    Items { steps: self.steps, id: *items, left: 0, is_over: false, input: self.input };
                let value = visitor.visit_seq(access)?;
                self.input.leave();
                Ok(value)
            }
            Step::Map(values) => {
                self.input.enter()?;
                let access =
                    Items { steps: self.steps, id: *values, left: 0, is_over: false, input: self.input };
                let value = visitor.visit_map(access)?;
                self.input.leave();
                Ok(value)
            }
            Step::Record(record) => {
                self.input.enter()?;
                let mut access = Fields { steps: self.steps, record, at: 0, input: self.input };
                let value = visitor.visit_map(&mut access)?;
                access.skip_rest()?;
                self.input.leave();
                Ok(value)
            }
            Step::Mismatch(why) => Err(mismatch(why)),
            Step::Union(_) | Step::Branch(..) => Err(self.input.error("a union is directly within a union")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        self.enter_union()?;
        match self.step() {
            Step::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        self.enter_union()?;
        let bytes = match self.step() {
            Step::Text { .. } => self.input.bytes()?,
            Step::Fixed(size) => self.input.take(*size)?,
            _ => return self.deserialize_any(visitor),
        };
        visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let branch = self.enter_union()?.or(self.branch);
        if let Some(name) = branch
            && let Some(variant) = variants.iter().find(|it| **it == name || **it == simple(name))
        {
            return visitor.visit_enum(Variant { name: variant, content: self });
        }
        match self.step() {
            Step::Enum(_) => {
                let symbol = self.symbol()?.unwrap_or_default();
                let symbol: StrDeserializer<'_, Error> = symbol.into_deserializer();
                visitor.visit_enum(symbol)
            }
            Step::Text { .. } => {
                let text: BorrowedStrDeserializer<'_, Error> =
                    BorrowedStrDeserializer::new(self.input.text()?);
                visitor.visit_enum(text)
            }
            _ => Err(Error::value(format!(
                "no variant of the enum has the name {}; the variants are {}",
                branch.unwrap_or("of the schema's type"),
                variants.join(", ")
            ))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct map
        struct identifier ignored_any
    }
}

/// The fields of a record.
struct Fields<'a, 'de> {
    steps: &'de Steps,
    record: &'de RecordSteps,
    at: usize,
    input: &'a mut Input<'de>,
}

impl<'de> Fields<'_, 'de> {
    fn skip(&mut self, id: StepId) -> Result<()> {
        let field = ValueDeserializer::new(self.steps, id, self.input);
        serde::de::IgnoredAny::deserialize_from(field)
    }

    /// Skips the writer's fields that the reader does not have.
    fn skip_unread(&mut self) -> Result<()> {
        while let Some((None, id)) = self.record.fields.get(self.at) {
            self.skip(*id)?;
            self.at += 1;
        }
        Ok(())
    }

    /// Skips what a visitor that ended early left.
    fn skip_rest(&mut self) -> Result<()> {
        while let Some((_, id)) = self.record.fields.get(self.at) {
            self.skip(*id)?;
            self.at += 1;
        }
        Ok(())
    }
}

/// Reads a value and drops it.
trait DeserializeFrom {
    fn deserialize_from<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error>;
}

impl DeserializeFrom for serde::de::IgnoredAny {
    fn deserialize_from<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
        from.deserialize_ignored_any(serde::de::IgnoredAny).map(drop)
    }
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.skip_unread()?;
        let written = self.record.fields.len();
        let name = match self.record.fields.get(self.at) {
            Some((name, _)) => name.as_deref(),
            None => self.record.defaults.get(self.at - written).map(|(name, ..)| name.as_str()),
        };
        let Some(name) = name else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::<Error>::new(name)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let written = self.record.fields.len();
        let at = self.at;
        self.at += 1;
        if let Some((name, id)) = self.record.fields.get(at) {
            let value = seed.deserialize(ValueDeserializer::new(self.steps, *id, self.input));
            return value.map_err(|error| error.within(name.as_deref().unwrap_or_default()));
        }
        match self.record.defaults.get(at - written) {
            Some((_, bytes, id)) => {
                let mut input = Input::new(bytes);
                seed.deserialize(ValueDeserializer::new(self.steps, *id, &mut input))
            }
            None => Err(self.input.error("the record has no further field")),
        }
    }
}

/// The items of an array or a map.
struct Items<'a, 'de> {
    steps: &'de Steps,
    id: StepId,
    left: usize,
    is_over: bool,
    input: &'a mut Input<'de>,
}

impl Items<'_, '_> {
    /// Returns true if there is an item.
    fn next(&mut self) -> Result<bool> {
        if self.left == 0 && !self.is_over {
            self.left = self.input.block()?;
            self.is_over = self.left == 0;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if !self.next()? {
            return Ok(None);
        }
        seed.deserialize(ValueDeserializer::new(self.steps, self.id, self.input)).map(Some)
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if !self.next()? {
            return Ok(None);
        }
        let key = self.input.text()?;
        seed.deserialize(BorrowedStrDeserializer::<Error>::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        seed.deserialize(ValueDeserializer::new(self.steps, self.id, self.input))
    }
}

/// A branch of a union as a variant of an enum.
struct Variant<'a, 'de> {
    name: &'static str,
    content: ValueDeserializer<'a, 'de>,
}

impl<'a, 'de> EnumAccess<'de> for Variant<'a, 'de> {
    type Error = Error;
    type Variant = ValueDeserializer<'a, 'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant)> {
        let name: StringDeserializer<Error> = self.name.to_owned().into_deserializer();
        Ok((seed.deserialize(name)?, self.content))
    }
}

impl<'de> VariantAccess<'de> for ValueDeserializer<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<()> {
        serde::de::IgnoredAny::deserialize_from(self)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }
}
