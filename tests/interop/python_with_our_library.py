"""confluent_kafka on our C library: SERVERS NAME."""

import sys
import time

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

servers, name = sys.argv[1:]
text, number = confluent_kafka.libversion()
assert text.startswith("2.16.0-ottla") and number == 0x021000FF, (text, number)

# AdminClient: topics
admin = AdminClient({"bootstrap.servers": servers})
for topic, done in admin.create_topics([NewTopic(name, num_partitions=3, replication_factor=1)]).items():
    done.result(30)
try:
    admin.create_topics([NewTopic(name, num_partitions=3, replication_factor=1)])[name].result(30)
    raise SystemExit("a topic was created twice")
except KafkaException as error:
    assert error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, error
# The broker that gets the request may learn of the topic slightly later than the one that created it.
until = time.monotonic() + 30
while name not in admin.list_topics(timeout=30).topics and time.monotonic() < until:
    time.sleep(0.05)
listed = admin.list_topics(timeout=30)
assert len(listed.topics[name].partitions) == 3, listed.topics

# Producer: keys, headers, timestamps (not so old that a broker deletes the records), delivery callbacks, errors
reports = []
began = int(time.time() * 1000) - 60_000
# A retried batch of another producer may follow newer ones.
producer = Producer(
    {"bootstrap.servers": servers, "linger.ms": 5, "compression.type": "lz4", "enable.idempotence": True}
)
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
    assert (message.value(), message.key()) == (f"value {i}".encode(), f"key {i}".encode()), message.value()
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

# Consumer: a member of a group, with callbacks, alone and beside another member
held, committed = {}, []


def member(number, group, settings):
    is_incremental = group != "range"
    held[number] = set()

    def on_assign(consumer, partitions):
        held[number] |= {partition.partition for partition in partitions}
        (consumer.incremental_assign if is_incremental else consumer.assign)(partitions)

    def on_revoke(consumer, partitions):
        held[number] -= {partition.partition for partition in partitions}

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{name}-{group}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "on_commit": lambda error, partitions: committed.append((error, len(partitions))),
            **settings,
        }
    )
    consumer.subscribe([name], on_assign=on_assign, on_revoke=on_revoke)
    return consumer


groups = {
    "range": {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 300},
    "cooperative-sticky": {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 300},
    "consumer": {"group.protocol": "consumer"},
}
for group, settings in groups.items():
    first, read = member(1, group, settings), set()
    until = time.monotonic() + 60
    while len(read) < 1000 and time.monotonic() < until:
        for message in first.consume(100, timeout=0.2):
            assert not message.error(), message.error()
            read.add((message.partition(), message.offset()))
    assert len(read) == 1000 and held[1] == {0, 1, 2}, (len(read), held)
    committed.clear()
    first.commit()
    while not committed:
        assert time.monotonic() < until, "the commit has no result"
        first.poll(0.05)
    assert committed == [(None, 3)], committed
    second = member(2, group, settings)
    while held[1] | held[2] != {0, 1, 2} or not held[1] or not held[2] or held[1] & held[2]:
        assert time.monotonic() < until, held
        assert first.poll(0.05) is None
        message = second.poll(0.05)
        assert message is None, "everything was committed"
    assert {p.partition for p in first.assignment()} == held[1], (first.assignment(), held)
    assert first.consumer_group_metadata() is not None
    first.close()
    assert held[1] == set(), held
    while held[2] != {0, 1, 2}:
        assert time.monotonic() < until, held
        assert second.poll(0.05) is None
    offsets = second.committed([TopicPartition(name, partition) for partition in range(3)], timeout=30)
    assert [partition.offset for partition in offsets] == [334, 333, 333], offsets
    second.close()

# Transactions: one is committed with the offsets of a group, one is aborted, and a newer producer fences the older one.
def transactional():
    created = Producer({"bootstrap.servers": servers, "transactional.id": name})
    created.init_transactions(30)
    return created


reader = Consumer({"bootstrap.servers": servers, "group.id": f"{name}-read", "enable.partition.eof": True})
older = transactional()
for value, is_committed in (("committed", True), ("aborted", False)):
    older.begin_transaction()
    older.produce(name, value=value, partition=0)
    older.flush(30)
    older.send_offsets_to_transaction([TopicPartition(name, 1, 7)], reader.consumer_group_metadata(), 30)
    older.commit_transaction(30) if is_committed else older.abort_transaction(30)
newer = transactional()
try:
    older.begin_transaction()
    older.produce(name, value="late", partition=0)
    try:
        older.commit_transaction(30)
    except KafkaException as error:
        # The partition's leader does not know whether a timeout or a newer producer has raised the epoch.
        if not error.args[0].txn_requires_abort():
            raise
        older.abort_transaction(30)
    raise SystemExit("two producers have one transactional.id")
except KafkaException as error:
    assert error.args[0].fatal() and error.args[0].code() == KafkaError._FENCED, error
newer.begin_transaction()
newer.produce(name, value="of the newer", partition=0)
newer.commit_transaction(30)
reader.assign([TopicPartition(name, 0, 334)])
values, until = [], time.monotonic() + 60
while values != ["committed", "of the newer"]:
    assert time.monotonic() < until and len(values) <= 2, values
    message = reader.poll(1)
    if message is not None and not message.error():
        values.append(message.value().decode())
assert [partition.offset for partition in reader.committed([TopicPartition(name, 1)], timeout=30)] == [7]
reader.close()

for topic, done in admin.delete_topics([name]).items():
    done.result(30)
try:
    Producer({"bootstrap.servers": servers, "no.such.property": 1})
    raise SystemExit("an unknown property was taken")
except KafkaException as error:
    assert error.args[0].code() == KafkaError._INVALID_ARG, error
print(f"confluent_kafka {confluent_kafka.version()} on {text}: topics, 1000 produced, 1000 consumed, transactions, two members of a group: {', '.join(groups)}")
