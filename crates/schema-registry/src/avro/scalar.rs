//! Keys of maps, and bytes that serde takes for a list of numbers.

use serde::{
    Serialize,
    ser::{Impossible, Serializer},
};

use crate::{Error, Result};

/// A value without parts.
#[derive(Debug)]
pub enum Scalar {
    Text(String),
    Byte(u8),
}

/// Turns a value into a [`Scalar`].
pub struct ScalarSerializer;

macro_rules! refused {
    ($($name:ident: $type:ty,)*) => {
        $(fn $name(self, _: $type) -> Result<Scalar> {
            Err(Error::value("a string was expected"))
        })*
    };
}

macro_rules! as_text {
    ($($name:ident: $type:ty,)*) => {
        $(fn $name(self, value: $type) -> Result<Scalar> {
            Ok(Scalar::Text(value.to_string()))
        })*
    };
}

impl Serializer for ScalarSerializer {
    type Ok = Scalar;
    type Error = Error;
    type SerializeSeq = Impossible<Scalar, Error>;
    type SerializeTuple = Impossible<Scalar, Error>;
    type SerializeTupleStruct = Impossible<Scalar, Error>;
    type SerializeTupleVariant = Impossible<Scalar, Error>;
    type SerializeMap = Impossible<Scalar, Error>;
    type SerializeStruct = Impossible<Scalar, Error>;
    type SerializeStructVariant = Impossible<Scalar, Error>;

    refused! {
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    as_text! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_char: char,
        serialize_str: &str,
    }

    fn serialize_u8(self, value: u8) -> Result<Scalar> {
        Ok(Scalar::Byte(value))
    }

    fn serialize_none(self) -> Result<Scalar> {
        Err(Error::value("a string was expected"))
    }

    fn serialize_unit(self) -> Result<Scalar> {
        self.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Scalar> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Scalar> {
        Ok(Scalar::Text(variant.to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Scalar> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Scalar> {
        self.serialize_none()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq> {
        Err(Error::value("a string was expected"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant> {
        self.serialize_seq(None)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap> {
        self.serialize_seq(None)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeStruct> {
        self.serialize_seq(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant> {
        self.serialize_seq(None)
    }
}
