#!/usr/bin/env python3
"""Counts the figures of `quietcore explain --json` a second time, from the raw text of a recording.

This script is a check on the tool, so it shares nothing with it: it was written from the
definitions in docs/reference/explain-json.md, uses only the standard library, and reads the text itself.

    independent_count.py RECORDING                     print the figures as JSON
    independent_count.py RECORDING --compare OURS.json one line per difference, exit 1 if any
        --compared FILE                                also append the names of figures that had a value
    independent_count.py --total FILE                  how many had one; exit 1 if a figure never did

RECORDING is ftrace text or `trace-cmd report` text (`-`: standard input), or such a text packed
with zstd (then the `zstd` command, or Python >= 3.14, unpacks it). OURS.json may be `-`.

Definitions used:
- armed on: the CPU in brackets on the last `timer_start` line of the timer; base: `cpu=` of that
  line; ran on: the CPU in brackets on its `timer_expire_entry` line. A cancel or an expiry does
  not forget the last start; an identity that is used again simply has a newer last start. A mark of
  lost events forgets all starts: the last one may be among what was lost.
- foreign: armed on a CPU that is not isolated, ran on an isolated one. between_isolated: armed on
  an isolated CPU, ran on another isolated one. pulled: ran on != base; placed: ran on == base.
- what their callbacks took: the own time (see independent_interruptions.py) of those that end.
- ping-pong: an expiry with ran on != base, and the next `timer_start` line of the timer is on the
  old base's CPU.
- an empty TIMER softirq: entry and exit on one CPU without `timer_expire_entry` or a mark of lost
  events between them; it takes the time from entry to exit.
- behind a softirq: a `sched_waking` of prio < 100 towards a CPU between entry and exit of one of four
  vectors; its delay ends with the next switch to the task, and there is none if a switch away from it
  comes first, or a mark of lost events.
- a residency in an idle state: from a `cpu_idle` that names one to the next of the same CPU, if that leaves
  and no mark of lost events comes first; an entry is one without that, too.
- what takes a CPU away, and why: in independent_interruptions.py.
- a figure whose events do not occur in the text is null; map entries that would be 0 are left out.
"""

import argparse
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys

import compare_figures
from independent_interruptions import Interruptions, context_of, is_one, is_vector

LINE = re.compile(
    r"^\s*(?P<task>\S.*?)-(?P<pid>\d+)\s+"
    r"(?:\(\s*[-\d]+\)\s+)?"  # thread group, when that option was on
    r"\[(?P<cpu>\d+)\]\s+"
    r"(?:(?P<flags>\S{1,8})\s+)?"  # interrupt and preemption flags; trace-cmd may leave them out
    r"(?P<time>\d+\.\d+):\s+"
    r"(?P<event>\w+):\s*(?P<fields>.*)$"
)
FIELD = re.compile(r"\b([a-z_]+)=([^\s\]]*)")
WAKING = re.compile(r"comm=.* pid=(\d+) prio=(-?\d+) .*\btarget_cpu=(\d+)")
WAKING_SHORT = re.compile(r"^.*:(\d+) \[(-?\d+)\].*\bCPU:(\d+)")  # trace-cmd's own short form
KERNEL_THREADS = "kworker/|ksoftirqd/|migration/|rcu|ktimers/|cpuhp/|irq/|irq_work/|idle_inject/"
KERNEL_THREADS += "|kcompactd|kswapd|khugepaged|kdamond|stopper/"
KERNEL_THREAD = re.compile(rf"comm=(?:{KERNEL_THREADS})")
KERNEL_THREAD_SHORT = re.compile(rf"^\s*(?:{KERNEL_THREADS})[^=]*:\d+ \[")
SWITCH = re.compile(r"\bprev_pid=(\d+) prev_prio=.* ==> next_comm=.* next_pid=(\d+) next_prio=")
SWITCH_SHORT = re.compile(r":(\d+) \[-?\d+\] \S+ ==> .*:(\d+) \[-?\d+\]\s*$")
LOST = re.compile(r"^CPU:(\d+) \[(?:LOST (\d+) EVENTS|LOST EVENTS|(\d+) EVENTS DROPPED)\]")

TIMER_VECTOR = 1
LONG_VECTORS = {2, 3, 4, 5}  # NET_TX, NET_RX, BLOCK, IRQ_POLL
FIRST_NORMAL_PRIO = 100
CPUS_PER_ESTIMATED_GROUP = 8
EXAMPLES_PER_KIND_AND_CPU = 2
EXAMPLES_MAX = 64
LEAVES_IDLE = 2**32 - 1  # what `cpu_idle` prints for -1
FORGOTTEN = "<...>"  # what the kernel prints for a task whose name it no longer knows

# Events that name a CPU and its level-0 group, for texts that begin after the groups were built.
CPU_AND_PARENT = {
    "tmigr_cpu_active",
    "tmigr_cpu_idle",
    "tmigr_cpu_new_timer",
    "tmigr_cpu_new_timer_idle",
    "tmigr_cpu_online",
    "tmigr_cpu_offline",
    "tmigr_cpu_available",
    "tmigr_cpu_unavailable",
    "tmigr_handle_remote_cpu",
}


class InputError(Exception):
    """The input cannot be read; the text says why and what to do."""


def parse_cpu_list(text):
    """A kernel CPU list ("0-3,8") as a set; "-" and "" are the empty set."""
    cpus = set()
    text = text.strip()
    if text in ("", "-", "(null)"):
        return cpus
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+)(?::(\d+)/(\d+))?)?\s*", part)
        if not match:
            raise InputError(f"'{text}' is not a CPU list like 0-3,8")
        first = int(match.group(1))
        last = int(match.group(2) or first)
        used, step = int(match.group(3) or 1), int(match.group(4) or 1)
        cpus.update(c for c in range(first, last + 1) if (c - first) % step < used)
    return cpus


def format_cpu_list(cpus):
    """A set of CPUs the way the kernel prints it."""
    parts = []
    todo = sorted(cpus)
    while todo:
        length = 1
        while length < len(todo) and todo[length] == todo[0] + length:
            length += 1
        parts.append(str(todo[0]) if length == 1 else f"{todo[0]}-{todo[length - 1]}")
        todo = todo[length:]
    return ",".join(parts)


def nanoseconds(stamp):
    """A time stamp in seconds, of six decimals or of nine."""
    seconds, fraction = stamp.split(".")
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])


def quantile(samples, share):
    """The smallest sample that at least this share of them does not exceed."""
    return sorted(samples)[max(math.ceil(share * len(samples)), 1) - 1] if samples else None


def spans(samples):
    """How long something took, in all and each time; `samples` is None where that is not recorded."""
    stats = {"p50": quantile(samples, 0.5), "p99": quantile(samples, 0.99), "max": quantile(samples, 1)}
    return {"total": sum(samples) if samples else None, **stats}


def bump(counts, key):
    """One more of `key`; keys of JSON maps are strings."""
    key = str(key)
    counts[key] = counts.get(key, 0) + 1


def identity(fields, key):
    """The printed pointer, written the same way in both text formats."""
    value = fields.get(key, "").lower()
    return value[2:] if value.startswith("0x") else value


def function_name(fields):
    """`function=`, without the offset that trace-cmd appends."""
    return fields.get("function", "").split("/0x")[0]


class Header:
    """What the text says about the machine before the first event."""

    def __init__(self):
        self.kernel = None
        self.timer_migration = None
        self.wall_clock = None
        self.lost = 0
        self.possible = None
        self.isolated = None
        self.nohz_full = set()
        self.cpus_trace_cmd = None
        self.cpus_online = None

    def read(self, line):
        """Takes one line that is not an event."""
        match = re.match(r"^# cpus: possible (\d[\d,-]*?),?(?:[\s;]|$)", line)
        if match:
            self.possible = parse_cpu_list(match.group(1))
        match = re.match(r"^# isolated: ([^;\s]*)(?:; nohz_full: (\S+))?", line)
        if match:
            self.isolated = parse_cpu_list(match.group(1))
            self.nohz_full = parse_cpu_list(match.group(2) or "")
        match = re.match(r"^# kernel: Linux ([^\s,]+)", line)
        if match:
            self.kernel = match.group(1)
        match = re.match(r"^# sysctl kernel timer_migration: (\d+)", line)
        if match:
            self.timer_migration = match.group(1) != "0"
        match = re.match(r"^# wall clock: (\S+) at (\S+)", line)
        if match:
            self.wall_clock = nanoseconds(match.group(1)) - nanoseconds(match.group(2))
        match = re.match(r"^# lost events: (\d+)", line)
        if match:
            self.lost = max(self.lost, int(match.group(1)))
        match = re.match(r"^# entries-in-buffer/entries-written: (\d+)/(\d+)", line)
        if match:
            self.lost = max(self.lost, int(match.group(2)) - int(match.group(1)))
        match = re.match(r"^cpus=(\d+)\s*$", line)
        if match:
            self.cpus_trace_cmd = int(match.group(1))
        match = re.search(r"^#.*#P:(\d+)", line)
        if match:
            self.cpus_online = int(match.group(1))

    def cpu_count(self, highest_seen):
        """One more than the highest possible CPU, as well as the text knows."""
        seen = highest_seen + 1 if highest_seen is not None else 0
        if self.possible:
            return max(seen, max(self.possible) + 1)
        for known in (self.cpus_trace_cmd, self.cpus_online):
            if known is not None:
                return max(seen, known)
        return seen


class Counter:
    """Walks the events once and keeps what the figures need; sorting out comes in `report`."""

    def __init__(self):
        self.header = Header()
        self.seen = {}  # event name -> lines
        self.line = 0  # number of the line that is read, from 1
        self.now = None
        self.first = self.last = None  # time stamps in ns
        self.lost = 0
        self.names = {}  # pid -> a name that is not forgotten
        self.highest_cpu = None
        self.starts = {}  # timer -> (armed on, base, line)
        self.armed_by = {}  # the same -> what the CPU was doing
        self.unknown_start = 0
        self.expiries = []  # of every expiry with a known start
        self.awaiting_restart = {}  # timer -> old base, after a remote expiry
        self.ping_pongs = 0
        self.unavailable = {}  # cpu -> line and time of when it was taken out of timer migration last
        self.groups = {"connect": {}, "mention": {}}  # cpu -> group
        self.timer_softirq = {}  # cpu -> has a timer run in the TIMER softirq that is open there
        self.timer_entered = {}  # cpu -> when it entered the last one
        self.empty_took = []
        self.timer_entries = 0
        self.timer_empty = {}
        self.open_long = {}  # cpu -> vectors of LONG softirqs that are open there
        self.hr_starts = {}  # hrtimer -> (cpu, name, pid)
        self.hr_armed_by = {}  # the same -> what the CPU was doing
        self.hr_off = []  # (started on, ran on) of every expiry on another CPU
        self.hr_by_task = {}  # (name, pid) -> expiries
        self.watchdog = {"expired": 0, "off_arming_cpu": 0, "by_cpu": {}}
        self.interruptions = Interruptions()
        self.idle_open = {}  # cpu -> (state, since)
        self.idle_entries = {}  # (cpu, state) -> how often
        self.idle_spans = {}  # the same -> spans
        self.event = None
        self.rt_count = 0
        self.rt_kernel_threads = 0
        self.preempt_rt = False
        self.rt_behind = 0
        self.waiting = {}  # pid -> when it was woken behind a softirq
        self.delays = []

    def read(self, lines):
        """Takes the whole text."""
        for self.line, line in enumerate(lines, 1):
            match = LINE.match(line)
            if not match:
                self.header.read(line)
                self.note_lost(line)
                continue
            event = match.group("event")
            cpu = int(match.group("cpu"))
            self.seen[event] = self.seen.get(event, 0) + 1
            self.highest_cpu = cpu if self.highest_cpu is None else max(cpu, self.highest_cpu)
            self.now = nanoseconds(match.group("time"))
            self.first = self.now if self.first is None else min(self.first, self.now)
            self.last = self.now if self.last is None else max(self.last, self.now)
            name = match.group("task").strip()
            if name != FORGOTTEN:
                self.names[match.group("pid")] = name
            handler = getattr(self, "on_" + event, None)
            text = match.group("fields")
            self.event = {
                "name": event,
                "cpu": cpu,
                "context": context_of(match.group("flags")),
                "now": self.now,
                "line": self.line,
                "task": name,
                "pid": match.group("pid"),
            }
            self.interruptions.take(self.event, text)
            if handler is None and event not in CPU_AND_PARENT:
                continue
            fields = {}
            for key, value in FIELD.findall(text):
                fields.setdefault(key, value)
            if event == "tmigr_cpu_unavailable" and fields.get("cpu", "").isdigit():
                self.unavailable[int(fields["cpu"])] = (self.line, self.now)
            if event in CPU_AND_PARENT:
                self.note_group("mention", fields)
            else:
                handler(cpu, fields, text, match)

    def note_lost(self, line):
        """A mark of lost events: nothing is known of that CPU's softirqs any more, nor of what began anywhere
        and may have gone on there."""
        match = LOST.match(line)
        if match:
            self.lost += int(match.group(2) or match.group(3) or 1)
            self.timer_softirq.pop(int(match.group(1)), None)
            self.open_long.pop(int(match.group(1)), None)
            self.interruptions.lost(int(match.group(1)))
            self.idle_open.pop(int(match.group(1)), None)
            for begun in (self.starts, self.awaiting_restart, self.hr_starts, self.waiting):
                begun.clear()

    def note_group(self, source, fields):
        parent = identity(fields, "parent")
        if fields.get("cpu", "").isdigit() and parent.strip("0"):
            self.groups[source][int(fields["cpu"])] = parent

    def on_tmigr_connect_cpu_parent(self, _cpu, fields, _text, _match):
        self.note_group("connect", fields)

    def on_timer_start(self, cpu, fields, _text, _match):
        timer = identity(fields, "timer")
        base = int(fields["cpu"]) if fields.get("cpu", "").isdigit() else None
        if self.awaiting_restart.pop(timer, None) == cpu:
            self.ping_pongs += 1
        self.starts[timer] = (cpu, base, self.line)
        self.armed_by[timer] = self.interruptions.doing(self.event)

    def on_timer_expire_entry(self, cpu, fields, _text, _match):
        if cpu in self.timer_softirq:
            self.timer_softirq[cpu] = True
        timer = identity(fields, "timer")
        start = self.starts.get(timer)
        armed_by = self.armed_by.get(timer) if start else None
        self.interruptions.callback(self.event, "timer", function_name(fields), armed_by)
        if start is None:
            self.unknown_start += 1
            return
        armed, base, armed_line = start
        expiry = {
            "kind": "pulled" if cpu != base else "placed",
            "function": function_name(fields),
            "armed_cpu": armed,
            "armed_line": armed_line,
            "base_cpu": base,
            "cpu": cpu,
            "line": self.line,
        }
        self.expiries.append(expiry)
        if base is not None and base != cpu:
            self.awaiting_restart[timer] = base
        else:
            self.awaiting_restart.pop(timer, None)

    def on_cpu_idle(self, _cpu, fields, _text, _match):
        cpu, state = int(fields["cpu_id"]), int(fields["state"])
        left = self.idle_open.pop(cpu, None)
        if state != LEAVES_IDLE:
            self.idle_open[cpu] = (state, self.now)
            self.idle_entries[(cpu, state)] = self.idle_entries.get((cpu, state), 0) + 1
        elif left is not None:
            self.idle_spans.setdefault((cpu, left[0]), []).append(self.now - left[1])

    def on_softirq_entry(self, cpu, fields, _text, _match):
        vector = int(fields["vec"])
        if vector == TIMER_VECTOR:
            self.timer_entries += 1
            self.timer_softirq[cpu] = False
            self.timer_entered[cpu] = self.now
        elif vector in LONG_VECTORS:
            self.open_long.setdefault(cpu, set()).add(vector)

    def on_softirq_exit(self, cpu, fields, _text, _match):
        vector = int(fields["vec"])
        if vector == TIMER_VECTOR:
            if self.timer_softirq.pop(cpu, None) is False:
                bump(self.timer_empty, cpu)
                self.empty_took.append(self.now - self.timer_entered[cpu])
        elif vector in LONG_VECTORS:
            self.open_long.get(cpu, set()).discard(vector)

    def on_hrtimer_start(self, cpu, fields, _text, match):
        task = match.group("task").strip()
        hrtimer = identity(fields, "hrtimer")
        self.hr_starts[hrtimer] = (cpu, task, match.group("pid"))
        self.hr_armed_by[hrtimer] = self.interruptions.doing(self.event)

    def on_hrtimer_expire_entry(self, cpu, fields, _text, _match):
        function = function_name(fields)
        hrtimer = identity(fields, "hrtimer")
        start = self.hr_starts.get(hrtimer)
        armed_by = self.hr_armed_by.get(hrtimer) if start else None
        self.interruptions.callback(self.event, "hrtimer", function, armed_by)
        is_off = start is not None and start[0] != cpu
        if is_off:
            self.hr_off.append((start[0], cpu))
        if function == "hrtimer_wakeup" and start is not None:
            task = start[1:]
            self.hr_by_task[task] = self.hr_by_task.get(task, 0) + 1
        if function == "qdisc_watchdog":
            self.watchdog["expired"] += 1
            self.watchdog["off_arming_cpu"] += is_off
            bump(self.watchdog["by_cpu"], cpu)

    def on_sched_waking(self, _cpu, _fields, text, _match):
        self.preempt_rt |= bool(re.match(r"\s*(comm=)?ktimers/", text))
        match = WAKING.search(text) or WAKING_SHORT.search(text)
        if not match or int(match.group(2)) >= FIRST_NORMAL_PRIO:
            return
        self.rt_count += 1
        if KERNEL_THREAD.search(text) or KERNEL_THREAD_SHORT.search(text):
            self.rt_kernel_threads += 1
            return
        if self.open_long.get(int(match.group(3))):
            self.rt_behind += 1
            self.waiting[match.group(1)] = self.now

    def on_sched_switch(self, _cpu, _fields, text, _match):
        match = SWITCH.search(text) or SWITCH_SHORT.search(text)
        if not match:
            return
        self.waiting.pop(match.group(1), None)
        since = self.waiting.pop(match.group(2), None)
        if since is not None:
            self.delays.append(self.now - since)


def group_numbers(counter, needed, cpus):
    """Whether groups are a guess, and cpu -> number of its level-0 group: by the lowest CPU. A guess of
    cpu // 8 when the text does not name the group of every CPU that is needed."""
    known = {**counter.groups["mention"], **counter.groups["connect"]}
    if not known or any(cpu not in known for cpu in needed):
        return True, {cpu: cpu // CPUS_PER_ESTIMATED_GROUP for cpu in range(cpus)}
    lowest = {}
    for cpu, group in known.items():
        lowest[group] = min(cpu, lowest.get(group, cpu))
    order = {group: number for number, group in enumerate(sorted(lowest, key=lowest.get))}
    return False, {cpu: order[known[cpu]] for cpu in known}


def crossing(chosen, groups, unavailable, took):
    """The figures of `foreign` and `between_isolated` over the expiries in `chosen`, None where they are not
    recorded; `took` are the own times of their callbacks, likewise."""
    figures = {"total": 0, "pulled": 0, "placed": 0, "since_isolated": 0}
    maps = {"by_function": {}, "by_cpu": {}, "by_base_cpu": {}, "by_group": {}}
    if chosen is None:
        return {**dict.fromkeys((*figures, *maps)), "took_ns": spans(took), "examples": []}
    examples, of_kind = [], {}
    for expiry in chosen:
        figures["total"] += 1
        figures["since_isolated"] += expiry["line"] > unavailable.get(expiry["cpu"], (0, 0))[0]
        figures[expiry["kind"]] += 1
        bump(maps["by_function"], expiry["function"])
        bump(maps["by_cpu"], expiry["cpu"])
        bump(maps["by_base_cpu"], expiry["base_cpu"])
        bump(maps["by_group"], groups[expiry["cpu"]])
        place = (expiry["kind"], expiry["cpu"])
        of_kind[place] = of_kind.get(place, 0) + 1
        if of_kind[place] <= EXAMPLES_PER_KIND_AND_CPU and len(examples) < EXAMPLES_MAX:
            examples.append(expiry)
    return {**figures, **maps, "took_ns": spans(took), "examples": examples}


def isolated_cpus(foreign, groups):
    """A row per isolated CPU that ran foreign timers."""
    rows = {}
    for expiry in foreign:
        cpu = expiry["cpu"]
        empty = {"cpu": cpu, "group": groups[cpu], "pulled": 0, "placed": 0, "by_function": {}}
        row = rows.setdefault(cpu, empty)
        row[expiry["kind"]] += 1
        bump(row["by_function"], expiry["function"])
    return [rows[cpu] for cpu in sorted(rows)]


def idle_states(counter, span):
    """A row per CPU and state that was entered, in their order."""
    rows = []
    for (cpu, state), entries in sorted(counter.idle_entries.items()):
        residencies = counter.idle_spans.get((cpu, state), [])
        total = sum(residencies) if residencies else None
        rows.append({
            "cpu": cpu,
            "state": state,
            "entries": entries,
            "total_ns": total,
            "max_ns": max(residencies, default=None),
            "share": total / span if span and total is not None else None,
        })
    return rows


def by_task(counter):
    """Expiries by `comm-pid`; a forgotten name is the one that another event has for that pid."""
    counts = {}
    for (name, pid), count in counter.hr_by_task.items():
        known = counter.names.get(pid, name) if name == FORGOTTEN else name
        counts[f"{known}-{pid}"] = counts.get(f"{known}-{pid}", 0) + count
    return counts


def report(counter, isolated):
    """All figures, in the shape of `quietcore explain --json`."""
    seen, header = counter.seen, counter.header
    missing = []

    def when(path, events, value):
        if all(event in seen for event in events.split()):
            return value
        missing.append(path)
        return None

    def callbacks(is_isolated):
        """Own times of callbacks on isolated CPUs of timers that another CPU had armed, isolated or not."""
        took = counter.interruptions.callbacks.items()
        return [
            nanos
            for (armed, ran), samples in took
            if ran in isolated and armed != ran and (armed in isolated) == is_isolated
            for nanos in samples
        ]

    wheel = "timer_start timer_expire_entry"
    wheel_exit = wheel + " timer_expire_exit"
    hr_both = "hrtimer_start hrtimer_expire_entry"
    empty_known = "softirq_entry softirq_exit timer_expire_entry"
    behind = "sched_waking softirq_entry softirq_exit"
    disturbing = [e for e in counter.expiries if e["cpu"] in isolated and e["cpu"] != e["armed_cpu"]]
    foreign = [e for e in disturbing if e["armed_cpu"] not in isolated]
    between = [e for e in disturbing if e["armed_cpu"] in isolated]
    remote = {}
    for expiry in counter.expiries:
        if expiry["base_cpu"] is not None and expiry["kind"] == "pulled":
            bump(remote, expiry["cpu"])
    cpus = header.cpu_count(counter.highest_cpu)
    estimated, groups = group_numbers(counter, {e["cpu"] for e in disturbing}, cpus)
    cpus_of_groups = {}
    for cpu, group in groups.items():
        cpus_of_groups.setdefault(group, set()).add(cpu)
    span = counter.last - counter.first if seen else None
    hr_foreign = [1 for started, ran in counter.hr_off if ran in isolated and started not in isolated]
    watchdog = counter.watchdog
    has_wheel = all(event in seen for event in wheel.split())
    pings = when("ping_pong", wheel, counter.ping_pongs)
    delays = when("rt_wakeups.delay_ns", behind + " sched_switch", counter.delays) or []
    recorded = {
        "device": "irq_handler_entry" in seen,
        "processor": any(
            event == "ipi_entry" or is_vector(event) and event.endswith("_entry") for event in seen
        ),
        "softirq": "softirq_entry" in seen,
        "nmi": "nmi_handler" in seen,
        "timer": "timer_expire_entry" in seen,
        "hrtimer": "hrtimer_expire_entry" in seen,
        "work": "workqueue_execute_start" in seen,
        "task": "sched_switch" in seen,
    }
    missing.extend(f"interruptions.{source}" for source, is_there in recorded.items() if not is_there)
    figures = {
        "kernel": header.kernel,
        "preempt_rt": counter.preempt_rt or bool(re.search(r"-rt\d*(-|$)", header.kernel or "")),
        "cpus": cpus,
        "isolated": format_cpu_list(isolated),
        "nohz_full": format_cpu_list(header.nohz_full),
        "timer_migration": header.timer_migration,
        "isolated_at_ns": max(
            (at for cpu, (_, at) in counter.unavailable.items() if cpu in isolated), default=None
        ),
        "begin_ns": counter.first,
        "wall_clock_ns": header.wall_clock,
        "duration_ns": span,
        "events": sum(seen.values()),
        "lost_events": max(counter.lost, header.lost),
        "timers": {
            "started": when("timers.started", "timer_start", seen.get("timer_start")),
            "expired": when("timers.expired", "timer_expire_entry", seen.get("timer_expire_entry")),
            "cancel_events": when("timers.cancel_events", "timer_cancel", seen.get("timer_cancel")),
            "expired_unknown_start": when("timers.expired_unknown_start", wheel, counter.unknown_start),
        },
        "foreign": crossing(
            when("foreign", wheel, foreign),
            groups,
            counter.unavailable,
            when("foreign.took_ns", wheel_exit, callbacks(is_isolated=False)),
        ),
        "between_isolated": crossing(
            when("between_isolated", wheel, between),
            groups,
            counter.unavailable,
            when("between_isolated.took_ns", wheel_exit, callbacks(is_isolated=True)),
        ),
        "remote": {
            "total": when("remote", wheel, sum(remote.values())),
            "by_cpu": remote if has_wheel else None,
        },
        "ping_pong": {"count": pings, "per_s": pings * 1e9 / span if pings is not None and span else None},
        "softirq": {
            "timer_entries": when("softirq.timer_entries", "softirq_entry", counter.timer_entries),
            "timer_empty": when("softirq.timer_empty", empty_known, sum(counter.timer_empty.values())),
            "by_cpu": when("softirq.by_cpu", empty_known, counter.timer_empty),
            "empty_ns": spans(when("softirq.empty_ns", empty_known, counter.empty_took)),
        },
        "hrtimers": {
            "expired": when("hrtimers.expired", "hrtimer_expire_entry", seen.get("hrtimer_expire_entry")),
            "off_arming_cpu": when("hrtimers.off_arming_cpu", hr_both, len(counter.hr_off)),
            "foreign": when("hrtimers.foreign", hr_both, len(hr_foreign)),
            "by_task": when("hrtimers.by_task", hr_both, by_task(counter)),
            "qdisc_watchdog": {
                key: when(f"hrtimers.qdisc_watchdog.{key}", events, watchdog[key])
                for key, events in (
                    ("expired", "hrtimer_expire_entry"),
                    ("off_arming_cpu", hr_both),
                    ("by_cpu", "hrtimer_expire_entry"),
                )
            },
        },
        "rt_wakeups": {
            "count": when("rt_wakeups.count", "sched_waking", counter.rt_count),
            "kernel_threads": when("rt_wakeups.kernel_threads", "sched_waking", counter.rt_kernel_threads),
            "behind_softirq": when("rt_wakeups.behind_softirq", behind, counter.rt_behind),
            "delay_ns": {
                "p50": quantile(delays, 0.5),
                "p99": quantile(delays, 0.99),
                "max": max(delays, default=None),
            },
        },
        "groups": {
            "estimated": estimated,
            "cpus": {str(group): format_cpu_list(of) for group, of in cpus_of_groups.items()},
        },
        "isolated_cpus": isolated_cpus(foreign, groups) if has_wheel else [],
        "interruptions": counter.interruptions.report(isolated, recorded.get),
        "osnoise": counter.interruptions.report_noise(),
        "idle": when("idle", "cpu_idle", idle_states(counter, span)),
        # Which events have a meaning is the tool's word; how often each one was there is counted.
        "unknown_events": {name: count for name, count in seen.items() if not known_event(name)},
    }
    figures["not_recorded"] = sorted(missing)
    figures["figures"] = by_name(figures)
    return figures


def by_name(figures):
    """The figures that gates and comparisons are about, each under one name."""
    rows = figures["interruptions"]
    interrupts = ["device", "processor", "softirq", "nmi"]
    unknown = all(f"interruptions.{source}" in figures["not_recorded"] for source in interrupts)
    whole = [row for row in rows if not row["own"] and row["source"] in [*interrupts, "task"]]
    delays = figures["rt_wakeups"]["delay_ns"]

    def longest(key):
        values = [row[key] for row in rows if row[key] is not None and not row["own"]]
        return None if unknown else max(values, default=None)

    return {
        "foreign": figures["foreign"]["total"],
        "pulled": figures["foreign"]["pulled"],
        "placed": figures["foreign"]["placed"],
        "foreign_hrtimers": figures["hrtimers"]["foreign"],
        "remote": figures["remote"]["total"],
        "ping_pongs": figures["ping_pong"]["count"],
        "watchdogs_off": figures["hrtimers"]["qdisc_watchdog"]["off_arming_cpu"],
        "empty_softirqs": figures["softirq"]["timer_empty"],
        "rt_behind_softirq": figures["rt_wakeups"]["behind_softirq"],
        "rt_delay_p50": delays["p50"],
        "rt_delay_p99": delays["p99"],
        "rt_delay_max": delays["max"],
        "interruptions": None if unknown else sum(row["count"] for row in whole),
        "interruption_p99": longest("p99_ns"),
        "interruption_max": longest("max_ns"),
        "lost_events": figures["lost_events"],
    }


def known_event(name):
    """Whether this script itself needs the event."""
    if is_one(name):
        return True
    return name in CPU_AND_PARENT or hasattr(Counter, "on_" + name) or name == "timer_cancel"


def text_lines(path):
    """The lines of the recording at `path`."""
    if path == "-":
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        yield from sys.stdin
    elif path.endswith(".zst"):
        yield from unpacked_lines(path)
    else:
        with open(path, encoding="utf-8", errors="replace") as file:
            yield from file


def unpacked_lines(path):
    """The lines of a text packed with zstd."""
    if not os.path.isfile(path):
        raise InputError(f"{path}: no such file")
    if shutil.which("zstd"):
        command = ["zstd", "-dc", "--", path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace") as child:
            yield from child.stdout
            if child.wait() != 0:
                raise InputError(f"{path}: zstd could not unpack it")
        return
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        raise InputError(
            f"{path}: neither the zstd command nor Python >= 3.14 is here to unpack it; "
            "pipe the text in: quietcore cat FILE | independent_count.py -"
        ) from None
    with zstd.open(path, "rt", encoding="utf-8", errors="replace") as file:
        yield from file


def main(argv):
    """0: printed, or no difference; 1: differences; 2: cannot be read."""
    parser = argparse.ArgumentParser(description="Counts the figures of a recording independently.")
    parser.add_argument("recording", nargs="?", help="ftrace or trace-cmd text, .zst, or - (standard input)")
    parser.add_argument("--isolated", metavar="LIST", help="isolated CPUs, instead of the recording's")
    parser.add_argument("--compare", metavar="FILE", help="JSON of `quietcore explain --json`, or -")
    parser.add_argument("--compared", metavar="FILE", help="append the names of figures that had a value")
    parser.add_argument("--total", metavar="FILE", help="sum up what was appended; name what had no value")
    args = parser.parse_args(argv)
    if (args.recording is None) == (args.total is None):
        parser.error("name a recording, or a file for --total")
    try:
        if args.total is not None:
            with open(args.total, encoding="utf-8") as file:
                return compare_figures.total(report(Counter(), set()), file)
        ours = None
        if args.compare == "-":
            ours = json.load(sys.stdin)
        elif args.compare is not None:
            with open(args.compare, encoding="utf-8") as file:
                ours = json.load(file)
        counter = Counter()
        counter.read(text_lines(args.recording))
        if not counter.seen:
            raise InputError(f"{args.recording}: no line in it is a trace event")
        isolated = counter.header.isolated
        if args.isolated is not None:
            isolated = parse_cpu_list(args.isolated)
        if isolated is None:
            # The text names no set, so the tool took the host's: an input, not a figure.
            isolated = parse_cpu_list((ours or {}).get("isolated") or "")
        counted = report(counter, isolated)
        if ours is None:
            print(json.dumps(counted, indent=2, sort_keys=True))
            return 0
        if args.compared is not None:
            with open(args.compared, "a", encoding="utf-8") as file:
                file.writelines(f"{path}\n" for path in compare_figures.with_value(counted))
    except (InputError, OSError, ValueError) as error:
        print(f"independent_count.py: {error}", file=sys.stderr)
        return 2
    lines = list(compare_figures.differences(ours, counted))
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us quietly
    sys.exit(main(sys.argv[1:]))
