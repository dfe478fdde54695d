//! Log lines without the feature `log`: none.

use std::fmt;

use ottla_core::error::Error;

pub(super) const IS_ON: bool = false;
pub(super) const TARGET: &str = "ottla";

#[derive(Clone, Copy)]
pub(super) enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

pub(super) struct Line<'a>(std::marker::PhantomData<&'a str>);

impl<'a> Line<'a> {
    pub(super) const fn new(_: Level, _: &'static str, _: &'a str) -> Self {
        Self(std::marker::PhantomData)
    }

    pub(super) const fn broker(self, _: &str) -> Self {
        self
    }

    pub(super) const fn api(self, _: &str) -> Self {
        self
    }

    pub(super) const fn topic(self, _: &str) -> Self {
        self
    }

    pub(super) const fn partition(self, _: i32) -> Self {
        self
    }

    pub(super) const fn error(self, _: &Error) -> Self {
        self
    }

    pub(super) const fn text(self, _: &'static str, _: &str) -> Self {
        self
    }

    pub(super) const fn number(self, _: &'static str, _: i64) -> Self {
        self
    }

    pub(super) const fn write(self, _: fmt::Arguments<'_>) {}
}
