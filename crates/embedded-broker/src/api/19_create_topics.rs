//! CreateTopics (19), versions 2 to 7, served by every broker (KRaft brokers forward it to the controller). The
//! response contains the topic's configuration from version 5 on and its ID from version 7 on.

use ottla_protocol::{
    error_code::ErrorCode,
    generated::create_topics::{CreateTopicsRequest, CreateTopicsResponse, request, response},
};
use ottla_sorted::SortedMap;

use super::configs::topic_configs;
use crate::{cluster::Cluster, connection::Request, options::BrokerId, provisioning::Refusal};

impl Cluster {
    pub(crate) fn create_topics(
        &mut self,
        request: &mut Request,
        body: CreateTopicsRequest,
    ) -> CreateTopicsResponse {
        let mut response =
            CreateTopicsResponse { throttle_time_ms: request.throttle_ms(), ..Default::default() };
        let mut count: SortedMap<String, u32> = SortedMap::new();
        for topic in &body.topics {
            *count.entry(topic.name.clone()).or_default() += 1;
        }
        for topic in body.topics {
            if count.get(&topic.name).is_none_or(|n| *n > 1) {
                if count.remove(&topic.name).is_some() {
                    let message = Some("Duplicate topic name.".to_owned());
                    let error_code = ErrorCode::INVALID_REQUEST;
                    response.topics.push(response::Topic {
                        name: topic.name,
                        error_code,
                        error_message: message,
                        ..Default::default()
                    });
                }
                continue;
            }
            let created = self.create_requested(request, &topic, body.validate_only);
            response.topics.push(created.unwrap_or_else(|(error_code, message)| response::Topic {
                name: topic.name,
                error_code,
                error_message: Some(message),
                ..Default::default()
            }));
        }
        response.throttle_time_ms = request.throttle_ms();
        response
    }

    fn create_requested(
        &mut self,
        request: &mut Request,
        topic: &request::Topic,
        validate_only: bool,
    ) -> Result<response::Topic, Refusal> {
        if let Some(error) = self.injected_error(request, &topic.name, -1) {
            return Err((error, "A fault was injected.".to_owned()));
        }
        if let Some(error) = self.topic_refusal(request, &topic.name) {
            return Err((error, "Authorization failed.".to_owned()));
        }
        let mut configs = SortedMap::new();
        for config in &topic.configs {
            let Some(value) = &config.value else {
                let message = format!("Null value not supported for topic configs: {}", config.name);
                return Err((ErrorCode::INVALID_CONFIG, message));
            };
            configs.insert(config.name.clone(), value.clone());
        }
        self.charge_creation(request, topic)?;
        let mut response = response::Topic { name: topic.name.clone(), ..Default::default() };
        let index = if topic.assignments.is_empty() {
            let replicas = self.options.replication_factor;
            response.num_partitions =
                if topic.num_partitions == -1 { self.options.partitions } else { topic.num_partitions };
            response.replication_factor =
                if topic.replication_factor == -1 { replicas } else { topic.replication_factor };
            let configs = configs.clone();
            self.create_topic(
                &topic.name,
                topic.num_partitions,
                topic.replication_factor,
                configs,
                validate_only,
            )?
        } else {
            if topic.num_partitions != -1 || topic.replication_factor != -1 {
                let message =
                    "Number of partitions and replication factor must be -1 where replicas are assigned.";
                return Err((ErrorCode::INVALID_REQUEST, message.to_owned()));
            }
            let assignment = assignment(&topic.assignments)?;
            response.num_partitions = i32::try_from(assignment.len()).unwrap_or(i32::MAX);
            response.replication_factor = i16::try_from(assignment[0].len()).unwrap_or(i16::MAX);
            self.create_topic_assigned(&topic.name, assignment, configs.clone(), validate_only)?
        };
        if let Some(created) = self.topics.get(index) {
            response.topic_id = created.id;
            response.replication_factor =
                i16::try_from(created.partitions[0].replicas.len()).unwrap_or(i16::MAX);
        }
        if request.version < 7 {
            response.topic_id = ottla_protocol::uuid::Uuid::ZERO;
        }
        if request.version < 5 {
            (response.num_partitions, response.replication_factor) = (-1, -1);
            response.configs = Some(Vec::new());
            return Ok(response);
        }
        let configs = topic_configs(&self.options, &configs).into_iter().map(|config| response::Config {
            name: config.name.to_owned(),
            value: Some(config.value),
            config_source: config.source as i8,
            ..Default::default()
        });
        response.configs = Some(configs.collect());
        Ok(response)
    }

    /// Takes tokens for a topic's partitions. Error: the client has changed too much, and must wait.
    fn charge_creation(&mut self, request: &mut Request, topic: &request::Topic) -> Result<(), Refusal> {
        if self.topics.by_name(&topic.name).is_some() {
            return Ok(());
        }
        let partitions = match (topic.assignments.len(), topic.num_partitions) {
            (0, -1) => usize::try_from(self.options.partitions).unwrap_or(0),
            (0, count) => usize::try_from(count).unwrap_or(0),
            (assigned, _) => assigned,
        };
        let is_strict = request.version >= 6;
        self.charge_mutation(request, partitions, is_strict)
    }
}

/// Returns the replicas by partition. The partitions must be numbered from 0 without a gap.
fn assignment(assignments: &[request::Assignment]) -> Result<Vec<Vec<BrokerId>>, Refusal> {
    let mut by_index = SortedMap::new();
    for assignment in assignments {
        let replicas = assignment.broker_ids.iter().map(|id| BrokerId(*id)).collect();
        if by_index.insert(assignment.partition_index, replicas).is_some() {
            let message = format!(
                "Found multiple manual partition assignments for partition {}",
                assignment.partition_index
            );
            return Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
        }
    }
    if !by_index.keys().zip(0..).all(|(index, expected)| *index == expected) {
        let message = "partitions should be a consecutive 0-based integer sequence".to_owned();
        return Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
    }
    let assignment: Vec<Vec<BrokerId>> = by_index.into_values().collect();
    if let Some(index) = assignment.iter().position(|replicas| replicas.len() != assignment[0].len()) {
        let message = format!(
            "The manual partition assignment includes partition {index} with {} replica(s), but this is not consistent \
             with previous partitions, which have {} replica(s).",
            assignment[index].len(),
            assignment[0].len()
        );
        return Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
    }
    Ok(assignment)
}
