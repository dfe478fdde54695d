#!/usr/bin/env python3
"""Record batches by librdkafka, through its Python binding and a server of ours that knows just enough of Kafka.

  librdkafka.py write FOLDER   has librdkafka produce FOLDER/records.txt and large.txt in every format and codec, and keeps
                               the batches that it sends as FOLDER/librdkafka-*.bin
  librdkafka.py read FILE...   serves each file as a topic to librdkafka's consumer and prints every record

A record is a line: offset, timestamp, key, value, headers. See tests/golden/batches/README.md.
"""

import socket
import struct
import sys
import threading
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, API_VERSIONS = 0, 1, 2, 3, 10, 18
COORDINATOR_NOT_AVAILABLE, UNSUPPORTED_VERSION = 15, 35
# The Produce version of a broker by the format of its log, and the Fetch version.
PRODUCE_VERSIONS = {0: 1, 1: 2, 2: 7}
FETCH_VERSION = 10


class Server:
    """A broker with one partition per topic, which stores and serves record batches unchanged."""

    def __init__(self, magic, topics):
        self.magic = magic
        self.topics = topics
        self.produced = {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def close(self):
        self.listener.close()

    def serve(self, connection):
        stream = connection.makefile("rb")
        while len(size := stream.read(4)) == 4:
            frame = Frame(stream.read(struct.unpack(">i", size)[0]))
            api, version, correlation = frame.take(">hhi")
            frame.string()
            body = self.answer(api, version, frame)
            if body is not None:
                answer = struct.pack(">i", correlation) + body
                connection.sendall(struct.pack(">i", len(answer)) + answer)

    def answer(self, api, version, frame):
        if api == API_VERSIONS:
            error = UNSUPPORTED_VERSION if version > 0 else 0
            served = [(PRODUCE, 0, PRODUCE_VERSIONS[self.magic]), (FETCH, 0, FETCH_VERSION), (LIST_OFFSETS, 0, 1)]
            served += [(METADATA, 0, 1), (FIND_COORDINATOR, 0, 0), (API_VERSIONS, 0, 0)]
            return struct.pack(">hi", error, len(served)) + b"".join(struct.pack(">hhh", *api) for api in served)
        if api == METADATA:
            return self.metadata(version)
        if api == PRODUCE:
            return self.produce(version, frame)
        if api == FETCH:
            return self.fetch(version, frame)
        if api == FIND_COORDINATOR:
            return struct.pack(">hi", COORDINATOR_NOT_AVAILABLE, -1) + string("") + struct.pack(">i", -1)
        raise ValueError(f"API {api} was not offered")

    def metadata(self, version):
        rack = b"" if version == 0 else struct.pack(">h", -1)
        body = struct.pack(">ii", 1, 0) + string("127.0.0.1") + struct.pack(">i", self.port) + rack
        body += (b"" if version == 0 else struct.pack(">i", 0)) + struct.pack(">i", len(self.topics))
        for topic in self.topics:
            body += struct.pack(">h", 0) + string(topic) + (b"" if version == 0 else b"\0")
            body += struct.pack(">ihii", 1, 0, 0, 0) + struct.pack(">ii", 1, 0) * 2
        return body

    def produce(self, version, frame):
        if version >= 3:
            frame.string()
        acks, _timeout, topics = frame.take(">hii")
        body = struct.pack(">i", topics)
        for _ in range(topics):
            topic = frame.string()
            (partitions,) = frame.take(">i")
            body += string(topic) + struct.pack(">i", partitions)
            for _ in range(partitions):
                partition, size = frame.take(">ii")
                self.produced[topic] = self.produced.get(topic, b"") + frame.bytes(size)
                body += struct.pack(">ihq", partition, 0, 0)
                body += struct.pack(">q", -1) if version >= 2 else b""
                body += struct.pack(">q", 0) if version >= 5 else b""
        body += struct.pack(">i", 0) if version >= 1 else b""
        return body if acks != 0 else None

    def fetch(self, version, frame):
        if version != FETCH_VERSION:
            raise ValueError(f"Fetch version {version}")
        frame.take(">iiiibii")
        (topics,) = frame.take(">i")
        body = struct.pack(">ihii", 0, 0, 0, topics)
        for _ in range(topics):
            topic = frame.string()
            (partitions,) = frame.take(">i")
            body += string(topic) + struct.pack(">i", partitions)
            for _ in range(partitions):
                partition, _epoch, offset, _start, _max = frame.take(">iiqqi")
                records = self.topics[topic] if offset == 0 else b""
                body += struct.pack(">ihqqqi", partition, 0, 10_000, 10_000, 0, -1)
                body += struct.pack(">i", len(records)) + records
        return body


class Frame:
    def __init__(self, data):
        self.data, self.position = data, 0

    def take(self, layout):
        values = struct.unpack_from(layout, self.data, self.position)
        self.position += struct.calcsize(layout)
        return values

    def bytes(self, size):
        self.position += size
        return self.data[self.position - size : self.position]

    def string(self):
        (size,) = self.take(">h")
        return None if size < 0 else self.bytes(size).decode()


def string(text):
    return struct.pack(">h", len(text)) + text.encode()


def write(folder):
    for magic in PRODUCE_VERSIONS:
        for codec in ["none", "gzip", "snappy", "lz4", "zstd"]:
            for lines, suffix in [("records.txt", ""), ("large.txt", "-large")]:
                if (codec == "zstd" and magic < 2) or (codec == "none" and suffix):
                    continue
                name = f"librdkafka-v{magic}-{codec}{suffix}"
                (folder / f"{name}.bin").write_bytes(produced(name, magic, codec, folder / lines))


def produced(name, magic, codec, lines):
    server = Server(magic, {name: b""})
    producer = Producer({
        "bootstrap.servers": f"127.0.0.1:{server.port}",
        "compression.codec": codec,
        # flush() ends it; a busy machine may take long to produce what belongs into one batch.
        "linger.ms": 3000,
        "request.required.acks": 1,
        "message.timeout.ms": 10_000,
    })
    failures = []
    for line in lines.read_text().splitlines():
        timestamp, key, value, headers = line.split(" ")
        pairs = [] if headers == "." or magic < 2 else [header.split("=") for header in headers.split(",")]
        producer.produce(
            name,
            partition=0,
            key=parse(key),
            value=parse(value),
            timestamp=int(timestamp),
            headers=[(parse(name).decode(), parse(value)) for name, value in pairs],
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    if producer.flush(20) or failures:
        sys.exit(f"{name}: librdkafka could not produce: {failures or 'timeout'}")
    server.close()
    return server.produced[name]


def read(files):
    topics = {file.stem: file.read_bytes() for file in files}
    server = Server(2, topics)
    consumer = Consumer({
        "bootstrap.servers": f"127.0.0.1:{server.port}",
        "group.id": "none",
        "enable.auto.commit": False,
        "check.crcs": True,
    })
    consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
    lines = {topic: [] for topic in topics}
    # The first responses contain all topics; later ones are empty.
    while (message := consumer.poll(2 if all(lines.values()) else 20)) is not None:
        if message.error():
            raise KafkaException(message.error())
        kind, timestamp = message.timestamp()
        pairs = [f"{write_field(key.encode())}={write_field(value)}" for key, value in message.headers() or []]
        fields = [message.offset(), timestamp if kind else -1, write_field(message.key())]
        fields += [write_field(message.value()), ",".join(pairs) or "."]
        lines[message.topic()].append(" ".join(map(str, fields)))
    consumer.close()
    for topic, found in lines.items():
        print(f"# {topic}", *found, sep="\n")
    server.close()


def parse(field):
    if field == "-":
        return None
    return generated(int(field[1:])) if field[0] == "g" else bytes.fromhex(field[1:])


def write_field(field):
    if field is None:
        return "-"
    if len(field) >= 30 and field == generated(len(field)):
        return f"g{len(field)}"
    return "x" + field.hex()


def generated(length):
    return bytes(ord("a") + i * i // 100 % 26 for i in range(length))


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    elif len(sys.argv) > 2 and sys.argv[1] == "read":
        read([Path(file) for file in sys.argv[2:]])
    else:
        sys.exit(__doc__)
