"""Compares ottla-schema-registry with Confluent's Python serializers, through the embedded registry.

    confluent.py write FILE URL     writes the table of schemas, values and bytes that Confluent's serializers make
    confluent.py read FILE URL      reads with Confluent's deserializers what ours wrote (lines of JSON)

The tables of Avro are made from a seed. Needs confluent-kafka[avro,protobuf,json,schemaregistry] and grpcio-tools.
"""

import io
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import fastavro
from confluent_kafka.schema_registry import (

    SchemaRegistryClient,
    header_schema_id_serializer,
    dual_schema_id_deserializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

SEED = 20260101
SCHEMAS = 60
VALUES = 4


class Generator:
    """Makes schemas of Avro and values for them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = 0

    def name(self):
        self.names += 1
        return f"T{self.names}"

    def schema(self, depth):
        primitive = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
        kinds = ["primitive"] * 4 + ["enum", "fixed"]
        if depth > 0:
            kinds += ["record", "array", "map", "union"] * 2
        kind = self.random.choice(kinds)
        if kind == "primitive":
            return self.random.choice(primitive)
        if kind == "enum":
            return {"type": "enum", "name": self.name(), "symbols": ["A", "B", "C"]}
        if kind == "fixed":
            return {"type": "fixed", "name": self.name(), "size": self.random.randint(1, 17)}
        if kind == "array":
            return {"type": "array", "items": self.schema(depth - 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth - 1)}
        if kind == "union":
            branches = self.random.sample(["null", "boolean", "long", "double", "string"], self.random.randint(1, 4))
            if self.random.random() < 0.5:
                branches.append(self.record(depth - 1))
            return branches
        return self.record(depth - 1)

    def record(self, depth):
        fields = [{"name": f"f{n}", "type": self.schema(depth)} for n in range(self.random.randint(1, 5))]
        record = {"type": "record", "name": self.name(), "namespace": "table", "fields": fields}
        return record

    def value(self, schema):
        r = self.random
        if isinstance(schema, list):
            return self.value(r.choice(schema))
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind == "null":
            return None
        if kind == "boolean":
            return r.random() < 0.5
        if kind == "int":
            return r.choice([0, -1, 1, 63, -64, 64, 2**31 - 1, -(2**31), r.randint(-(2**31), 2**31 - 1)])
        if kind == "long":
            return r.choice([0, -1, 2**63 - 1, -(2**63), r.randint(-(2**40), 2**40)])
        if kind == "float":
            return r.choice([0.0, -1.5, 3.25, 1e10, struct.unpack("<f", struct.pack("<f", r.random()))[0]])
        if kind == "double":
            return r.choice([0.0, -1.5, 1e300, 5e-324, r.random()])
        if kind == "bytes":
            return r.randbytes(r.randint(0, 9))
        if kind == "string":
            return r.choice(["", "a", "Grüße", "\u0001\"\\", "日本", "x" * 100])
        if kind == "enum":
            return r.choice(schema["symbols"])
        if kind == "fixed":
            return r.randbytes(schema["size"])
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(r.randint(0, 3))]
        if kind == "map":
            return {f"k{n}": self.value(schema["values"]) for n in range(r.randint(0, 2))}
        return {field["name"]: self.value(field["type"]) for field in schema["fields"]}


def avro_json(schema, value):
    """The value in Avro's JSON encoding, as fastavro writes it."""
    out = io.StringIO()
    fastavro.json_writer(out, fastavro.parse_schema(schema), [value])
    return json.loads(out.getvalue() or "null")


class Table:
    def __init__(self, url):
        self.client = SchemaRegistryClient({"url": url})
        self.rows = []

    def add(self, kind, topic, schema, value, payload, **more):
        row = {"format": kind, "topic": topic, "schema": schema, "value": value}
        row["bytes"] = payload[5:].hex() if payload[0] == 0 and "header" not in more else payload.hex()
        row.update(more)
        self.rows.append(row)


def avro_rows(table):
    generator = Generator(SEED)
    for number in range(SCHEMAS):
        schema = generator.record(3)
        topic = f"avro-{number}"
        serializer = AvroSerializer(table.client, json.dumps(schema))
        deserializer = AvroDeserializer(table.client)
        context = SerializationContext(topic, MessageField.VALUE)
        for _ in range(VALUES):
            value = generator.value(schema)
            payload = serializer(value, context)
            assert deserializer(payload, context) == value or "float" in json.dumps(schema)
            table.add("AVRO", topic, json.dumps(schema), avro_json(schema, value), payload)
    logical(table)
    resolutions(table)


def logical(table):
    """Logical types have the bytes of the type under them."""
    import datetime
    import decimal
    import uuid

    def of(logical, kind, **more):
        return {"type": kind, "logicalType": logical, **more}

    cases = [
        (of("decimal", "bytes", precision=9, scale=2), decimal.Decimal("-12.34"), "\u00fb\u002e"),
        (of("date", "int"), datetime.date(2026, 1, 2), 20455),
        (of("time-millis", "int"), datetime.time(1, 2, 3), 3723000),
        (of("timestamp-micros", "long"), datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), 1767312000000000),
        (of("uuid", "string"), uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    ]
    for number, (kind, value, shown) in enumerate(cases):
        schema = {"type": "record", "name": "L", "fields": [{"name": "v", "type": kind}]}
        topic = f"logical-{number}"
        payload = AvroSerializer(table.client, json.dumps(schema))({"v": value}, SerializationContext(topic, MessageField.VALUE))
        table.add("AVRO", topic, json.dumps(schema), {"v": shown}, payload)


def resolutions(table):
    """Pairs of a writer's and a reader's schema."""

    def record(*fields):
        return json.dumps({"type": "record", "name": "R", "fields": list(fields)})

    def field(name, kind, **more):
        return {"name": name, "type": kind, **more}

    enum = lambda *symbols, **more: {"type": "enum", "name": "E", "symbols": list(symbols), **more}
    cases = [
        (record(field("a", "int")), record(field("a", "double")), {"a": 3}),
        (record(field("a", "int")), record(field("a", "long"), field("b", "string", default="x")), {"a": 3}),
        (record(field("a", "int"), field("b", "string")), record(field("b", "string")), {"a": 3, "b": "y"}),
        (record(field("old", "int")), record(field("new", "int", aliases=["old"])), {"old": 4}),
        (record(field("a", "string")), record(field("a", ["null", "string"])), {"a": "z"}),
        (record(field("a", ["null", "string"])), record(field("a", "string")), {"a": "z"}),
        (record(field("e", enum("A", "B"))), record(field("e", enum("A", default="A"))), {"e": "B"}),
        (record(field("a", {"type": "array", "items": "int"})), record(field("a", {"type": "array", "items": "float"})), {"a": [1, 2]}),
        (record(field("a", "int")), record(field("a", "int"), field("m", {"type": "map", "values": "int"}, default={"k": 1})), {"a": 1}),
    ]
    for number, (writer, reader, value) in enumerate(cases):
        topic = f"resolution-{number}"
        context = SerializationContext(topic, MessageField.VALUE)
        payload = AvroSerializer(table.client, writer)(value, context)
        read = AvroDeserializer(table.client, reader)(payload, context)
        table.add("AVRO", topic, writer, avro_json(json.loads(writer), value), payload, reader=reader,
                  read=avro_json(json.loads(reader), read))


PROTOS = {
    "scalars.proto": """syntax = "proto3"; package table;
message Scalars { int32 i = 1; int64 l = 2; uint32 u = 3; uint64 ul = 4; sint32 s = 5; sint64 sl = 6; fixed32 f = 7;
  fixed64 fl = 8; sfixed32 sf = 9; sfixed64 sfl = 10; float x = 11; double d = 12; bool b = 13; string t = 14; bytes by = 15;
  repeated int32 many = 16; repeated string texts = 17; optional int32 maybe = 18; }""",
    "nested.proto": """syntax = "proto3"; package table;
message First { string a = 1; }
message Second { map<string, int32> counts = 1; message Inner { string b = 1; message Deep { int32 c = 1; } } Inner inner = 2;
  enum Kind { NONE = 0; SOME = 1; } Kind kind = 3; oneof choice { string name = 4; int64 number = 5; } }""",
    "known.proto": """syntax = "proto3"; package table;
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message Known { google.protobuf.Timestamp at = 1; google.protobuf.Duration lasts = 2; google.protobuf.Struct data = 3;
  google.protobuf.StringValue text = 4; }""",
    "common.proto": """syntax = "proto3"; package table; message Common { string id = 1; }""",
    "user.proto": """syntax = "proto3"; package table; import "common.proto"; message User { Common common = 1; }""",
    "old.proto": """syntax = "proto2"; package table; message Old { required int32 a = 1; optional string b = 2 [default = "x"];
  repeated int32 packed = 3 [packed = true]; repeated int32 plain = 4; }""",
}

MESSAGES = [
    ("scalars.proto", "table.Scalars", [
        {}, {"i": -1, "l": "-5", "u": 7, "ul": "18446744073709551615", "s": -3, "sl": "-4", "f": 1, "fl": "2", "sf": -1, "sfl": "-2",
             "x": 1.5, "d": -2.25, "b": True, "t": "Grüße", "by": "AP8=", "many": [1, 2, 300], "texts": ["a", ""], "maybe": 0}]),
    ("nested.proto", "table.First", [{"a": "x"}]),
    ("nested.proto", "table.Second", [{"counts": {"k": 1}, "inner": {"b": "y"}, "kind": "SOME", "number": "5"}, {"name": ""}]),
    ("nested.proto", "table.Second.Inner", [{"b": "z"}]),
    ("nested.proto", "table.Second.Inner.Deep", [{"c": 9}]),
    ("known.proto", "table.Known", [{"at": "2026-01-02T03:04:05.000006Z", "lasts": "1.5s", "data": {"a": [1, None, "x"]}, "text": "w"}]),
    ("user.proto", "table.User", [{"common": {"id": "c"}}]),
    ("old.proto", "table.Old", [{"a": 1, "packed": [1, 2], "plain": [3, 4]}]),
]


def pool():
    folder = tempfile.mkdtemp()
    for name, text in PROTOS.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    out = os.path.join(folder, "set")
    protoc = os.environ.get("PROTOC", f"{sys.executable} -m grpc_tools.protoc").split()
    subprocess.run([*protoc, f"-I{folder}", "--include_imports", f"--descriptor_set_out={out}", *PROTOS], cwd=folder, check=True)
    with open(out, "rb") as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    found = descriptor_pool.DescriptorPool()
    for file in files.file:
        found.Add(file)
    return found


def protobuf_rows(table):
    descriptors = pool()
    for number, (file, name, values) in enumerate(MESSAGES):
        kind = message_factory.GetMessageClass(descriptors.FindMessageTypeByName(name))
        topic = f"protobuf-{number}"
        context = SerializationContext(topic, MessageField.VALUE)
        serializer = ProtobufSerializer(kind, table.client, {"use.deprecated.format": False})
        deserializer = ProtobufDeserializer(kind, {"use.deprecated.format": False}, table.client)
        for value in values:
            message = json_format.ParseDict(value, kind(), descriptor_pool=descriptors)
            payload = serializer(message, context)
            assert deserializer(payload, context) == message
            references = [["common.proto", PROTOS["common.proto"]]] if file == "user.proto" else []
            table.add("PROTOBUF", topic, PROTOS[file], value, payload, message=name, references=references)


JSONS = [
    ({"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
      "required": ["id"]}, [{"id": 1}, {"id": -5, "tags": ["a", "ü"]}]),
    ({"$schema": "http://json-schema.org/draft-07/schema#", "title": "Any", "type": "object"}, [{}, {"a": None, "b": [1.5, True]}]),
]


def json_rows(table):
    for number, (schema, values) in enumerate(JSONS):
        topic = f"json-{number}"
        context = SerializationContext(topic, MessageField.VALUE)
        compact = lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
        serializer = JSONSerializer(json.dumps(schema), table.client, lambda value, _: value, json_encode=compact)
        spaced = JSONSerializer(json.dumps(schema), table.client, lambda value, _: value)
        deserializer = JSONDeserializer(json.dumps(schema), schema_registry_client=table.client)
        for value in values:
            payload = serializer(value, context)
            assert deserializer(payload, context) == value
            table.add("JSON", topic, json.dumps(schema), value, payload, spaced=spaced(value, context)[5:].hex())


def header_rows(table):
    schema = json.dumps({"type": "record", "name": "H", "fields": [{"name": "a", "type": "string"}]})
    # The deserializer takes data of less than 6 bytes for data without an ID, also with a header.
    for field in [MessageField.KEY, MessageField.VALUE]:
        headers = []
        context = SerializationContext("header", field, headers)
        serializer = AvroSerializer(table.client, schema, conf={"schema.id.serializer": header_schema_id_serializer})
        payload = serializer({"a": "header"}, context)
        deserializer = AvroDeserializer(table.client, conf={"schema.id.deserializer": dual_schema_id_deserializer})
        assert deserializer(payload, context) == {"a": "header"}
        name, value = headers[0] if isinstance(headers, list) else list(headers.items())[0]
        table.add("AVRO", "header", schema, {"a": "header"}, payload, header=[name, value.hex()], part=str(field))


def write(path, url):
    table = Table(url)
    avro_rows(table)
    protobuf_rows(table)
    json_rows(table)
    header_rows(table)
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False, sort_keys=True) for row in table.rows) + "\n]\n")
    print(f"{len(table.rows)} rows")


def read(path, url):
    """Reads what ours wrote: each line has the format, the topic, the whole record, and the value."""
    client = SchemaRegistryClient({"url": url})
    descriptors = pool()
    failed = passed = 0
    for line in open(path):
        row = json.loads(line)
        context = SerializationContext(row["topic"], MessageField.VALUE)
        payload = bytes.fromhex(row["record"])
        try:
            if row["format"] == "AVRO":
                value = avro_json(json.loads(row["schema"]), AvroDeserializer(client)(payload, context))
            elif row["format"] == "PROTOBUF":
                kind = message_factory.GetMessageClass(descriptors.FindMessageTypeByName(row["message"]))
                read = ProtobufDeserializer(kind, {"use.deprecated.format": False}, client)(payload, context)
                value = row["value"] if read == json_format.ParseDict(row["value"], kind(), descriptor_pool=descriptors) else read
            else:
                value = JSONDeserializer(row["schema"], schema_registry_client=client)(payload, context)
        except Exception as error:  # noqa: BLE001
            value = f"{type(error).__name__}: {error}"
        if value == row["value"]:
            passed += 1
        else:
            failed += 1
            print(f"FAILED: {row['topic']}: {row['value']} came back as {value}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2], sys.argv[3])
