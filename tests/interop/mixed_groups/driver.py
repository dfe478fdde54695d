"""Members of several clients in one group, which are killed, stopped, continued, closed and added: --help.

Each member is a process that prints lines with the time in milliseconds:

    1700000000000 held 0,3,4      its partitions after a rebalance, or -
    1700000000000 got 3 120       it handles this record: partition, offset
    1700000000000 commit 3 121    the coordinator has accepted this offset
    1700000000000 error TEXT      only counted

It commits after each batch, so that a record comes again only if its member was killed or stopped before the commit. The
checks: after each change the running members have all partitions, each one once, and as many as the others or one
more; every record comes at least once; none comes again to another member after its commit.
"""

import argparse
import bisect
import collections
import itertools
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
parser.add_argument("--topic", required=True)
parser.add_argument("--protocol", required=True, help="range, cooperative-sticky or consumer")
parser.add_argument("--partitions", type=int, required=True)
parser.add_argument("--seconds", type=float, required=True, help="rounds of changes are started for this time")
parser.add_argument("--rate", type=int, default=500, help="records per second")
parser.add_argument("--ottla", required=True, help="the program that produces")
parser.add_argument("--member", action="append", required=True, help="NAME=COMMAND")
parser.add_argument("--seed", type=int, default=int(time.time()))
options = parser.parse_args()
commands = dict(member.split("=", 1) for member in options.member)
chance = random.Random(options.seed)
# A rebalance after a lost member takes the session timeout of 6 s.
TIMEOUT_S = 60
lock = threading.Lock()
counter = itertools.count(1)


def now():
    return int(time.time() * 1000)


class Member:
    def __init__(self, client):
        self.client, self.name = client, f"{client}-{next(counter)}"
        self.held, self.errors, self.records, self.commits, self.changes = None, [], [], [], []
        # From the stop on until the next rebalance it may handle records that others have, too.
        self.stopped = []
        command = shlex.split(commands[client]) + [options.servers, options.topic, options.topic, options.protocol]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.diagnostics = collections.deque(maxlen=20)
        self.readers = [threading.Thread(target=self.read), threading.Thread(target=self.read_diagnostics)]
        for reader in self.readers:
            reader.start()

    def read(self):
        for line in self.process.stdout:
            at, kind, *words = (line.split(maxsplit=3) + ["", ""])[:4]
            # Log lines of the Java client.
            if not at.isdigit():
                continue
            with lock:
                if kind == "held":
                    self.changes.append((int(at), words[0]))
                    self.held = set() if words[0] == "-" else {int(number) for number in words[0].split(",")}
                    if self.stopped and self.stopped[-1][1] is None and self.stopped[-1][2]:
                        self.stopped[-1][1] = int(at)
                elif kind == "got":
                    self.records.append((int(at), int(words[0]), int(words[1])))
                elif kind == "commit":
                    self.commits.append((int(at), int(words[0]), int(words[1])))
                else:
                    self.errors.append(line.strip())

    def read_diagnostics(self):
        self.diagnostics.extend(self.process.stderr)

    def signal(self, number):
        with lock:
            if number == signal.SIGSTOP:
                self.stopped.append([now(), None, False])
            if number == signal.SIGCONT:
                self.stopped[-1][2] = True
        self.process.send_signal(number)

    def end(self, number):
        self.process.send_signal(number)
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail(f"{self.name} does not end")
        for reader in self.readers:
            reader.join()
        if number == signal.SIGTERM and status not in (0, 143):
            fail(f"{self.name} ended with {status}: {''.join(self.diagnostics)}")

    def was_stopped_at(self, at):
        return any(start <= at and (end is None or at <= end) for start, end, _ in self.stopped)


everyone, running, stopped = [], [], []


def fail(text):
    print(f"FAILED ({options.protocol}, --seed {options.seed}): {text}", file=sys.stderr)
    for member in everyone:
        print(f"  {member.name}: held {member.held}, {member.errors[-3:]} {''.join(member.diagnostics)[-2000:]}", file=sys.stderr)
        if member.process.poll() is None:
            member.process.kill()
    os._exit(1)


def add(client):
    member = Member(client)
    everyone.append(member)
    running.append(member)
    return member


def balanced(change):
    """Waits until the running members share all partitions fairly."""
    began = time.monotonic()
    while True:
        with lock:
            shares = [member.held for member in running]
        if all(share is not None for share in shares):
            everything = sorted(itertools.chain(*shares))
            sizes = [len(share) for share in shares]
            if everything == list(range(options.partitions)) and max(sizes) - min(sizes) <= 1:
                break
        if time.monotonic() - began > TIMEOUT_S:
            fail(f"{change}: not balanced: {dict((member.name, member.held) for member in running)}")
        dead = [member.name for member in running if member.process.poll() is not None]
        if dead:
            fail(f"{change}: {dead} ended by itself")
        time.sleep(0.05)
    print(f"  {change}: balanced after {time.monotonic() - began:.1f} s", flush=True)


def one_round():
    """One change of each kind, each to a member of a random client."""
    member = add(chance.choice(list(commands)))
    balanced(f"{member.name} is added")
    member = chance.choice(running)
    running.remove(member)
    member.end(signal.SIGKILL)
    balanced(f"{member.name} is killed")
    member = chance.choice(running)
    running.remove(member)
    member.signal(signal.SIGSTOP)
    balanced(f"{member.name} is stopped")
    running.append(member)
    member.signal(signal.SIGCONT)
    balanced(f"{member.name} continues")
    member = chance.choice(running)
    running.remove(member)
    member.end(signal.SIGTERM)
    balanced(f"{member.name} is closed")
    # Each client has a member again.
    for client in commands:
        if not any(member.client == client for member in running):
            balanced(f"{add(client).name} is added")


def show_events_around(time, partition):
    """Prints what the members did with a partition in the seconds before and after a time."""
    events = []
    for member in everyone:
        events += [(at, member.name, "held", held) for at, held in member.changes]
        for kind, entries in (("got", member.records), ("commit", member.commits)):
            events += [(at, member.name, kind, offset) for at, of, offset in entries if of == partition]
    for event in sorted(events, key=lambda event: event[0]):
        if abs(event[0] - time) < 1000:
            print("  ", *event, file=sys.stderr)


def check(produced):
    seen = collections.defaultdict(set)
    commits = collections.defaultdict(list)
    for member in everyone:
        for at, partition, offset in member.commits:
            commits[partition].append((at, offset, member))
    for partition in commits:
        commits[partition].sort(key=lambda commit: commit[0])
        # The highest commit up to each time.
        highest, sofar = [], (-1, None)
        for at, offset, member in commits[partition]:
            sofar = max(sofar, (offset, member.name))
            highest.append((at, *sofar))
        commits[partition] = highest
    repeated = 0
    for at, partition, offset, member in sorted(
        (record + (member,) for member in everyone for record in member.records), key=lambda record: record[0]
    ):
        before = commits[partition]
        position = bisect.bisect_left(before, at, key=lambda commit: commit[0])
        if position and before[position - 1][1] > offset and not member.was_stopped_at(at):
            show_events_around(at, partition)
            fail(f"{member.name} got [{partition}] {offset} at {at}, after {before[position - 1]}")
        if offset in seen[partition]:
            repeated += 1
        seen[partition].add(offset)
    count = sum(len(offsets) for offsets in seen.values())
    for partition, offsets in seen.items():
        skipped = set(range(max(offsets) + 1)) - offsets
        if skipped:
            fail(f"[{partition}]: skipped {sorted(skipped)[:10]}")
    if count != produced:
        fail(f"{count} of {produced} records came")
    return repeated


def wait_for(produced):
    began = time.monotonic()
    while True:
        with lock:
            count = len({record[1:] for member in everyone for record in member.records})
        if count == produced:
            return
        if time.monotonic() - began > TIMEOUT_S:
            fail(f"{count} of {produced} records came")
        time.sleep(0.2)


produced, producer_stops = [0], threading.Event()


def produce():
    """Produces to all partitions in turn until it is to stop."""
    process = subprocess.Popen(
        [options.ottla, "produce", "-X", f"bootstrap.servers={options.servers}", "-t", options.topic, "-K", ":"],
        stdin=subprocess.PIPE,
        text=True,
    )
    while not producer_stops.wait(0.02):
        for _ in range(max(1, options.rate // 50)):
            process.stdin.write(f"{produced[0]}:record {produced[0]}\n")
            produced[0] += 1
        process.stdin.flush()
    process.stdin.close()
    if process.wait(60) != 0:
        fail("the producer failed")


producer = threading.Thread(target=produce)
producer.start()
started = time.monotonic()
for client in commands:
    add(client)
balanced("all clients start")
rounds = 0
while rounds == 0 or time.monotonic() - started < options.seconds:
    one_round()
    rounds += 1
producer_stops.set()
producer.join()
wait_for(produced[0])
for member in running:
    member.end(signal.SIGTERM)
repeated = check(produced[0])
kinds = collections.Counter(member.client for member in everyone)
print(
    f"{options.protocol}: {rounds} rounds in {time.monotonic() - started:.0f} s, {produced[0]} records, "
    f"{repeated} repeated, none skipped; members: {', '.join(f'{count} {client}' for client, count in kinds.items())}"
)
os._exit(0)
