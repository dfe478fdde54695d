//! The cluster behind the first connection: its metadata, and a connection to each broker.

use ottla_protocol::{
    api::ApiKey,
    error_code::ErrorCode,
    generated::metadata::{MetadataRequest, MetadataResponse, request, response},
    uuid::Uuid,
};
use serde_json::json;

use super::{
    access::Wanted,
    connection::{Broken, Connection},
    diagnosis::{Check, Finding, Problem, Sink, Step, Stepped, Verdict, step},
    listener,
    steps::{Doctor, shown},
};

/// After this many unreachable brokers, the others are not tried.
const MAX_UNREACHABLE: usize = 5;
/// The first version of Metadata that does not create topics, if the client says so.
const FIRST_WITHOUT_CREATION: i16 = 4;

impl Doctor {
    /// Examines the cluster behind a connection to this server.
    pub fn examine_cluster(
        &self,
        mut connection: Connection,
        server: (&str, u16),
        wanted: &Wanted,
        sink: &mut dyn Sink,
    ) {
        let metadata =
            step(sink, "cluster", Step::Metadata, || self.metadata(&mut connection, server, wanted));
        let Some(metadata) = metadata else { return };
        self.examine_brokers(&metadata.brokers, server, sink);
        self.share_time(1);
        for topic in &metadata.topics {
            let name = topic.name.clone().unwrap_or_default();
            step(sink, &format!("topic {name}"), Step::Topic, || self.examine_topic(topic, wanted));
        }
        for group in &wanted.groups {
            step(sink, &format!("group {group}"), Step::Group, || self.examine_group(&mut connection, group));
        }
    }

    fn metadata(
        &self,
        connection: &mut Connection,
        server: (&str, u16),
        wanted: &Wanted,
    ) -> Stepped<MetadataResponse> {
        connection.set_deadline(self.deadline());
        let version = connection.versions.pick_any(ApiKey::Metadata).unwrap_or(0);
        let names = wanted.topics();
        let named =
            names.iter().map(|name| request::Topic { topic_id: Uuid::ZERO, name: Some((*name).to_owned()) });
        // Older brokers would create the topics; they list all of them instead.
        let lists_all = version < FIRST_WITHOUT_CREATION;
        let body = MetadataRequest {
            topics: if lists_all { None } else { Some(named.collect()) },
            allow_auto_topic_creation: lists_all,
            include_topic_authorized_operations: version >= 8,
            ..MetadataRequest::default()
        };
        let answer = connection.call_in(version, &body).map_err(|broken| {
            let has_ended = matches!(broken, Broken::Closed(_));
            let required = if has_ended && self.sasl.is_none() {
                listener::requires_sasl(self, server, connection.address)
            } else {
                None
            };
            required.unwrap_or_else(|| self.explain(broken))
        });
        let mut answer = answer?;
        if answer.error_code.is_error() {
            let code = answer.error_code;
            let text = format!("{}: {}", code.name(), code.description());
            return Err(Finding::failed(Problem::BadResponse, text));
        }
        answer.brokers.sort_by_key(|broker| broker.node_id);
        if lists_all {
            answer.topics.retain(|topic| topic.name.as_deref().is_some_and(|name| names.contains(&name)));
        }
        for name in names {
            if !answer.topics.iter().any(|topic| topic.name.as_deref() == Some(name)) {
                let error_code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                let name = Some(name.to_owned());
                answer.topics.push(response::Topic { error_code, name, ..Default::default() });
            }
        }
        let finding = describe(&answer)?;
        Ok((answer, finding))
    }

    /// Connects to each broker by the address that it advertises.
    fn examine_brokers(&self, brokers: &[response::Broker], server: (&str, u16), sink: &mut dyn Sink) {
        let mut unreachable = 0;
        for (index, broker) in brokers.iter().enumerate() {
            if unreachable == MAX_UNREACHABLE {
                let rest = brokers.len() - index;
                step(sink, "brokers", Step::Broker, || {
                    let text = format!("{rest} further brokers were not tried");
                    Ok(((), Finding::warning(Problem::BrokerUnreachable, text)))
                });
                return;
            }
            let port = u16::try_from(broker.port).unwrap_or(0);
            let address = shown(&broker.host, port);
            let target = format!("broker {}", broker.node_id);
            // The topics and groups are examined afterwards.
            self.share_time(brokers.len() - index + 1);
            let ok = step(sink, &target, Step::Broker, || {
                if (broker.host.as_str(), port) == server {
                    return Ok(((), Finding::passed(format!("{address}, as above"))));
                }
                let mut inner = Collected::default();
                let connected = self.connect(&broker.host, port, &mut inner);
                let finding = inner.finding(&address, is_loopback(&broker.host) && !is_loopback(server.0));
                connected.map(|_| ((), finding.clone())).ok_or(finding)
            });
            unreachable += usize::from(ok.is_none());
        }
    }
}

fn describe(metadata: &MetadataResponse) -> Result<Finding, Finding> {
    let id = metadata.cluster_id.as_deref().unwrap_or("without an ID");
    let count = metadata.brokers.len();
    let brokers: Vec<_> = metadata
        .brokers
        .iter()
        .map(|broker| json!({ "id": broker.node_id, "host": broker.host, "port": broker.port, "rack": broker.rack }))
        .collect();
    if count == 0 {
        let text =
            format!("the cluster {id} reports no broker: it is starting, or has just lost all of them");
        return Err(Finding::failed(Problem::BadResponse, text));
    }
    let plural = if count == 1 { "broker" } else { "brokers" };
    Ok(Finding::passed(format!("cluster {id}, {count} {plural}"))
        .with("cluster_id", metadata.cluster_id.clone())
        .with("brokers", brokers))
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The checks of a broker that metadata names, for one line.
#[derive(Default)]
struct Collected(Vec<Check>);

impl Sink for Collected {
    fn begin(&mut self, _target: &str, _step: Step) {}

    fn end(&mut self, check: Check) {
        self.0.push(check);
    }
}

impl Collected {
    fn finding(self, address: &str, is_only_local: bool) -> Finding {
        let failed = self.0.into_iter().find(|check| matches!(check.finding.verdict, Verdict::Failed(_)));
        let Some(check) = failed else { return Finding::passed(address) };
        let mut finding = check.finding;
        finding.summary = format!("{address}: {}: {}", check.step.name(), finding.summary);
        let is_network = matches!(check.step, Step::Dns | Step::Tcp);
        if is_network {
            finding.verdict = Verdict::Failed(Problem::BrokerUnreachable);
            let advice = "the cluster names this address to its clients: correct `advertised.listeners` of this broker";
            finding.advice.insert(0, advice.to_owned());
        }
        if is_network && is_only_local {
            finding.advice.insert(0, "this is a loopback address, which is another machine's own".to_owned());
        }
        finding
    }
}
