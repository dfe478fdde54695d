"""Copiers move numbered records from one topic to another in transactions, while copiers and brokers end: --help.

Each copier is a member of one group and has a transactional ID of its own, which it keeps when it is started again. It writes
`PARTITION:OFFSET:NUMBER` of each record to the output partition NUMBER % 3, sends the offsets of its group with the
transaction, and prints lines with the time in milliseconds:

    1700000000000 committed 750     this many records
    1700000000000 aborted REASON
    1700000000000 error TEXT        only counted

It ends with status 3 after an error that it can't go on from; then it is started again.

The checks: progress within a minute after each fault; in the end read_committed output has each input record exactly once, and
records of one input partition are in order in each output partition.
"""

import argparse
import collections
import os
import random
import shlex
import signal
import subprocess
import sys
import threading
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--servers", required=True)
parser.add_argument("--input", required=True, help="a topic of two partitions")
parser.add_argument("--output", required=True, help="a topic of three partitions")
parser.add_argument("--seconds", type=float, required=True, help="records are produced, and faults injected, for this time")
parser.add_argument("--rate", type=int, default=700, help="records per second")
parser.add_argument("--ottla", required=True, help="the program that produces and reads the output")
parser.add_argument("--copier", action="append", required=True, help="NAME=COMMAND; one copier each")
parser.add_argument("--broker-fault", action="append", default=[], help="NAME=COMMAND, which lets a broker end and starts it again")
parser.add_argument("--seed", type=int, default=int(time.time()))
options = parser.parse_args()
chance = random.Random(options.seed)
TIMEOUT_S = 90
lock = threading.Lock()
ended = threading.Event()


class Copier:
    """One place in the group, and the processes that fill it one after the other."""

    def __init__(self, number, name, command):
        self.name, self.counts, self.errors = f"{name}-{number}", collections.Counter(), collections.deque(maxlen=20)
        self.command = shlex.split(command) + [
            options.servers, options.input, options.input, options.output, f"{options.input}-{number}"
        ]
        self.process, self.is_expected_to_end = None, False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while not ended.is_set():
            process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.process = process
            for line in process.stdout:
                at, kind, *words = (line.split(maxsplit=2) + ["", ""])[:3]
                with lock:
                    if not at.isdigit():
                        self.errors.append(line.strip())
                    elif kind == "committed":
                        self.counts["transactions"] += 1
                        self.counts["records"] += int(words[0])
                    else:
                        self.counts[kind] += 1
                        if kind == "error":
                            self.errors.append(line.strip())
            status = process.wait()
            with lock:
                self.counts["starts"] += 1
                if status not in (0, 3, 143, -signal.SIGKILL, -signal.SIGTERM):
                    self.counts["crashes"] += 1
                    self.errors.append(f"ended with {status}")
            ended.wait(0.2)

    def end(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)


def fail(text):
    print(f"FAILED (--seed {options.seed}): {text}", file=sys.stderr)
    for copier in copiers:
        print(f"  {copier.name}: {dict(copier.counts)}", *copier.errors, sep="\n    ", file=sys.stderr)
        copier.end(signal.SIGKILL)
    os._exit(1)


def copied():
    with lock:
        return sum(copier.counts["records"] for copier in copiers)


produced = [0]


def produce():
    process = subprocess.Popen(
        [options.ottla, "produce", "-X", f"bootstrap.servers={options.servers}", "-t", options.input, "-K", ":"],
        stdin=subprocess.PIPE,
        text=True,
    )
    began = time.monotonic()
    while time.monotonic() - began < options.seconds:
        for _ in range(max(1, options.rate // 50)):
            process.stdin.write(f"{produced[0]}:{produced[0]}\n")
            produced[0] += 1
        process.stdin.flush()
        time.sleep(0.02)
    process.stdin.close()
    if process.wait(120) != 0:
        fail("the producer failed")


def progress(reason):
    """Waits until something is committed, if there is something left to copy."""
    before, began = copied(), time.monotonic()
    while copied() <= before and (producer.is_alive() or copied() < produced[0]):
        if time.monotonic() - began > TIMEOUT_S:
            fail(f"nothing is committed for {TIMEOUT_S} s after {reason}")
        time.sleep(0.1)
    print(f"  {reason}: progress after {time.monotonic() - began:.1f} s, {copied()} copied", flush=True)


def read_output():
    # read_committed sees every committed record before the end of the log, or the end would not be reached.
    out = subprocess.run(
        [options.ottla, "consume", "-X", f"bootstrap.servers={options.servers}", "-X", "isolation.level=read_committed",
         "-t", options.output, "-o", "beginning", "-e", "-q", "-f", "%p %s\\n"],
        stdout=subprocess.PIPE, text=True, timeout=300,
    )
    if out.returncode != 0:
        fail("the output can't be read")
    return [(int(partition), *map(int, value.split(":"))) for partition, value in (line.split() for line in out.stdout.splitlines())]


def check(records):
    numbers = collections.Counter(number for _, _, _, number in records)
    repeated = sorted(number for number, count in numbers.items() if count > 1)
    lost = sorted(set(range(produced[0])) - set(numbers))
    if repeated or lost:
        fail(f"{len(repeated)} records came more than once: {repeated[:10]}; {len(lost)} are lost: {lost[:10]}")
    last = {}
    for partition, source, offset, number in records:
        if partition != number % 3:
            fail(f"{number} is in partition {partition}")
        if offset <= last.get((partition, source), -1):
            fail(f"output [{partition}]: input [{source}] {offset} comes after {last[partition, source]}")
        last[partition, source] = offset


copiers = [Copier(number, *copier.split("=", 1)) for number, copier in enumerate(options.copier)]
producer = threading.Thread(target=produce)
producer.start()
progress("the start")
started, faults = time.monotonic(), collections.Counter()
while producer.is_alive():
    kinds = ["copier killed", "copier ended"] + ["broker"] * bool(options.broker_fault)
    kind = chance.choice(kinds)
    faults[kind] += 1
    if kind == "broker":
        name, command = chance.choice(options.broker_fault).split("=", 1)
        if subprocess.run(command, shell=True, stdout=subprocess.DEVNULL).returncode != 0:
            fail(f"{name}: `{command}` failed")
        progress(name)
    else:
        copier = chance.choice(copiers)
        copier.end(signal.SIGKILL if kind == "copier killed" else signal.SIGTERM)
        progress(f"{kind}: {copier.name}")
    time.sleep(chance.uniform(0.5, 4))
producer.join()
began, sofar = time.monotonic(), -1
# What a copier committed just before it was killed may not be printed, so the number of printed records can stay below.
while copied() < produced[0] and (copied() != sofar or time.monotonic() - began < 25):
    if copied() != sofar:
        began, sofar = time.monotonic(), copied()
    time.sleep(0.2)
ended.set()
for copier in copiers:
    copier.end(signal.SIGTERM)
for copier in copiers:
    try:
        copier.process.wait(30)
    except subprocess.TimeoutExpired:
        fail(f"{copier.name} does not end")
# The last markers are written after the last transaction was committed.
began, records = time.monotonic(), read_output()
while len(records) < produced[0] and time.monotonic() - began < 30:
    time.sleep(1)
    records = read_output()
check(records)
for copier in copiers:
    if copier.counts["crashes"]:
        fail(f"{copier.name} crashed")
    print(f"  {copier.name}: {dict(copier.counts)}")
print(f"{produced[0]} records in {time.monotonic() - started:.0f} s, each copied exactly once and in order; faults: {dict(faults)}")
os._exit(0)
