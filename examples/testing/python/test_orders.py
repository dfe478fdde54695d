"""A test with a broker of its own: `ottla` is on the PATH, and `pip install confluent-kafka`. Runs by pytest, or as a program."""

import contextlib
import subprocess

from confluent_kafka import Consumer, Producer


@contextlib.contextmanager
def broker(*options):
    """Runs a broker on a free port while the block runs, and returns its address."""
    process = subprocess.Popen(["ottla", "broker", "--port", "0", *options], stdout=subprocess.PIPE, text=True)
    try:
        lines = (line.strip().partition("=") for line in process.stdout)
        yield next(value for name, _, value in lines if name == "bootstrap.servers")
    finally:
        process.terminate()
        process.wait()


def test_orders_come_back_in_their_order():
    with broker() as servers:
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
