//! `rd_kafka_topic_partition_list_t`: memory from `malloc`, because applications read its fields and may write to them.

use std::{
    cmp::Ordering,
    ffi::{CStr, c_int, c_void},
    ptr,
};

use ottla_core::offsets::committed::GroupOffset;
use ottla_protocol::vocabulary::LeaderEpoch;

use crate::ffi::{
    argument::{Part, PartMut, Text},
    boundary::{is_no_address, malloc_text},
    codes::{RespErr, code},
    export, getters,
    quarantine::PlainQuarantine,
    types::{OFFSET_INVALID, rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_t},
};

/// A short name for the list's type.
pub type List = rd_kafka_topic_partition_list_t;
pub(crate) type Element = rd_kafka_topic_partition_t;

/// The value of a list's `cnt` and of a single element's `err` after destruction: applications see these structures,
/// which have no room for a tag.
const GONE: c_int = c_int::MIN;

static LISTS: PlainQuarantine = PlainQuarantine::new(free);
static ELEMENTS: PlainQuarantine = PlainQuarantine::new(free);

unsafe fn free(memory: *mut u8) {
    // SAFETY: lists and single elements are from `malloc`.
    unsafe { libc::free(memory.cast()) };
}

/// The library's private part of an element.
struct Private {
    leader_epoch: i32,
}

impl Element {
    /// Returns an element that is not part of a list.
    fn new(topic: &[u8], partition: i32) -> Self {
        Self {
            topic: malloc_text(topic),
            partition,
            offset: OFFSET_INVALID,
            metadata: ptr::null_mut(),
            metadata_size: 0,
            opaque: ptr::null_mut(),
            err: code::NO_ERROR,
            private: ptr::null_mut(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        if self.topic.is_null() {
            return "";
        }
        // SAFETY: an element's topic is a text.
        unsafe { CStr::from_ptr(self.topic) }.to_str().unwrap_or("")
    }

    /// Drops what the element owns, and marks the element as destroyed.
    fn end(&mut self) {
        self.clear();
        *self = Self {
            topic: ptr::null_mut(),
            partition: -1,
            offset: OFFSET_INVALID,
            metadata: ptr::null_mut(),
            metadata_size: 0,
            opaque: ptr::null_mut(),
            err: RespErr(GONE),
            private: ptr::null_mut(),
        };
    }

    pub(crate) fn leader_epoch(&self) -> i32 {
        // SAFETY: NULL or a private part that the library attached.
        unsafe { self.private.cast::<Private>().as_ref() }.map_or(-1, |private| private.leader_epoch)
    }

    /// Returns the metadata that is committed with the offset, as text.
    pub(crate) fn metadata_text(&self) -> String {
        // SAFETY: NULL, or `metadata_size` bytes.
        let bytes = unsafe { crate::ffi::boundary::bytes(self.metadata, self.metadata_size) };
        String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
    }

    /// Returns the offset to commit for the partition.
    pub(crate) fn group_offset(&self) -> GroupOffset {
        GroupOffset {
            topic: self.name().into(),
            partition: self.partition,
            offset: self.offset,
            leader_epoch: LeaderEpoch::from_wire(self.leader_epoch()),
            metadata: self.metadata_text(),
            topic_id: None,
        }
    }

    /// Replaces the metadata that is committed with the offset.
    pub(crate) fn set_metadata(&mut self, bytes: &[u8]) {
        // SAFETY: NULL or from `malloc`.
        unsafe { libc::free(self.metadata) };
        let is_empty = bytes.is_empty();
        self.metadata = if is_empty { ptr::null_mut() } else { malloc_text(bytes).cast() };
        self.metadata_size = if self.metadata.is_null() { 0 } else { bytes.len() };
    }

    pub(crate) fn set_leader_epoch(&mut self, leader_epoch: i32) {
        // SAFETY: NULL or a private part that the library attached.
        match unsafe { self.private.cast::<Private>().as_mut() } {
            Some(private) => private.leader_epoch = leader_epoch,
            None if leader_epoch == -1 => {}
            None => self.private = Box::into_raw(Box::new(Private { leader_epoch })).cast(),
        }
    }

    /// Frees what the element owns.
    fn clear(&mut self) {
        // SAFETY: texts and metadata come from `malloc`, the private part from `Box`.
        unsafe {
            libc::free(self.topic.cast());
            libc::free(self.metadata);
            if !self.private.is_null() {
                drop(Box::from_raw(self.private.cast::<Private>()));
            }
        }
    }

    fn copy(&self) -> Self {
        let mut copy = Self {
            opaque: self.opaque,
            offset: self.offset,
            err: self.err,
            ..Self::new(&[], self.partition)
        };
        // SAFETY: `new` created an empty text, and the topic of the source is a valid text.
        unsafe {
            libc::free(copy.topic.cast());
            copy.topic = if self.topic.is_null() {
                ptr::null_mut()
            } else {
                malloc_text(CStr::from_ptr(self.topic).to_bytes())
            };
            if !self.metadata.is_null() && self.metadata_size > 0 {
                copy.metadata = libc::malloc(self.metadata_size);
                if !copy.metadata.is_null() {
                    ptr::copy_nonoverlapping(
                        self.metadata.cast::<u8>(),
                        copy.metadata.cast(),
                        self.metadata_size,
                    );
                    copy.metadata_size = self.metadata_size;
                }
            }
        }
        copy.set_leader_epoch(self.leader_epoch());
        copy
    }
}

impl List {
    /// Returns the list that C passed, unless it is NULL or destroyed.
    pub(crate) fn passed(list: Part<'_, Self>) -> Option<&Self> {
        list.get().filter(|list| list.cnt != GONE)
    }

    /// Returns the list that C passed to be changed, unless it is NULL or destroyed.
    pub(crate) fn passed_mut(list: PartMut<'_, Self>) -> Option<&mut Self> {
        list.get().filter(|list| list.cnt != GONE)
    }

    /// Returns the list, unless it is NULL or destroyed.
    ///
    /// # Safety
    ///
    /// NULL or a list.
    pub(crate) unsafe fn of<'a>(list: *const Self) -> Option<&'a Self> {
        // SAFETY: by the contract of this function.
        (!is_no_address(list)).then(|| unsafe { &*list }).filter(|list| list.cnt != GONE)
    }

    /// Returns the list for changes, unless it is NULL or destroyed.
    ///
    /// # Safety
    ///
    /// NULL or a list that no other thread uses.
    pub(crate) unsafe fn of_mut<'a>(list: *mut Self) -> Option<&'a mut Self> {
        // SAFETY: by the contract of this function.
        (!is_no_address(list)).then(|| unsafe { &mut *list }).filter(|list| list.cnt != GONE)
    }

    /// Returns true for a list that was destroyed, for functions in which NULL has a different meaning.
    pub(crate) fn is_gone(list: Part<'_, Self>) -> bool {
        !list.is_null() && Self::passed(list).is_none()
    }

    /// Returns a copy with the same elements; NULL if memory ran out.
    pub(crate) fn copy(&self) -> *mut Self {
        let copy = Self::with_capacity(self.elements().len());
        // SAFETY: NULL if memory ran out, or a list with no other owner.
        if let Some(copy) = unsafe { copy.as_mut() } {
            for element in self.elements() {
                copy.push(element.copy());
            }
        }
        copy
    }

    pub(crate) fn with_capacity(size: usize) -> *mut Self {
        let size = size.min(1 << 20);
        // SAFETY: the struct is written before it is used; only elements below `cnt` are read.
        unsafe {
            let list = libc::malloc(size_of::<Self>()).cast::<Self>();
            if !list.is_null() {
                let elems: *mut Element =
                    if size == 0 { ptr::null_mut() } else { libc::calloc(size, size_of::<Element>()).cast() };
                let size = if elems.is_null() { 0 } else { size as c_int };
                list.write(Self { cnt: 0, size, elems });
            }
            list
        }
    }

    pub(crate) fn elements(&self) -> &[Element] {
        let count = usize::try_from(self.cnt).unwrap_or(0);
        if self.elems.is_null() || count == 0 {
            return &[];
        }
        // SAFETY: the list has `cnt` elements.
        unsafe { std::slice::from_raw_parts(self.elems, count) }
    }

    pub(crate) fn elements_mut(&mut self) -> &mut [Element] {
        let count = usize::try_from(self.cnt).unwrap_or(0);
        if self.elems.is_null() || count == 0 {
            return &mut [];
        }
        // SAFETY: the list has `cnt` elements, and no other thread uses it.
        unsafe { std::slice::from_raw_parts_mut(self.elems, count) }
    }

    pub(crate) fn add(&mut self, topic: &[u8], partition: i32) -> *mut Element {
        self.push(Element::new(topic, partition))
    }

    fn push(&mut self, element: Element) -> *mut Element {
        let count = usize::try_from(self.cnt).unwrap_or(0);
        if self.cnt == self.size {
            let Ok(size) = c_int::try_from((count * 2).max(8)) else { return ptr::null_mut() };
            // SAFETY: the elements come from `malloc`; the new memory has room for `size` of them.
            unsafe {
                let elems = libc::realloc(self.elems.cast(), size as usize * size_of::<Element>());
                if elems.is_null() {
                    return ptr::null_mut();
                }
                self.elems = elems.cast();
            }
            self.size = size;
        }
        self.cnt += 1;
        // SAFETY: there is room for one more than `count`.
        unsafe {
            let slot = self.elems.add(count);
            slot.write(element);
            slot
        }
    }

    /// Returns the index of a partition; `None` without it.
    fn index_of(&self, topic: Text<'_>, partition: i32) -> Option<usize> {
        let topic = topic.c_str()?;
        self.elements().iter().position(|element| {
            // SAFETY: an element's topic is a text.
            element.partition == partition
                && !element.topic.is_null()
                && unsafe { CStr::from_ptr(element.topic) } == topic
        })
    }

    fn remove(&mut self, index: usize) {
        let count = self.elements().len();
        self.elements_mut()[index].clear();
        self.elements_mut().copy_within(index + 1..count, index);
        self.cnt -= 1;
    }
}

/// A list that belongs to the library.
#[derive(Debug)]
pub(crate) struct Listed(*mut List);

// SAFETY: this value owns the list; there is no other pointer to it.
unsafe impl Send for Listed {}

impl Default for Listed {
    fn default() -> Self {
        Self(List::with_capacity(0))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // SAFETY: there is no other reference to the list.
        unsafe { rd_kafka_topic_partition_list_destroy(self.0) };
    }
}

impl Listed {
    /// Returns a copy of the application's list; NULL stays NULL.
    pub(crate) fn copy_of(list: *const List) -> Self {
        // SAFETY: NULL or a list, which is only read.
        Self(unsafe { list.as_ref() }.map_or(ptr::null_mut(), List::copy))
    }

    pub(crate) const fn as_ptr(&self) -> *mut List {
        self.0
    }

    /// Returns the list; `None` if memory ran out.
    pub(crate) const fn get(&self) -> Option<&List> {
        // SAFETY: NULL if memory ran out, or a list whose only owner is this value.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn add(&mut self, topic: &str, partition: i32, offset: i64, err: RespErr) {
        // SAFETY: NULL if memory ran out, or a list whose only owner is this value.
        unsafe {
            if let Some(list) = self.0.as_mut()
                && let Some(element) = list.add(topic.as_bytes(), partition).as_mut()
            {
                (element.offset, element.err) = (offset, err);
            }
        }
    }

    /// Adds an offset with the metadata that is committed with it.
    pub(crate) fn add_with_metadata(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
        err: RespErr,
        metadata: &str,
    ) {
        self.add(topic, partition, offset, err);
        // SAFETY: NULL if memory ran out, or a list whose only owner is this value.
        if let Some(element) = unsafe { self.0.as_mut() }.and_then(|list| list.elements_mut().last_mut()) {
            element.set_metadata(metadata.as_bytes());
        }
    }

    /// Sets the leader epoch of the last element.
    pub(crate) fn set_leader_epoch_of_last(&mut self, leader_epoch: i32) {
        // SAFETY: NULL if memory ran out, or a list with no other owner.
        if let Some(element) = unsafe { self.0.as_mut() }.and_then(|list| list.elements_mut().last_mut()) {
            element.set_leader_epoch(leader_epoch);
        }
    }
}

/// Returns a single element that belongs to the caller.
pub(crate) fn alone(topic: &str, partition: i32, offset: i64, err: RespErr) -> *mut Element {
    // SAFETY: the memory has room for an element.
    unsafe {
        let element = libc::malloc(size_of::<Element>()).cast::<Element>();
        if !element.is_null() {
            element.write(Element { offset, err, ..Element::new(topic.as_bytes(), partition) });
        }
        element
    }
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_topic_partition_list_new(size: c_int) -> *mut List {
        List::with_capacity(usize::try_from(size).unwrap_or(0))
    }
);

export!(
    #[local(())]
    fn rd_kafka_topic_partition_list_destroy(list: *mut List) {
        // SAFETY: NULL or a list whose ownership the caller passes on.
        unsafe {
            if let Some(content) = List::of_mut(list) {
                content.elements_mut().iter_mut().for_each(Element::clear);
                libc::free(content.elems.cast());
                *content = List { cnt: GONE, size: 0, elems: ptr::null_mut() };
                LISTS.keep(list.cast());
            }
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_topic_partition_destroy(element: *mut Element) {
        // SAFETY: NULL or a single element whose ownership the caller passes on.
        unsafe {
            if let Some(content) = element.as_mut()
                && content.err != RespErr(GONE)
            {
                content.end();
                ELEMENTS.keep(element.cast());
            }
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_topic_partition_set_leader_epoch(element: PartMut<Element>, leader_epoch: i32) {
        if let Some(element) = element.get()
            && element.err != RespErr(GONE)
        {
            element.set_leader_epoch(leader_epoch);
        }
    }
);

getters! {
    fn rd_kafka_topic_partition_get_leader_epoch(element: Part<Element>) -> i32 { -1; element.leader_epoch() }
}

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_topic_partition_list_add(list: PartMut<List>, topic: Text, partition: i32) -> *mut Element {
        match (List::passed_mut(list), topic.c_str()) {
            (Some(list), Some(topic)) => list.add(topic.to_bytes(), partition),
            _ => ptr::null_mut(),
        }
    }
);

export!(
    #[local(())]
    fn rd_kafka_topic_partition_list_add_range(list: PartMut<List>, topic: Text, start: i32, stop: i32) {
        let (Some(list), Some(topic)) = (List::passed_mut(list), topic.c_str()) else { return };
        for partition in start..=stop {
            if list.add(topic.to_bytes(), partition).is_null() {
                break;
            }
        }
    }
);

export!(
    #[local(0)]
    fn rd_kafka_topic_partition_list_del(list: PartMut<List>, topic: Text, partition: i32) -> c_int {
        let Some(list) = List::passed_mut(list) else { return 0 };
        match list.index_of(topic, partition) {
            Some(index) => {
                list.remove(index);
                1
            }
            None => 0,
        }
    }
);

export!(
    #[local(0)]
    fn rd_kafka_topic_partition_list_del_by_idx(list: PartMut<List>, idx: c_int) -> c_int {
        let Some(list) = List::passed_mut(list) else { return 0 };
        match usize::try_from(idx) {
            Ok(index) if index < list.elements().len() => {
                list.remove(index);
                1
            }
            _ => 0,
        }
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_topic_partition_list_copy(list: Part<List>) -> *mut List {
        let Some(list) = List::passed(list) else { return ptr::null_mut() };
        list.copy()
    }
);

export!(
    #[local(ptr::null_mut())]
    fn rd_kafka_topic_partition_list_find(list: Part<List>, topic: Text, partition: i32) -> *mut Element {
        let Some(list) = List::passed(list) else { return ptr::null_mut() };
        // SAFETY: the index is below the number of elements.
        list.index_of(topic, partition).map_or(ptr::null_mut(), |index| unsafe { list.elems.add(index) })
    }
);

export!(
    #[local(code::_FATAL)]
    fn rd_kafka_topic_partition_list_set_offset(
        list: PartMut<List>,
        topic: Text,
        partition: i32,
        offset: i64,
    ) -> RespErr {
        let Some(list) = List::passed_mut(list) else { return code::_UNKNOWN_PARTITION };
        let Some(index) = list.index_of(topic, partition) else { return code::_UNKNOWN_PARTITION };
        list.elements_mut()[index].offset = offset;
        code::NO_ERROR
    }
);

type Compare = unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void) -> c_int;

export!(
    #[local(())]
    fn rd_kafka_topic_partition_list_sort(list: PartMut<List>, cmp: Option<Compare>, opaque: *mut c_void) {
        let Some(list) = List::passed_mut(list) else { return };
        list.elements_mut().sort_by(|a, b| match cmp {
            Some(compare) => {
                let (a, b) = ((&raw const *a).cast(), (&raw const *b).cast());
                // SAFETY: the application's function gets two elements and its own pointer.
                unsafe { compare(a, b, opaque) }.cmp(&0)
            }
            None => match a.name().cmp(b.name()) {
                Ordering::Equal => a.partition.cmp(&b.partition),
                order => order,
            },
        });
    }
);
