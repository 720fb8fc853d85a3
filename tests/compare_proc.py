#!/usr/bin/env python3
"""Holds the interruptions of an isolated CPU against the kernel's own counts, and asks each IPI for its
sender.

    compare_proc.py QUIETCORE FOLDER      as root; exit 1 where something differs

Records the last CPU under a load that sends it interrupts, reads /proc/interrupts and /proc/softirqs
twice meanwhile, cuts the recording at these two times, and explains that part. Counts may differ by 1 %
and by 3: each of the two files takes a while to read. The part is at least two seconds, and on a slow
machine as long as it takes other CPUs to send a few hundred interrupts, at most half a minute.
"""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

# Rows of /proc/interrupts (x86), and the names that the events of the same interrupts have. The interrupts
# of its row TLB are among those of CAL (arch/x86/kernel/irq.c, since Linux 4.10).
PROCESSOR = {
    "LOC": ["local_timer"],
    "RES": ["reschedule"],
    "CAL": ["call_function", "call_function_single"],
    "IWI": ["irq_work"],
}
SENT = ["reschedule", "call_function", "call_function_single"]
SENT_ROWS = [("processor", "reschedule"), ("processor", "call_function+call_function_single")]
# So many of them say something of senders.
ENOUGH = 100
EVENT_TIME = re.compile(rb"\s(\d+)\.(\d+): \w+:")


def counts(cpu):
    """The kernel's own counts of one CPU, by source and name."""
    counted = collections.Counter()
    with open("/proc/interrupts", encoding="utf-8") as file:
        column = file.readline().split().index(f"CPU{cpu}")
        for line in file:
            name, *values = line.split()
            name = name.rstrip(":")
            if len(values) <= column or not values[column].isdigit():
                continue
            if name.isdigit():
                counted["device", name] += int(values[column])
            elif name in PROCESSOR:
                counted["processor", "+".join(PROCESSOR[name])] += int(values[column])
    with open("/proc/softirqs", encoding="utf-8") as file:
        column = file.readline().split().index(f"CPU{cpu}")
        for line in file:
            name, *values = line.split()
            counted["softirq", name.rstrip(":")] += int(values[column])
    return counted


def explained(report, cpu):
    """The same of a report."""
    counted, sent, known = collections.Counter(), 0, 0
    for row in report["interruptions"]:
        source, name = row["source"], row["name"]
        if row["cpu"] != cpu or source not in ("device", "processor", "softirq"):
            continue
        if source == "processor":
            groups = ("+".join(names) for names in PROCESSOR.values() if name in names)
            name = next(groups, name)
        elif source == "device":
            name = name.split()[0]
        counted[source, name] += row["count"]
        if row["name"] in SENT:
            sent += row["count"]
            known += sum(cause["count"] for cause in row["causes"])
    return counted, sent, known


def load(cpus):
    """A load that interrupts all CPUs; what to end it with."""
    if shutil.which("stress-ng"):
        words = "--membarrier 1 --tlb-shootdown 1 --timer 1 --udp 1 --timeout 60s -q"
        return subprocess.Popen(["stress-ng", *words.split()], stderr=subprocess.DEVNULL)
    # Two processes that wake each other, each on a CPU of its own.
    there, back = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {cpus[-1]})
        while os.read(there[0], 1):
            os.write(back[1], b"x")
    pusher = os.fork()
    if pusher == 0:
        os.sched_setaffinity(0, {cpus[0]})
        while True:
            os.write(there[1], b"x")
            os.read(back[0], 1)
    return child, pusher


def end(running):
    if isinstance(running, tuple):
        for pid in running:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    else:
        running.terminate()
        running.wait()


def snapshot(cpu):
    """The kernel's counts, and when they were read."""
    for _ in range(1000):
        before = time.monotonic_ns()
        counted = counts(cpu)
        after = time.monotonic_ns()
        if after - before < 1_000_000:
            break  # else it was interrupted, and the two files are of two times
    return counted, (before + after) // 2


def later_snapshot(cpu, first):
    """The same after two seconds, and after other CPUs have sent a few hundred interrupts."""
    for _ in range(15):
        time.sleep(2)
        second, until = snapshot(cpu)
        if sum(second[key] - first[key] for key in SENT_ROWS) >= 2 * ENOUGH:
            break
    return second, until


def cut(recording, part, begin, until):
    """Writes the header, and the events between two times."""
    with open(recording, "rb") as whole, open(part, "wb") as out:
        for line in whole:
            match = EVENT_TIME.search(line)
            if match is None or line.startswith(b"#"):
                out.write(line)
                continue
            nanos = int(match.group(1)) * 10**9 + int(match.group(2).ljust(9, b"0")[:9])
            if begin <= nanos <= until:
                out.write(line)


def main(quietcore, folder):
    cpus = sorted(os.sched_getaffinity(0))
    cpu = cpus[-1]
    recording, part = os.path.join(folder, "proc.txt"), os.path.join(folder, "part.txt")
    os.nice(-10)
    running = load(cpus)
    try:
        record = [quietcore, "record", recording, "--for", "45s", "--isolated", str(cpu)]
        recorder = subprocess.Popen(record, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3)
        first, begin = snapshot(cpu)
        second, until = later_snapshot(cpu, first)
        time.sleep(0.5)
        recorder.send_signal(signal.SIGINT)
        if recorder.wait() != 128 + signal.SIGINT:
            print("compare_proc: nothing was recorded")
            return 1
    finally:
        end(running)
    cut(recording, part, begin, until)
    explain = [quietcore, "explain", part, "--json"]
    report = json.loads(subprocess.run(explain, stdout=subprocess.PIPE, check=True).stdout)
    ours, sent, known = explained(report, cpu)
    failed = report["lost_events"] > 0
    for key in sorted(set(ours) | set(second)):
        kernel, count = second[key] - first[key], ours[key]
        is_same = abs(kernel - count) <= 3 + kernel // 100
        failed |= not is_same
        if kernel or count:
            print(f"{' ' if is_same else '!'} CPU {cpu} {key[0]} {key[1]}: kernel {kernel}, explain {count}")
    print(f"  interrupts of other CPUs: {sent}, with a sender {known}")
    if sent < ENOUGH:
        print(f"! the load sent fewer than {ENOUGH} interrupts")
    # One of each kind that was sent before the part begins has no sender in it.
    return 1 if failed or sent < ENOUGH or sent - known > len(SENT) + sent // 1000 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
