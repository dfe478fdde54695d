//! Compiles the schema that apache-avro parsed.

use std::collections::HashMap;

use apache_avro::{
    Schema,
    schema::{Aliases, InnerDecimalSchema, Name, UuidSchema},
};

use super::{
    from_json,
    plan::{EnumNode, Field, Names, Node, NodeId, Plan, RecordNode},
};
use crate::{Error, Result, schema::check_size};

/// The deepest schema.
const MAX_DEPTH: usize = 128;

/// Compiles a schema.
pub fn compile(text: &str, references: &[String]) -> Result<Plan> {
    check_size(text)?;
    references.iter().try_for_each(|it| check_size(it))?;
    // A schema may also be a bare name of a type.
    let quoted = if text.trim_start().starts_with(['{', '[', '"']) {
        text.to_owned()
    } else {
        serde_json::Value::from(text.trim()).to_string()
    };
    let (schema, others) = Schema::parse_str_with_list(&quoted, references)
        .map_err(|error| Error::schema(format!("it is not a schema in Avro: {error}")))?;
    let mut compiler = Compiler { plan: Plan::default(), names: HashMap::new(), others: HashMap::new() };
    for other in &others {
        if let Some(name) = other.name() {
            compiler.others.insert(name.fullname(None), other);
        }
    }
    compiler.plan.root = compiler.node(&schema, None, 0)?;
    encode_defaults(&mut compiler.plan)?;
    Ok(compiler.plan)
}

struct Compiler<'a> {
    plan: Plan,
    names: HashMap<String, NodeId>,
    /// The references that were not met yet.
    others: HashMap<String, &'a Schema>,
}

impl<'a> Compiler<'a> {
    fn push(&mut self, node: Node) -> NodeId {
        self.plan.nodes.push(node);
        self.plan.nodes.len() - 1
    }

    /// Adds a named type. Fields that refer to it find it while it is compiled.
    fn push_named(&mut self, name: String, node: Node) -> NodeId {
        let id = self.push(node);
        self.names.insert(name, id);
        id
    }

    fn node(&mut self, schema: &'a Schema, namespace: Option<&str>, depth: usize) -> Result<NodeId> {
        if depth > MAX_DEPTH {
            return Err(Error::schema(format!("types are nested more than {MAX_DEPTH} deep")));
        }
        let plain = match schema {
            Schema::Null => Node::Null,
            Schema::Boolean => Node::Boolean,
            Schema::Int | Schema::Date | Schema::TimeMillis => Node::Int,
            Schema::Long
            | Schema::TimeMicros
            | Schema::TimestampMillis
            | Schema::TimestampMicros
            | Schema::TimestampNanos
            | Schema::LocalTimestampMillis
            | Schema::LocalTimestampMicros
            | Schema::LocalTimestampNanos => Node::Long,
            Schema::Float => Node::Float,
            Schema::Double => Node::Double,
            Schema::Bytes | Schema::BigDecimal | Schema::Uuid(UuidSchema::Bytes) => Node::Bytes,
            Schema::String | Schema::Uuid(UuidSchema::String) => Node::String,
            Schema::Decimal(decimal) => match &decimal.inner {
                InnerDecimalSchema::Bytes => Node::Bytes,
                InnerDecimalSchema::Fixed(fixed) => {
                    return Ok(self.fixed(&fixed.name, &fixed.aliases, fixed.size, namespace));
                }
            },
            Schema::Fixed(fixed) | Schema::Duration(fixed) | Schema::Uuid(UuidSchema::Fixed(fixed)) => {
                return Ok(self.fixed(&fixed.name, &fixed.aliases, fixed.size, namespace));
            }
            Schema::Enum(it) => {
                let default = it.default.as_ref().and_then(|d| it.symbols.iter().position(|s| s == d));
                let names = names(&it.name, &it.aliases, namespace);
                let full = names.full.clone();
                let node = Node::Enum(EnumNode { names, symbols: it.symbols.clone(), default });
                return Ok(self.push_named(full, node));
            }
            Schema::Array(it) => Node::Array(self.node(&it.items, namespace, depth + 1)?),
            Schema::Map(it) => Node::Map(self.node(&it.types, namespace, depth + 1)?),
            Schema::Union(it) => {
                let branches = it.variants().iter().map(|branch| self.node(branch, namespace, depth + 1));
                Node::Union(branches.collect::<Result<_>>()?)
            }
            Schema::Record(it) => {
                let names = names(&it.name, &it.aliases, namespace);
                let full = names.full.clone();
                let inner = full.rsplit_once('.').map(|(namespace, _)| namespace.to_owned());
                let id = self.push_named(full, Node::Record(RecordNode { names, fields: Vec::new() }));
                let mut fields = Vec::with_capacity(it.fields.len());
                for field in &it.fields {
                    fields.push(Field {
                        name: field.name.clone(),
                        aliases: field.aliases.clone(),
                        node: self.node(&field.schema, inner.as_deref(), depth + 1)?,
                        default: field.default.clone(),
                        encoded_default: None,
                    });
                }
                if let Node::Record(record) = &mut self.plan.nodes[id] {
                    record.fields = fields;
                }
                return Ok(id);
            }
            Schema::Ref { name } => return self.named(name, namespace, depth),
        };
        Ok(self.push(plain))
    }

    fn fixed(&mut self, name: &Name, aliases: &Aliases, size: usize, namespace: Option<&str>) -> NodeId {
        let names = names(name, aliases, namespace);
        self.push_named(names.full.clone(), Node::Fixed(names, size))
    }

    fn named(&mut self, name: &Name, namespace: Option<&str>, depth: usize) -> Result<NodeId> {
        for full in [name.fullname(namespace), name.fullname(None)] {
            if let Some(id) = self.names.get(&full) {
                return Ok(*id);
            }
            if let Some(other) = self.others.remove(&full) {
                return self.node(other, None, depth + 1);
            }
        }
        Err(Error::schema(format!(
            "the type {} is not defined; is a reference missing?",
            name.fullname(namespace)
        )))
    }
}

fn names(name: &Name, aliases: &Aliases, namespace: Option<&str>) -> Names {
    let full = name.fullname(namespace);
    let inner = full.rsplit_once('.').map(|(namespace, _)| namespace.to_owned());
    let aliases = aliases.iter().flatten().map(|alias| alias.fullname(inner.as_deref())).collect();
    Names { full, aliases }
}

/// Encodes the default values of fields.
fn encode_defaults(plan: &mut Plan) -> Result<()> {
    for id in 0..plan.nodes.len() {
        let Node::Record(record) = &plan.nodes[id] else { continue };
        let mut encoded = Vec::with_capacity(record.fields.len());
        for field in &record.fields {
            encoded.push(match &field.default {
                Some(value) => {
                    let mut out = Vec::new();
                    from_json::encode_default(plan, field.node, value, &mut out).map_err(|error| {
                        Error::schema(format!("the default of {}.{}: {error}", record.names.full, field.name))
                    })?;
                    Some(out)
                }
                None => None,
            });
        }
        if let Node::Record(record) = &mut plan.nodes[id] {
            for (field, encoded) in record.fields.iter_mut().zip(encoded) {
                field.encoded_default = encoded;
            }
        }
    }
    Ok(())
}
