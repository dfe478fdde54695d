//! A compiled schema: nodes that name each other by number.

use serde_json::Value;

/// The number of a node.
pub type NodeId = usize;

/// A compiled schema.
#[derive(Debug, Default)]
pub struct Plan {
    pub nodes: Vec<Node>,
    pub root: NodeId,
}

/// A type. Logical types are the types under them.
#[derive(Debug)]
pub enum Node {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(Names, usize),
    Enum(EnumNode),
    Array(NodeId),
    Map(NodeId),
    Union(Vec<NodeId>),
    Record(RecordNode),
}

/// The name of a type, and those that it had.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub full: String,
    pub aliases: Vec<String>,
}

#[derive(Debug)]
pub struct EnumNode {
    pub names: Names,
    pub symbols: Vec<String>,
    pub default: Option<usize>,
}

#[derive(Debug)]
pub struct RecordNode {
    pub names: Names,
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub aliases: Vec<String>,
    pub node: NodeId,
    pub default: Option<Value>,
    /// The encoding of the default, which is there if the default is.
    pub encoded_default: Option<Vec<u8>>,
}

impl Names {
    /// The name without its namespace.
    pub fn simple(&self) -> &str {
        simple(&self.full)
    }

    /// Whether a reader with these names reads what a writer with those names wrote.
    pub fn matches(&self, writer: &Names) -> bool {
        self.simple() == writer.simple()
            || self.aliases.iter().any(|alias| *alias == writer.full || simple(alias) == writer.simple())
    }
}

/// The last part of a full name.
pub fn simple(full: &str) -> &str {
    full.rsplit('.').next().unwrap_or(full)
}

impl Plan {
    /// The name of the root's type.
    pub fn name(&self) -> Option<&str> {
        self.nodes.get(self.root).and_then(|node| match node {
            Node::Union(_) => None,
            node => Some(self.type_name_of(node)),
        })
    }

    /// The name of a branch of a union in JSON.
    pub fn type_name(&self, id: NodeId) -> &str {
        self.type_name_of(&self.nodes[id])
    }

    fn type_name_of<'a>(&'a self, node: &'a Node) -> &'a str {
        match node {
            Node::Null => "null",
            Node::Boolean => "boolean",
            Node::Int => "int",
            Node::Long => "long",
            Node::Float => "float",
            Node::Double => "double",
            Node::Bytes => "bytes",
            Node::String => "string",
            Node::Fixed(names, _) => &names.full,
            Node::Enum(it) => &it.names.full,
            Node::Array(_) => "array",
            Node::Map(_) => "map",
            Node::Union(_) => "union",
            Node::Record(it) => &it.names.full,
        }
    }
}
