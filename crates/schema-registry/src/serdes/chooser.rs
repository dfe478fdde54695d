//! The schema with which a serializer writes, and its ID.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};

use super::{
    config::{Framed, Framing, SerializerConfig, header_name},
    format::Format,
    lookup::Lookup,
};
use crate::{
    Error, Result, Schema,
    client::{Client, Registered, Version, cache::Cache},
    wire::{Guid, SchemaId},
};

/// Chooses the schema for a topic.
#[derive(Debug)]
pub struct Chooser<F> {
    lookup: Lookup<F>,
    pub config: SerializerConfig,
    /// The application's schema, unless the registry says which one counts.
    own: Option<(Schema, Arc<F>)>,
    chosen: Cache<String, Arc<Chosen<F>>>,
    /// The last topic: most serializers have one.
    last: RwLock<Option<(String, Arc<Chosen<F>>)>>,
}

/// A schema for writing.
#[derive(Debug)]
pub struct Chosen<F> {
    pub compiled: Arc<F>,
    id: u32,
    guid: Option<Guid>,
    until: Option<Instant>,
}

impl<F: Format> Chooser<F> {
    pub fn new(client: &Client, schema: Option<Schema>, config: SerializerConfig) -> Result<Self> {
        config.check()?;
        let lookup = Lookup::new(client);
        if schema.is_none() && !config.use_latest_version && config.use_schema_id.is_none() {
            return Err(Error::config("without a schema, use_latest_version or use_schema_id must be set"));
        }
        let own = match schema {
            Some(schema) => {
                let compiled = Arc::new(lookup.compile(&schema)?);
                Some((schema, compiled))
            }
            None => None,
        };
        let chosen = Cache::new(client.cache_capacity());
        Ok(Self { lookup, config, own, chosen, last: RwLock::new(None) })
    }

    /// The application's schema.
    #[cfg(feature = "protobuf")]
    pub fn own(&self) -> Option<&F> {
        self.own.as_ref().map(|(_, compiled)| &**compiled)
    }

    /// Returns the schema for a topic.
    pub fn choose(&self, topic: &str, record_name: Option<&str>) -> Result<Arc<Chosen<F>>> {
        if record_name.is_none()
            && let Some((last, chosen)) = &*self.last.read().unwrap_or_else(PoisonError::into_inner)
            && last == topic
            && chosen.until.is_none_or(|until| Instant::now() < until)
        {
            return Ok(Arc::clone(chosen));
        }
        let own_name = || self.own.as_ref().and_then(|(_, compiled)| compiled.record_name());
        let name = record_name.map(str::to_owned).or_else(own_name);
        let subject = self.config.strategy.subject(topic, self.config.part, name.as_deref());
        // An ID needs no subject.
        let subject = match (subject, self.config.use_schema_id) {
            (Ok(subject), _) => subject,
            (Err(_), Some(_)) => String::new(),
            (Err(error), None) => return Err(error),
        };
        let until = self.config.use_latest_version.then(|| Instant::now() + self.lookup.client.latest_ttl());
        let chosen = self.chosen.get(&subject, until, || self.ask(&subject, until).map(Arc::new))?;
        if record_name.is_none() {
            let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
            *last = Some((topic.to_owned(), Arc::clone(&chosen)));
        }
        Ok(chosen)
    }

    fn ask(&self, subject: &str, until: Option<Instant>) -> Result<Chosen<F>> {
        let client = &self.lookup.client;
        let of_registry = |found: Registered| {
            let compiled = self.lookup.get(SchemaId::Id(found.id))?;
            Ok(Chosen { compiled, id: found.id, guid: found.guid, until })
        };
        if let Some(id) = self.config.use_schema_id {
            return Ok(Chosen { compiled: self.lookup.get(SchemaId::Id(id))?, id, guid: None, until });
        }
        if self.config.use_latest_version {
            return of_registry(client.version(subject, Version::Latest)?);
        }
        let Some((schema, compiled)) = &self.own else {
            return Err(Error::config("the serializer has no schema"));
        };
        let found = match self.config.auto_register {
            true => client.register(subject, schema, self.config.normalize)?,
            false => client.lookup(subject, schema, self.config.normalize)?,
        };
        Ok(Chosen { compiled: Arc::clone(compiled), id: found.id, guid: found.guid, until })
    }

    /// Frames data: `prefix` writes what follows the ID, and `data` the rest.
    pub fn framed(
        &self,
        chosen: &Chosen<F>,
        prefix: impl FnOnce(&mut Vec<u8>),
        data: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Framed> {
        let mut start = Vec::with_capacity(64);
        match self.config.framing {
            Framing::Prefix => {
                SchemaId::Id(chosen.id).write(&mut start);
                prefix(&mut start);
                data(&mut start)?;
                Ok(Framed { payload: start, header: None })
            }
            Framing::Header => {
                let guid = chosen.guid.ok_or_else(|| {
                    Error::config("the registry gave no GUID, which headers need; use Framing::Prefix")
                })?;
                SchemaId::Guid(guid).write(&mut start);
                prefix(&mut start);
                let mut payload = Vec::with_capacity(64);
                data(&mut payload)?;
                Ok(Framed { payload, header: Some((header_name(self.config.part), start)) })
            }
        }
    }
}
