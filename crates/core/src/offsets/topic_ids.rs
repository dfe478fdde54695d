//! The IDs of topics, by which committed offsets are requested (KIP-848).
//!
//! Committed offsets belong to a name in versions up to 9 of OffsetCommit and OffsetFetch, and to a topic ID from version 10
//! on. A commit keeps the IDs of the moment in which it was made: after a topic is recreated, the offsets of the old one are
//! refused, by the coordinator or, where it knows names only, by the client.

use std::sync::Arc;

use ottla_protocol::uuid::Uuid;
use ottla_sorted::SortedMap;

use crate::contract::metadata::Metadata;

/// The IDs of the topics that exist, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopicIds {
    ids: Arc<SortedMap<Arc<str>, Uuid>>,
    /// The IDs of topics that the last metadata report as deleted, and whose names no new topic has.
    deleted: SortedMap<Arc<str>, Uuid>,
}

impl TopicIds {
    /// Adopts the IDs of newer metadata.
    pub(crate) fn update(&mut self, metadata: &Metadata) {
        let deleted = metadata.topics.iter().filter(|(_, topic)| topic.gone && !topic.id.is_zero());
        self.deleted = deleted.map(|(name, topic)| (Arc::clone(name), topic.id)).collect();
        let known = metadata.topics.iter().filter(|(_, topic)| !topic.gone && !topic.id.is_zero());
        self.ids = Arc::new(known.map(|(name, topic)| (Arc::clone(name), topic.id)).collect());
    }

    /// Returns all IDs.
    pub(crate) fn known(&self) -> Arc<SortedMap<Arc<str>, Uuid>> {
        Arc::clone(&self.ids)
    }

    /// Returns the ID of a topic, if it is known.
    pub(crate) fn get(&self, topic: &str) -> Option<Uuid> {
        self.ids.get(topic).copied()
    }

    /// Returns true if the last metadata report the topic with this ID as deleted, and its name has no new topic.
    pub(crate) fn is_deleted(&self, topic: &str, id: Uuid) -> bool {
        self.deleted.get(topic) == Some(&id)
    }

    /// Returns the IDs of these topics, if all are known.
    pub(crate) fn all<'a>(&self, topics: impl IntoIterator<Item = &'a Arc<str>>) -> Option<RequestIds> {
        let ids = topics.into_iter().map(|topic| Some((Arc::clone(topic), self.get(topic)?)));
        ids.collect::<Option<_>>().map(|ids| RequestIds { ids })
    }
}

/// The IDs of the topics of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestIds {
    ids: SortedMap<Arc<str>, Uuid>,
}

impl RequestIds {
    /// Returns these IDs.
    pub(crate) const fn new(ids: SortedMap<Arc<str>, Uuid>) -> Self {
        Self { ids }
    }

    /// Returns the ID of a topic; zero if it is unknown.
    pub(crate) fn get(&self, topic: &str) -> Uuid {
        self.ids.get(topic).copied().unwrap_or_default()
    }

    /// Returns the name of a topic in a response: by its ID, or the name itself where the response has no IDs.
    pub(crate) fn name<'a>(&'a self, id: Uuid, name: &'a str) -> &'a str {
        let by_id = || self.ids.iter().find(|(_, known)| **known == id).map(|(name, _)| &**name);
        if id.is_zero() { name } else { by_id().unwrap_or(name) }
    }
}
