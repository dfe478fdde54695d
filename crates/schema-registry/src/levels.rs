//! What may be set for a subject: its compatibility level and its mode.

use std::{fmt, str::FromStr};

use crate::{Error, Result};

/// Defines an enum whose variants have a name in the registry's API.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident, $what:literal, {$($(#[$of:meta])* $variant:ident = $text:literal,)*}) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$of])* $variant,)*
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The registry's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(name: &str) -> Result<Self> {
                Self::ALL.iter().copied().find(|it| it.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
                    let names: Vec<&str> = Self::ALL.iter().map(|it| it.name()).collect();
                    Error::config(format!("unknown {} {name:?}; write one of {}", $what, names.join(", ")))
                })
            }
        }
    };
}

named! {
    /// Which changes of a subject's schema the registry accepts.
    Compatibility, "compatibility level", {
        /// All.
        None = "NONE",
        /// The new schema reads what the latest one wrote.
        Backward = "BACKWARD",
        /// The new schema reads what every version wrote.
        BackwardTransitive = "BACKWARD_TRANSITIVE",
        /// The latest schema reads what the new one writes.
        Forward = "FORWARD",
        /// Every version reads what the new one writes.
        ForwardTransitive = "FORWARD_TRANSITIVE",
        /// Both, with the latest version.
        Full = "FULL",
        /// Both, with every version.
        FullTransitive = "FULL_TRANSITIVE",
    }
}

impl Compatibility {
    /// Returns true if the new schema must read what older ones wrote.
    #[must_use]
    pub const fn is_backward(self) -> bool {
        use Compatibility::{Backward, BackwardTransitive, Full, FullTransitive};
        matches!(self, Backward | BackwardTransitive | Full | FullTransitive)
    }

    /// Returns true if older schemas must read what the new one writes.
    #[must_use]
    pub const fn is_forward(self) -> bool {
        use Compatibility::{Forward, ForwardTransitive, Full, FullTransitive};
        matches!(self, Forward | ForwardTransitive | Full | FullTransitive)
    }

    /// Returns true if all versions count, not only the latest one.
    #[must_use]
    pub const fn is_transitive(self) -> bool {
        use Compatibility::{BackwardTransitive, ForwardTransitive, FullTransitive};
        matches!(self, BackwardTransitive | ForwardTransitive | FullTransitive)
    }
}

named! {
    /// What the registry permits for a subject.
    Mode, "mode", {
        /// Reading and writing.
        ReadWrite = "READWRITE",
        /// Reading.
        ReadOnly = "READONLY",
        /// Reading, whatever the subjects' modes say.
        ReadOnlyOverride = "READONLY_OVERRIDE",
        /// Writing with given IDs and versions.
        Import = "IMPORT",
        /// Forwarding to another registry.
        Forward = "FORWARD",
    }
}
