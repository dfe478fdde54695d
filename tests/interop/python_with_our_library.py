"""confluent_kafka on our C library: SERVERS NAME."""

import sys
import time

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

servers, name = sys.argv[1:]
text, number = confluent_kafka.libversion()
assert text.startswith("2.15.0-ottla") and number == 0x020F00FF, (text, number)

# AdminClient: topics
admin = AdminClient({"bootstrap.servers": servers})
for topic, done in admin.create_topics([NewTopic(name, num_partitions=3, replication_factor=1)]).items():
    done.result(30)
try:
    admin.create_topics([NewTopic(name, num_partitions=3, replication_factor=1)])[name].result(30)
    raise SystemExit("a topic was created twice")
except KafkaException as error:
    assert error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, error
# The broker that is asked may learn of the topic a moment later than the one that created it.
until = time.monotonic() + 30
while name not in admin.list_topics(timeout=30).topics and time.monotonic() < until:
    time.sleep(0.05)
listed = admin.list_topics(timeout=30)
assert len(listed.topics[name].partitions) == 3, listed.topics

# Producer: keys, headers, timestamps (not so old that a broker deletes the records), delivery callbacks, errors
reports = []
began = int(time.time() * 1000) - 60_000
producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "compression.type": "lz4"})
for i in range(1000):
    producer.produce(
        name,
        value=f"value {i}",
        key=f"key {i}",
        partition=i % 3,
        timestamp=began + i,
        headers=[("number", str(i).encode()), ("empty", b"")],
        on_delivery=lambda error, message: reports.append((error, message.partition(), message.offset())),
    )
    producer.poll(0)
assert producer.flush(30) == 0
assert len(reports) == 1000 and all(error is None for error, _, _ in reports), reports[:3]
assert sorted(offset for _, partition, offset in reports if partition == 1) == list(range(333))

# Consumer: assigned, with watermarks, seek, pause, position
consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.partition.eof": True})
assert consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=30) == (0, 334)
consumer.assign([TopicPartition(name, partition, 0) for partition in range(3)])
values, ends = {}, 0
while ends < 3:
    message = consumer.poll(30)
    assert message is not None, "nothing came"
    if message.error():
        assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
        ends += 1
        continue
    i = message.offset() * 3 + message.partition()
    assert message.value() == f"value {i}".encode() and message.key() == f"key {i}".encode()
    assert message.timestamp() == (confluent_kafka.TIMESTAMP_CREATE_TIME, began + i)
    assert message.headers() == [("number", str(i).encode()), ("empty", b"")], message.headers()
    values[i] = True
assert len(values) == 1000, len(values)
assert [p.offset for p in consumer.position([TopicPartition(name, 0)])] == [334]
consumer.seek(TopicPartition(name, 2, 330))
batch = [message for message in consumer.consume(10, timeout=5) if not message.error()]
assert [message.offset() for message in batch] == [330, 331, 332], batch
found = consumer.offsets_for_times([TopicPartition(name, 0, began + 30)], timeout=30)
assert found[0].offset == 10, found
consumer.pause([TopicPartition(name, 0)])
consumer.resume([TopicPartition(name, 0)])
consumer.close()

for topic, done in admin.delete_topics([name]).items():
    done.result(30)
try:
    Producer({"bootstrap.servers": servers, "no.such.property": 1})
    raise SystemExit("an unknown property was taken")
except KafkaException as error:
    assert error.args[0].code() == KafkaError._INVALID_ARG, error
print(f"confluent_kafka {confluent_kafka.version()} on {text}: topics, 1000 produced, 1000 consumed")
