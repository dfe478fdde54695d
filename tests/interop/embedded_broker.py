"""librdkafka with our embedded broker: what is produced comes back, once and in order."""

import os
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition, libversion
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec

SERVERS = sys.argv[1]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 3
RECORDS = 3000


def done(futures):
    for future in futures.values():
        future.result(20)


def produce_all(topic, codec):
    failed = []

    def report(error, message):
        if error is not None:
            failed.append(str(error))

    producer = Producer(
        {"bootstrap.servers": SERVERS, "enable.idempotence": True, "compression.type": codec, "linger.ms": 5}
    )
    for i in range(RECORDS):
        producer.produce(
            topic,
            key=str(i),
            value=f"{codec}-{i}",
            headers=[("h", b"x"), ("h", None)],
            partition=i % PARTITIONS,
            timestamp=1_600_000_000_000 + i,
            on_delivery=report,
        )
        producer.poll(0)
    left = producer.flush(30)
    assert left == 0 and not failed, (codec, left, failed[:3])


def read(consumer, count):
    messages, end = [], time.time() + 60
    while len(messages) < count and time.time() < end:
        for message in consumer.consume(1000, 0.5):
            assert message.error() is None, message.error()
            messages.append(message)
    assert len(messages) == count, f"{len(messages)} of {count} messages came back"
    return messages


def check_codec(admin, codec):
    topic = f"rdkafka-{codec}"
    done(admin.create_topics([NewTopic(topic, PARTITIONS, 2)]))
    produce_all(topic, codec)
    consumer = Consumer({"bootstrap.servers": SERVERS, "group.id": "none", "check.crcs": True})
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    for partition in range(PARTITIONS):
        expected = RECORDS // PARTITIONS
        assert consumer.get_watermark_offsets(TopicPartition(topic, partition), 10) == (0, expected)
    next_offset = [0] * PARTITIONS
    for message in read(consumer, RECORDS):
        partition = message.partition()
        assert message.offset() == next_offset[partition]
        number = next_offset[partition] * PARTITIONS + partition
        next_offset[partition] += 1
        assert (message.key(), message.value()) == (str(number).encode(), f"{codec}-{number}".encode())
        assert message.headers() == [("h", b"x"), ("h", None)]
    # Record 1501 is the 501st of partition 1.
    found = consumer.offsets_for_times([TopicPartition(topic, 1, 1_600_000_000_000 + 1500)], 10)
    assert found[0].offset == 500, (codec, found)
    consumer.close()


def check_group(topic, group, more, subscription):
    """Two members share the partitions, commit, leave, and a third one goes on after them."""
    settings = {
        "bootstrap.servers": SERVERS,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **more,
    }
    members = [Consumer(settings) for _ in range(2)]
    for member in members:
        member.subscribe([topic])
    seen, end = set(), time.time() + 60
    while (len(seen) < RECORDS or not all(m.assignment() for m in members)) and time.time() < end:
        for member in members:
            for message in member.consume(500, 0.1):
                assert message.error() is None, message.error()
                seen.add((message.partition(), message.offset()))
    assert len(seen) == RECORDS, len(seen)
    shares = [{p.partition for p in member.assignment()} for member in members]
    assert all(shares) and shares[0] | shares[1] == set(range(PARTITIONS)) and not shares[0] & shares[1], shares
    for member in members:
        member.commit(offsets=[TopicPartition(topic, p, 900) for p in shares.pop(0)], asynchronous=False)
        member.close()
    third = Consumer(settings)
    third.subscribe([subscription])
    rest = read(third, PARTITIONS * 100)
    assert min(message.offset() for message in rest) == 900
    third.close()


def check_admin(admin):
    done(admin.create_topics([NewTopic("rdkafka-admin", 2, 3, config={"retention.ms": "1000"})]))
    try:
        done(admin.create_topics([NewTopic("rdkafka-admin", 2, 3)]))
        raise AssertionError("a topic was created twice")
    except KafkaException as error:
        assert error.args[0].name() == "TOPIC_ALREADY_EXISTS", error
    done(admin.create_partitions([NewPartitions("rdkafka-admin", 5)]))
    assert len(admin.list_topics("rdkafka-admin", 10).topics["rdkafka-admin"].partitions) == 5
    resource = ConfigResource(ConfigResource.Type.TOPIC, "rdkafka-admin")
    configs = admin.describe_configs([resource])[resource].result(10)
    assert configs["retention.ms"].value == "1000"
    assert len(admin.describe_cluster().result(10).nodes) == 3
    latest = admin.list_offsets({TopicPartition("rdkafka-zstd", 0): OffsetSpec.latest()})
    assert [f.result(10).offset for f in latest.values()] == [RECORDS // PARTITIONS]
    deleted = admin.delete_records([TopicPartition("rdkafka-zstd", 0, 10)])
    assert [f.result(10).low_watermark for f in deleted.values()] == [10]
    done(admin.delete_topics(["rdkafka-admin"]))


def not_checked(what, why):
    """Says that something was not checked; see tests/support.bash."""
    line = f"NOT CHECKED: {what}, because {why}"
    print(line)
    if path := os.environ.get("OTTLA_NOT_CHECKED"):
        with open(path, "a", encoding="utf-8") as file:
            print(line, file=file)


def main():
    admin = AdminClient({"bootstrap.servers": SERVERS})
    for codec in CODECS:
        check_codec(admin, codec)
    classic = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}
    check_group("rdkafka-lz4", "rdkafka-group", classic, "rdkafka-lz4")
    if libversion()[1] >= 0x020A0000:
        check_group("rdkafka-lz4", "rdkafka-consumer-group", {"group.protocol": "consumer"}, "^rdkafka-l.4$")
    else:
        not_checked("groups of the consumer protocol", "this librdkafka is too old for them")
    check_admin(admin)
    print("librdkafka", libversion()[0], "agrees")


main()
