//! Names of Java classes in values, and what does their work here.

use super::super::table::Property;

/// Classes whose work is done without a property, so that naming them needs no warning. `*` stands for every value.
const NEEDLESS: &[(&str, &[&str])] = &[
    ("key.serializer", PLAIN_SERIALIZERS),
    ("value.serializer", PLAIN_SERIALIZERS),
    ("key.deserializer", PLAIN_DESERIALIZERS),
    ("value.deserializer", PLAIN_DESERIALIZERS),
    (
        "sasl.client.callback.handler.class",
        &["IAMClientCallbackHandler", "OAuthBearerSaslClientCallbackHandler"],
    ),
    (
        "sasl.login.callback.handler.class",
        &[
            "IAMClientCallbackHandler",
            "OAuthBearerLoginCallbackHandler",
            "OAuthBearerUnsecuredLoginCallbackHandler",
            "JaasClientOauthLoginCallbackHandler",
        ],
    ),
    ("sasl.login.class", &["DefaultLogin", "KerberosLogin", "OAuthBearerRefreshingLogin"]),
    (
        "sasl.oauthbearer.jwt.retriever.class",
        &["DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "JwtBearerJwtRetriever"],
    ),
    (
        "sasl.oauthbearer.jwt.validator.class",
        &["DefaultJwtValidator", "ClientJwtValidator", "BrokerJwtValidator"],
    ),
    ("ssl.engine.factory.class", &["DefaultSslEngineFactory"]),
    ("ssl.keystore.type", &["*"]),
    ("ssl.truststore.type", &["*"]),
    ("ssl.protocol", &["*"]),
    ("metric.reporters", &["JmxReporter", ""]),
];

const PLAIN_SERIALIZERS: &[&str] =
    &["StringSerializer", "ByteArraySerializer", "ByteBufferSerializer", "BytesSerializer", "VoidSerializer"];
const PLAIN_DESERIALIZERS: &[&str] = &[
    "StringDeserializer",
    "ByteArrayDeserializer",
    "ByteBufferDeserializer",
    "BytesDeserializer",
    "VoidDeserializer",
];

/// Handlers of `sasl.login.callback.handler.class` that get tokens from an identity provider.
const TOKEN_HANDLERS: [&str; 2] = ["OAuthBearerLoginCallbackHandler", "JaasClientOauthLoginCallbackHandler"];

/// Partitioners, and the words of `partitioner` with the same meaning.
const PARTITIONERS: [(&str, &str); 3] = [
    ("DefaultPartitioner", "murmur2_random"),
    ("UniformStickyPartitioner", "sticky"),
    ("RoundRobinPartitioner", "round_robin"),
];

/// Assignors, and the words of `partition.assignment.strategy` with the same meaning.
const ASSIGNORS: [(&str, &str); 4] = [
    ("RangeAssignor", "range"),
    ("RoundRobinAssignor", "roundrobin"),
    ("StickyAssignor", "sticky"),
    ("CooperativeStickyAssignor", "cooperative-sticky"),
];

/// Returns a class's name without its package, which is another one in libraries that contain a copy of Kafka's.
pub(in crate::config) fn simple_name(class: &str) -> &str {
    let class = class.trim();
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

/// Returns true if a value of a property without effect needs no warning.
pub(in crate::config) fn is_needless(property: &Property, value: &str) -> bool {
    let known =
        NEEDLESS.iter().find(|(name, _)| *name == property.name).map_or(&[][..], |(_, classes)| classes);
    known.contains(&"*") || value.split(',').all(|class| known.contains(&simple_name(class)))
}

/// Returns true if a login handler gets tokens from an identity provider.
pub(in crate::config) fn gets_tokens(handler: &str) -> bool {
    TOKEN_HANDLERS.contains(&simple_name(handler))
}

/// Returns the word of `partitioner` for a class.
pub(in crate::config) fn partitioner(class: &str) -> Option<&'static str> {
    word(&PARTITIONERS, class)
}

/// Returns the assignors of a list, each class replaced by its word.
pub(in crate::config) fn assignors(list: &str) -> String {
    let words: Vec<_> = list
        .split(',')
        .map(str::trim)
        .filter(|class| !class.is_empty())
        .map(|class| word(&ASSIGNORS, class).unwrap_or(class))
        .collect();
    words.join(",")
}

fn word<'a>(table: &[(&str, &'a str)], class: &str) -> Option<&'a str> {
    table.iter().find(|(name, _)| *name == simple_name(class)).map(|(_, word)| *word)
}
