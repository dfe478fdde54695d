"""A test with a broker of its own: `ottla` is on the PATH, and `pip install confluent-kafka`. Runs by pytest, or as a program."""

from confluent_kafka import Consumer, Producer

from ottla_broker import OttlaBroker


def test_orders_come_back_in_their_order():
    with OttlaBroker() as broker:
        servers = broker.bootstrap_servers
        producer = Producer({"bootstrap.servers": servers})
        for number in range(3):
            producer.produce("orders", key="customer-1", value=f"order {number}")
        assert producer.flush(10) == 0

        consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        messages = [consumer.poll(10) for _ in range(3)]
        consumer.close()
        assert [message.value() for message in messages] == [b"order 0", b"order 1", b"order 2"]


if __name__ == "__main__":
    test_orders_come_back_in_their_order()
