"""librdkafka with the TLS and SASL listeners of our embedded broker: FILE, which has the properties of each listener."""

import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition, libversion
from confluent_kafka.admin import AdminClient

checks = 0


def listeners():
    for text in open(sys.argv[1]).read().strip().split("\n\n"):
        yield dict(line.split("=", 1) for line in text.splitlines())


def works(client, what, seconds=0.0):
    """Sends records and reads them, for longer than a session if `seconds` says so."""
    global checks
    topic = f"librdkafka-{checks}"
    failed = []
    errors = []
    client = dict(client, error_cb=errors.append)
    producer = Producer(client)
    consumer = Consumer(dict(client, **{"group.id": "none"}))
    sent = received = 0
    end = time.monotonic() + seconds
    while sent == 0 or time.monotonic() < end:
        producer.produce(topic, str(sent), partition=0, on_delivery=lambda error, _: error and failed.append(error))
        sent += 1
        assert producer.flush(20) == 0 and not failed, (what, failed, errors)
        if sent == 1:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        message = consumer.poll(0.02)
        received += message is not None and message.error() is None
    end = time.monotonic() + 20
    while received < sent and time.monotonic() < end:
        message = consumer.poll(1)
        received += message is not None and message.error() is None
    assert received == sent, (what, received, sent, errors)
    consumer.close()
    checks += 1


def fails(client, code, text, what):
    """Waits for an error with this code and text."""
    global checks
    errors = []
    admin = AdminClient(dict(client, error_cb=errors.append))
    found = lambda: any(error.code() == code and text in error.str() for error in errors)
    end = time.monotonic() + 20
    while not found() and time.monotonic() < end:
        admin.poll(0.1)
    assert found(), (what, errors[:3])
    try:
        admin.list_topics(timeout=0.2)
        raise AssertionError(f"{what}: it works")
    except KafkaException:
        checks += 1


for client in listeners():
    # Failures are expected, and errors reach the callback.
    client["log_level"] = "0"
    mechanism = client.pop("sasl.mechanisms", None)
    if client.get("security.protocol") == "ssl":
        works(client, "TLS")
        if "ssl.key.location" in client:
            anonymous = {name: value for name, value in client.items() if "key" not in name and "certificate" not in name}
            fails(anonymous, KafkaError._TRANSPORT, "certificate required", "no client certificate")
        stranger = {name: value for name, value in client.items() if name != "ssl.ca.location"}
        fails(stranger, KafkaError._SSL, "certificate verify failed", "unknown CA")
    if mechanism is None:
        continue
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]:
        # Sessions are 2 s: the connections authenticate again.
        works(dict(client, **{"sasl.mechanisms": mechanism}), mechanism, 2.5 if mechanism == "SCRAM-SHA-512" else 0)
        wrong = {"sasl.mechanisms": mechanism, "sasl.password": "another"}
        fails(dict(client, **wrong), KafkaError._AUTHENTICATION, "Authentication failed", f"{mechanism}, wrong password")
    for name in ["sasl.username", "sasl.password"]:
        client.pop(name)
    unsecured = {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": "principal=alice"}
    works(dict(client, **{"sasl.mechanisms": "OAUTHBEARER"}, **unsecured), "OAUTHBEARER")
print(f"librdkafka {libversion()[0]}: {checks} checks")
