//! Records to brokers with TLS and SASL, and back. OAUTHBEARER gets its tokens from this program.

use std::{
    error::Error,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rdkafka::{
    ClientConfig, ClientContext, Message, Offset, TopicPartitionList,
    client::OAuthToken,
    consumer::{BaseConsumer, Consumer, ConsumerContext},
    producer::{BaseProducer, BaseRecord, Producer, ProducerContext},
};

const COUNT: usize = 100;
const TIMEOUT: Duration = Duration::from_secs(30);
/// The header `{"alg":"none"}` of an unsecured token, and the claims `{"sub":"alice","iat":1,"exp":4102444800}`.
const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImlhdCI6MSwiZXhwIjo0MTAyNDQ0ODAwfQ.";

/// Hands out tokens.
struct Tokens;

impl ClientContext for Tokens {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
        Ok(OAuthToken {
            token: TOKEN.to_owned(),
            principal_name: "alice".to_owned(),
            lifetime_ms: now + 3_600_000,
        })
    }
}

impl ConsumerContext for Tokens {}

impl ProducerContext for Tokens {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &rdkafka::producer::DeliveryResult<'_>, _: ()) {
        assert!(result.is_ok(), "{result:?}");
    }
}

/// Runs with the properties in the file, and each mechanism.
pub fn run(file: &str) {
    let text = std::fs::read_to_string(file).expect("a file of properties");
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] {
        let mut config = ClientConfig::new();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            config.set(name, value);
        }
        config.set("sasl.mechanisms", mechanism);
        back_and_forth(&config, mechanism);
        println!("the crate rdkafka over SASL_SSL with {mechanism}: {COUNT} records");
    }
}

fn back_and_forth(config: &ClientConfig, topic: &str) {
    let producer: BaseProducer<Tokens> = config.create_with_context(Tokens).expect("a producer");
    for number in 0..COUNT {
        let value = number.to_string();
        producer.send(BaseRecord::to(topic).key("k").payload(&value).partition(0)).expect("it is taken");
    }
    producer.flush(TIMEOUT).expect("all is sent");
    let consumer: BaseConsumer<Tokens> =
        config.clone().set("group.id", "g").create_with_context(Tokens).expect("a consumer");
    let mut partitions = TopicPartitionList::new();
    partitions.add_partition_offset(topic, 0, Offset::Beginning).expect("an offset");
    consumer.assign(&partitions).expect("assigned");
    for number in 0..COUNT {
        let message = consumer.poll(TIMEOUT).expect("it comes").expect("it is not an error");
        assert_eq!(message.payload_view::<str>(), Some(Ok(number.to_string().as_str())));
    }
}
