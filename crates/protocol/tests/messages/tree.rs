//! The output of `{:?}` as a tree, to compare the values of two crates.

use std::{collections::BTreeMap, fmt};

use ottla_protocol::{error_code::ErrorCode, uuid::Uuid};

/// A value, without the names of its types.
#[derive(Clone, PartialEq)]
pub enum Tree {
    /// A number, a boolean, `None`.
    Word(String),
    /// A string.
    Text(String),
    /// An array, or bytes.
    List(Vec<Tree>),
    /// A struct, as its fields by name, without underscores.
    Struct(BTreeMap<String, Tree>),
}

impl Tree {
    /// Parses the output of `{:?}`. Wrappers of one value (`Some`, `TopicName`) are removed.
    pub fn parse(printed: &str) -> Self {
        let mut parser = Parser { rest: printed };
        let tree = parser.tree();
        assert_eq!(parser.rest, "", "all of it is understood");
        tree
    }

    /// Returns the path of the first difference. Fields that only `self` has do not count: they belong to later
    /// versions. Neither do fields that only `other` has if they are zero: they belong to versions that were never
    /// released.
    pub fn difference(&self, other: &Self) -> Option<String> {
        match (self, other) {
            (Self::Struct(ours), Self::Struct(theirs)) => {
                for (name, value) in theirs {
                    let Some(our_value) = ours.get(name) else {
                        if *value == Self::Word("0".to_owned()) {
                            continue;
                        }
                        return Some(format!("{name} is missing"));
                    };
                    if let Some(difference) = our_value.difference(value) {
                        return Some(format!("{name}: {difference}"));
                    }
                }
                None
            }
            (Self::List(ours), Self::List(theirs)) if ours.len() == theirs.len() => {
                ours.iter().zip(theirs).find_map(|(our, their)| our.difference(their))
            }
            _ if self == other => None,
            _ => Some(format!("{self:?} and {other:?}")),
        }
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => f.write_str(word),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(list) => f.debug_list().entries(list).finish(),
            Self::Struct(fields) => f.debug_map().entries(fields).finish(),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn tree(&mut self) -> Tree {
        if self.take("[") {
            return Tree::List(self.list("]"));
        }
        if self.take("b\"") {
            return Tree::List(self.quoted().into_iter().map(|byte| Tree::Word(byte.to_string())).collect());
        }
        if self.take("\"") {
            return Tree::Text(String::from_utf8(self.quoted()).expect("a string is UTF-8"));
        }
        if self.take("{") {
            assert!(self.take("}"), "an unknown tagged field: {}", self.rest);
            return Tree::List(Vec::new());
        }
        let end = self.rest.find(|letter: char| !(letter.is_alphanumeric() || "_-.+".contains(letter)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        if self.take(" {") {
            return Tree::Struct(self.fields());
        }
        if self.take("(") {
            let mut list = self.list(")");
            return list.pop().expect("a tuple of one");
        }
        Tree::Word(normal(word))
    }

    fn list(&mut self, end: &str) -> Vec<Tree> {
        let mut list = Vec::new();
        while !self.take(end) {
            list.push(self.tree());
            self.take(", ");
        }
        list
    }

    fn fields(&mut self) -> BTreeMap<String, Tree> {
        let mut fields = BTreeMap::new();
        while !self.take(" }") {
            self.take(" ");
            let (name, rest) = self.rest.split_once(": ").expect("a field's name");
            let name = name.replace('_', "");
            self.rest = rest;
            let value = self.tree();
            if name != "unknowntaggedfields" {
                fields.insert(name, value);
            }
            self.take(",");
        }
        fields
    }

    /// Returns the bytes up to the closing quote, unescaped.
    fn quoted(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut letters = self.rest.chars();
        while let Some(letter) = letters.next() {
            let escaped = match letter {
                '"' => break,
                '\\' => letters.next().expect("something after a backslash"),
                plain => {
                    bytes.extend(plain.to_string().bytes());
                    continue;
                }
            };
            match escaped {
                'n' => bytes.push(b'\n'),
                'r' => bytes.push(b'\r'),
                't' => bytes.push(b'\t'),
                '0' => bytes.push(0),
                'x' => {
                    let digits: String = letters.by_ref().take(2).collect();
                    bytes.push(u8::from_str_radix(&digits, 16).expect("two hexadecimal digits"));
                }
                other => bytes.push(u8::try_from(other).expect("an escaped quote or backslash")),
            }
        }
        self.rest = letters.as_str();
        bytes
    }

    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

/// Converts error codes to numbers, and UUIDs to hexadecimal digits.
fn normal(word: &str) -> String {
    if let Some(code) = ErrorCode::all().find(|code| code.name() == word) {
        return code.0.to_string();
    }
    if word.len() == 36 && word.matches('-').count() == 4 {
        return word.replace('-', "");
    }
    match Uuid::parse(word) {
        Some(uuid) => uuid.0.iter().map(|byte| format!("{byte:02x}")).collect(),
        None => word.to_owned(),
    }
}

#[test]
fn the_same_value_printed_by_two_crates_is_the_same_tree() {
    let ours =
        r#"A { r#match: NONE, names: ["a\"b"], of: Some([1, 255]), id: AAAAAAAAAAAAAAAAAAAAAA, more: 1 }"#;
    let theirs = r#"B { r#match: 0, names: [Name("a\"b")], of: Some(b"\x01\xff"), id: 00000000-0000-0000-0000-000000000000, unknown_tagged_fields: {} }"#;
    assert_eq!(Tree::parse(ours).difference(&Tree::parse(theirs)), None);
    assert_eq!(Tree::parse(theirs).difference(&Tree::parse(ours)).as_deref(), Some("more is missing"));
    let other = theirs.replace("xff", "xfe");
    let difference = Tree::parse(ours).difference(&Tree::parse(&other));
    assert_eq!(difference.as_deref(), Some("of: 255 and 254"));
}
