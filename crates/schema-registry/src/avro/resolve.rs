//! Resolution of a writer's schema to a reader's, by the rules of Avro's specification.

use std::collections::HashMap;

use super::{
    plan::{EnumNode, Node, NodeId, Plan, RecordNode},
    steps::{Number, RecordSteps, Step, StepId, Steps, Symbol},
};

/// Resolves two schemas.
pub fn resolve(writer: &Plan, reader: &Plan) -> Steps {
    let mut resolver = Resolver { steps: Steps::default(), known: HashMap::new(), path: Vec::new() };
    let pair = Pair { writer, reader, relation: Relation::Both };
    resolver.steps.root = resolver.step(pair, writer.root, reader.root);
    resolver.steps
}

/// Which schemas a pair consists of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Relation {
    Both,
    /// The writer's schema with itself, for fields that are skipped.
    WriterOnly,
    /// The reader's schema with itself, for defaults.
    ReaderOnly,
}

#[derive(Clone, Copy)]
struct Pair<'a> {
    writer: &'a Plan,
    reader: &'a Plan,
    relation: Relation,
}

struct Resolver {
    steps: Steps,
    known: HashMap<(Relation, NodeId, NodeId), StepId>,
    path: Vec<String>,
}

impl Resolver {
    fn step(&mut self, pair: Pair<'_>, writer: NodeId, reader: NodeId) -> StepId {
        if let Some(id) = self.known.get(&(pair.relation, writer, reader)) {
            return *id;
        }
        // Recursive types find the place of a step that is not there yet.
        let id = self.steps.list.len();
        self.steps.list.push(Step::Null);
        self.known.insert((pair.relation, writer, reader), id);
        let step = self.resolved(pair, writer, reader);
        if let Step::Mismatch(why) = &step {
            self.report(why);
        }
        self.steps.list[id] = step;
        id
    }

    fn report(&mut self, why: &str) {
        let path = self.path.join(".");
        self.steps.mismatches.push(if path.is_empty() { why.to_owned() } else { format!("{path}: {why}") });
    }

    fn resolved(&mut self, pair: Pair<'_>, writer: NodeId, reader: NodeId) -> Step {
        let (from, to) = (&pair.writer.nodes[writer], &pair.reader.nodes[reader]);
        if let Node::Union(branches) = from {
            return Step::Union(branches.iter().map(|branch| self.branch(pair, *branch, reader)).collect());
        }
        if let Node::Union(branches) = to {
            let best = branches.iter().enumerate().filter_map(|(at, branch)| {
                let rank = closeness(pair, writer, *branch)?;
                Some((rank, at, *branch))
            });
            let Some((_, _, branch)) = best.min() else {
                let names: Vec<&str> = branches.iter().map(|it| pair.reader.type_name(*it)).collect();
                return Step::Mismatch(format!(
                    "{} is none of the reader's {}",
                    pair.writer.type_name(writer),
                    names.join(", ")
                ));
            };
            let inner = self.step(pair, writer, branch);
            return Step::Branch(pair.reader.type_name(branch).to_owned(), inner);
        }
        self.types(pair, writer, reader)
    }

    /// Resolves a branch of the writer's union.
    fn branch(&mut self, pair: Pair<'_>, branch: NodeId, reader: NodeId) -> StepId {
        self.step(pair, branch, reader)
    }

    fn types(&mut self, pair: Pair<'_>, writer: NodeId, reader: NodeId) -> Step {
        match (&pair.writer.nodes[writer], &pair.reader.nodes[reader]) {
            (Node::Null, Node::Null) => Step::Null,
            (Node::Boolean, Node::Boolean) => Step::Boolean,
            (Node::Bytes | Node::String, Node::String) => Step::Text { to_text: true },
            (Node::Bytes | Node::String, Node::Bytes) => Step::Text { to_text: false },
            (Node::Fixed(from, size), Node::Fixed(to, expected)) if to.matches(from) => {
                if size == expected {
                    Step::Fixed(*size)
                } else {
                    Step::Mismatch(format!("{}: the sizes {size} and {expected} differ", to.full))
                }
            }
            (Node::Enum(from), Node::Enum(to)) if to.names.matches(&from.names) => self.enums(from, to),
            (Node::Array(from), Node::Array(to)) => {
                Step::Array(self.within("[]", |it| it.step(pair, *from, *to)))
            }
            (Node::Map(from), Node::Map(to)) => Step::Map(self.within("{}", |it| it.step(pair, *from, *to))),
            (Node::Record(from), Node::Record(to)) if to.names.matches(&from.names) => {
                self.records(pair, from, to)
            }
            (from, to) => match (number(from), number(to)) {
                (Some(from), Some(to)) if from <= to => Step::Number { from, to },
                _ => Step::Mismatch(format!(
                    "the writer's {} is not the reader's {}",
                    pair.writer.type_name(writer),
                    pair.reader.type_name(reader)
                )),
            },
        }
    }

    fn enums(&mut self, from: &EnumNode, to: &EnumNode) -> Step {
        let default = to.default.and_then(|at| to.symbols.get(at));
        let symbols = from.symbols.iter().map(|symbol| match (to.symbols.contains(symbol), default) {
            (true, _) => Symbol { text: symbol.clone(), is_known: true },
            (false, Some(default)) => Symbol { text: default.clone(), is_known: true },
            (false, None) => Symbol { text: symbol.clone(), is_known: false },
        });
        let symbols: Vec<Symbol> = symbols.collect();
        for symbol in symbols.iter().filter(|symbol| !symbol.is_known) {
            self.report(&format!("the reader's enum {} has no symbol {}", to.names.full, symbol.text));
        }
        Step::Enum(symbols)
    }

    fn records(&mut self, pair: Pair<'_>, from: &RecordNode, to: &RecordNode) -> Step {
        let mut steps = RecordSteps::default();
        // The reader's field of each of the writer's, by name and then by alias.
        let mut found = vec![None; from.fields.len()];
        for (at, field) in to.fields.iter().enumerate() {
            let by_name = from.fields.iter().position(|it| it.name == field.name);
            let of = by_name.or_else(|| from.fields.iter().position(|it| field.aliases.contains(&it.name)));
            match (of, &field.encoded_default) {
                (Some(of), _) => found[of] = Some(at),
                (None, Some(encoded)) => {
                    let of_reader = Pair { writer: pair.reader, relation: Relation::ReaderOnly, ..pair };
                    let step = self.step(of_reader, field.node, field.node);
                    steps.defaults.push((field.name.clone(), encoded.clone(), step));
                }
                (None, None) => {
                    let name = &to.names.full;
                    return Step::Mismatch(format!(
                        "the reader's field {} of {name} is not in the writer's schema, and has no default",
                        field.name
                    ));
                }
            }
        }
        for (field, found) in from.fields.iter().zip(found) {
            let step = match found {
                Some(at) => {
                    let to = &to.fields[at];
                    (Some(to.name.clone()), self.within(&to.name, |it| it.step(pair, field.node, to.node)))
                }
                None => {
                    let of_writer = Pair { reader: pair.writer, relation: Relation::WriterOnly, ..pair };
                    (None, self.step(of_writer, field.node, field.node))
                }
            };
            steps.fields.push(step);
        }
        Step::Record(steps)
    }

    fn within<T>(&mut self, name: &str, act: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(name.to_owned());
        let result = act(self);
        self.path.pop();
        result
    }
}

fn number(node: &Node) -> Option<Number> {
    match node {
        Node::Int => Some(Number::Int),
        Node::Long => Some(Number::Long),
        Node::Float => Some(Number::Float),
        Node::Double => Some(Number::Double),
        _ => None,
    }
}

/// How well a branch of the reader's union fits: 0 for the same type, more for a promotion, `None` if it does not.
fn closeness(pair: Pair<'_>, writer: NodeId, branch: NodeId) -> Option<u8> {
    let same = Some(0);
    match (&pair.writer.nodes[writer], &pair.reader.nodes[branch]) {
        (Node::Null, Node::Null)
        | (Node::Boolean, Node::Boolean)
        | (Node::Bytes, Node::Bytes)
        | (Node::String, Node::String)
        | (Node::Array(_), Node::Array(_))
        | (Node::Map(_), Node::Map(_)) => same,
        (Node::Bytes, Node::String) | (Node::String, Node::Bytes) => Some(5),
        (Node::Fixed(from, size), Node::Fixed(to, expected)) if size == expected && to.matches(from) => {
            Some(u8::from(from.full != to.full))
        }
        (Node::Enum(from), Node::Enum(to)) if to.names.matches(&from.names) => {
            Some(u8::from(from.names.full != to.names.full))
        }
        (Node::Record(from), Node::Record(to)) if to.names.matches(&from.names) => {
            Some(u8::from(from.names.full != to.names.full))
        }
        (from, to) => match (number(from)?, number(to)?) {
            (from, to) if from <= to => Some(to as u8 - from as u8),
            _ => None,
        },
    }
}
