//! DescribeQuorum (55), versions 0 to 2, UpdateFeatures (57), versions 0 to 2, UnregisterBroker (64), version 0, and
//! UnregisterController (94), version 0.
//!
//! The controller is the only voter of the quorum, and the other brokers observe. The cluster has the one feature
//! `transaction.version`.
//!
//! # Pitfalls
//!
//! - From version 2 on, UpdateFeatures has no result for each feature: all updates succeed or none
//!   (`feature_updates_succeed_together_or_not_at_all`).

use ottla_protocol::{
    error_code::ErrorCode,
    generated::{
        describe_quorum::{
            DescribeQuorumRequest, DescribeQuorumResponse,
            response::{CurrentVoter, Listener, Node, Observer, Partition, Topic},
        },
        unregister_broker::{UnregisterBrokerRequest, UnregisterBrokerResponse},
        unregister_controller::{UnregisterControllerRequest, UnregisterControllerResponse},
        update_features::{
            UpdateFeaturesRequest, UpdateFeaturesResponse, request, response::UpdateFeaturesResult,
        },
    },
    uuid::Uuid,
};

use super::api_versions::TRANSACTION_VERSION;
use crate::{
    acls::AclOperation,
    cluster::Cluster,
    connection::Request,
    control::Control,
    options::BrokerId,
    provisioning::{Refusal, code_and_message},
};

const METADATA_TOPIC: &str = "__cluster_metadata";
/// The highest level of `transaction.version`.
const MAX_TRANSACTION_VERSION: i16 = 2;

/// Returns the ID of a node's directory with the metadata log.
fn directory(node: BrokerId) -> Uuid {
    let mut bytes = [0x11; 16];
    bytes[12..].copy_from_slice(&node.0.to_be_bytes());
    Uuid(bytes)
}

impl Cluster {
    pub(crate) fn describe_quorum(
        &mut self,
        request: &mut Request,
        body: DescribeQuorumRequest,
    ) -> DescribeQuorumResponse {
        let mut response = DescribeQuorumResponse::default();
        if let Err(error) = self.check_cluster_request(request, AclOperation::Describe) {
            response.error_code = error;
            return response;
        }
        for topic in body.topics {
            let partitions = topic.partitions.iter().map(|one| {
                match topic.topic_name == METADATA_TOPIC && one.partition_index == 0 {
                    true => self.quorum(request.version),
                    false => Partition {
                        partition_index: one.partition_index,
                        error_code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                        ..Partition::default()
                    },
                }
            });
            let partitions = partitions.collect();
            response.topics.push(Topic { topic_name: topic.topic_name, partitions });
        }
        if request.version >= 2
            && let Some(broker) = self.brokers.get(&self.controller)
        {
            let listener =
                Listener { name: "CONTROLLER".to_owned(), host: broker.host.clone(), port: broker.port };
            response.nodes = vec![Node { node_id: self.controller.0, listeners: vec![listener] }];
        }
        response
    }

    fn quorum(&self, version: i16) -> Partition {
        let end = i64::try_from(self.topics.version()).unwrap_or(i64::MAX) + self.features_epoch;
        let now = if version >= 1 { self.unix_ms() } else { -1 };
        let directory = |node| if version >= 2 { directory(node) } else { Uuid::ZERO };
        let voter = CurrentVoter {
            replica_id: self.controller.0,
            replica_directory_id: directory(self.controller),
            log_end_offset: end,
            last_fetch_timestamp: now,
            last_caught_up_timestamp: now,
        };
        let observers = self.alive_brokers().into_iter().filter(|node| *node != self.controller);
        let observers = observers.map(|node| Observer {
            replica_id: node.0,
            replica_directory_id: directory(node),
            log_end_offset: end,
            last_fetch_timestamp: now,
            last_caught_up_timestamp: now,
        });
        Partition {
            leader_id: self.controller.0,
            leader_epoch: 1,
            high_watermark: end,
            current_voters: vec![voter],
            observers: observers.collect(),
            ..Partition::default()
        }
    }

    pub(crate) fn update_features(
        &mut self,
        request: &mut Request,
        body: UpdateFeaturesRequest,
    ) -> UpdateFeaturesResponse {
        let mut response =
            UpdateFeaturesResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        if let Err(error) = self.check_cluster_request(request, AclOperation::Alter) {
            (response.error_code, response.error_message) = (error, Some(error.description().to_owned()));
            return response;
        }
        let checked: Vec<_> = body.feature_updates.iter().map(|update| self.check_update(update)).collect();
        let failed = checked.iter().find_map(|result| result.clone().err());
        if let (None, false) = (&failed, body.validate_only) {
            for update in &body.feature_updates {
                Control::new(self).set_transaction_version(update.max_version_level);
            }
        }
        if request.version >= 2 {
            (response.error_code, response.error_message) = code_and_message(failed.map_or(Ok(()), Err));
            return response;
        }
        let results = body.feature_updates.into_iter().zip(checked).map(|(update, result)| {
            let (error_code, error_message) = code_and_message(result);
            UpdateFeaturesResult { feature: update.feature, error_code, error_message }
        });
        response.results = results.collect();
        response
    }

    fn check_update(&self, update: &request::FeatureUpdate) -> Result<(), Refusal> {
        let request::FeatureUpdate { feature, max_version_level: level, .. } = update;
        let refuse = |reason: String| Err((ErrorCode::INVALID_UPDATE_VERSION, reason));
        if feature != TRANSACTION_VERSION {
            return refuse(format!(
                "Invalid update version {level} for feature {feature}. Local controller {} does not support this feature.",
                self.controller.0
            ));
        }
        if !(0..=MAX_TRANSACTION_VERSION).contains(level) {
            return refuse(format!(
                "Invalid update version {level} for feature {feature}. Local controller {} only supports versions \
                 0-{MAX_TRANSACTION_VERSION}",
                self.controller.0
            ));
        }
        let may_lower = update.allow_downgrade || update.upgrade_type > 1;
        if *level < self.options.transaction_version && !may_lower {
            return refuse(format!(
                "Invalid update version {level} for feature {feature}. Can't downgrade the version of this feature \
                 without setting the upgrade type to either safe or unsafe downgrade."
            ));
        }
        Ok(())
    }

    pub(crate) fn unregister_broker(
        &mut self,
        request: &mut Request,
        body: UnregisterBrokerRequest,
    ) -> UnregisterBrokerResponse {
        let broker = BrokerId(body.broker_id);
        let permitted = self.check_cluster_request(request, AclOperation::Alter);
        let done = permitted.map_err(|error| (error, error.description().to_owned())).and_then(|()| {
            match self.brokers.get(&broker) {
                None => Err((
                    ErrorCode::BROKER_ID_NOT_REGISTERED,
                    format!("Broker ID {} is not currently registered", body.broker_id),
                )),
                // Kafka would drop its registration while it runs; here that would end its connections.
                Some(state) if state.alive => Err((
                    ErrorCode::INVALID_REQUEST,
                    format!("Broker ID {} is up; shut it down first", body.broker_id),
                )),
                Some(_) => Ok(()),
            }
        });
        if done.is_ok() {
            Control::new(self).remove_broker(broker);
        }
        let (error_code, error_message) = code_and_message(done);
        UnregisterBrokerResponse { throttle_time_ms: request.throttle_ms(), error_code, error_message }
    }

    /// The only controller is a voter, which can't be unregistered; no other one is registered.
    pub(crate) fn unregister_controller(
        &mut self,
        request: &mut Request,
        body: UnregisterControllerRequest,
    ) -> UnregisterControllerResponse {
        let permitted = self.check_cluster_request(request, AclOperation::Alter);
        let done = permitted.map_err(|error| (error, error.description().to_owned())).and_then(|()| {
            if body.controller_id == self.controller.0 {
                return Err((
                    ErrorCode::INVALID_REQUEST,
                    format!(
                        "Controller ID {} is a voter; remove it from the voters first",
                        body.controller_id
                    ),
                ));
            }
            Err((
                ErrorCode::CONTROLLER_ID_NOT_REGISTERED,
                format!("Controller ID {} is not currently registered", body.controller_id),
            ))
        });
        let (error_code, error_message) = code_and_message(done);
        UnregisterControllerResponse { throttle_time_ms: request.throttle_ms(), error_code, error_message }
    }
}
