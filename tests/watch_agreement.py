#!/usr/bin/env python3
"""Holds `quietcore watch` against others that count the same events of the same minutes: a bpftrace script,
the kernel's own /proc/interrupts, and the events of `quietcore record`.

    watch_agreement.py QUIETCORE CPUS SECONDS [--without-bpftrace]   as root, on this machine
    watch_agreement.py --guest FOLDER   `watch.json`, lines of `watch --json`, and `kernel.N`, the files
                                        /proc/interrupts and /proc/softirqs just behind the Nth line

Each counts in a window of its own. Counts are known at some moments, and those between them by
interpolation; what is left of the edges is why short runs differ more. Exit code 1 where a count differs by
more than 0.1 % (bpftrace) or 1 % (the others), and by more than an edge can hold.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).parent
#: What of /proc/interrupts each kind is.
LINES = {"local_timer": ["LOC"], "reschedule": ["RES"], "call_function_single + call_function": ["CAL"]}
SOFTIRQS = ("HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU")
#: A recording is so many seconds long at most, and so many at its begin and end are not compared.
RECORDED, ROOM = 60, 2
#: Counts of this many seconds are not told apart from those of a window's edges.
EDGE = 0.2
PROCESSOR = ("local_timer", "reschedule", "call_function", "call_function_single", "irq_work", "thermal_apic")
TIMERS = ("foreign timer", "foreign hrtimer", "timer", "hrtimer")
KINDS = (*TIMERS, "softirq", "device", *PROCESSOR[:4], "work", "task")


def cpu_list(text):
    cpus = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return sorted(cpus)


class Counts:
    """Counts at moments of the monotonic clock, in seconds."""

    def __init__(self):
        self.moments = []

    def add(self, at, counts):
        self.moments.append((at, counts))

    def at(self, moment, key):
        """The count at a moment between two that are known."""
        before = after = None
        for at, counts in self.moments:
            if at == moment:
                return counts.get(key, 0)
            if at <= moment:
                before = (at, counts)
            elif after is None:
                after = (at, counts)
        if before is None or after is None:
            moments = [at for at, _ in self.moments]
            raise SystemExit(f"nothing was counted around {moment} s, only at {moments}")
        share = (moment - before[0]) / (after[0] - before[0])
        one, two = before[1].get(key, 0), after[1].get(key, 0)
        return one + (two - one) * share

    def between(self, begin, end, key):
        return self.at(end, key) - self.at(begin, key)


def interrupts(text):
    """The kernel's own counts by line and CPU, of /proc/interrupts and /proc/softirqs."""
    counts, cpus = {}, []
    for line in text.splitlines():
        words = line.split()
        if words and words[0].startswith("CPU"):
            cpus = [int(word[3:]) for word in words]
            continue
        name = words[0].rstrip(":")
        for cpu, word in zip(cpus, words[1:]):
            if word.isdigit():
                counts[cpu, name] = int(word)
    return counts


def watch_counts(line):
    """Totals of a line of `quietcore watch --json` by CPU and kind, as the script has them."""
    counts = {}

    def add(cpu, kind, count):
        counts[cpu, kind] = counts.get((cpu, kind), 0) + count

    for row in line["rows"]:
        cpu, source, total = row["cpu"], row["source"], row["count_total"]
        add(cpu, row["name"] if source == "processor" else source, total)
        if source in ("timer", "hrtimer") and row["cause"] and row["cause"]["cpu"] != cpu:
            add(cpu, "foreign " + source, total)
    return counts


def reader(process, take):
    thread = threading.Thread(target=lambda: [take(line) for line in process.stdout], daemon=True)
    thread.start()
    return thread


def main():
    if sys.argv[1] == "--guest":
        return compare_guest(pathlib.Path(sys.argv[2]))
    command, cpus, seconds = sys.argv[1], cpu_list(sys.argv[2]), int(sys.argv[3])
    mask = sum(1 << cpu for cpu in cpus)
    script, others, kernel = Counts(), Counts(), Counts()
    to_monotonic = time.monotonic() - time.time()
    pending = {"at": None, "counts": {}}

    def take_script(line):
        if match := re.match(r"time (\d+)", line):
            if pending["at"] is not None:
                script.add(pending["at"], pending["counts"])
            at = int(match[1]) / 1e9
            # Versions differ in which clock theirs is: it is the one that is nearest now.
            clocks = [time.clock_gettime(clock) for clock in (time.CLOCK_MONOTONIC, time.CLOCK_BOOTTIME)]
            nearest = min(clocks, key=lambda now: abs(now - at))
            pending["at"], pending["counts"] = at + clocks[0] - nearest, {}
        elif match := re.match(r"@count\[(\d+), (.*)\]: (\d+)", line):
            pending["counts"][int(match[1]), match[2]] = int(match[3])

    def take_watch(line):
        report = json.loads(line)
        others.add(report["at_ns"] / 1e9 + to_monotonic, watch_counts(report))
        losses.append(report["losses"])

    losses = []
    has_script = "--without-bpftrace" not in sys.argv
    bpftrace = has_script and subprocess.Popen(
        ["bpftrace", "-B", "line", str(HERE / "watch_agreement.bt"), str(mask)],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"BPFTRACE_MAX_MAP_KEYS": "65536"},
    )
    script_reader = has_script and reader(bpftrace, take_script)
    while has_script and len(script.moments) < 2:
        if bpftrace.poll() is not None:
            raise SystemExit(f"bpftrace ended with {bpftrace.returncode}")
        time.sleep(0.1)
    watch = subprocess.Popen(
        [command, "watch", "--isolated", sys.argv[2], "--interval", "1s", "--json"],
        stdout=subprocess.PIPE, text=True,
    )
    watch_reader = reader(watch, take_watch)
    while len(others.moments) < 2:
        time.sleep(0.1)
    folder = tempfile.TemporaryDirectory()
    recording = pathlib.Path(folder.name, "recording.txt")
    recorder = subprocess.Popen(
        [command, "record", recording, "--for", f"{min(seconds, RECORDED)}s", "--isolated", sys.argv[2]],
        stdout=subprocess.DEVNULL,
    )
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        now = time.monotonic()
        kernel.add(now, interrupts(pathlib.Path("/proc/interrupts").read_text()))
        time.sleep(0.1)
    if recorder.wait() != 0:
        raise SystemExit("nothing was recorded")
    time.sleep(2.5)
    usage = pathlib.Path(f"/proc/{watch.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    cpu_seconds = (int(usage[11]) + int(usage[12])) / 100
    watch.terminate()
    watch.wait()
    watch_reader.join()
    if has_script:
        # What it counted until then is printed a little later.
        time.sleep(4)
        bpftrace.terminate()
        bpftrace.wait()
        script_reader.join()
    with recording.open() as lines:
        recorded = recorded_counts(lines, others)
    folder.cleanup()
    return compare(cpus, script, others, kernel, recorded, losses, cpu_seconds)


def compare_guest(folder):
    """An emulator's seconds are long, so what came between a line and the kernel's counts is more."""
    lines = [json.loads(line) for line in (folder / "watch.json").read_text().splitlines()]
    files = sorted(folder.glob("kernel.*"), key=lambda path: int(path.suffix[1:]))
    begin, end = (int(path.suffix[1:]) - 1 for path in files)
    before, after = (interrupts(path.read_text()) for path in files)
    ours = [watch_counts(lines[place]) for place in (begin, end)]
    rows = Rows((lines[end]["at_ns"] - lines[begin]["at_ns"]) / 1e9, least=10)
    for cpu in cpu_list(lines[0]["cpus"]):
        for kind, names in {**LINES, "softirq": SOFTIRQS}.items():
            counts = [sum(of.get((cpu, part), 0) for part in kind.split(" + ")) for of in ours]
            theirs = sum(after.get((cpu, name), 0) - before.get((cpu, name), 0) for name in names)
            rows.add(cpu, kind, counts[1] - counts[0], theirs, ("the kernel's own", 0.02, 2))
    print(f"watch: losses {lines[-1]['losses']}")
    begun, ended = (own_disturbances(lines[place]) for place in (begin, end))
    print(f"what watch itself sent, armed or woke there: {begun} to begin, {ended - begun} since")
    return 1 if ended > begun else rows.verdict()


def own_disturbances(line):
    """What the watch itself brought about on watched CPUs until a line."""
    causes = [(row["count_total"], row["cause"]) for row in line["rows"] if row["cause"]]
    return sum(count for count, cause in causes if "quietcore" in (cause["name"], cause["task"]))


class Rows:
    """Pairs of counts, and how many of them differ."""

    def __init__(self, span, least=2):
        """Counts that are apart by no more than `least` are not told apart."""
        self.span, self.least, self.failed, self.compared = span, least, 0, 0
        print(f"{'CPU':>4} {'what':<38} {'watch':>10} {'other':>10} {'apart':>9}  other is")

    def add(self, cpu, what, ours, other, limits):
        name, share, edges = limits
        if max(ours, other) == 0:
            return
        self.compared += 1
        apart = abs(ours - other) / max(ours, other)
        edge = max(self.least, EDGE * edges * max(ours, other) / self.span)
        is_same = apart <= share or abs(ours - other) <= edge
        self.failed += not is_same
        verdict = "" if is_same else "  DIFFERS"
        print(f"{cpu:>4} {what:<38} {ours:>10.0f} {other:>10.0f} {apart:>9.3%}  {name}{verdict}")

    def verdict(self):
        """The exit code: nothing that was compared is no agreement."""
        return 1 if self.failed or not self.compared else 0


#: What each event of a recording is counted as.
EVENT = re.compile(r"\[(\d+)\] \S+ +(\d+\.\d+): (\w+): ?(.*)")
EVENTS = {
    "timer_expire_entry": "timer",
    "hrtimer_expire_entry": "hrtimer",
    "softirq_entry": "softirq",
    "irq_handler_entry": "device",
    "workqueue_execute_start": "work",
    **{f"{name}_entry": name for name in PROCESSOR},
}


def recorded_counts(lines, others):
    """Counts of a recording between two lines of the watch that are within it, with room for its begin and
    end, while it switches tracepoints on and off one by one."""
    events, from_idle, to_idle = [], 0, 0
    for line in lines:
        if match := EVENT.search(line):
            cpu, at, name, rest = match.groups()
            kind = EVENTS.get(name)
            from_idle += name == "sched_switch" and " prev_pid=0 " in rest
            to_idle += name == "sched_switch" and " next_pid=0 " in rest
            if name == "sched_switch" and " next_pid=0 " not in rest:
                kind = "task"
            if kind or not events:
                events.append((float(at), int(cpu), kind))
    first, last = events[0][0] + ROOM, events[-1][0] - ROOM
    moments = [at for at, _ in others.moments if first <= at <= last]
    if len(moments) < 2:
        raise SystemExit(f"no two lines of the watch are within the recording, from {first} to {last} s")
    counts = {}
    for at, cpu, kind in events:
        if kind and moments[0] < at <= moments[-1]:
            counts[cpu, kind] = counts.get((cpu, kind), 0) + 1
    # Some kernels show raw tracepoints alone what goes from idle to a task; perf misses it there, too.
    is_whole = from_idle > 0 or to_idle == 0
    return moments[0], moments[-1], counts, is_whole


def compare(cpus, script, others, kernel, recorded, losses, cpu_seconds):
    begin, end = others.moments[0][0], others.moments[-1][0]
    rows = Rows(end - begin)
    # Interrupts from other CPUs come in bursts, of which a short run has some at its edges.
    share = 0.01 if end - begin >= 60 else 0.1
    for cpu in cpus:
        for kind in KINDS if script.moments else ():
            counts = [of.between(begin, end, (cpu, kind)) for of in (others, script)]
            rows.add(cpu, kind, *counts, ("bpftrace", 0.001, 2))
        # At lines of the watch: the kernel's counts between them are known ten times a second.
        known = (kernel.moments[0][0] + ROOM, kernel.moments[-1][0] - ROOM)
        within = [at for at, _ in others.moments if known[0] <= at <= known[1]]
        first, last = within[0], within[-1]
        for kind, lines in LINES.items():
            ours = sum(others.between(first, last, (cpu, part)) for part in kind.split(" + "))
            theirs = sum(kernel.between(first, last, (cpu, line)) for line in lines)
            rows.add(cpu, kind, ours, theirs, ("/proc/interrupts", share, 2))
    first, last, counts, is_whole = recorded
    if not is_whole:
        print("tasks are not compared with the recording: this kernel records no switch from an idle CPU")
    for cpu in cpus:
        for kind in (*TIMERS[2:], "softirq", "device", *PROCESSOR, "work", *(["task"] if is_whole else [])):
            ours = others.between(first, last, (cpu, kind))
            rows.add(cpu, kind, ours, counts.get((cpu, kind), 0), ("a recording", 0.001, 0.2))
    share = cpu_seconds / (end - begin)
    print(f"watch: {end - begin:.1f} s, losses {losses[-1]}, CPU time {share:.3%} of one core")
    return rows.verdict()


if __name__ == "__main__":
    sys.exit(main())
