//! Compiled schemas by what names them on the wire.

use std::sync::Arc;

use super::format::Format;
use crate::{
    Error, Result, Schema,
    client::{Client, cache::Cache},
    wire::SchemaId,
};

/// Finds the schemas of records, and keeps them compiled.
#[derive(Debug)]
pub struct Lookup<F> {
    pub client: Client,
    compiled: Cache<SchemaId, Arc<F>>,
}

impl<F: Format> Lookup<F> {
    pub fn new(client: &Client) -> Self {
        Self { client: client.clone(), compiled: Cache::new(client.cache_capacity()) }
    }

    /// Compiles a schema with its references.
    pub fn compile(&self, schema: &Schema) -> Result<F> {
        if schema.schema_type != F::TYPE {
            return Err(Error::schema(format!(
                "it is one of {}, and {} is expected",
                schema.schema_type,
                F::TYPE
            )));
        }
        F::compile(&schema.text, self.client.references(schema)?)
    }

    /// Returns the schema that a record names.
    pub fn get(&self, id: SchemaId) -> Result<Arc<F>> {
        self.compiled.get(&id, None, || Ok(Arc::new(self.compile(&*self.client.schema(id)?)?)))
    }
}
