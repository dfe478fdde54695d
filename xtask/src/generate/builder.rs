//! Builds a program from calls whose handles are made when they are needed.

use std::collections::BTreeMap;

use super::{
    events,
    program::{Block, Program, Step},
    random::Random,
    table::{Function, Parameter, Table},
    values,
};

/// Functions that ask brokers.
const QUERIES: [&str; 7] = [
    "rd_kafka_list_groups",
    "rd_kafka_metadata",
    "rd_kafka_query_watermark_offsets",
    "rd_kafka_offsets_for_times",
    "rd_kafka_committed",
    "_transaction",
    "rd_kafka_clusterid",
];

/// A handle of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Handle {
    pub name: String,
    pub kind: String,
    /// What a client is for.
    pub role: Role,
}

/// The kind of client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// Not a client.
    None,
    Producer,
    Transactional,
    Consumer,
    /// The owner of a mock cluster.
    Host,
}

/// A program that is being built.
pub struct Builder<'a> {
    pub random: Random,
    pub table: &'a Table,
    pub program: Program,
    pub handles: Vec<Handle>,
    /// Percent of arguments with an odd value; 0 stays in the contract.
    pub odd: usize,
    /// The block that steps are added to.
    pub block: usize,
    /// Whether an embedded broker is there.
    pub has_broker: bool,
    counters: BTreeMap<char, usize>,
    depth: usize,
}

impl<'a> Builder<'a> {
    pub fn new(table: &'a Table, seed: u64, has_broker: bool) -> Self {
        let mut random = Random::new(seed);
        let odd = if random.percent(50) { 0 } else { 30 };
        Self {
            random,
            table,
            program: Program { blocks: vec![Block::default()] },
            handles: Vec::new(),
            odd,
            block: 0,
            has_broker,
            counters: BTreeMap::new(),
            depth: 0,
        }
    }

    /// True for a step within a callback.
    pub fn in_callback(&self) -> bool {
        self.program.blocks[self.block].header.starts_with("in ")
    }

    /// True for a step of another thread.
    fn in_thread(&self) -> bool {
        self.program.blocks[self.block].header.starts_with("thread ")
    }

    /// Adds a step.
    pub fn step(&mut self, text: &str) {
        if let Ok(parsed) = Program::parse(text) {
            self.program.blocks[self.block]
                .steps
                .extend(parsed.blocks.into_iter().flat_map(|block| block.steps));
        }
    }

    /// Returns a name that no handle has.
    pub fn name(&mut self, kind: &str) -> String {
        let letter = kind.chars().next().unwrap_or('x').to_ascii_lowercase();
        let count = self.counters.entry(letter).or_default();
        *count += 1;
        format!("{letter}{count}")
    }

    /// Notes a handle, and returns its name.
    pub fn add(&mut self, name: String, kind: &str, role: Role) -> String {
        self.handles.push(Handle { name: name.clone(), kind: kind.to_owned(), role });
        name
    }

    /// Returns a client of one of these roles.
    pub fn client(&mut self, roles: &[Role]) -> Option<String> {
        let found: Vec<String> =
            self.handles.iter().filter(|it| roles.contains(&it.role)).map(|it| it.name.clone()).collect();
        (!found.is_empty()).then(|| self.random.one(&found).clone())
    }

    /// Returns a handle of this kind; `NULL` if none can be made.
    pub fn handle(&mut self, kind: &str) -> String {
        self.find_or_make(kind).unwrap_or_else(|| "NULL".to_owned())
    }

    /// Returns a handle of this kind, making one if there is none.
    fn find_or_make(&mut self, kind: &str) -> Option<String> {
        let is_shared = ["client", "topic", "queue", "mock_cluster"].contains(&kind);
        if self.in_callback() {
            let given = match kind {
                "client" => "cb_client",
                "message" => "cb_message",
                "topic" => "cb_topic",
                "topic_partition_list" => "cb_list",
                "event" => "cb_event",
                "share" => "cb_share",
                "conf" => "cb_conf",
                "share_partition_offsets_list" => "cb_offsets",
                _ => "",
            };
            if !given.is_empty() && self.random.percent(80) {
                return Some(given.to_owned());
            }
        }
        let is_elsewhere = self.in_callback() || self.in_thread();
        let found: Vec<String> = self
            .handles
            .iter()
            .filter(|it| it.kind == kind && (is_shared || !is_elsewhere || it.name.starts_with('_')))
            .map(|it| it.name.clone())
            .collect();
        if !found.is_empty() && (is_elsewhere || self.random.percent(85)) {
            return found.get(found.len() - 1 - self.random.below(found.len().min(3))).cloned();
        }
        if self.depth > 6 || (is_elsewhere && is_shared) {
            return found.last().cloned();
        }
        self.depth += 1;
        let made = self.make(kind);
        self.depth -= 1;
        made
    }

    /// Makes a handle of this kind by a function that returns one.
    pub fn make_by_call(&mut self, kind: &str) -> Option<String> {
        let table = self.table;
        let makers: Vec<&Function> =
            table.makers.get(kind)?.iter().filter_map(|name| table.functions.get(name)).collect();
        let mut maker = *self.random.one(&makers);
        // A copy needs what is to be made.
        for _ in 0..4 {
            if maker.parameters.iter().any(|parameter| parameter.kind() == Some(kind)) {
                maker = *self.random.one(&makers);
            }
        }
        if maker.parameters.iter().any(|parameter| parameter.kind() == Some(kind)) && self.depth > 3 {
            return None;
        }
        let names = self.call(&maker.name);
        names.into_iter().find(|(made, _)| made == kind).map(|(_, name)| name)
    }

    /// Calls a function; returns the handles that it makes, with their kinds.
    pub fn call(&mut self, function: &str) -> Vec<(String, String)> {
        self.call_with(function, &[])
    }

    /// Calls a function with some of its arguments given by the name of the parameter.
    pub fn call_with(&mut self, function: &str, given: &[(&str, &str)]) -> Vec<(String, String)> {
        let Some(function) = self.table.functions.get(function) else { return Vec::new() };
        let mut words = vec![function.name.clone()];
        let mut lost = Vec::new();
        for parameter in function.parameters.iter().filter(|parameter| parameter.is_word()) {
            let word = match given.iter().find(|(name, _)| *name == parameter.name) {
                Some((_, word)) => (*word).to_owned(),
                None => match self.argument(&function.name, parameter) {
                    Some(word) => word,
                    // A call without what it needs would only crash the original.
                    None => return Vec::new(),
                },
            };
            if parameter.code.starts_with("h!") || parameter.code.starts_with("h^") {
                lost.push(word.clone());
            }
            words.push(word);
        }
        let kinds: Vec<String> = function.makes().into_iter().map(str::to_owned).collect();
        let names: Vec<(String, String)> = kinds
            .into_iter()
            .map(|kind| {
                let name = self.name(&kind);
                (kind, name)
            })
            .collect();
        let step = Step { names: names.iter().map(|(_, name)| name.clone()).collect(), words };
        self.program.blocks[self.block].steps.push(step);
        self.handles.retain(|handle| !lost.contains(&handle.name));
        if !self.in_callback() && !self.in_thread() {
            for (kind, name) in &names {
                self.add(name.clone(), kind, Role::None);
            }
        }
        names
    }

    /// Returns a word for a parameter, if there is one.
    fn argument(&mut self, function: &str, parameter: &Parameter) -> Option<String> {
        let is_odd = self.random.percent(self.odd);
        if let Some(callback) = parameter.code.strip_prefix("cb:") {
            // The original calls these without a check.
            let is_needed =
                function.contains("interceptor_add_") || function.starts_with("rd_kafka_consume_");
            return Some(if is_odd && !is_needed { "NULL".to_owned() } else { self.callback(callback) });
        }
        // The original can't read the responses about resources of no kind.
        if function == "rd_kafka_ConfigResource_new" && parameter.name == "restype" {
            return Some((*self.random.one(&["2", "4", "3"])).to_owned());
        }
        // Another type is refused; librdkafka makes a client that is neither (refused_arguments).
        if function == "rd_kafka_new" && parameter.name == "type" {
            let odd = *self.random.one(&["2", "-1", "99"]);
            return Some(if is_odd { odd } else { *self.random.one(&["0", "1"]) }.to_owned());
        }
        // Brokers have no codes below -1.
        if function == "rd_kafka_mock_topic_set_error" && parameter.name == "err" {
            return Some((*self.random.one(&["0", "3", "5", "17", "29"])).to_owned());
        }
        if function == "rd_kafka_test_fatal_error" && parameter.name == "err" {
            return Some("45".to_owned());
        }
        let Some(kind) = parameter.kind() else {
            // A call of the network that may take no time has the result of a race.
            let is_query = parameter.code == "t" && QUERIES.iter().any(|of| function.contains(of));
            return Some(if is_query {
                "2000".to_owned()
            } else {
                values::value(&mut self.random, parameter, is_odd)
            });
        };
        let kind = kind.to_owned();
        if kind == "event"
            && let Some((_, of_type, is_checked)) = events::TYPED.iter().find(|(name, ..)| *name == function)
            && (!is_checked || self.random.percent(70))
            && !self.in_callback()
        {
            return Some(self.typed_event(of_type));
        }
        if parameter.code.starts_with("ah") {
            let count = if is_odd { self.random.below(3) } else { 1 };
            let mut elements: Vec<String> = (0..count).filter_map(|_| self.find_or_make(&kind)).collect();
            elements.dedup();
            return Some(format!("[{}]", elements.join(",")));
        }
        let may_be_none = parameter.name == "options" && !function.starts_with("rd_kafka_AdminOptions_")
            || function == "rd_kafka_topic_new" && kind == "topic_conf";
        let is_optional = may_be_none && self.random.percent(70);
        let survives_null = || self.table.nulls.contains(&(function.to_owned(), parameter.name.clone()));
        if is_optional || (is_odd && survives_null() && self.random.percent(15)) {
            return Some("NULL".to_owned());
        }
        self.find_or_make(&kind)
    }

    /// Returns the block of a type of callback, an empty one at first.
    pub fn callback(&mut self, callback: &str) -> String {
        let header = format!("in {callback}");
        if !self.program.blocks.iter().any(|block| block.header == header) {
            self.program.blocks.push(Block { header, steps: Vec::new() });
        }
        callback.to_owned()
    }
}
