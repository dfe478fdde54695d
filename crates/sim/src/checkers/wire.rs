//! What goes over the wire: every frame, in both directions, decodes by its schema with nothing left over, in a version
//! that the broker told; answers come in the order of the questions; limits are kept; records go where they were sent.
//! It counts, too: what is asked again and again within a second is [`super::busy`]'s.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use ottla_core::{machine::Instant, produce::topic_settings::TopicSettings};
use ottla_protocol::{
    api::ApiKey,
    batch::{Batch, Batches, Records},
    compress::Compression,
    error_code::ErrorCode,
    generated::{
        api_versions, fetch, find_coordinator, init_producer_id, list_offsets, metadata,
        offset_for_leader_epoch, produce,
    },
    header::{RequestHeader, ResponseHeader},
    primitive::{DecodeError, Reader},
    uuid::Uuid,
};

use super::{Broken, busy::Rates};
use crate::workload::{parse_destination, parse_value};

/// What a client may do.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The number of the client's producer, if it is one.
    pub producer: Option<u32>,
    /// `max.in.flight.requests.per.connection`.
    pub max_in_flight: usize,
    /// The largest request of batches; the last one may go beyond it.
    pub max_request_bytes: usize,
    /// The largest batch, unless a single record is larger.
    pub max_batch_bytes: usize,
    /// Records in a batch.
    pub max_batch_records: usize,
    /// The topics' settings, by their numbers.
    pub topics: Vec<TopicSettings>,
}

/// All conversations.
#[derive(Debug, Default)]
pub struct Wire {
    limits: BTreeMap<usize, Limits>,
    links: BTreeMap<u64, Conversation>,
    rates: Rates,
    /// Identities of which a broker wrote a batch, and told.
    confirmed: BTreeSet<Numbering>,
    /// How often each record was sent, by producer and number.
    sends: BTreeMap<(u32, u64), u32>,
    /// Some answers are spoiled on purpose.
    spoiled: bool,
}

/// One connection, as an eavesdropper hears it.
#[derive(Debug)]
struct Conversation {
    client: usize,
    to_broker: Vec<u8>,
    to_client: Vec<u8>,
    open: VecDeque<Question>,
    last_correlation_id: Option<i32>,
    told: Option<BTreeMap<i16, (i16, i16)>>,
    /// The client was given an answer that makes no sense.
    nonsense: bool,
    /// How many bytes the client wrote.
    written: u64,
    /// The last answer was to a fetch, and brought nothing.
    fetched_nothing: bool,
    /// How long the broker wants to be left alone, as the last answer has it.
    throttle: Option<Duration>,
    /// Until when the broker wants to be left alone, and how much may still be written: what was put together before.
    left_alone: Option<(Instant, u64)>,
}

#[derive(Clone, Debug)]
struct Question {
    correlation_id: i32,
    api: ApiKey,
    version: i16,
    /// What is written under which numbers, by the topic's name and id and the partition.
    numbered: BTreeMap<(String, Uuid, i32), Numbering>,
}

/// Who numbers the batches of which partition: the client, the topic's place in the list, the partition, the producer's id
/// and its epoch.
type Numbering = (usize, u32, i32, i64, i16);

/// A record of at most 216 bytes with its batch around it.
const ONE_RECORD: usize = 400;
/// A request's bytes besides batches.
const AROUND_BATCHES: usize = 4_000;

impl Wire {
    /// What a client may do.
    pub fn allow(&mut self, client: usize, limits: Limits) {
        self.limits.insert(client, limits);
    }

    /// From now on brokers may give spoiled answers.
    pub const fn expect_spoiled_answers(&mut self) {
        self.spoiled = true;
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
                told: None,
                nonsense: false,
                written: 0,
                fetched_nothing: false,
                throttle: None,
                left_alone: None,
            },
        );
        self.rates.connected(now, client)
    }

    /// How often each record was sent, by producer and number.
    pub fn take_sends(&mut self) -> BTreeMap<(u32, u64), u32> {
        std::mem::take(&mut self.sends)
    }

    /// A connection is over.
    pub fn close(&mut self, link: u64) {
        self.links.remove(&link);
    }

    /// The client wrote bytes; `tell` gets a line per request.
    pub fn wrote(
        &mut self,
        now: Instant,
        link: u64,
        bytes: &[u8],
        mut tell: impl FnMut(&str),
    ) -> Result<(), Broken> {
        let Some(talk) = self.links.get_mut(&link) else { return Ok(()) };
        let client = talk.client;
        let broken = |what: String| Err(Broken::new("wire", format!("client {client}, link {link}: {what}")));
        if talk.nonsense {
            return broken("goes on after an answer that makes no sense".into());
        }
        if let Some((until, most)) = talk.left_alone
            && now < until
            && talk.written + bytes.len() as u64 > most
        {
            return broken("goes on though the broker asked to be left alone".into());
        }
        talk.written += bytes.len() as u64;
        talk.to_broker.extend_from_slice(bytes);
        while let Some(frame) = next_frame(&mut talk.to_broker) {
            let reader = &mut Reader::new(&frame);
            let header = match RequestHeader::decode(reader) {
                Ok(header) => header,
                Err(error) => return broken(format!("a request's header: {error}")),
            };
            let Some(api) = ApiKey::from_i16(header.api_key) else {
                return broken(format!("API {} is unknown", header.api_key));
            };
            let (version, correlation_id) = (header.api_version, header.correlation_id);
            let name = format!("{} v{version} #{correlation_id}", api.name());
            if talk.last_correlation_id.is_some_and(|last| correlation_id != last.wrapping_add(1)) {
                return broken(format!("{name} follows #{:?}", talk.last_correlation_id));
            }
            talk.last_correlation_id = Some(correlation_id);
            match &talk.told {
                Some(told)
                    if !told
                        .get(&(api as i16))
                        .is_some_and(|(min, max)| (*min..=*max).contains(&version)) =>
                {
                    return broken(format!("{name}: the broker told {:?}", told.get(&(api as i16))));
                }
                // Where versions were never told the client guesses an old release.
                None if api != ApiKey::ApiVersions && version > 3 => {
                    return broken(format!("{name} before the broker told its versions"));
                }
                _ => {}
            }
            let request = match Request::decode(api, version, reader) {
                Ok(request) if reader.remaining() == 0 => request,
                Ok(_) => return broken(format!("{name}: {} bytes are left over", reader.remaining())),
                Err(error) => return broken(format!("{name}: {error}")),
            };
            tell(&format!("{client} asks by link {link}: {name}{}", request.story()));
            let mut numbered = BTreeMap::new();
            if let Request::Produce(request) = &request {
                for (key, numbering, sequence) in numberings(client, request) {
                    if sequence > 0 && !self.confirmed.contains(&numbering) {
                        let partition = key.2;
                        return broken(format!(
                            "{name}: number {sequence} in [{partition}], and nothing of this identity was acknowledged"
                        ));
                    }
                    numbered.insert(key, numbering);
                }
            }
            talk.open.push_back(Question { correlation_id, api, version, numbered });
            let in_flight = talk.open.iter().filter(|question| question.api == api).count();
            let limits = self.limits.get(&client);
            match &request {
                Request::Produce(request) => {
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
                Request::Fetch(_) if in_flight > 1 => {
                    return broken(format!("{name}: {in_flight} fetches at once"));
                }
                _ => {}
            }
            self.rates.asked(now, client, api)?;
        }
        Ok(())
    }

    /// Bytes reach the client, which has so many `unsent` ones of requests that it has put together.
    pub fn reads(
        &mut self,
        now: Instant,
        link: u64,
        bytes: &[u8],
        unsent: usize,
        mut tell: impl FnMut(&str),
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
            let answer = talk.answer(&frame, confirmed, refused, |line| {
                tell(&format!("{client} is answered by link {link}: {line}"));
            });
            for (topic, id, partition) in refusals {
                self.rates.refused(now, client, link, (topic, id, partition))?;
            }
            if talk.fetched_nothing {
                self.rates.fetched_nothing(now, client, link)?;
            }
            if let Some(time) = talk.throttle.take() {
                let until = talk.left_alone.map_or(now, |(until, _)| until).max(now + time);
                talk.left_alone = Some((until, talk.written + unsent as u64));
            }
            if let Err(what) = answer {
                if !self.spoiled {
                    return Err(Broken::new(
                        "wire",
                        format!("client {client}, link {link}: the answer {what}"),
                    ));
                }
                talk.nonsense = true;
            }
        }
        Ok(())
    }
}

impl Conversation {
    fn answer(
        &mut self,
        frame: &[u8],
        confirmed: &mut BTreeSet<Numbering>,
        mut refused: impl FnMut(&str, Uuid, i32),
        mut tell: impl FnMut(&str),
    ) -> Result<(), String> {
        self.fetched_nothing = false;
        let Some(question) = self.open.pop_front() else { return Err("was not asked for".into()) };
        let Question { correlation_id, api, version, numbered } = question;
        let name = format!("to {} v{version} #{correlation_id}", api.name());
        let mut reader = Reader::new(frame);
        // A broker that does not know the version of ApiVersions says so in version 0.
        let unsupported = api == ApiKey::ApiVersions && frame.get(4..6) == Some(&[0, 35]);
        let version = if unsupported { 0 } else { version };
        let header =
            ResponseHeader::decode(&mut reader, api, version).map_err(|error| format!("{name}: {error}"))?;
        if header.correlation_id != correlation_id {
            return Err(format!("{name} bears #{}", header.correlation_id));
        }
        let body = &frame[reader.position()..];
        let answer = Answer::decode(api, version, &mut reader).map_err(|error| format!("{name}: {error}"))?;
        if reader.remaining() > 0 {
            return Err(format!("{name} has {} bytes left over", reader.remaining()));
        }
        let throttle_ms = answer.throttle_ms(api, version, body);
        self.throttle = (throttle_ms > 0).then(|| Duration::from_millis(throttle_ms.unsigned_abs().into()));
        if let Answer::Metadata(answer) = &answer {
            for topic in &answer.topics {
                let (called, code) = (topic.name.as_deref().unwrap_or_default(), topic.error_code);
                tell(&format!("{name}: {called} {} {}", topic.topic_id, code.name()));
            }
        }
        if let Answer::Epochs(answer) = &answer {
            tell(&format!("epochs {:?}", answer.topics));
        }
        if let Answer::Fetch(answer) = &answer {
            for topic in &answer.responses {
                for partition in topic.partitions.iter().filter(|it| it.error_code != ErrorCode::NONE) {
                    let (index, code) = (partition.partition_index, partition.error_code);
                    tell(&format!("{name}: {} {} [{index}]: {}", topic.topic, topic.topic_id, code.name()));
                    refused(&topic.topic, topic.topic_id, index);
                }
            }
            let partitions = || answer.responses.iter().flat_map(|topic| &topic.partitions);
            self.fetched_nothing = answer.error_code == ErrorCode::NONE
                && partitions().all(|it| {
                    it.error_code == ErrorCode::NONE && it.records.as_ref().is_none_or(Vec::is_empty)
                });
            if answer.error_code != ErrorCode::NONE {
                tell(&format!("{name}: {}", answer.error_code.name()));
                refused("", Uuid::ZERO, -1);
            }
        }
        if let Answer::Produce(answer) = &answer {
            for topic in &answer.responses {
                for partition in &topic.partition_responses {
                    let (index, code) = (partition.index, partition.error_code);
                    let offset = partition.base_offset;
                    tell(&format!(
                        "{name}: {} {} [{index}]: {}, {offset}",
                        topic.name,
                        topic.topic_id,
                        code.name()
                    ));
                    let key = (topic.name.clone(), topic.topic_id, partition.index);
                    let written = [ErrorCode::NONE, ErrorCode::DUPLICATE_SEQUENCE_NUMBER];
                    if let Some(numbering) = numbered.get(&key)
                        && written.contains(&partition.error_code)
                    {
                        confirmed.insert(*numbering);
                    }
                }
            }
        }
        if let Answer::ApiVersions(answer) = answer
            && answer.error_code.0 == 0
        {
            let row =
                |row: &api_versions::response::ApiKey| (row.api_key, (row.min_version, row.max_version));
            self.told = Some(answer.api_keys.iter().map(row).collect());
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
        sends: &mut BTreeMap<(u32, u64), u32>,
    ) -> Result<(), String> {
        if in_flight > self.max_in_flight {
            return Err(format!("{in_flight} in flight, {} are allowed", self.max_in_flight));
        }
        let batch = self.max_batch_bytes.max(ONE_RECORD) + ONE_RECORD;
        if len > self.max_request_bytes + batch + AROUND_BATCHES {
            return Err(format!("{len} bytes, {} are allowed", self.max_request_bytes));
        }
        let mut seen = BTreeSet::new();
        for topic in &request.topic_data {
            for partition in &topic.partition_data {
                let index = partition.index;
                if !seen.insert((&topic.name, topic.topic_id.0, index)) {
                    return Err(format!("{} [{index}] is in it twice", topic.name));
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
        sends: &mut BTreeMap<(u32, u64), u32>,
    ) -> Result<(), String> {
        let mut batches = 0;
        for batch in Batches::new(records) {
            // A message set of an old version is as many batches as it has messages.
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
                let (acks, acks_timeout) = (own.acks, own.acks_timeout.as_millis() as i32);
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

/// Who numbers the batches of a request, and the number of each batch's first record.
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

/// What a client asks, as far as somebody looks into it.
#[derive(Debug)]
enum Request {
    Produce(produce::ProduceRequest),
    Fetch(fetch::FetchRequest),
    Epochs(offset_for_leader_epoch::OffsetForLeaderEpochRequest),
    Other,
}

/// What it is answered.
#[derive(Debug)]
enum Answer {
    ApiVersions(api_versions::ApiVersionsResponse),
    Produce(produce::ProduceResponse),
    Fetch(fetch::FetchResponse),
    Metadata(metadata::MetadataResponse),
    Epochs(offset_for_leader_epoch::OffsetForLeaderEpochResponse),
    Other,
}

/// Decodes messages that nobody looks into.
macro_rules! decode {
    ($given:ident, $version:ident, $reader:ident: $($api:ident $module:ident $message:ident),* $(,)?) => {
        match $given {
            $(ApiKey::$api => $module::$message::decode($reader, $version).map(|_| Self::Other),)*
            _ => Ok(Self::Other),
        }
    };
}

impl Request {
    fn decode(api: ApiKey, version: i16, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match api {
            ApiKey::Produce => produce::ProduceRequest::decode(reader, version).map(Self::Produce),
            ApiKey::Fetch => fetch::FetchRequest::decode(reader, version).map(Self::Fetch),
            ApiKey::OffsetForLeaderEpoch => {
                offset_for_leader_epoch::OffsetForLeaderEpochRequest::decode(reader, version)
                    .map(Self::Epochs)
            }
            api => decode!(api, version, reader:
                ListOffsets list_offsets ListOffsetsRequest,
                Metadata metadata MetadataRequest,
                ApiVersions api_versions ApiVersionsRequest,
                FindCoordinator find_coordinator FindCoordinatorRequest,
                InitProducerId init_producer_id InitProducerIdRequest,
            ),
        }
    }

    /// What a story tells of it.
    fn story(&self) -> String {
        match self {
            Self::Fetch(fetch) => {
                let asked = fetch.topics.iter().flat_map(|topic| &topic.partitions);
                let asked: Vec<_> = asked.map(|p| (p.partition, p.fetch_offset)).collect();
                let forgotten: Vec<_> =
                    fetch.forgotten_topics_data.iter().flat_map(|t| &t.partitions).collect();
                let (id, epoch) = (fetch.session_id, fetch.session_epoch);
                format!(", session {id} epoch {epoch}, from {asked:?}, forget {forgotten:?}")
            }
            Self::Produce(request) => {
                let partitions = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
                format!(" to {:?}", partitions.map(|p| p.index).collect::<Vec<_>>())
            }
            Self::Epochs(request) => format!(" about {:?}", request.topics),
            Self::Other => String::new(),
        }
    }
}

/// From which version on the client is to leave the broker alone by itself (KIP-219); before, the answer came late.
const FIRST_THROTTLED_BY_CLIENT: [(ApiKey, i16); 8] = [
    (ApiKey::Produce, 6),
    (ApiKey::Fetch, 8),
    (ApiKey::ListOffsets, 3),
    (ApiKey::Metadata, 6),
    (ApiKey::FindCoordinator, 2),
    (ApiKey::ApiVersions, 2),
    (ApiKey::InitProducerId, 1),
    (ApiKey::OffsetForLeaderEpoch, 2),
];

impl Answer {
    /// How long the client is to leave the broker alone, in milliseconds.
    fn throttle_ms(&self, api: ApiKey, version: i16, body: &[u8]) -> i32 {
        let told = FIRST_THROTTLED_BY_CLIENT.iter().any(|(known, first)| *known == api && version >= *first);
        match self {
            _ if !told => 0,
            Self::Produce(answer) => answer.throttle_time_ms,
            Self::ApiVersions(answer) => answer.throttle_time_ms,
            // The others begin with it.
            _ => body.first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes)),
        }
    }

    fn decode(api: ApiKey, version: i16, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match api {
            ApiKey::ApiVersions => {
                api_versions::ApiVersionsResponse::decode(reader, version).map(Self::ApiVersions)
            }
            ApiKey::Produce => produce::ProduceResponse::decode(reader, version).map(Self::Produce),
            ApiKey::Fetch => fetch::FetchResponse::decode(reader, version).map(Self::Fetch),
            ApiKey::Metadata => metadata::MetadataResponse::decode(reader, version).map(Self::Metadata),
            ApiKey::OffsetForLeaderEpoch => {
                offset_for_leader_epoch::OffsetForLeaderEpochResponse::decode(reader, version)
                    .map(Self::Epochs)
            }
            api => decode!(api, version, reader:
                ListOffsets list_offsets ListOffsetsResponse,
                FindCoordinator find_coordinator FindCoordinatorResponse,
                InitProducerId init_producer_id InitProducerIdResponse,
            ),
        }
    }
}
