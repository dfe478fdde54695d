//! Checks the traffic: every frame, in both directions, decodes completely by its schema, in a version that the broker
//! advertises; responses come in the order of the requests; limits are kept; records go to their destinations.
//! [`super::busy`] checks the rates.

use std::{collections::VecDeque, time::Duration};

use ottla_core::{machine::Instant, produce::topic_settings::TopicSettings};
use ottla_protocol::{
    api::ApiKey,
    batch::{Batch, Batches, Records},
    compress::Compression,
    error_code::ErrorCode,
    generated::{api_versions, produce},
    header::{RequestHeader, ResponseHeader},
    primitive::Reader,
    uuid::Uuid,
};
use ottla_sorted::{SortedMap, SortedSet};

use super::{
    Broken,
    authentication::Authentication,
    busy::Rates,
    group_messages::GroupResponse,
    membership::Membership,
    messages::{Request, Response},
    misrouting::Misrouting,
    share_sessions::ShareSessions,
    telemetry::TelemetryTraffic,
    transactions::TransactionTraffic,
};
use crate::workload::{parse_destination, parse_value};

/// The limits of a client.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The number of the client's producer, if there is one.
    pub producer: Option<u32>,
    /// `max.in.flight.requests.per.connection`.
    pub max_in_flight: usize,
    /// The maximum size of a request's batches in bytes; the last batch may exceed it.
    pub max_request_bytes: usize,
    /// The maximum size of a batch in bytes, unless a single record is larger.
    pub max_batch_bytes: usize,
    /// The maximum number of records in a batch.
    pub max_batch_records: usize,
    /// The settings of topics, by their numbers.
    pub topics: Vec<TopicSettings>,
}

/// All conversations.
#[derive(Debug, Default)]
pub struct Wire {
    limits: SortedMap<usize, Limits>,
    links: SortedMap<u64, Conversation>,
    rates: Rates,
    misrouting: Misrouting,
    /// The members of groups.
    pub membership: Membership,
    /// The sessions of share consumers.
    shares: ShareSessions,
    /// The transactional producers.
    pub transactions: TransactionTraffic,
    /// Client telemetry.
    pub telemetry: TelemetryTraffic,
    /// Producer IDs and epochs of which a broker has confirmed a batch.
    confirmed: SortedSet<Numbering>,
    /// The number of times that each record was sent, by producer and number.
    sends: SortedMap<(u32, u64), u32>,
    /// Handshakes on connections that had authenticated before.
    reauthentications: u64,
    /// Some responses are corrupted on purpose.
    spoiled: bool,
}

/// The observed traffic of one connection.
#[derive(Debug)]
struct Conversation {
    client: usize,
    to_broker: Vec<u8>,
    to_client: Vec<u8>,
    open: VecDeque<Question>,
    last_correlation_id: Option<i32>,
    reported: Option<SortedMap<i16, (i16, i16)>>,
    /// The client received an invalid response.
    nonsense: bool,
    authentication: Authentication,
    /// Messages without headers may follow.
    sends_tokens: bool,
    /// The number of bytes that the client wrote.
    written: u64,
    /// What the last response brought.
    fetched: Fetched,
    /// The ID of the cluster, if the last response was metadata that name it.
    named_cluster: Option<String>,
    /// The correlation ID of the last response, and its contents if it is about a membership.
    of_group: Option<(i32, Option<Box<GroupResponse>>)>,
    /// The last response, if it is about batches, a transaction or client telemetry, with its correlation ID.
    of_transaction: Option<(i32, Response)>,
    /// The throttle time of the last response.
    throttle: Option<Duration>,
    /// The end of the throttle time, and the number of bytes that may still be written: requests that were already
    /// built.
    throttled_until: Option<(Instant, u64)>,
}

/// What a response brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetched {
    /// It was not a response to Fetch, or it had errors.
    Other,
    /// No records.
    Nothing,
    /// Records.
    Records,
}

#[derive(Clone, Debug)]
struct Question {
    correlation_id: i32,
    api: ApiKey,
    version: i16,
    /// The batches and their sequence numbers by the topic's name and ID and the partition.
    numbered: SortedMap<(String, Uuid, i32), Numbering>,
}

/// The source of a partition's sequence numbers: client, topic index, partition, producer ID and epoch.
type Numbering = (usize, u32, i32, i64, i16);

/// The version of a message without a header.
const TOKEN: i16 = -1;
/// The maximum size of a batch with one record of at most 216 bytes.
const ONE_RECORD: usize = 400;
/// A request's bytes besides batches.
const AROUND_BATCHES: usize = 4_000;

impl Wire {
    /// Sets the limits of a client.
    pub fn allow(&mut self, client: usize, limits: Limits) {
        self.limits.insert(client, limits);
    }

    /// Accepts corrupted responses from now on.
    pub const fn expect_spoiled_responses(&mut self) {
        self.spoiled = true;
    }

    /// Accepts early responses to Fetch without records from now on.
    pub const fn expect_hasty_brokers(&mut self) {
        self.rates.expect_hasty_brokers();
    }

    /// A new connection.
    pub fn open(&mut self, now: Instant, link: u64, client: usize) -> Result<(), Broken> {
        self.links.insert(
            link,
            Conversation {
                client,
                to_broker: Vec::new(),
                to_client: Vec::new(),
                open: VecDeque::new(),
                last_correlation_id: None,
                reported: None,
                nonsense: false,
                authentication: Authentication::default(),
                sends_tokens: false,
                written: 0,
                fetched: Fetched::Other,
                named_cluster: None,
                of_group: None,
                of_transaction: None,
                throttle: None,
                throttled_until: None,
            },
        );
        self.membership.open(now, client, link);
        self.rates.connected(now, client)
    }

    /// The broker of a cluster has accepted a connection.
    pub fn accepted(&mut self, link: u64, cluster: &str) {
        self.misrouting.accepted(link, cluster);
    }

    /// Takes the number of times that each record was sent, by producer and number.
    pub fn take_sends(&mut self) -> SortedMap<(u32, u64), u32> {
        std::mem::take(&mut self.sends)
    }

    /// Returns how often a connection began to authenticate again.
    pub const fn reauthentications(&self) -> u64 {
        self.reauthentications
    }

    /// Returns true if the client has a connection on which the broker reported its versions.
    pub fn is_connected(&self, client: usize) -> bool {
        self.links.values().any(|talk| talk.client == client && talk.reported.is_some())
    }

    /// Removes a closed connection.
    pub fn close(&mut self, link: u64) {
        if let Some(talk) = self.links.remove(&link) {
            self.transactions.closed(talk.client, link);
        }
        self.membership.close(link);
        self.shares.close(link);
        self.misrouting.close(link);
    }

    /// Checks bytes that the client wrote; `tell` gets a line per request.
    pub fn wrote(
        &mut self,
        now: Instant,
        link: u64,
        bytes: &[u8],
        mut report: impl FnMut(&str),
    ) -> Result<(), Broken> {
        let Some(talk) = self.links.get_mut(&link) else { return Ok(()) };
        let client = talk.client;
        let broken = |what: String| Err(Broken::new("wire", format!("client {client}, link {link}: {what}")));
        if talk.nonsense {
            return broken("sends a request after an invalid response".into());
        }
        if let Some((until, most)) = talk.throttled_until
            && now < until
            && talk.written + bytes.len() as u64 > most
        {
            return broken("sends a request during a throttle time".into());
        }
        talk.written += bytes.len() as u64;
        talk.to_broker.extend_from_slice(bytes);
        while let Some(frame) = next_frame(&mut talk.to_broker) {
            if talk.takes_token(&frame) {
                continue;
            }
            let (question, request) = match talk.ask(&frame) {
                Ok(asked) => asked,
                Err(what) => return broken(what),
            };
            let Question { correlation_id, api, version, .. } = question;
            let name = question.name();
            report(&format!("{client} sends on link {link}: {name}{}", request.details()));
            if let Err(what) = talk.authentication.check(api, talk.open_authentications(), &frame) {
                return broken(what);
            }
            if api == ApiKey::SaslHandshake {
                self.reauthentications += u64::from(talk.authentication.is_again());
                talk.sends_tokens = version == 0;
            }
            let numbered = match &request {
                Request::Produce(request) => match number(client, request, &self.confirmed) {
                    Ok(numbered) => numbered,
                    Err(what) => return broken(format!("{name}: {what}")),
                },
                _ => SortedMap::new(),
            };
            talk.open.push_back(Question { correlation_id, api, version, numbered });
            let in_flight = talk.open.iter().filter(|question| question.api == api).count();
            let limits = self.limits.get(&client);
            match &request {
                Request::Produce(request) => {
                    let key = (link, correlation_id);
                    self.transactions.produced(client, key, version, request)?;
                    if let Some(limits) = limits {
                        if let Err(what) = limits.check(request, frame.len(), in_flight, &mut self.sends) {
                            return broken(format!("{name}: {what}"));
                        }
                        self.rates.produced(now, client, request)?;
                    }
                    if request.acks == 0 {
                        talk.open.pop_back();
                    }
                }
                Request::ApiVersions(request) => {
                    self.misrouting.asked_versions(client, link, version, request);
                }
                Request::Fetch(_) if in_flight > 1 => {
                    return broken(format!("{name}: {in_flight} fetches at once"));
                }
                Request::Transaction(request) => {
                    self.transactions.sent(client, (link, correlation_id), api, request)?;
                }
                Request::Telemetry(request) => self.telemetry.sent(now, client, request)?,
                Request::Share(request) => {
                    self.shares.sent(now, client, link, request, talk.open.iter().map(|it| it.api))?;
                }
                Request::Group(request) => {
                    self.membership.sent(now, client, (link, correlation_id), request)?;
                }
                _ => {}
            }
            if let Err(what) = self.misrouting.asked(now, client, link, api) {
                return broken(what);
            }
            self.rates.asked(now, client, api)?;
            self.membership.asked(now, client, api)?;
            self.transactions.asked(client, api)?;
        }
        Ok(())
    }

    /// Checks bytes for the client, which has built requests with `unsent` bytes.
    pub fn reads(
        &mut self,
        now: Instant,
        link: u64,
        bytes: &[u8],
        unsent: usize,
        mut report: impl FnMut(&str),
    ) -> Result<(), Broken> {
        let Some(talk) = self.links.get_mut(&link) else { return Ok(()) };
        let client = talk.client;
        talk.to_client.extend_from_slice(bytes);
        while let Some(frame) = next_frame(&mut talk.to_client) {
            if talk.nonsense {
                return Ok(());
            }
            let confirmed = &mut self.confirmed;
            let mut refusals = Vec::new();
            let refused = |topic: &str, id, partition| refusals.push((topic.to_owned(), id, partition));
            let response = talk.respond(&frame, confirmed, refused, |line| {
                report(&format!("{client} receives on link {link}: {line}"));
            });
            if let Some(cluster) = talk.named_cluster.take() {
                self.misrouting.received(now, client, link, cluster);
            }
            if !refusals.is_empty() {
                self.rates.fetched_news(now, client, link);
            }
            match talk.of_group.take() {
                Some((key, Some(response))) => {
                    self.membership.received(now, client, (link, key), &response);
                }
                Some((key, None)) => self.membership.finished(client, (link, key)),
                None => {}
            }
            match talk.of_transaction.take() {
                Some((key, Response::Produce(response))) => {
                    self.transactions.acknowledged(client, (link, key), &response);
                }
                Some((_, Response::Telemetry(response))) => self.telemetry.received(client, &response)?,
                Some((key, Response::Transaction(response))) => {
                    self.transactions.received(now, client, (link, key), &response)?;
                }
                _ => {}
            }
            for (topic, id, partition) in refusals {
                self.rates.refused(now, client, link, (topic, id, partition))?;
            }
            match talk.fetched {
                Fetched::Other => {}
                Fetched::Nothing => self.rates.fetched_nothing(now, client, link)?,
                Fetched::Records => self.rates.fetched_news(now, client, link),
            }
            if let Some(time) = talk.throttle.take() {
                report(&format!("{client} is throttled on link {link} for {time:?}"));
                let until = talk.throttled_until.map_or(now, |(until, _)| until).max(now + time);
                talk.throttled_until = Some((until, talk.written + unsent as u64));
            }
            if let Err(what) = response {
                if !self.spoiled {
                    return Err(Broken::new(
                        "wire",
                        format!("client {client}, link {link}: the response {what}"),
                    ));
                }
                talk.nonsense = true;
            }
        }
        Ok(())
    }
}

impl Question {
    /// Returns the API, version and correlation ID.
    fn name(&self) -> String {
        format!("{} v{} #{}", self.api.name(), self.version, self.correlation_id)
    }
}

impl Conversation {
    /// Returns the number of requests of the authentication without a response.
    fn open_authentications(&self) -> usize {
        let is_sasl = |api| matches!(api, ApiKey::SaslHandshake | ApiKey::SaslAuthenticate);
        self.open.iter().filter(|question| is_sasl(question.api)).count()
    }

    /// Takes a message of SASL without a header, after a handshake of version 0. Returns false for a request: a message does
    /// not begin with a known API.
    fn takes_token(&mut self, frame: &[u8]) -> bool {
        let api = frame.first_chunk::<2>().and_then(|key| ApiKey::from_i16(i16::from_be_bytes(*key)));
        if !self.sends_tokens || api.is_some() {
            self.sends_tokens = false;
            return false;
        }
        let correlation_id = self.last_correlation_id.unwrap_or_default().wrapping_add(1);
        self.last_correlation_id = Some(correlation_id);
        let numbered = SortedMap::new();
        let question = Question { correlation_id, api: ApiKey::SaslAuthenticate, version: TOKEN, numbered };
        self.open.push_back(question);
        true
    }

    /// Decodes a request, and checks its correlation ID and version.
    fn ask(&mut self, frame: &[u8]) -> Result<(Question, Request), String> {
        let reader = &mut Reader::new(frame);
        let header = RequestHeader::decode(reader).map_err(|error| format!("a request's header: {error}"))?;
        let Some(api) = ApiKey::from_i16(header.api_key) else {
            return Err(format!("API {} is unknown", header.api_key));
        };
        let (version, correlation_id) = (header.api_version, header.correlation_id);
        let question = Question { correlation_id, api, version, numbered: SortedMap::new() };
        let name = question.name();
        if self.last_correlation_id.is_some_and(|last| correlation_id != last.wrapping_add(1)) {
            return Err(format!("{name} follows #{:?}", self.last_correlation_id));
        }
        self.last_correlation_id = Some(correlation_id);
        match &self.reported {
            Some(reported)
                if !reported
                    .get(&(api as i16))
                    .is_some_and(|(min, max)| (*min..=*max).contains(&version)) =>
            {
                return Err(format!("{name}: the broker supports {:?}", reported.get(&(api as i16))));
            }
            // Without advertised versions the client assumes an old release.
            None if api != ApiKey::ApiVersions && version > 3 => {
                return Err(format!("{name} before the broker reported its versions"));
            }
            _ => {}
        }
        match Request::decode(api, version, reader) {
            Ok(request) if reader.remaining() == 0 => Ok((question, request)),
            Ok(_) => Err(format!("{name}: {} bytes are left over", reader.remaining())),
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    fn respond(
        &mut self,
        frame: &[u8],
        confirmed: &mut SortedSet<Numbering>,
        mut refused: impl FnMut(&str, Uuid, i32),
        mut report: impl FnMut(&str),
    ) -> Result<(), String> {
        self.fetched = Fetched::Other;
        let Some(question) = self.open.pop_front() else { return Err("matches no request".into()) };
        let Question { correlation_id, api, version, numbered } = question;
        if version == TOKEN {
            return Ok(());
        }
        let name = format!("to {} v{version} #{correlation_id}", api.name());
        let mut reader = Reader::new(frame);
        // A broker that does not know the version of ApiVersions responds in version 0.
        let unsupported = api == ApiKey::ApiVersions && frame.get(4..6) == Some(&[0, 35]);
        let version = if unsupported { 0 } else { version };
        let header =
            ResponseHeader::decode(&mut reader, api, version).map_err(|error| format!("{name}: {error}"))?;
        if header.correlation_id != correlation_id {
            return Err(format!("{name} has #{}", header.correlation_id));
        }
        let body = &frame[reader.position()..];
        let response =
            Response::decode(api, version, &mut reader).map_err(|error| format!("{name}: {error}"))?;
        if reader.remaining() > 0 {
            return Err(format!("{name} has {} bytes left over", reader.remaining()));
        }
        let throttle_ms = response.throttle_ms(api, version, body);
        self.throttle = (throttle_ms > 0).then(|| Duration::from_millis(throttle_ms.unsigned_abs().into()));
        self.of_group = Some((correlation_id, None));
        if let Response::Metadata(response) = &response {
            self.named_cluster = response.cluster_id.clone().filter(|id| !id.is_empty());
            for topic in &response.topics {
                let (called, code) = (topic.name.as_deref().unwrap_or_default(), topic.error_code);
                report(&format!("{name}: {called} {} {}", topic.topic_id, code.name()));
            }
        }
        if let Response::Epochs(response) = &response {
            report(&format!("epochs {:?}", response.topics));
        }
        if let Response::Fetch(response) = &response {
            for topic in &response.responses {
                for partition in topic.partitions.iter().filter(|it| it.error_code != ErrorCode::NONE) {
                    let (index, code) = (partition.partition_index, partition.error_code);
                    report(&format!("{name}: {} {} [{index}]: {}", topic.topic, topic.topic_id, code.name()));
                    refused(&topic.topic, topic.topic_id, index);
                }
            }
            let partitions = || response.responses.iter().flat_map(|topic| &topic.partitions);
            self.fetched = if partitions().any(|it| it.records.as_ref().is_some_and(|it| !it.is_empty())) {
                Fetched::Records
            } else if response.error_code == ErrorCode::NONE
                && partitions().all(|it| it.error_code == ErrorCode::NONE)
            {
                Fetched::Nothing
            } else {
                Fetched::Other
            };
            if response.error_code != ErrorCode::NONE {
                report(&format!("{name}: {}", response.error_code.name()));
                refused("", Uuid::ZERO, -1);
            }
        }
        if let Response::Produce(response) = &response {
            confirm(response, &numbered, confirmed, |line| report(&format!("{name}: {line}")));
        }
        if let Response::Transaction(response) = &response {
            report(&format!("{name}: {}", response.details()));
        }
        if matches!(response, Response::Produce(_) | Response::Transaction(_) | Response::Telemetry(_)) {
            self.of_transaction = Some((correlation_id, response));
            return Ok(());
        }
        if let Response::Group(response) = response {
            report(&format!("{name}: {}", response.details()));
            self.of_group = Some((correlation_id, Some(response)));
            return Ok(());
        }
        if let Response::ApiVersions(response) = response
            && response.error_code.0 == 0
        {
            let row =
                |row: &api_versions::response::ApiKey| (row.api_key, (row.min_version, row.max_version));
            self.reported = Some(response.api_keys.iter().map(row).collect());
        }
        Ok(())
    }
}

impl Limits {
    fn check(
        &self,
        request: &produce::ProduceRequest,
        len: usize,
        in_flight: usize,
        sends: &mut SortedMap<(u32, u64), u32>,
    ) -> Result<(), String> {
        if in_flight > self.max_in_flight {
            return Err(format!("{in_flight} in flight, {} are allowed", self.max_in_flight));
        }
        let batch = self.max_batch_bytes.max(ONE_RECORD) + ONE_RECORD;
        if len > self.max_request_bytes + batch + AROUND_BATCHES {
            return Err(format!("{len} bytes, {} are allowed", self.max_request_bytes));
        }
        let mut seen = SortedSet::new();
        for topic in &request.topic_data {
            for partition in &topic.partition_data {
                let index = partition.index;
                if !seen.insert((&topic.name, topic.topic_id.0, index)) {
                    return Err(format!("{} [{index}] occurs twice", topic.name));
                }
                let records = partition.records.as_deref().unwrap_or_default();
                if records.len() > batch {
                    return Err(format!("a batch of {} bytes", records.len()));
                }
                let terms = (request.acks, request.timeout_ms);
                self.check_records(terms, &topic.name, index, records, sends)?;
            }
        }
        Ok(())
    }

    fn check_records(
        &self,
        terms: (i16, i32),
        topic: &str,
        index: i32,
        records: &[u8],
        sends: &mut SortedMap<(u32, u64), u32>,
    ) -> Result<(), String> {
        let mut batches = 0;
        for batch in Batches::new(records) {
            // A message set of an old version counts as one batch per message.
            let Ok(Batch::V2(batch)) = batch else { return Ok(()) };
            batches += 1;
            batch.verify_crc().map_err(|error| format!("[{index}]: {error}"))?;
            let header = batch.header();
            if header.record_count as usize > self.max_batch_records {
                return Err(format!("{} records in a batch of [{index}]", header.record_count));
            }
            let raw = batch.records(1 << 30).map_err(|error| format!("[{index}]: {error}"))?;
            for record in Records::new(header, &raw) {
                let value = record.map_err(|error| format!("[{index}]: {error}"))?.value.unwrap_or_default();
                let (who, place) = (parse_value(value), parse_destination(value));
                if who.map(|who| who.0) != self.producer {
                    return Err(format!("a record of {who:?} in [{index}]"));
                }
                if let Some(who) = who {
                    *sends.entry(who).or_default() += 1;
                }
                if place.is_none_or(|(t, p)| p != index || !topic.is_empty() && topic != format!("t{t}")) {
                    return Err(format!("a record of {place:?} in {topic} [{index}]"));
                }
                let Some(own) = place.and_then(|(topic, _)| self.topics.get(topic as usize)) else {
                    continue;
                };
                let (acks, acks_timeout) = (own.acks.to_wire(), own.acks_timeout.as_millis() as i32);
                if (acks, acks_timeout) != terms {
                    return Err(format!("acks and timeout {terms:?} for a topic of {acks}, {acks_timeout}"));
                }
                let codec = header.compression().unwrap_or_default();
                if codec != Compression::None && codec != own.compression {
                    return Err(format!("{codec:?} in [{index}] of a topic of {:?}", own.compression));
                }
            }
        }
        if batches == 1 { Ok(()) } else { Err(format!("{batches} batches of [{index}]")) }
    }
}

/// Records the acknowledged batches of a response to Produce.
fn confirm(
    response: &produce::ProduceResponse,
    numbered: &SortedMap<(String, Uuid, i32), Numbering>,
    confirmed: &mut SortedSet<Numbering>,
    mut report: impl FnMut(&str),
) {
    for topic in &response.responses {
        for partition in &topic.partition_responses {
            let (index, code, offset) = (partition.index, partition.error_code, partition.base_offset);
            report(&format!("{} {} [{index}]: {}, {offset}", topic.name, topic.topic_id, code.name()));
            let key = (topic.name.clone(), topic.topic_id, partition.index);
            let written = [ErrorCode::NONE, ErrorCode::DUPLICATE_SEQUENCE_NUMBER];
            if let Some(numbering) = numbered.get(&key)
                && written.contains(&code)
            {
                confirmed.insert(*numbering);
            }
        }
    }
}

/// Returns the numberings of a request's batches, or what is wrong: only the first batch of a producer ID has the number 0.
fn number(
    client: usize,
    request: &produce::ProduceRequest,
    confirmed: &SortedSet<Numbering>,
) -> Result<SortedMap<(String, Uuid, i32), Numbering>, String> {
    let mut numbered = SortedMap::new();
    for (key, numbering, sequence) in numberings(client, request) {
        if sequence > 0 && !confirmed.contains(&numbering) {
            let partition = key.2;
            return Err(format!(
                "number {sequence} in [{partition}], and no batch of this producer ID was acknowledged"
            ));
        }
        numbered.insert(key, numbering);
    }
    Ok(numbered)
}

/// Returns the source of each batch's sequence numbers, and the number of its first record.
fn numberings(
    client: usize,
    request: &produce::ProduceRequest,
) -> Vec<((String, Uuid, i32), Numbering, i32)> {
    let mut found = Vec::new();
    for topic in &request.topic_data {
        for partition in &topic.partition_data {
            let records = partition.records.as_deref().unwrap_or_default();
            let Some(Ok(Batch::V2(batch))) = Batches::new(records).next() else { continue };
            let header = batch.header();
            if header.producer_id < 0 {
                continue;
            }
            let Ok(raw) = batch.records(1 << 30) else { continue };
            let first = Records::new(header, &raw).next().and_then(Result::ok);
            if let Some((index, _)) = first.and_then(|first| first.value.and_then(parse_destination)) {
                let numbering = (client, index, partition.index, header.producer_id, header.producer_epoch);
                let key = (topic.name.clone(), topic.topic_id, partition.index);
                found.push((key, numbering, header.base_sequence));
            }
        }
    }
    found
}

/// Takes the first whole frame, without its length.
fn next_frame(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let len = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    let rest = bytes.get(4..)?;
    if rest.len() < len {
        return None;
    }
    let frame = rest[..len].to_vec();
    bytes.drain(..4 + len);
    Some(frame)
}
