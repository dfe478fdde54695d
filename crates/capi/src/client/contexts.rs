//! The contexts of `debug`.

use ottla_core::config::table::{Kind, Scope, find};

/// A set of contexts of `debug`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contexts(u32);

/// The names of the contexts in the order of their bits: the values of the property, of which `all` is the last.
fn names() -> &'static [&'static str] {
    match find(Scope::Global, "debug").map(|property| property.kind) {
        Some(Kind::Flags([names @ .., _all])) => names,
        _ => &[],
    }
}

impl Contexts {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ALL: Self = Self((1 << 20) - 1);
    pub(crate) const GENERIC: Self = Self(1);
    pub(crate) const BROKER: Self = Self(1 << 1);
    pub(crate) const TOPIC: Self = Self(1 << 2);
    pub(crate) const METADATA: Self = Self(1 << 3);
    pub(crate) const FEATURE: Self = Self(1 << 4);
    pub(crate) const QUEUE: Self = Self(1 << 5);
    pub(crate) const MSG: Self = Self(1 << 6);
    pub(crate) const PROTOCOL: Self = Self(1 << 7);
    pub(crate) const CGRP: Self = Self(1 << 8);
    pub(crate) const FETCH: Self = Self(1 << 10);
    pub(crate) const INTERCEPTOR: Self = Self(1 << 11);
    pub(crate) const PLUGIN: Self = Self(1 << 12);
    pub(crate) const CONSUMER: Self = Self(1 << 13);
    pub(crate) const ADMIN: Self = Self(1 << 14);
    pub(crate) const EOS: Self = Self(1 << 15);
    pub(crate) const MOCK: Self = Self(1 << 16);
    pub(crate) const CONF: Self = Self(1 << 18);
    pub(crate) const TELEMETRY: Self = Self(1 << 19);

    /// Returns the contexts of the property's value, which was checked when it was set.
    pub(crate) fn of(value: &str) -> Self {
        value.split(',').map(str::trim).fold(Self::NONE, |known, name| match name {
            "all" => Self::ALL,
            name => names().iter().position(|one| *one == name).map_or(known, |bit| Self(known.0 | 1 << bit)),
        })
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns their names, separated by commas.
    pub(crate) fn names(self) -> String {
        let has = |bit: usize| self.0 & 1 << bit != 0;
        let names: Vec<&str> =
            names().iter().enumerate().filter(|(bit, _)| has(*bit)).map(|(_, name)| *name).collect();
        names.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_read_and_named_as_the_property_lists_them() {
        assert_eq!(Contexts::of("broker, msg").names(), "broker,msg");
        assert_eq!(Contexts::of("all").names(), names().join(","));
        assert_eq!(Contexts::of(""), Contexts::NONE);
    }

    #[test]
    fn context_has_the_bit_of_its_position_in_the_property() {
        for (context, name) in [
            (Contexts::GENERIC, "generic"),
            (Contexts::BROKER, "broker"),
            (Contexts::TOPIC, "topic"),
            (Contexts::METADATA, "metadata"),
            (Contexts::FEATURE, "feature"),
            (Contexts::QUEUE, "queue"),
            (Contexts::MSG, "msg"),
            (Contexts::PROTOCOL, "protocol"),
            (Contexts::CGRP, "cgrp"),
            (Contexts::FETCH, "fetch"),
            (Contexts::INTERCEPTOR, "interceptor"),
            (Contexts::PLUGIN, "plugin"),
            (Contexts::CONSUMER, "consumer"),
            (Contexts::ADMIN, "admin"),
            (Contexts::EOS, "eos"),
            (Contexts::MOCK, "mock"),
            (Contexts::CONF, "conf"),
        ] {
            assert_eq!(context.names(), name);
        }
        assert_eq!(Contexts::ALL.names().split(',').count(), names().len());
    }
}
