"""Tries the installed wheels: check.py BROKERS. Each line that it prints is something that holds."""

import os
import subprocess
import sys


def ottla(*arguments, works=True):
    done = subprocess.run([sys.executable, "-m", "ottla_librdkafka", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode == 0) == works, (arguments, done)
    return (done.stdout if works else done.stderr).decode().strip()


def job(brokers, topic):
    """Produces and consumes in a process of its own, and returns the version of the library that did it."""
    code = """
import sys
from confluent_kafka import Consumer, Producer, libversion
brokers, topic = sys.argv[1:]
producer = Producer({"bootstrap.servers": brokers})
for number in range(1000):
    producer.produce(topic, b"%d" % number, partition=0)
assert producer.flush(30) == 0
consumer = Consumer({"bootstrap.servers": brokers, "group.id": topic, "auto.offset.reset": "earliest"})
consumer.subscribe([topic])
found = []
while len(found) < 1000:
    message = consumer.poll(30)
    assert message is not None and message.error() is None, message
    found.append(int(message.value()))
assert found == list(range(1000))
consumer.close()
libraries = {line.split()[-1] for line in open("/proc/self/maps") if "librdkafka" in line}
assert len(libraries) == 1, libraries
print(libversion()[0], libraries.pop())
"""
    return subprocess.run([sys.executable, "-c", code, brokers, topic], stdout=subprocess.PIPE, check=True).stdout.decode().split()


def main():
    brokers = sys.argv[1]
    original = job(brokers, "with-the-original")
    assert "is the original" in ottla("status")
    print("the original works (librdkafka %s)" % original[0])
    ottla("install")
    assert "is Ottla's library" in ottla("status")
    swapped = job(brokers, "with-ottla")
    assert swapped[1] == original[1], (swapped, original)
    print("confluent_kafka works on Ottla (librdkafka %s), with the file of the same name" % swapped[0])
    assert "already" in ottla("install")
    print("installing twice changes nothing")
    ottla("uninstall")
    assert job(brokers, "with-the-original-again") == original
    assert "is the original" in ottla("uninstall")
    print("the original is back, and uninstalling twice changes nothing")
    libraries = os.path.dirname(original[1])
    if os.getuid() != 0:
        os.chmod(libraries, 0o555)
        assert "nothing was changed" in ottla("install", works=False)
        os.chmod(libraries, 0o755)
        print("without permission to write nothing is changed")
    empty = os.path.join(libraries, "..", "empty")
    os.makedirs(empty, exist_ok=True)
    assert "not installed from its wheel" in ottla("install", "--site", empty, works=False)
    print("a confluent_kafka that was compiled is refused, and the text says what to do")


main()
