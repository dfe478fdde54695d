//! `rd_kafka_consumer_group_metadata_t`: the identity of a group member, for the offsets of transactions.
//!
//! ```text
//!   "CGMDv2:"  generation (int32, the machine's byte order)  group NUL  member NUL  1 if there is no instance, else 0  [instance NUL]
//! ```

use std::{
    ffi::{CStr, CString, c_char, c_void},
    ptr,
};

use ottla_core::txn::command::ConsumerGroupMetadata;
use ottla_protocol::vocabulary::Generation;

use crate::{
    client::handle::Client,
    consume::consumer::open_consumer_of,
    ffi::{
        argument::{Given, Ref, Text},
        boundary::{Handle, Tag, bytes, c_text},
        codes::code,
        error::ErrorObject,
        export,
    },
};

/// The identity of a group member.
#[repr(C)]
#[derive(Debug)]
pub struct GroupMetadata {
    tag: Tag,
    group: CString,
    generation: i32,
    member: CString,
    instance: Option<CString>,
}

// SAFETY: `repr(C)`, the tag comes first.
unsafe impl Handle for GroupMetadata {
    const KIND: u32 = 0x6f74_6d01;
}

const MAGIC: &[u8] = b"CGMDv2:";

impl GroupMetadata {
    fn new(group: &str, generation: i32, member: &str, instance: Option<&str>) -> Self {
        Self {
            tag: Tag::of::<Self>(),
            group: c_text(group),
            generation,
            member: c_text(member),
            instance: instance.map(c_text),
        }
    }

    /// Returns the identity for the offsets of a transaction. A negative generation means that there is no member.
    pub(crate) fn of_transaction(&self) -> ConsumerGroupMetadata {
        let text = |text: &CString| text.to_string_lossy().into_owned();
        ConsumerGroupMetadata {
            group_id: text(&self.group),
            generation: Generation::from_wire(self.generation),
            member_id: text(&self.member),
            instance_id: self.instance.as_ref().map(text),
            ..ConsumerGroupMetadata::default()
        }
    }

    fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(self.generation.to_ne_bytes());
        out.extend(self.group.as_bytes_with_nul());
        out.extend(self.member.as_bytes_with_nul());
        out.push(self.instance.is_none().into());
        out.extend(self.instance.iter().flat_map(|instance| instance.as_bytes_with_nul()));
        out
    }

    /// Parses the metadata. Error: the reason why the bytes are not the metadata of a group.
    fn read(input: &[u8]) -> Result<Self, &'static str> {
        let rest = input.strip_prefix(MAGIC).ok_or("the bytes do not begin as group metadata do")?;
        let (generation, rest) = rest.split_first_chunk().ok_or("the bytes end before the generation")?;
        let (group, rest) = text(rest)?;
        let (member, rest) = text(rest)?;
        let (has_none, rest) = rest.split_first().ok_or("the bytes end before the instance ID")?;
        let (instance, rest) = if *has_none == 0 {
            let (instance, rest) = text(rest)?;
            (Some(instance), rest)
        } else {
            (None, rest)
        };
        if !rest.is_empty() {
            return Err("there are bytes after the group metadata");
        }
        Ok(Self::new(group, i32::from_ne_bytes(*generation), member, instance))
    }
}

/// Splits off a printable text that ends with a zero byte.
fn text(input: &[u8]) -> Result<(&str, &[u8]), &'static str> {
    let text = CStr::from_bytes_until_nul(input).map_err(|_| "a text of the group metadata has no end")?;
    let rest = &input[text.to_bytes_with_nul().len()..];
    if !text.to_bytes().iter().all(|byte| (0x20..0x7f).contains(byte)) {
        return Err("a text of the group metadata is not printable");
    }
    Ok((text.to_str().unwrap_or_default(), rest))
}

export!(
    #[on(rk, ptr::null_mut())]
    fn rd_kafka_consumer_group_metadata(rk: Ref<Client>) -> *mut GroupMetadata {
        let Ok((client, consumer)) = open_consumer_of(rk) else { return ptr::null_mut() };
        let view = consumer.group().view();
        let (member_id, generation) = view.for_offsets();
        let generation = generation.map_or(-1, |generation| generation.get());
        let group = client.property("group.id").unwrap_or_default();
        let instance = client.property("group.instance.id").filter(|instance| !instance.is_empty());
        let metadata = GroupMetadata::new(&group, generation, member_id, instance.as_deref());
        Box::into_raw(Box::new(metadata))
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_consumer_group_metadata_new(group_id: Text) -> *mut GroupMetadata {
        group_id.get().map_or(ptr::null_mut(), |group| {
            Box::into_raw(Box::new(GroupMetadata::new(&group, -1, "", None)))
        })
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_consumer_group_metadata_new_with_genid(
        group_id: Text,
        generation_id: i32,
        member_id: Text,
        group_instance_id: Text,
    ) -> *mut GroupMetadata {
        let (Some(group), Some(member)) = (group_id.get(), member_id.get()) else { return ptr::null_mut() };
        let instance = group_instance_id.get();
        Box::into_raw(Box::new(GroupMetadata::new(&group, generation_id, &member, instance.as_deref())))
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_consumer_group_metadata_group_id(group_metadata: Ref<GroupMetadata>) -> *const c_char {
        group_metadata.get().map_or(ptr::null(), |metadata| metadata.group.as_ptr())
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_consumer_group_metadata_group_instance_id(
        group_metadata: Ref<GroupMetadata>,
    ) -> *const c_char {
        let instance = group_metadata.get().and_then(|metadata| metadata.instance.as_ref());
        instance.map_or(ptr::null(), |instance| instance.as_ptr())
    }
);

export!(
    #[local(ptr::null())]
    fn rd_kafka_consumer_group_metadata_member_id(group_metadata: Ref<GroupMetadata>) -> *const c_char {
        group_metadata.get().map_or(ptr::null(), |metadata| metadata.member.as_ptr())
    }
);

export!(
    #[local(-1)]
    fn rd_kafka_consumer_group_metadata_generation_id(group_metadata: Ref<GroupMetadata>) -> i32 {
        group_metadata.get().map_or(-1, |metadata| metadata.generation)
    }
);

export!(
    #[local(())]
    fn rd_kafka_consumer_group_metadata_destroy(group_metadata: Given<GroupMetadata>) {
        group_metadata.retire();
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_consumer_group_metadata_write(
        cgmd: Ref<GroupMetadata>,
        bufferp: *mut *mut c_void,
        sizep: *mut usize,
    ) -> *mut ErrorObject {
        let Some(metadata) = cgmd.get().filter(|_| !bufferp.is_null() && !sizep.is_null()) else {
            return ErrorObject::new(
                code::_INVALID_ARG,
                "group metadata or an address for the result is NULL",
            )
            .into_raw();
        };
        let bytes = metadata.write();
        // SAFETY: the memory is large enough for the bytes; the addresses are writable.
        unsafe {
            let buffer = libc::malloc(bytes.len());
            if buffer.is_null() {
                return ErrorObject::new(code::_FAIL, "no memory is left").into_raw();
            }
            ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len());
            (*bufferp, *sizep) = (buffer, bytes.len());
        }
        ptr::null_mut()
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_consumer_group_metadata_read(
        cgmdp: *mut *mut GroupMetadata,
        buffer: *const c_void,
        size: usize,
    ) -> *mut ErrorObject {
        if cgmdp.is_null() {
            return ErrorObject::new(code::_INVALID_ARG, "`cgmdp` is NULL; pass an address for the result")
                .into_raw();
        }
        // SAFETY: the header demands NULL or `size` bytes, and a writable address.
        unsafe {
            match GroupMetadata::read(bytes(buffer, size).unwrap_or_default()) {
                Ok(metadata) => {
                    *cgmdp = Box::into_raw(Box::new(metadata));
                    ptr::null_mut()
                }
                Err(text) => ErrorObject::new(code::_BAD_MSG, text).into_raw(),
            }
        }
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_has_the_bytes_of_librdkafka() {
        let bytes = GroupMetadata::new("g", 5, "m", None).write();
        assert_eq!(bytes, b"CGMDv2:\x05\0\0\0g\0m\0\x01");
        let with_instance = GroupMetadata::new("g", -1, "", Some("i")).write();
        assert_eq!(with_instance, b"CGMDv2:\xff\xff\xff\xffg\0\0\0i\0");
        for bytes in [bytes, with_instance] {
            assert_eq!(GroupMetadata::read(&bytes).expect("it can be read").write(), bytes);
            for end in 0..bytes.len() {
                GroupMetadata::read(&bytes[..end]).expect_err("it is cut off");
            }
            GroupMetadata::read(&[&bytes[..], b"x"].concat()).expect_err("something follows it");
        }
        GroupMetadata::read(b"CGMDv1:\x05\0\0\0g\0m\0\x01").expect_err("it is another version");
        GroupMetadata::read(b"CGMDv2:\x05\0\0\0g\x01\0m\0\x01").expect_err("it is not printable");
    }
}
