"""A member of a group, by confluent_kafka: SERVERS GROUP TOPIC PROTOCOL. What it prints is described in driver.py."""

import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

servers, group, topic, protocol = sys.argv[1:]
held = set()
ended = []
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: ended.append(True))


def say(*words):
    print(int(time.time() * 1000), *words, flush=True)


def say_held():
    say("held", ",".join(str(partition) for partition in sorted(held)) or "-")


def on_assign(_, partitions):
    held.update(partition.partition for partition in partitions)
    say_held()


def on_revoke(_, partitions):
    held.difference_update(partition.partition for partition in partitions)
    say_held()


settings = {
    "bootstrap.servers": servers,
    "group.id": group,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
if protocol == "consumer":
    settings["group.protocol"] = "consumer"
else:
    settings |= {
        "partition.assignment.strategy": protocol,
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
    }
consumer = Consumer(settings)
consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_revoke)
while not ended:
    offsets = {}
    for message in consumer.consume(50, timeout=0.1):
        if message.error():
            say("error", message.error())
            continue
        say("got", message.partition(), message.offset())
        offsets[message.partition()] = message.offset() + 1
    if not offsets:
        continue
    try:
        done = consumer.commit(
            offsets=[TopicPartition(topic, partition, offset) for partition, offset in offsets.items()],
            asynchronous=False,
        )
        for partition in done:
            if partition.error is None:
                say("commit", partition.partition, partition.offset)
    except KafkaException as error:
        say("error", error)
consumer.close()
