//! The state of the registry, and what changes it.

use std::collections::BTreeMap;

use super::{
    compiled::{Compiled, is_same, minified},
    records::Change,
    refusal::Refusal,
    storage::Storage,
};
use crate::{Compatibility, Mode, Schema};

/// The context of subjects without one.
pub const DEFAULT_CONTEXT: &str = ".";

/// A version of a subject.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: i32,
    pub schema: Schema,
    pub is_deleted: bool,
}

/// The state.
pub struct Registry {
    pub subjects: BTreeMap<String, BTreeMap<i32, Entry>>,
    /// The schemas by context and ID. Those that are deleted softly stay.
    pub ids: BTreeMap<(String, i32), Schema>,
    pub levels: BTreeMap<Option<String>, Compatibility>,
    pub modes: BTreeMap<Option<String>, Mode>,
    storage: Box<dyn Storage>,
}

/// The context of a subject: `.ctx` of `:.ctx:orders-value`.
pub fn context(subject: &str) -> &str {
    subject
        .strip_prefix(':')
        .and_then(|it| it.split_once(':'))
        .map_or(DEFAULT_CONTEXT, |(context, _)| context)
}

impl Registry {
    /// Reads the state from its storage.
    pub fn load(mut storage: Box<dyn Storage>) -> Result<Self, String> {
        let records = storage.load()?;
        let (subjects, ids) = (BTreeMap::new(), BTreeMap::new());
        let mut registry = Self { subjects, ids, levels: BTreeMap::new(), modes: BTreeMap::new(), storage };
        for (key, value) in records {
            if let Some(change) = Change::from_record(&key, value.as_deref())? {
                registry.apply(change);
            }
        }
        Ok(registry)
    }

    /// Stores a change, then applies it.
    pub fn change(&mut self, change: Change) -> Result<(), Refusal> {
        let (key, value) = change.to_record();
        self.storage.append(&key, value.as_deref()).map_err(Refusal::storage)?;
        self.apply(change);
        Ok(())
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Version { subject, version, entry: Some(entry) } => {
                let at = (context(&subject).to_owned(), entry.id);
                self.ids.insert(at, entry.schema.clone());
                self.subjects.entry(subject).or_default().insert(version, entry);
            }
            Change::Version { subject, version, entry: None } => self.remove(&subject, version),
            Change::SubjectDeleted { subject, version } => {
                let entries = self.subjects.get_mut(&subject).into_iter().flatten();
                entries.filter(|(it, _)| **it <= version).for_each(|(_, entry)| entry.is_deleted = true);
            }
            Change::Level { subject, level: Some(level) } => drop(self.levels.insert(subject, level)),
            Change::Level { subject, level: None } => drop(self.levels.remove(&subject)),
            Change::Mode { subject, mode: Some(mode) } => drop(self.modes.insert(subject, mode)),
            Change::Mode { subject, mode: None } => drop(self.modes.remove(&subject)),
        }
    }

    fn remove(&mut self, subject: &str, version: i32) {
        let Some(entries) = self.subjects.get_mut(subject) else { return };
        let Some(gone) = entries.remove(&version) else { return };
        if entries.is_empty() {
            self.subjects.remove(subject);
        }
        let of = context(subject);
        let is_used = self.subjects.iter().filter(|(name, _)| context(name) == of);
        let is_used = is_used.flat_map(|(_, entries)| entries.values()).any(|entry| entry.id == gone.id);
        if !is_used {
            self.ids.remove(&(of.to_owned(), gone.id));
        }
    }

    /// The level that counts for a subject.
    pub fn level(&self, subject: &str) -> Compatibility {
        let own = self.levels.get(&Some(subject.to_owned())).or_else(|| self.levels.get(&None));
        own.copied().unwrap_or(Compatibility::Backward)
    }

    /// The mode that counts for a subject.
    pub fn mode(&self, subject: &str) -> Mode {
        match (self.modes.get(&None), self.modes.get(&Some(subject.to_owned()))) {
            (Some(Mode::ReadOnlyOverride), _) => Mode::ReadOnlyOverride,
            (_, Some(mode)) | (Some(mode), None) => *mode,
            (None, None) => Mode::ReadWrite,
        }
    }

    /// Registers a schema, or finds it. `wanted` are the ID and the version of an import.
    pub fn register(
        &mut self,
        subject: &str,
        schema: &Schema,
        wanted: (Option<i32>, Option<i32>),
    ) -> Result<(i32, Entry), Refusal> {
        if let Some(found) = self.find(subject, schema, false) {
            return Ok(found);
        }
        let mode = self.mode(subject);
        self.check_writable(subject)?;
        if wanted.0.is_some() && mode != Mode::Import {
            return Err(Refusal::new(42205, format!("Subject {subject} is not in import mode")));
        }
        let compiled = self.compiled(schema)?;
        if mode != Mode::Import {
            let why = self.incompatibilities(subject, &compiled, None)?;
            if !why.is_empty() {
                let why = why.join("; ");
                return Err(Refusal::new(
                    409,
                    format!(
                        "Schema being registered is incompatible with an earlier schema for subject \"{subject}\", details: [{why}]"
                    ),
                ));
            }
        }
        let stored = Schema { text: minified(schema), ..schema.clone() };
        let of = context(subject).to_owned();
        let id = self.id_for(&of, &stored, wanted.0)?;
        let last =
            self.subjects.get(subject).and_then(|it| it.keys().next_back().copied()).unwrap_or_default();
        let version = wanted.1.unwrap_or(last + 1);
        let entry = Entry { id, schema: stored, is_deleted: false };
        self.change(Change::Version { subject: subject.to_owned(), version, entry: Some(entry.clone()) })?;
        Ok((version, entry))
    }

    /// Returns the ID of a schema: that of the same schema in the context, the wanted one, or the next.
    fn id_for(&self, context: &str, schema: &Schema, wanted: Option<i32>) -> Result<i32, Refusal> {
        let of_context = || self.ids.iter().filter(|((of, _), _)| of == context);
        let same = of_context().find(|(_, it)| is_same(it, schema)).map(|((_, id), _)| *id);
        match (same, wanted) {
            (_, Some(wanted)) => match self.ids.get(&(context.to_owned(), wanted)) {
                Some(other) if !is_same(other, schema) => Err(Refusal::new(
                    42205,
                    format!("Overwrite new schema with id {wanted} is not permitted."),
                )),
                _ => Ok(wanted),
            },
            (Some(id), None) => Ok(id),
            (None, None) => Ok(of_context().map(|((_, id), _)| *id).max().unwrap_or_default() + 1),
        }
    }

    /// Refuses to change a subject that may only be read.
    pub fn check_writable(&self, subject: &str) -> Result<(), Refusal> {
        match self.mode(subject) {
            Mode::ReadWrite | Mode::Import => Ok(()),
            _ => Err(Refusal::new(
                42205,
                format!("Subject {subject} in context {} is in read-only mode", context(subject)),
            )),
        }
    }

    /// Compiles a schema with its references.
    pub fn compiled(&self, schema: &Schema) -> Result<Compiled, Refusal> {
        let mut references = Vec::new();
        self.collect(schema, &mut references, 0)?;
        Compiled::new(schema, &references).map_err(Refusal::invalid_schema)
    }

    fn collect(
        &self,
        schema: &Schema,
        found: &mut Vec<(String, String)>,
        depth: usize,
    ) -> Result<(), Refusal> {
        const MAX_DEPTH: usize = 50;
        for reference in &schema.references {
            let entry = self.subjects.get(&reference.subject).and_then(|it| it.get(&reference.version));
            let Some(entry) = entry.filter(|it| !it.is_deleted && depth < MAX_DEPTH) else {
                return Err(Refusal::invalid_schema(format!(
                    "no schema reference found for subject \"{}\" and version {}",
                    reference.subject, reference.version
                )));
            };
            let pair = (reference.name.clone(), entry.schema.text.clone());
            if !found.contains(&pair) {
                self.collect(&entry.schema, found, depth + 1)?;
                if !found.contains(&pair) {
                    found.push(pair);
                }
            }
        }
        Ok(())
    }

    /// Says why a schema can't follow those of a subject, or one of its versions.
    pub fn incompatibilities(
        &self,
        subject: &str,
        schema: &Compiled,
        version: Option<i32>,
    ) -> Result<Vec<String>, Refusal> {
        let level = self.level(subject);
        let entries = self.subjects.get(subject).into_iter().flatten();
        let live: Vec<(i32, &Entry)> =
            entries.filter(|(_, it)| !it.is_deleted).map(|(it, entry)| (*it, entry)).collect();
        let newest = live.last().map(|(it, _)| *it);
        let is_compared = |it: i32| match version {
            Some(version) => it == version,
            None => level.is_transitive() || Some(it) == newest,
        };
        let mut found = Vec::new();
        for (number, entry) in live.into_iter().rev().filter(|(number, _)| is_compared(*number)) {
            let earlier = self.compiled(&entry.schema)?;
            let why = schema.incompatibilities(level, &earlier);
            if !why.is_empty() {
                found.extend(why);
                found.push(format!("oldSchemaVersion: {number}"));
                found.push(format!("compatibility: '{level}'"));
                break;
            }
        }
        Ok(found)
    }
}
