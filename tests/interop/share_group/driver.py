"""Runs members of several clients in one share group, and checks what they accepted.

All members run at once while records are written; one of each kind is killed and replaced. Each record must be accepted, and a
record whose acceptance a member reported is accepted once.
"""
import argparse
import collections
import os
import signal
import subprocess
import threading
import time


def main():
    parser = argparse.ArgumentParser()
    for name in ("servers", "group", "topic", "ottla"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--member", action="append", required=True, help="NAME=COMMAND")
    options = parser.parse_args()
    accepted, lock, processes = collections.defaultdict(list), threading.Lock(), []

    def read(name, process):
        for line in process.stdout:
            word, _, value = line.rstrip("\n").partition(" ")
            if word in ("accepted", "unsure"):
                with lock:
                    accepted[value].append((word, name))

    def start(name, command):
        arguments = command.split() + [options.servers, options.group, options.topic]
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   start_new_session=True)
        threading.Thread(target=read, args=(name, process), daemon=True).start()
        processes.append((name, command, process))

    members = [member.split("=", 1) for member in options.member]
    try:
        run(options, members, start, accepted, processes)
    finally:
        for _, _, process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def run(options, members, start, accepted, processes):
    for name, command in members:
        start(name, command)
    writer = subprocess.Popen([options.ottla, "produce", "-b", options.servers, "-t", options.topic],
                              stdin=subprocess.PIPE, text=True)
    parts = len(members) + 1
    # A member that starts slowly must not find everything accepted: records are written until each member has had one.
    first, deadline = 0, time.time() + 90
    while {name for name, _ in members} != {name for by in list(accepted.values()) for _, name in by}:
        assert time.time() < deadline, "a member gets no records"
        writer.stdin.write(f"{first}\n")
        writer.stdin.flush()
        first += 1
        time.sleep(0.01)
    options.records += first
    for number in range(first, options.records):
        writer.stdin.write(f"{number}\n")
        part, rest = divmod((number + 1) * parts, options.records)
        if rest < parts and 0 < part <= len(members):
            writer.stdin.flush()
            deadline = time.time() + 60
            while len(accepted) < number // 2 and time.time() < deadline:
                time.sleep(0.05)
            name, command, process = processes[part - 1]
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            start(name, command)
    writer.stdin.close()
    assert writer.wait(60) == 0, "the writer failed"
    deadline = time.time() + 120
    while len(accepted) < options.records and time.time() < deadline:
        time.sleep(0.1)
    for name, _, process in processes:
        if process.poll() is None:
            process.stdin.close()
    for name, _, process in processes:
        process.wait(60)
    missing = [number for number in range(options.records) if str(number) not in accepted]
    assert not missing, f"{len(missing)} records were not accepted: {missing[:10]}"
    twice = {value: by for value, by in accepted.items() if sum(word == "accepted" for word, _ in by) > 1}
    assert not twice, f"{len(twice)} records were accepted twice: {list(twice.items())[:5]}"
    shares = collections.Counter(name for by in accepted.values() for name in {name for _, name in by})
    idle = [name for name, _ in members if shares[name] == 0]
    assert not idle, f"members without records: {idle}"
    print(f"{options.records} records:", ", ".join(f"{name} {shares[name]}" for name, _ in members))


main()
