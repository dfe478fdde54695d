"""confluent_kafka on our C library, with TLS and every SASL mechanism: FILE, which has the properties."""

import base64
import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

COUNT = 100
properties = dict(line.split("=", 1) for line in open(sys.argv[1]).read().split("\n") if line)


def token(_):
    """An unsecured token of an hour."""
    part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    end = time.time() + 3600
    return f"{part({'alg': 'none'})}.{part({'sub': 'alice', 'iat': end - 3600, 'exp': end})}.", end


for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]:
    client = dict(properties, **{"sasl.mechanisms": mechanism})
    if mechanism == "OAUTHBEARER":
        client["oauth_cb"] = token
    errors = []
    producer = Producer(dict(client, error_cb=errors.append))
    for number in range(COUNT):
        producer.produce(mechanism, str(number), partition=0)
    assert producer.flush(30) == 0, (mechanism, errors)
    consumer = Consumer(dict(client, error_cb=errors.append, **{"group.id": "g"}))
    consumer.assign([TopicPartition(mechanism, 0, 0)])
    for number in range(COUNT):
        message = consumer.poll(30)
        assert message is not None and message.error() is None, (mechanism, message and message.error(), errors)
        assert message.value() == str(number).encode(), (mechanism, message.value())
    consumer.close()
    assert mechanism in AdminClient(client).list_topics(timeout=30).topics
    print(f"the Python client over SASL_SSL with {mechanism}: {COUNT} records")

# A wrong password is reported, and new credentials are used by the next connection.
errors = []
producer = Producer(dict(properties, error_cb=errors.append, **{"sasl.password": "another"}))
producer.produce("later", "value", partition=0)
until = time.monotonic() + 30
while not any(error.code() == KafkaError._AUTHENTICATION for error in errors) and time.monotonic() < until:
    producer.poll(0.1)
assert any(error.code() == KafkaError._AUTHENTICATION for error in errors), errors
try:
    producer.list_topics(timeout=0.1)
    raise SystemExit("a wrong password is accepted")
except KafkaException:
    pass
producer.set_sasl_credentials("alice", "alice-secret")
assert producer.flush(30) == 0, errors
print("the Python client over SASL_SSL: a wrong password is refused, and replaced")
