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


def while_python_runs(brokers, original):
    """Exchanges the library while a process uses it: that one ends its work with the library that it began with."""
    code = """
import sys
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1]})
print("ready", flush=True)
sys.stdin.readline()
producer.produce("while-python-runs", b"x")
assert producer.flush(30) == 0
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, brokers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True
    ) as running:
        assert running.stdout.readline() == "ready\n"
        ottla("install")
        running.communicate("\n")
    assert running.returncode == 0, running.returncode
    ottla("uninstall")
    assert job(brokers, "after-an-exchange") == original
    print("a process that runs during the exchange ends its work")


def without_permission(libraries, library):
    """A folder that nobody may change: for root it is made immutable."""
    is_root = os.getuid() == 0
    close, open_again = (["chattr", "+i"], ["chattr", "-i"]) if is_root else (["chmod", "555"], ["chmod", "755"])
    with open(library, "rb") as file:
        before = file.read()
    if subprocess.run(close + [libraries], stderr=subprocess.DEVNULL).returncode != 0:
        print("not checked here: a folder that may not be written (chattr does not work for root)")
        return
    try:
        text = ottla("install", works=False)
    finally:
        subprocess.run(open_again + [libraries], check=True)
    assert "nothing was changed" in text and "run it as the user" in text, text
    with open(library, "rb") as file:
        assert file.read() == before
    assert not [name for name in os.listdir(libraries) if name.endswith((".new", ".original"))]
    print("without permission to write nothing is changed, and the text says who may")


def of_another_interface(libraries):
    """A newer librdkafka, and one that this machine can't load, in installations of their own."""
    site = os.path.join(libraries, "..", "another")
    folder = os.path.join(site, "confluent_kafka.libs")
    os.makedirs(folder, exist_ok=True)
    library = os.path.join(folder, "librdkafka-1234.so.1")
    source = os.path.join(site, "newer.c")
    with open(source, "w") as file:
        file.write('const char *rd_kafka_version_str(void) { return "99.0.0"; }')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    text = ottla("install", "--site", site, works=False)
    assert "brings librdkafka 99.0.0" in text and "Install a newer" in text, text
    print("a newer librdkafka stays, and the text names both versions")
    with open(library, "r+b") as file:
        # The number of the processor in the ELF header: 64-bit ARM.
        file.seek(18)
        file.write(b"\xb7\x00")
    text = ottla("install", "--site", site, works=False)
    assert "nothing was changed" in text and "can't be loaded here" in text, text
    print("a library for another processor stays, and the text says so")


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
    while_python_runs(brokers, original)
    without_permission(libraries, original[1])
    of_another_interface(libraries)
    empty = os.path.join(libraries, "..", "empty")
    os.makedirs(empty, exist_ok=True)
    assert "not installed from its wheel" in ottla("install", "--site", empty, works=False)
    print("a confluent_kafka that was compiled is refused, and the text says what to do")


main()
