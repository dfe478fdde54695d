"""librdkafka's transactions with our embedded broker: SERVERS."""

import sys
import time

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaException,
    Producer,
    TopicPartition,
    libversion,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

SERVERS = sys.argv[1]
PARTITIONS = 3
RECORDS = 600


def new_topic(admin, name):
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 3)]).values():
        future.result(20)
    return name


def producer(name):
    return Producer({"bootstrap.servers": SERVERS, "transactional.id": name, "linger.ms": 5})


def end(admin, topic, partition, isolation):
    spec = {TopicPartition(topic, partition): OffsetSpec.latest()}
    return list(admin.list_offsets(spec, isolation_level=isolation).values())[0].result(10).offset


def values(admin, topic, partition, isolation="read_committed"):
    """Reads a partition to its end."""
    last = end(admin, topic, partition, IsolationLevel.READ_COMMITTED)
    consumer = Consumer({"bootstrap.servers": SERVERS, "group.id": "none", "isolation.level": isolation})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    read, deadline = [], time.time() + 60
    while True:
        for message in consumer.consume(1000, 0.2):
            assert message.error() is None, message.error()
            read.append(message.value().decode())
        position = consumer.position([TopicPartition(topic, partition)])[0].offset
        if position >= last:
            break
        assert time.time() < deadline, f"stuck at {position} of {last}"
    consumer.close()
    return read


def check_ends(admin):
    topic = new_topic(admin, "rdkafka-txn-ends")
    writer = producer("rdkafka-ends")
    writer.init_transactions(30)
    expected = []
    for i in range(60):
        commits = i % 3 != 1
        writer.begin_transaction()
        for partition in range(PARTITIONS):
            writer.produce(topic, f"{'good' if commits else 'bad'} {i}", partition=partition)
        if commits:
            writer.commit_transaction(30)
            expected.append(f"good {i}")
        else:
            writer.flush(30)
            writer.abort_transaction(30)
    for partition in range(PARTITIONS):
        assert values(admin, topic, partition) == expected
    everything = values(admin, topic, 0, "read_uncommitted")
    assert everything == [f"{'bad' if i % 3 == 1 else 'good'} {i}" for i in range(60)], everything


def check_fencing(admin):
    topic = new_topic(admin, "rdkafka-txn-fencing")
    first, second = producer("rdkafka-fencing"), producer("rdkafka-fencing")
    first.init_transactions(30)
    first.begin_transaction()
    first.produce(topic, "of the first", partition=0)
    first.flush(30)
    assert end(admin, topic, 0, IsolationLevel.READ_COMMITTED) == 0
    assert end(admin, topic, 0, IsolationLevel.READ_UNCOMMITTED) == 1
    second.init_transactions(30)
    try:
        first.commit_transaction(30)
        raise AssertionError("the first producer was not fenced")
    except KafkaException as error:
        assert error.args[0].fatal() and error.args[0].name() == "_FENCED", error
    second.begin_transaction()
    second.produce(topic, "of the second", partition=0)
    second.commit_transaction(30)
    assert values(admin, topic, 0) == ["of the second"]


def check_copy(admin, protocol, more):
    """Copies records with their offsets; every third transaction aborts and is done again."""
    source, target = new_topic(admin, f"rdkafka-from-{protocol}"), new_topic(admin, f"rdkafka-to-{protocol}")
    writer = Producer({"bootstrap.servers": SERVERS})
    for i in range(RECORDS):
        writer.produce(source, f"value {i}", partition=i % PARTITIONS)
    writer.flush(30)
    reader = Consumer(
        {
            "bootstrap.servers": SERVERS,
            "group.id": f"rdkafka-copy-{protocol}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            **more,
        }
    )
    reader.subscribe([source])
    copier = producer(f"rdkafka-copy-{protocol}")
    copier.init_transactions(30)
    copied, transactions, deadline = 0, 0, time.time() + 60
    while copied < RECORDS:
        assert time.time() < deadline, f"{copied} of {RECORDS}"
        messages = reader.consume(20, 0.2)
        if not messages:
            continue
        copier.begin_transaction()
        offsets = {}
        for message in messages:
            assert message.error() is None, message.error()
            copier.produce(target, message.value(), partition=message.partition())
            offsets[message.partition()] = message.offset() + 1
        positions = [TopicPartition(source, p, offset) for p, offset in offsets.items()]
        copier.send_offsets_to_transaction(positions, reader.consumer_group_metadata(), 30)
        transactions += 1
        if transactions % 3 == 0:
            copier.abort_transaction(30)
            for position in reader.committed([TopicPartition(source, p) for p in offsets], 10):
                position.offset = max(position.offset, 0)
                reader.seek(position)
        else:
            copier.commit_transaction(30)
            copied += len(messages)
    committed = reader.committed([TopicPartition(source, p) for p in range(PARTITIONS)], 10)
    assert [position.offset for position in committed] == [RECORDS // PARTITIONS] * PARTITIONS, committed
    reader.close()
    for partition in range(PARTITIONS):
        expected = [f"value {i}" for i in range(RECORDS) if i % PARTITIONS == partition]
        assert values(admin, target, partition) == expected


def main():
    admin = AdminClient({"bootstrap.servers": SERVERS})
    check_ends(admin)
    check_fencing(admin)
    check_copy(admin, "classic", {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200})
    check_copy(admin, "consumer", {"group.protocol": "consumer"})
    print("librdkafka", libversion()[0], "agrees on transactions")


main()
