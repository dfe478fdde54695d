"""A copier, by confluent_kafka: SERVERS GROUP INPUT OUTPUT TRANSACTIONAL-ID. What it prints is described in driver.py."""

import random
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

servers, group, source, target, identity = sys.argv[1:6]
RECORDS, SECONDS = 750, 2.0
stops = []
signal.signal(signal.SIGTERM, lambda *_: stops.append(True))
# Records that no transaction has yet, by input partition.
waiting = {}


def say(*words):
    print(int(time.time() * 1000), *words, flush=True)


def on_revoke(_, partitions):
    for partition in partitions:
        waiting.pop(partition.partition, None)


consumer = Consumer(
    {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
        "partition.assignment.strategy": "range",
    }
)
producer = Producer(
    {"bootstrap.servers": servers, "transactional.id": identity, "transaction.timeout.ms": 20000, "linger.ms": 5}
)


def retried(call, *arguments):
    """Repeats a call while its error says that a repetition continues it."""
    while True:
        try:
            return call(*arguments)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
            say("retry", call.__name__, error.args[0].name())


def rewind():
    """Reads again from what is committed."""
    waiting.clear()
    for partition in retried(consumer.committed, consumer.assignment(), 30):
        if partition.offset < 0:
            partition.offset = consumer.get_watermark_offsets(partition, 30)[0]
        consumer.seek(partition)


def collect():
    """Receives until there is enough for a transaction."""
    began = time.monotonic()
    while not stops and time.monotonic() - began < SECONDS:
        count = sum(len(records) for records in waiting.values())
        if count >= RECORDS:
            return
        for message in consumer.consume(RECORDS - count, 0.1):
            if message.error():
                say("error", message.error().name())
                continue
            waiting.setdefault(message.partition(), []).append((message.offset(), message.value()))


def copy():
    """Copies what was received in one transaction."""
    offsets = [TopicPartition(source, partition, records[-1][0] + 1) for partition, records in waiting.items() if records]
    count = 0
    producer.begin_transaction()
    for partition, records in waiting.items():
        for offset, value in records:
            while True:
                try:
                    producer.produce(target, b"%d:%d:%s" % (partition, offset, value), partition=int(value) % 3)
                    break
                except BufferError:
                    producer.poll(0.1)
            count += 1
    retried(producer.send_offsets_to_transaction, offsets, consumer.consumer_group_metadata(), 30)
    if random.random() < 0.1:
        retried(producer.abort_transaction, 30)
        say("aborted", "on-purpose")
        rewind()
        return
    retried(producer.commit_transaction, 30)
    waiting.clear()
    say("committed", count)


retried(producer.init_transactions, 30)
consumer.subscribe([source], on_revoke=on_revoke, on_lost=on_revoke)
while not stops:
    collect()
    if not any(waiting.values()):
        continue
    try:
        copy()
    except KafkaException as exception:
        error = exception.args[0]
        say("error", error.name(), error.str())
        if error.fatal() or not error.txn_requires_abort():
            sys.exit(3)
        try:
            retried(producer.abort_transaction, 30)
        except KafkaException as second:
            say("error", second.args[0].name(), second.args[0].str())
            sys.exit(3)
        say("aborted", error.name())
        if error.code() != KafkaError.ILLEGAL_GENERATION:
            rewind()
        waiting.clear()
consumer.close()
