//! Arguments of exported functions. Each type documents what the header demands of such an argument. Only `export!`
//! creates values of these types, from what C passed, and they end with the call.
//!
//! | type | what C passes | what the function gets |
//! |---|---|---|
//! | [`Ref`], [`RefMut`] | a handle or NULL | the object, if its tag says that it is a live one of this type |
//! | [`Part`], [`PartMut`] | an object without a tag or NULL | the object |
//! | [`Handles`], [`Texts`], [`Numbers`], [`Bytes`] | an array, whose size is the next argument | its elements |
//! | [`Text`] | a text or NULL | the text |
//! | [`Place`], [`Buffer`] | where a result or a text goes, or NULL | a function that writes it |
//! | [`Given`], [`GivenHandles`] | handles whose ownership C passes to the library, or NULL | the object, or a function that frees it |

use std::{
    borrow::Cow,
    ffi::{CStr, c_char, c_int},
    marker::PhantomData,
    sync::Arc,
};

use super::{
    boundary::{Blamed, Handle, handle, is_no_address, put_text, tag, text},
    codes::RespErr,
    quarantine::{Counted, HandleBox, counted, retire},
};

/// An argument of an exported function: `export!` declares the C function with the type `C`, and converts before the body runs.
pub(crate) trait Argument {
    /// The type of the argument in C.
    type C;

    /// Converts an argument.
    ///
    /// # Safety
    ///
    /// C passed the argument to an exported function, and it is what the header demands.
    unsafe fn from_c(argument: Self::C) -> Self;
}

/// Types that are the same on both sides.
macro_rules! unchanged {
    ($(impl[$($generic:ident)?] $kind:ty;)*) => {$(
        impl$(<$generic>)? Argument for $kind {
            type C = Self;

            #[inline(always)]
            unsafe fn from_c(argument: Self) -> Self {
                argument
            }
        }
    )*};
}

unchanged! {
    impl[] RespErr;
    impl[] i16;
    impl[] i32;
    impl[] i64;
    impl[] isize;
    impl[] usize;
    impl[T] *const T;
    impl[T] *mut T;
    impl[T] Option<T>;
}

/// A handle that C passed, or NULL.
///
/// `Ref` carries the safety argument of all functions that read through handles: only `export!` creates one, from an
/// argument for which the header demands NULL or an object of this library that stays alive until the call returns.
/// [`Ref::get`] returns the object if the tag identifies a live `T`. The memory of destroyed objects stays in the
/// [`quarantine`](super::quarantine) for a while, so that the tag of a destroyed handle remains readable.
#[repr(transparent)]
pub(crate) struct Ref<'a, T: Handle> {
    pointer: *const T,
    call: PhantomData<&'a T>,
}

impl<T: Handle> Clone for Ref<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Handle> Copy for Ref<'_, T> {}

impl<'a, T: Handle> Ref<'a, T> {
    pub(crate) fn is_null(self) -> bool {
        self.pointer.is_null()
    }

    /// Returns the object, unless the handle is NULL, of another kind, or destroyed.
    #[inline]
    pub(crate) fn get(self) -> Option<&'a T> {
        // SAFETY: `from_c` got NULL or an object that stays until the call returns; the tag identifies a live `T`.
        unsafe { tag(self.pointer).filter(|tag| T::is_live(tag.kind())).map(|_| &*self.pointer) }
    }
}

impl<T: Counted> Ref<'_, T> {
    /// Returns a counted reference to the object, unless the handle is NULL, of another kind, or destroyed.
    #[inline]
    pub(crate) fn counted(self) -> Option<Arc<T>> {
        // SAFETY: as for `get`; every object of a counted type went through `begin`.
        unsafe { counted(self.pointer) }
    }
}

/// A part of a result that C passed, or NULL: a node, a description, an element of a list.
///
/// Parts have no tag: the result that owns a part keeps it until the application destroys the result. As for [`Ref`],
/// only `export!` creates one.
#[repr(transparent)]
pub(crate) struct Part<'a, T> {
    pointer: *const T,
    call: PhantomData<&'a T>,
}

impl<T> Clone for Part<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Part<'_, T> {}

impl<'a, T> Part<'a, T> {
    /// Returns the address, for comparison or conversion.
    #[inline]
    pub(crate) const fn as_ptr(self) -> *const T {
        self.pointer
    }

    pub(crate) fn is_null(self) -> bool {
        self.pointer.is_null()
    }

    /// Returns the part; `None` for NULL.
    #[inline]
    pub(crate) fn get(self) -> Option<&'a T> {
        // SAFETY: `from_c` got NULL or a part of a result that stays until the call returns.
        (!is_no_address(self.pointer)).then(|| unsafe { &*self.pointer })
    }
}

impl<T> Argument for Part<'_, T> {
    type C = *const T;

    #[inline(always)]
    unsafe fn from_c(pointer: *const T) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// An object that C passed to be changed, or NULL: no other thread uses it until the call returns. As for [`Ref`], only
/// `export!` creates one.
#[repr(transparent)]
pub(crate) struct PartMut<'a, T> {
    pointer: *mut T,
    call: PhantomData<&'a mut T>,
}

impl<'a, T> PartMut<'a, T> {
    /// Returns the address, for comparison or conversion.
    #[inline]
    pub(crate) const fn as_ptr(&self) -> *mut T {
        self.pointer
    }

    /// Returns the object; `None` for NULL.
    #[inline]
    pub(crate) fn get(self) -> Option<&'a mut T> {
        // SAFETY: `from_c` got NULL or an object that only this call uses until it returns.
        (!is_no_address(self.pointer)).then(|| unsafe { &mut *self.pointer })
    }
}

impl<T> Argument for PartMut<'_, T> {
    type C = *mut T;

    #[inline(always)]
    unsafe fn from_c(pointer: *mut T) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// A handle that C passed to be changed, or NULL: no other thread uses the object until the call returns. As for
/// [`Ref`], only `export!` creates one.
#[repr(transparent)]
pub(crate) struct RefMut<'a, T: Handle> {
    pointer: *mut T,
    call: PhantomData<&'a mut T>,
}

impl<'a, T: Handle> RefMut<'a, T> {
    /// Returns the object, unless the handle is NULL, of another kind, or destroyed. It may belong to another object.
    #[inline]
    pub(crate) fn get(self) -> Option<&'a mut T> {
        // SAFETY: `from_c` got NULL or an object that only this call uses until it returns; the tag identifies a live
        // `T`.
        unsafe { tag(self.pointer).filter(|tag| T::is_live(tag.kind())).map(|_| &mut *self.pointer) }
    }
}

impl<T: Handle> Argument for RefMut<'_, T> {
    type C = *mut T;

    #[inline(always)]
    unsafe fn from_c(pointer: *mut T) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// A handle whose ownership the application passes to the library, or NULL. As for [`Ref`], only `export!` creates one.
#[repr(transparent)]
pub(crate) struct Given<'a, T: Handle> {
    pointer: *mut T,
    call: PhantomData<&'a mut T>,
}

impl<T: Handle> Given<'_, T> {
    /// Frees the object, unless the handle is NULL, of another kind, or destroyed.
    pub(crate) fn retire(self) {
        // SAFETY: `from_c` got NULL or an object of this library that the application no longer uses.
        unsafe { retire(self.pointer) };
    }

    /// Returns true if the handle is the address of this object.
    pub(crate) fn is(&self, object: *const T) -> bool {
        std::ptr::eq(self.pointer, object)
    }

    /// Takes ownership of the object, unless the handle is NULL, of another kind, or destroyed.
    pub(crate) fn take(self) -> Option<HandleBox<T>> {
        // SAFETY: `from_c` got NULL or an object of this library whose ownership the application passes on.
        unsafe { HandleBox::from_raw(self.pointer) }
    }
}

impl<T: Handle> Argument for Given<'_, T> {
    type C = *mut T;

    #[inline(always)]
    unsafe fn from_c(pointer: *mut T) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// An array of handles whose ownership the application passes to the library, or NULL; its size is the next argument,
/// and the array itself stays the application's. As for [`Ref`], only `export!` creates one.
#[repr(transparent)]
pub(crate) struct GivenHandles<'a, T: Handle> {
    pointer: *const *mut T,
    call: PhantomData<&'a mut T>,
}

impl<T: Handle> GivenHandles<'_, T> {
    /// Frees the objects, except those of another kind and those that are destroyed already.
    pub(crate) fn retire(self, count: usize) {
        let count = if is_no_address(self.pointer) { 0 } else { count };
        // SAFETY: `from_c` got an array with the number of handles that C passed; the application no longer uses them.
        (0..count).for_each(|at| unsafe { retire(*self.pointer.add(at)) });
    }
}

impl<T: Handle> Argument for GivenHandles<'_, T> {
    type C = *const *mut T;

    #[inline(always)]
    unsafe fn from_c(pointer: *const *mut T) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// A buffer for a text that C passed, or NULL; its size is the next argument. As for [`Ref`], only `export!` creates
/// one.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Buffer<'a> {
    buffer: *mut c_char,
    call: PhantomData<&'a mut c_char>,
}

impl Buffer<'_> {
    /// Returns the address, for a callback of the application.
    pub(crate) const fn as_ptr(self) -> *mut c_char {
        self.buffer
    }

    /// Writes as much of a text as fits into the buffer, and a zero byte.
    pub(crate) fn put(self, size: usize, text: &str) {
        // SAFETY: `from_c` got NULL or a buffer of this size.
        unsafe { put_text(self.buffer, size, text) };
    }
}

impl Argument for Buffer<'_> {
    type C = *mut c_char;

    #[inline(always)]
    unsafe fn from_c(buffer: *mut c_char) -> Self {
        Self { buffer, call: PhantomData }
    }
}

/// An array of texts that C passed, or NULL; its size is another argument. As for [`Ref`], only `export!` creates one.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Texts<'a> {
    pointer: *const *const c_char,
    call: PhantomData<&'a c_char>,
}

impl<'a> Texts<'a> {
    pub(crate) fn is_null(self) -> bool {
        is_no_address(self.pointer)
    }

    /// Returns the texts; a NULL element counts as an empty text.
    pub(crate) fn get(self, count: usize) -> impl Iterator<Item = Cow<'a, str>> {
        let count = if self.is_null() { 0 } else { count };
        // SAFETY: `from_c` got an array with the number of texts that C passed, which stay until the call returns.
        (0..count).map(move |at| unsafe { text(*self.pointer.add(at)) }.unwrap_or_default())
    }
}

impl Argument for Texts<'_> {
    type C = *const *const c_char;

    #[inline(always)]
    unsafe fn from_c(pointer: *const *const c_char) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// An array of numbers that C passed, or NULL; its size is another argument. As for [`Ref`], only `export!` creates
/// one.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Numbers<'a> {
    pointer: *const c_int,
    call: PhantomData<&'a c_int>,
}

impl<'a> Numbers<'a> {
    /// Returns the numbers; `None` for NULL, or if the size exceeds any possible memory.
    pub(crate) fn get(self, count: usize) -> Option<&'a [c_int]> {
        let fits = count <= isize::MAX as usize / size_of::<c_int>();
        // SAFETY: `from_c` got an array with the number of elements that C passed, which stay until the call returns.
        (!is_no_address(self.pointer) && fits)
            .then(|| unsafe { std::slice::from_raw_parts(self.pointer, count) })
    }
}

impl Argument for Numbers<'_> {
    type C = *const c_int;

    #[inline(always)]
    unsafe fn from_c(pointer: *const c_int) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// Bytes that C passed, or NULL; their number is another argument. As for [`Ref`], only `export!` creates one.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Bytes<'a> {
    pointer: *const u8,
    call: PhantomData<&'a u8>,
}

impl<'a> Bytes<'a> {
    /// Returns the bytes; `None` for NULL, or if the number exceeds any possible memory.
    pub(crate) fn get(self, count: usize) -> Option<&'a [u8]> {
        let is_there = !is_no_address(self.pointer) && count <= isize::MAX as usize;
        // SAFETY: `from_c` got the number of bytes that C passed, which stay until the call returns.
        is_there.then(|| unsafe { std::slice::from_raw_parts(self.pointer, count) })
    }
}

impl Argument for Bytes<'_> {
    type C = *const u8;

    #[inline(always)]
    unsafe fn from_c(pointer: *const u8) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// An array of handles that C passed, or NULL; its size is another argument. As for [`Ref`], only `export!` creates one.
#[repr(transparent)]
pub(crate) struct Handles<'a, T: Handle> {
    pointer: *const *const T,
    call: PhantomData<&'a T>,
}

impl<T: Handle> Clone for Handles<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Handle> Copy for Handles<'_, T> {}

impl<'a, T: Handle> Handles<'a, T> {
    pub(crate) fn is_null(self) -> bool {
        is_no_address(self.pointer)
    }

    /// Returns the objects; `None` if one of them is NULL, of another kind, or destroyed.
    pub(crate) fn get(self, count: usize) -> Option<Vec<&'a T>> {
        if self.is_null() {
            return (count == 0).then(Vec::new);
        }
        // SAFETY: `from_c` got an array with the number of handles that C passed, which stay until the call returns.
        (0..count).map(|at| unsafe { handle(*self.pointer.add(at)) }).collect()
    }
}

impl<T: Handle> Argument for Handles<'_, T> {
    type C = *const *const T;

    #[inline(always)]
    unsafe fn from_c(pointer: *const *const T) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// An out-parameter: the address for a further result that C passed, or NULL. As for [`Ref`], only `export!` creates
/// one.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Place<'a, T: Copy> {
    pointer: *mut T,
    call: PhantomData<&'a T>,
}

impl<T: Copy> Place<'_, T> {
    /// Writes a value, unless C passed NULL.
    #[inline]
    pub(crate) fn put(self, value: T) {
        if !is_no_address(self.pointer) {
            // SAFETY: `from_c` got NULL or a writable address that only this call uses until it returns.
            unsafe { self.pointer.write(value) };
        }
    }
}

impl<T: Copy> Argument for Place<'_, T> {
    type C = *mut T;

    #[inline(always)]
    unsafe fn from_c(pointer: *mut T) -> Self {
        Self { pointer, call: PhantomData }
    }
}

/// A text that C passed, or NULL. As for [`Ref`], only `export!` creates one.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text<'a> {
    pointer: *const c_char,
    call: PhantomData<&'a c_char>,
}

impl<'a> Text<'a> {
    /// Returns the address, for a callback of the application.
    pub(crate) const fn as_ptr(self) -> *const c_char {
        self.pointer
    }

    /// Returns the bytes of the text; `None` for NULL.
    pub(crate) fn c_str(self) -> Option<&'a CStr> {
        // SAFETY: `from_c` got NULL or a text that ends with a zero byte, which stays until the call returns.
        (!is_no_address(self.pointer)).then(|| unsafe { CStr::from_ptr(self.pointer) })
    }

    /// Returns the text, with replacement characters for bytes that are not UTF-8; `None` for NULL.
    pub(crate) fn get(self) -> Option<Cow<'a, str>> {
        // SAFETY: `from_c` got NULL or a text that ends with a zero byte.
        unsafe { text(self.pointer) }
    }
}

impl Argument for Text<'_> {
    type C = *const c_char;

    #[inline(always)]
    unsafe fn from_c(pointer: *const c_char) -> Self {
        Self { pointer, call: PhantomData }
    }
}

impl<T: Handle> Argument for Ref<'_, T> {
    type C = *const T;

    #[inline(always)]
    unsafe fn from_c(pointer: *const T) -> Self {
        Self { pointer, call: PhantomData }
    }
}

impl<T: Handle> Blamed for Ref<'_, T>
where
    *const T: Blamed,
{
    #[inline(always)]
    fn is_inherited(self) -> bool {
        self.pointer.is_inherited()
    }

    fn blame(self, text: &str) {
        self.pointer.blame(text);
    }
}
