//! Enumerations of the protocol: values with a number and a name.

/// Defines an enumeration whose value `Unknown` stands for all numbers and names that this library does not know.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $value:ident = $number:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            /// A value that this library does not know.
            #[default]
            Unknown = 0,
            $($(#[$of])* $value = $number,)*
        }

        impl $name {
            /// All values except `Unknown`, by number.
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];

            /// Returns the value with this number of the protocol.
            pub fn from_number(number: i8) -> Self {
                Self::ALL.iter().copied().find(|value| value.number() == number).unwrap_or_default()
            }

            /// Returns the number in the protocol.
            pub const fn number(self) -> i8 {
                self as i8
            }

            /// Returns the name that Kafka uses.
            pub const fn name(self) -> &'static str {
                match self {
                    Self::Unknown => "UNKNOWN",
                    $(Self::$value => $text,)*
                }
            }

            /// Returns the value with this name, whatever its case and with or without `_` and `-`.
            pub fn from_name(name: &str) -> Self {
                let plain = |name: &str| -> String {
                    name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_uppercase()).collect()
                };
                let name = plain(name);
                Self::ALL.iter().copied().find(|value| plain(value.name()) == name).unwrap_or_default()
            }
        }
    };
}
pub(super) use numbered;

#[cfg(test)]
mod tests {
    use crate::admin::acls::{AclOperation, AclPermission, AclResourceType, PatternType};

    #[test]
    fn numbers_and_names_are_found_again() {
        for operation in AclOperation::ALL.iter().copied() {
            assert_eq!(AclOperation::from_number(operation.number()), operation);
            assert_eq!(AclOperation::from_name(&operation.name().to_lowercase()), operation);
        }
        assert_eq!(AclOperation::from_name("IdempotentWrite"), AclOperation::IdempotentWrite);
        assert_eq!(AclResourceType::from_name("transactional-id"), AclResourceType::TransactionalId);
        assert_eq!((AclPermission::from_number(99), PatternType::from_name("x")), Default::default());
    }
}
