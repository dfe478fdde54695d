//! The data that members of a classic group exchange through the broker: subscriptions and assignments.
//!
//! The broker forwards both without reading them. The leader therefore decodes bytes of members that may use any client
//! in any version, or be hostile. If a subscription cannot be decoded, only its sender gets no partitions; the other
//! members are not affected.
//!
//! # Pitfalls
//!
//! - A member without a rack sends null; the Java client does not expect an empty string
//!   (`subscription_has_the_bytes_of_the_java_client`).
//! - Before subscription version 2, members send their generation only in the user data of a sticky assignor, and
//!   before version 1 also their owned partitions; there are two layouts
//!   (`user_data_of_old_sticky_members_is_read_in_both_layouts`).
//! - Members of the eager `sticky` assignor own nothing when they join: their last assignment is in the user data, whatever
//!   the version of the subscription (`eager_sticky_members_have_their_last_assignment_in_the_user_data`).
//! - A member may name millions of topics, or names that no topic can have. The leader would request metadata for all of
//!   them, in one request, and keep them. It ignores and reports them (`impossible_and_excessive_topics_are_ignored`). So may
//!   many members together (`topics_of_a_whole_group_are_bounded_and_small_members_keep_theirs`).
//! - Partition numbers of other members may be negative or repeated (`hostile_subscription_loses_its_nonsense`).

use std::sync::Arc;

use ottla_protocol::{
    consumer_protocol::{
        ConsumerProtocolAssignment, ConsumerProtocolSubscription, LATEST_VERSION,
        assignment::AssignedPartition, subscription::OwnedPartition,
    },
    primitive::{EncodeError, Reader},
    vocabulary::{Generation, TopicPartition},
};
use ottla_sorted::{SortedMap, SortedSet};

use super::assignor::{Assignor, GroupMember};
use crate::error::{Error, ErrorKind};

/// A member's subscription, which the leader gets through the JoinGroup request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subscription {
    /// The topics.
    pub(super) topics: SortedSet<Arc<str>>,
    /// The partitions that the member keeps during the rebalance (KIP-429).
    pub(super) owned: SortedSet<TopicPartition>,
    /// The generation in which the member got `owned` (KIP-792).
    pub(super) generation: Option<Generation>,
    /// `client.rack` (KIP-881).
    pub(super) rack: Option<Arc<str>>,
    /// The user data of the assignor.
    pub(super) user_data: Option<Vec<u8>>,
    /// The number of topics that were ignored: no topic can have such a name, or there are more than [`MAX_TOPICS`].
    pub(super) ignored_topics: usize,
}

/// The number of topics of one member that the leader considers. librdkafka refuses subscriptions with more.
const MAX_TOPICS: usize = 10_000;
/// The number of topics of a whole group that its leader considers, besides those that it subscribes to itself.
const MAX_GROUP_TOPICS: usize = 100_000;
/// The longest name of a topic, in bytes.
const MAX_TOPIC_NAME: usize = 249;

impl Subscription {
    /// Encodes the subscription in the latest version. Earlier readers ignore the fields that they don't know.
    pub(super) fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let owned = by_topic(&self.owned).into_iter();
        let owned = owned.map(|(topic, partitions)| OwnedPartition { topic: topic.to_string(), partitions });
        ConsumerProtocolSubscription {
            topics: self.topics.iter().map(ToString::to_string).collect(),
            user_data: self.user_data.clone(),
            owned_partitions: owned.collect(),
            generation_id: Generation::to_wire(self.generation),
            rack_id: self.rack.as_ref().map(ToString::to_string),
        }
        .to_bytes(LATEST_VERSION)
    }

    /// Decodes the subscription of any member. Invalid values within well-formed fields are dropped.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let (version, decoded) = ConsumerProtocolSubscription::from_bytes(bytes)
            .map_err(|error| Error::new(ErrorKind::BadResponse, error.to_string()))?;
        let owned = decoded.owned_partitions.into_iter().flat_map(|owned| {
            let topic: Arc<str> = owned.topic.into();
            owned.partitions.into_iter().map(move |number| TopicPartition::new(Arc::clone(&topic), number))
        });
        let (topics, ignored_topics) = possible_topics(decoded.topics);
        let mut owned: SortedSet<_> =
            owned.filter(|key| key.partition >= 0 && is_possible(&key.topic)).collect();
        let mut generation = Generation::from_wire(decoded.generation_id);
        if version < FIRST_WITH_GENERATION
            && let Some(sticky) = decoded.user_data.as_deref().and_then(StickyData::decode)
        {
            generation = sticky.generation;
            if version < FIRST_WITH_OWNED {
                owned = sticky.owned;
            }
        }
        Ok(Self {
            topics,
            owned,
            generation,
            rack: decoded.rack_id.filter(|rack| !rack.is_empty()).map(Arc::from),
            user_data: decoded.user_data.filter(|data| !data.is_empty()),
            ignored_topics,
        })
    }

    /// Returns the member as this assignor sees it.
    pub(super) fn into_member(
        mut self,
        assignor: Option<Assignor>,
        id: String,
        instance_id: Option<String>,
    ) -> GroupMember {
        if assignor == Some(Assignor::Sticky)
            && let Some(last) = self.user_data.as_deref().and_then(StickyData::decode)
        {
            (self.owned, self.generation) = (last.owned, last.generation);
        }
        GroupMember {
            id,
            instance_id,
            topics: self.topics.into_iter().collect(),
            owned: self.owned.into_iter().collect(),
            generation: self.generation.map(Generation::get),
            rack: self.rack,
            user_data: self.user_data,
        }
    }
}

/// Removes topics of members that have many until the group has at most [`MAX_GROUP_TOPICS`] besides `own`. Returns the
/// number of removed ones.
pub(super) fn bound_topics(members: &mut [GroupMember], own: &SortedSet<Arc<str>>) -> usize {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|at| members.get(*at).map(|member| (member.topics.len(), member.id.clone())));
    let (mut known, most) = (own.clone(), own.len() + MAX_GROUP_TOPICS);
    let mut removed = 0;
    for at in order {
        let Some(member) = members.get_mut(at) else { continue };
        let count = member.topics.len();
        member
            .topics
            .retain(|topic| known.contains(topic) || known.len() < most && known.insert(Arc::clone(topic)));
        removed += count - member.topics.len();
    }
    removed
}

/// Returns the topics that can exist, up to [`MAX_TOPICS`] in the order of their names, and the number of the others.
fn possible_topics(names: Vec<String>) -> (SortedSet<Arc<str>>, usize) {
    let named = names.into_iter().collect::<SortedSet<_>>();
    let count = named.len();
    let possible = named.into_iter().filter(|name| is_possible(name)).take(MAX_TOPICS);
    let topics: SortedSet<Arc<str>> = possible.map(Arc::from).collect();
    let ignored = count - topics.len();
    (topics, ignored)
}

/// Returns true if Kafka allows a topic of this name.
fn is_possible(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !matches!(name, "" | "." | "..") && name.len() <= MAX_TOPIC_NAME && name.bytes().all(is_allowed)
}

/// The first subscription version with the owned partitions (KIP-429).
const FIRST_WITH_OWNED: i16 = 1;
/// The first subscription version with the generation (KIP-792).
const FIRST_WITH_GENERATION: i16 = 2;

/// The contents of a sticky assignor's user data.
#[derive(Debug, Default, PartialEq, Eq)]
struct StickyData {
    owned: SortedSet<TopicPartition>,
    generation: Option<Generation>,
}

impl StickyData {
    /// Encodes the layout with partitions, which the Java client's `sticky`, librdkafka and franz-go read.
    fn encode(&self) -> Vec<u8> {
        let topics = by_topic(&self.owned);
        let mut bytes = (topics.len() as i32).to_be_bytes().to_vec();
        for (topic, partitions) in topics {
            bytes.extend((topic.len() as i16).to_be_bytes());
            bytes.extend(topic.as_bytes());
            bytes.extend((partitions.len() as i32).to_be_bytes());
            bytes.extend(partitions.iter().flat_map(|number| number.to_be_bytes()));
        }
        bytes.extend(Generation::to_wire(self.generation).to_be_bytes());
        bytes
    }

    /// Decodes both layouts: a generation alone, as the Java client's `cooperative-sticky` writes it; and partitions,
    /// followed by a generation in all but the oldest versions, as its `sticky`, librdkafka and franz-go do. Returns `None`
    /// for anything else.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if bytes.len() == 4 {
            let generation = Generation::from_wire(reader.i32().ok()?);
            return Some(Self { generation, ..Self::default() });
        }
        let mut owned = SortedSet::new();
        for _ in 0..reader.i32().ok()? {
            let topic: Arc<str> = reader.string().ok()?.into();
            for _ in 0..reader.i32().ok()? {
                let number = reader.i32().ok()?;
                if number >= 0 {
                    owned.insert(TopicPartition::new(Arc::clone(&topic), number));
                }
            }
        }
        let generation = reader.i32().ok().and_then(Generation::from_wire);
        Some(Self { owned, generation })
    }
}

/// Returns the user data of this client's `sticky`: its last assignment, and the generation of that. `None` without one. The
/// topic names come from the leader's assignment, whose strings have 16-bit lengths, too.
pub(super) fn last_assignment_data(
    assigned: &SortedSet<TopicPartition>,
    generation: Option<Generation>,
) -> Option<Vec<u8>> {
    let data = StickyData { owned: assigned.clone(), generation };
    (!assigned.is_empty()).then(|| data.encode())
}

/// Returns the user data of this client's `cooperative-sticky`, in the Java client's layout. Members and leaders of today
/// read the generation from the subscription; the user data is for older leaders.
pub(super) fn sticky_user_data(generation: Option<Generation>) -> Vec<u8> {
    Generation::to_wire(generation).to_be_bytes().to_vec()
}

/// Encodes a member's assignment, as the leader sends it.
pub(super) fn encode_assignment(
    partitions: &[TopicPartition],
    user_data: Option<Vec<u8>>,
) -> Result<Vec<u8>, EncodeError> {
    let topics = by_topic(partitions).into_iter();
    let assigned =
        topics.map(|(topic, partitions)| AssignedPartition { topic: topic.to_string(), partitions });
    ConsumerProtocolAssignment { assigned_partitions: assigned.collect(), user_data }
        .to_bytes(ASSIGNMENT_VERSION)
}

/// All versions have the same fields. Readers of any age accept version 0.
const ASSIGNMENT_VERSION: i16 = 0;

/// Decodes the assignment that the leader gave this member. Empty bytes are an empty assignment: the leader did not know
/// the member.
pub(super) fn decode_assignment(bytes: &[u8]) -> Result<SortedSet<TopicPartition>, Error> {
    if bytes.is_empty() {
        return Ok(SortedSet::new());
    }
    let bad = |detail: String| {
        let detail = format!("the group's leader sent an assignment that can't be read: {detail}");
        Error::new(ErrorKind::BadResponse, detail).with_api("SyncGroup")
    };
    let (_, decoded) =
        ConsumerProtocolAssignment::from_bytes(bytes).map_err(|error| bad(error.to_string()))?;
    let mut partitions = SortedSet::new();
    for assigned in decoded.assigned_partitions {
        let topic: Arc<str> = assigned.topic.into();
        for number in assigned.partitions {
            if number < 0 {
                return Err(bad(format!("`{topic}` has no partition {number}")));
            }
            partitions.insert(TopicPartition::new(Arc::clone(&topic), number));
        }
    }
    Ok(partitions)
}

/// Returns the data that the leader's assignor sent with an assignment. Call it for bytes that can be decoded.
pub(super) fn assignment_user_data(bytes: &[u8]) -> Option<Vec<u8>> {
    ConsumerProtocolAssignment::from_bytes(bytes).ok()?.1.user_data
}

/// Groups partitions by topic, in ascending order.
fn by_topic<'a>(partitions: impl IntoIterator<Item = &'a TopicPartition>) -> SortedMap<&'a str, Vec<i32>> {
    let mut topics: SortedMap<&str, Vec<i32>> = SortedMap::new();
    for key in partitions {
        topics.entry(&key.topic).or_default().push(key.partition);
    }
    topics.values_mut().for_each(|numbers| numbers.sort_unstable());
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn subscription() -> Subscription {
        Subscription {
            topics: ["a", "bc"].map(Arc::from).into(),
            owned: [("a", 0), ("a", 1)].map(TopicPartition::from).into(),
            generation: Generation::from_wire(5),
            rack: Some("r1".into()),
            user_data: None,
            ignored_topics: 0,
        }
    }

    #[test]
    fn subscription_has_the_bytes_of_the_java_client() {
        let expected = "0003 00000002 000161 00026263 ffffffff 00000001 000161 00000002 00000000 00000001 \
                        00000005 00027231";
        assert_eq!(hex(&subscription().encode().unwrap()), expected.replace(' ', ""));
        let plain = Subscription { topics: ["a".into()].into(), ..Subscription::default() };
        let expected = "0003 00000001 000161 ffffffff 00000000 ffffffff ffff";
        assert_eq!(hex(&plain.encode().unwrap()), expected.replace(' ', ""));
        assert_eq!(Subscription::decode(&plain.encode().unwrap()), Ok(plain));
    }

    #[test]
    fn assignment_has_the_bytes_of_librdkafka_without_user_data() {
        let partitions = [("a", 1), ("a", 0)].map(TopicPartition::from);
        let bytes = encode_assignment(&partitions, None).unwrap();
        let expected = "0000 00000001 000161 00000002 00000000 00000001 ffffffff";
        assert_eq!(hex(&bytes), expected.replace(' ', ""));
        assert_eq!(decode_assignment(&bytes), Ok(partitions.into()));
    }

    #[test]
    fn subscriptions_of_all_versions_are_read() {
        let bytes = subscription().encode().unwrap();
        assert_eq!(Subscription::decode(&bytes), Ok(subscription()));
        // Cut where the fields of each earlier version end, with that version in front.
        for (version, end) in [(0, 17), (1, 36), (2, 40)] {
            let mut earlier = bytes[..end].to_vec();
            earlier[1] = version;
            let decoded = Subscription::decode(&earlier).expect("it can be decoded");
            assert_eq!(decoded.topics, subscription().topics);
            assert_eq!(decoded.owned.len(), if version >= 1 { 2 } else { 0 });
            assert_eq!(decoded.generation.is_some(), version >= 2);
            assert_eq!(decoded.rack, None);
        }
        let mut later = bytes;
        later[1] = 77;
        later.extend([1, 2, 3]);
        assert_eq!(Subscription::decode(&later), Ok(subscription()));
    }

    #[test]
    fn user_data_of_old_sticky_members_is_read_in_both_layouts() {
        let bytes = |version, user_data: &[u8]| {
            let own = OwnedPartition { topic: "a".into(), partitions: vec![3] };
            let subscription = ConsumerProtocolSubscription {
                topics: vec!["a".into()],
                user_data: Some(user_data.to_vec()),
                owned_partitions: if version >= 1 { vec![own] } else { Vec::new() },
                ..Default::default()
            };
            Subscription::decode(&subscription.to_bytes(version).unwrap()).expect("it can be decoded")
        };
        let sticky = [&[0, 0, 0, 1, 0, 1, b'a', 0, 0, 0, 1, 0, 0, 0, 7][..], &[0, 0, 0, 5]].concat();
        let numbers =
            |decoded: &Subscription| -> Vec<i32> { decoded.owned.iter().map(|key| key.partition).collect() };
        let generation = |decoded: &Subscription| decoded.generation.map(Generation::get);
        let decoded = bytes(0, &sticky);
        assert_eq!((numbers(&decoded), generation(&decoded)), (vec![7], Some(5)));
        let decoded = bytes(0, &sticky[..sticky.len() - 4]);
        assert_eq!((numbers(&decoded), generation(&decoded)), (vec![7], None), "the oldest Java layout");
        for user_data in [&sticky[..], &[0, 0, 0, 5]] {
            let decoded = bytes(1, user_data);
            assert_eq!((numbers(&decoded), generation(&decoded)), (vec![3], Some(5)));
        }
        assert_eq!(sticky_user_data(Generation::from_wire(5)), [0, 0, 0, 5]);
        for end in 0..sticky.len() {
            drop(bytes(0, &sticky[..end]));
        }
        let lying = bytes(0, &[0x7f, 0xff, 0xff, 0xff, 0, 1, b'a']);
        assert_eq!((numbers(&lying), generation(&lying)), (vec![], None));
    }

    #[test]
    fn eager_sticky_members_have_their_last_assignment_in_the_user_data() {
        let assigned: SortedSet<_> = [("a", 1), ("a", 0)].map(TopicPartition::from).into();
        let data = last_assignment_data(&assigned, Generation::from_wire(5)).expect("there is an assignment");
        let expected = "00000001 000161 00000002 00000000 00000001 00000005";
        assert_eq!(hex(&data), expected.replace(' ', ""), "the bytes of the Java client");
        assert_eq!(last_assignment_data(&SortedSet::new(), Generation::from_wire(5)), None);
        let member = |assignor, user_data: &[u8]| {
            let joined = Subscription {
                topics: ["a".into()].into(),
                user_data: Some(user_data.to_vec()),
                ..Subscription::default()
            };
            let decoded = Subscription::decode(&joined.encode().unwrap()).expect("it can be decoded");
            let member = decoded.into_member(Some(assignor), "m".into(), None);
            (member.owned.len(), member.generation)
        };
        assert_eq!(member(Assignor::Sticky, &data), (2, Some(5)));
        assert_eq!(member(Assignor::CooperativeSticky, &data), (0, None), "it owns nothing");
        for end in 0..data.len() - 4 {
            assert_eq!(member(Assignor::Sticky, &data[..end]).0, 0, "{end} bytes");
        }
        let lying = [&[0x7f, 0xff, 0xff, 0xff][..], &data[4..]].concat();
        assert_eq!(member(Assignor::Sticky, &lying), (0, None));
    }

    #[test]
    fn hostile_subscription_loses_its_nonsense() {
        let bytes = ConsumerProtocolSubscription {
            topics: vec!["t".into(), "t".into()],
            user_data: Some(Vec::new()),
            owned_partitions: vec![OwnedPartition {
                topic: "t".into(),
                partitions: vec![-1, 3, 3, i32::MIN],
            }],
            generation_id: -7,
            rack_id: Some(String::new()),
        };
        let decoded = Subscription::decode(&bytes.to_bytes(3).unwrap()).unwrap();
        let expected = Subscription {
            topics: ["t".into()].into(),
            owned: [("t", 3)].map(TopicPartition::from).into(),
            ..Subscription::default()
        };
        assert_eq!(decoded, expected);
    }

    #[test]
    fn topics_of_a_whole_group_are_bounded_and_small_members_keep_theirs() {
        let member = |id: &str, topics: std::collections::BTreeSet<Arc<str>>| GroupMember {
            topics,
            ..Subscription::default().into_member(None, id.to_owned(), None)
        };
        let many = |prefix: usize| (0..10_000).map(|number| format!("h{prefix}-{number}").into()).collect();
        let mut members: Vec<_> = (0..12).map(|at| member(&format!("hostile {at}"), many(at))).collect();
        members.push(member("small", ["z".into(), "own".into()].into()));
        let own: SortedSet<Arc<str>> = ["own".into(), "h11-7".into()].into();
        assert_eq!(bound_topics(&mut members, &own), 20_000);
        assert_eq!(members[12].topics.len(), 2);
        assert!(members[11].topics.contains("h11-7"), "the leader subscribes to it, too");
        let all: SortedSet<_> = members.iter().flat_map(|member| &member.topics).collect();
        assert_eq!(all.len(), MAX_GROUP_TOPICS + own.len());
        assert_eq!(bound_topics(&mut members, &own), 0, "nothing else is removed");
    }

    #[test]
    fn impossible_and_excessive_topics_are_ignored() {
        let long = "n".repeat(250);
        let mut topics: Vec<String> =
            ["", ".", "..", "a b", "\u{e4}", &long, "ok", "ok", &long[1..]].map(str::to_owned).to_vec();
        let decode = |topics: &[String]| {
            let own = |topic: &String| OwnedPartition { topic: topic.clone(), partitions: vec![0] };
            let bytes = ConsumerProtocolSubscription {
                topics: topics.to_vec(),
                owned_partitions: topics.iter().map(own).collect(),
                ..Default::default()
            };
            Subscription::decode(&bytes.to_bytes(3).expect("it can be encoded")).expect("it can be decoded")
        };
        let decoded = decode(&topics);
        assert_eq!(decoded.topics, ["ok", &long[1..]].map(Arc::from).into());
        assert_eq!((decoded.ignored_topics, decoded.owned.len()), (6, 2));
        topics.extend((0..20_000).map(|number| format!("t{number}")));
        let decoded = decode(&topics);
        assert_eq!((decoded.topics.len(), decoded.ignored_topics), (10_000, 6 + 2 + 20_000 - 10_000));
    }

    #[test]
    fn every_cut_and_every_length_is_refused_or_read_without_harm() {
        let bytes = subscription().encode().unwrap();
        for end in 0..bytes.len() {
            assert!(Subscription::decode(&bytes[..end]).is_err(), "{end} bytes");
        }
        for place in 0..bytes.len() {
            for value in [0x7f, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[place] = value;
                drop(Subscription::decode(&damaged));
                drop(decode_assignment(&damaged));
            }
        }
        let error = decode_assignment(&[0, 0, 0x7f, 0xff, 0xff, 0xff]).expect_err("no such array");
        assert!(error.to_string().contains("leader"), "{error}");
    }
}
