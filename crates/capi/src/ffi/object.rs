//! Counted objects whose type is hidden from their holder.
//!
//! A queue holds its client, and a message holds its topic, as an object that stays alive and whose address C gets.
//! This keeps queues and messages independent of the modules of clients and topics.

use std::{
    any::Any,
    marker::PhantomData,
    sync::{Arc, Weak},
};

/// A counted reference to an object that C sees as a `C`.
#[derive(Debug)]
pub(crate) struct Object<C> {
    object: Arc<dyn Any + Send + Sync>,
    seen_as: PhantomData<fn() -> C>,
}

impl<C> Object<C> {
    /// Returns the object as a reference that hides its type.
    pub(crate) fn new<T: Any + Send + Sync>(object: Arc<T>) -> Self {
        Self { object, seen_as: PhantomData }
    }

    /// Returns the address that C gets.
    pub(crate) fn as_c(&self) -> *const C {
        Arc::as_ptr(&self.object).cast()
    }

    /// Returns the object, for modules that know its type.
    pub(crate) fn downcast<T: Any + Send + Sync>(self) -> Option<Arc<T>> {
        self.object.downcast().ok()
    }
}

impl<C> Clone for Object<C> {
    fn clone(&self) -> Self {
        Self { object: Arc::clone(&self.object), seen_as: PhantomData }
    }
}

/// A weak reference to an object that C sees as a `C`.
#[derive(Debug)]
pub(crate) struct WeakObject<C> {
    object: Weak<dyn Any + Send + Sync>,
    seen_as: PhantomData<fn() -> C>,
}

impl<C> WeakObject<C> {
    /// Returns the object as a weak reference that hides its type.
    pub(crate) fn new<T: Any + Send + Sync>(object: Weak<T>) -> Self {
        Self { object, seen_as: PhantomData }
    }

    /// Returns a counted reference; `None` if the object is dropped already.
    pub(crate) fn upgrade(&self) -> Option<Object<C>> {
        Some(Object { object: self.object.upgrade()?, seen_as: PhantomData })
    }

    /// Returns true once the object is dropped.
    pub(crate) fn is_gone(&self) -> bool {
        self.object.strong_count() == 0
    }
}

impl<C> Clone for WeakObject<C> {
    fn clone(&self) -> Self {
        Self { object: Weak::clone(&self.object), seen_as: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_returns_the_address_of_its_content() {
        let text = Arc::new(String::from("topic"));
        let object = Object::<u8>::new(Arc::clone(&text));
        assert_eq!(object.as_c(), Arc::as_ptr(&text).cast());
        assert!(object.clone().downcast::<u64>().is_none());
        assert!(Arc::ptr_eq(&object.downcast().unwrap(), &text));
        let weak = WeakObject::<u8>::new(Arc::downgrade(&text));
        assert!(!weak.is_gone() && weak.upgrade().is_some());
        drop(text);
        assert!(weak.is_gone() && weak.upgrade().is_none());
    }
}
