//! Metadata requests of the cluster actor, and the handling of their responses.
//!
//! # Pitfalls
//!
//! - A query of a topic's offsets must not create the topic, not even through a producer, which may create the topics
//!   that it sends to (`describing_a_topic_through_a_producer_creates_none`).
//! - The response to a request for all topics reports no missing topics, as one by name does, and the request creates
//!   none. Only the periodic refresh and subscriptions to patterns send it
//!   (`used_topic_missing_from_all_topics_counts_as_deleted`).

use std::sync::Arc;

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::metadata::{
        MetadataRequest, MetadataResponse, request::Topic as RequestTopic, response::Topic,
    },
    primitive::Reader,
    vocabulary::TopicPartition,
};

use super::{ClusterCore, controllers, requests::Waiting};
use crate::{
    connection::Response,
    contract::{
        broker::BrokerKey,
        metadata::{Applied, HintVerdict, LeaderHint},
        part::{Interest, MetadataChanges, RequestOwner},
        route::{EncodeBody, Route, RoutedRequest},
    },
    error::{Error, ErrorKind},
    event::{ClusterChange, Event},
    machine::Instant,
};

impl ClusterCore {
    /// Requests metadata immediately, or as soon as the request in flight has its response.
    pub(super) fn refresh_now(&mut self, now: Instant) {
        // A request that waits for a connection gets the topics in use when it is sent.
        let waits = self.requests.waiting().any(|waiting| waiting.owner == RequestOwner::Metadata);
        if waits && self.needs_all_topics() {
            self.refresh.cover_all_topics();
        } else if !waits && self.refresh.now() {
            self.request_metadata(now, false);
        }
    }

    /// Requests metadata after a backoff, because the cluster may need time to recover.
    pub(super) fn refresh_soon(&mut self, now: Instant) {
        self.refresh.soon(now);
    }

    pub(super) fn request_metadata(&mut self, now: Instant, is_periodic: bool) {
        let covers_all_topics = is_periodic && self.settings.refresh_all_topics || self.needs_all_topics();
        self.refresh.sent(now, covers_all_topics);
        if is_periodic {
            self.parts_mut().for_each(|part| part.handle_periodic_refresh(now));
        }
        let request = self.metadata_request();
        self.route(now, Route::Any, request, RequestOwner::Metadata);
    }

    /// Replaces the topics of a metadata request that waited for a connection with those in use now.
    pub(super) fn with_current_topics(&self, waiting: Waiting) -> Waiting {
        if waiting.owner == RequestOwner::Metadata {
            Waiting { request: self.metadata_request(), ..waiting }
        } else {
            waiting
        }
    }

    /// Returns the metadata request that the parts need now.
    fn metadata_request(&self) -> RoutedRequest {
        if self.settings.of_controllers {
            return self.request_for_controllers();
        }
        let Interest { used: mut names, mut asked } = self.interest();
        // A query of a topic must not create it.
        let is_only_asked =
            |name: &Arc<str>| !names.contains(name) && !self.metadata.topics.contains_key(name);
        let auto_create = self.settings.auto_create_topics && !asked.iter().any(is_only_asked);
        names.append(&mut asked);
        let of_all_topics = self.refresh.covers_all_topics();
        let encode: EncodeBody = Box::new(move |version, out| {
            // Before version 1 an empty list meant all topics.
            let topics = names
                .iter()
                .filter(|_| !of_all_topics)
                .map(|name| RequestTopic { name: Some(name.to_string()), ..RequestTopic::default() });
            let request = MetadataRequest {
                topics: Some(topics.collect()).filter(|_| !of_all_topics || version == 0),
                allow_auto_topic_creation: auto_create || version < 4,
                ..MetadataRequest::default()
            };
            request.encode(version, out)
        });
        RoutedRequest {
            api: ApiKey::Metadata,
            versions: ApiKey::Metadata.versions(),
            timeout: self.settings.request_timeout,
            encode,
        }
    }

    pub(super) fn handle_metadata(&mut self, now: Instant, from: BrokerKey, result: Result<Response, Error>) {
        self.metadata_at = Some(now);
        let response = result.and_then(|response| {
            if self.settings.of_controllers {
                return controllers::controllers(&response);
            }
            MetadataResponse::decode(&mut Reader::new(response.body()), response.request.version)
                .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()).with_api("Metadata"))
        });
        let mut response = match response {
            Ok(response) => response,
            Err(error) => {
                // The application closed the client, so the lost request is not news to it.
                if error.kind() != ErrorKind::Closed {
                    self.handle_wrong_endpoint(now, &error);
                    self.events.push(Event::Error(error));
                }
                return self.refresh.failed(now);
            }
        };
        if response.error_code != ErrorCode::NONE {
            let error = Error::broker(response.error_code, None).with_api("Metadata");
            if response.error_code == ErrorCode::REBOOTSTRAP_REQUIRED
                && self.settings.rebootstrap_after.is_some()
            {
                self.rebootstrap(error);
            } else {
                self.events.push(Event::Error(error));
            }
            return self.refresh.failed(now);
        }
        self.refresh.handle_response();
        self.brokers.trust_all();
        self.report_all_topics(now, &response);
        self.pass_over_topics(&mut response);
        self.report_cluster_change(from, response.cluster_id.as_deref());
        let Applied { errors, recreated, outdated, contradiction } = self.metadata.apply(&response);
        self.events.set_controller_id(self.metadata.controller_id);
        self.events.set_cluster_id(self.metadata.cluster_id.as_deref());
        self.report_contradiction(from, contradiction);
        if self.settings.checks_cluster {
            self.brokers.set_cluster(response.cluster_id.as_deref());
        }
        self.brokers.adopt_nodes(from, &self.metadata);
        let changes = MetadataChanges { errors, recreated };
        let mut incomplete = outdated;
        let (metadata, parts) = self.metadata_and_parts();
        for part in parts {
            incomplete |= part.handle_metadata(now, metadata, &changes);
        }
        // After the parts: an application that got the event finds the old topic's offsets refused already.
        for topic in &changes.recreated {
            self.events.push(Event::TopicRecreated(topic.clone()));
        }
        self.send_waiting();
        incomplete |= self.requests.waiting().any(|waiting| self.is_unknown(&waiting.route));
        if self.refresh.settle(now, incomplete) {
            self.request_metadata(now, false);
        }
    }

    /// Reports the names of all topics to the parts that need them, before unused topics are removed from the response.
    fn report_all_topics(&mut self, now: Instant, response: &MetadataResponse) {
        if !self.refresh.covers_all_topics() || !self.needs_all_topics() {
            return;
        }
        let names = self.settings.matchable(response);
        self.parts_mut().for_each(|part| part.handle_all_topics(now, &names));
    }

    /// Removes unused and hidden topics from a response. A topic in use that is missing from a list of all topics does
    /// not exist.
    fn pass_over_topics(&mut self, response: &mut MetadataResponse) {
        let hidden = &self.settings.hidden_topics;
        if !hidden.is_empty() {
            response.topics.retain(|topic| topic.name.as_deref().is_none_or(|name| !hidden.matches(name)));
        }
        if !self.refresh.covers_all_topics() {
            return;
        }
        let mut missing = self.interest().used;
        missing.extend(self.metadata.topics.keys().cloned());
        response.topics.retain(|topic| topic.name.as_deref().is_some_and(|name| missing.remove(name)));
        for name in missing.into_iter().filter(|name| !self.settings.hidden_topics.matches(name)) {
            response.topics.push(Topic {
                name: Some(name.to_string()),
                error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ..Topic::default()
            });
        }
    }

    /// Returns the topics that the parts need.
    fn interest(&self) -> Interest {
        let mut topics = Interest::default();
        self.parts().for_each(|part| part.add_topics(&mut topics));
        topics
    }

    fn needs_all_topics(&self) -> bool {
        self.parts().any(|part| part.needs_all_topics())
    }

    /// Handles the leader of a partition that a broker named (KIP-951).
    pub(super) fn handle_hint(&mut self, from: BrokerKey, hint: LeaderHint) {
        match (self.metadata.apply_hint(&hint), hint.refused_address) {
            (HintVerdict::Taken, _) => {
                let (metadata, parts) = self.metadata_and_parts();
                for part in parts {
                    part.handle_new_leader(&hint.partition, metadata);
                }
            }
            (HintVerdict::Unreachable, Some(address)) => {
                let detail = format!(
                    "it names node {} as the new leader, at `{address}`, which is not an address; asking for metadata \
                     instead",
                    hint.leader
                );
                let TopicPartition { topic, partition } = &hint.partition;
                let mut error =
                    Error::new(ErrorKind::BadResponse, detail).with_partition(&**topic, *partition);
                if let Some(peer) = self.brokers.address(from) {
                    error = error.with_peer(peer);
                }
                self.events.push(Event::Error(error));
            }
            _ => {}
        }
    }

    /// Reports a contradiction in the metadata, once while it lasts.
    fn report_contradiction(&mut self, from: BrokerKey, contradiction: Option<String>) {
        if contradiction != self.contradiction
            && let Some(detail) = &contradiction
        {
            let mut error = Error::new(ErrorKind::BadResponse, detail).with_api("Metadata");
            if let Some(peer) = self.brokers.address(from) {
                error = error.with_peer(peer);
            }
            self.events.push(Event::Error(error));
        }
        self.contradiction = contradiction;
    }

    /// Reports that a broker belongs to another cluster than the brokers before it, once per change.
    fn report_cluster_change(&self, from: BrokerKey, reported: Option<&str>) {
        if let (Some(known), Some(reported)) = (self.metadata.cluster_id.as_deref(), reported)
            && known != reported
        {
            self.events.push(Event::ClusterChanged(ClusterChange {
                broker: self.brokers.address(from).unwrap_or_default(),
                known: known.to_owned(),
                reported: reported.to_owned(),
            }));
        }
    }

    /// Returns when to give up on the known nodes (KIP-899).
    pub(super) fn rebootstrap_at(&self) -> Option<Instant> {
        let after = self.settings.rebootstrap_after.filter(|_| !self.metadata.nodes.is_empty())?;
        self.refresh.failing_since().map(|since| since + after)
    }

    /// Reports a lost connection. If its broker is not the node that the client expects (KIP-1242), starts again from the bootstrap
    /// servers and returns true, unless the client has done so already, or may not.
    pub(super) fn handle_misrouted(&mut self, now: Instant, from: BrokerKey, error: &Error) -> bool {
        let is_required = error.kind() == ErrorKind::Broker(ErrorCode::REBOOTSTRAP_REQUIRED);
        let acts = is_required && self.settings.rebootstrap_after.is_some() && self.brokers.is_trusted(from);
        if acts {
            self.coordinators.forget_all();
            self.rebootstrap(error.clone());
            self.refresh_soon(now);
        } else {
            let reported = self.failures.admit(now, error.clone());
            reported.into_iter().for_each(|error| self.events.push(Event::Error(error)));
        }
        acts
    }

    /// Removes the known nodes and restarts from the bootstrap servers.
    pub(super) fn rebootstrap(&mut self, why: Error) {
        self.events.push(Event::Error(why));
        self.metadata.forget_nodes();
        self.events.set_controller_id(self.metadata.controller_id);
        self.brokers.start_again();
        // The response to the request in flight will be ignored.
        self.requests.forget_metadata();
        self.refresh.restart();
    }
}
