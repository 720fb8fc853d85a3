#!/usr/bin/env python3
"""Counts the figures of `quietcore explain --json` a second time, from the raw text of a recording.

This script is a check on the tool, so it shares nothing with it: it was written from the
definitions in docs/reference/explain-json.md, uses only the standard library, and reads the text itself.

    independent_count.py RECORDING                     print the figures as JSON
    independent_count.py RECORDING --compare OURS.json one line per difference, exit 1 if any

RECORDING is ftrace text or `trace-cmd report` text (`-`: standard input), or such a text packed
with zstd (then the `zstd` command, or Python >= 3.14, unpacks it). OURS.json may be `-`.

Definitions used:
- armed on: the CPU in brackets on the last `timer_start` line of the timer; base: `cpu=` of that
  line; ran on: the CPU in brackets on its `timer_expire_entry` line. A cancel or an expiry does
  not forget the last start; an identity that is used again simply has a newer last start.
- foreign: armed on a CPU that is not isolated, ran on an isolated one. between_isolated: armed on
  an isolated CPU, ran on another isolated one. pulled: ran on != base; placed: ran on == base.
- ping-pong: an expiry with ran on != base, and the next `timer_start` line of the timer is on the
  old base's CPU.
- an empty TIMER softirq: entry and exit on one CPU without `timer_expire_entry` between them.
- a figure whose events do not occur in the text is null; map entries that would be 0 are left out.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys

LINE = re.compile(
    r"^\s*(?P<task>\S.*?)-(?P<pid>\d+)\s+"
    r"(?:\(\s*[-\d]+\)\s+)?"  # thread group, when that option was on
    r"\[(?P<cpu>\d+)\]\s+"
    r"(?:\S{1,8}\s+)?"  # interrupt and preemption flags; trace-cmd may leave them out
    r"(?P<time>\d+\.\d+):\s+"
    r"(?P<event>\w+):\s*(?P<fields>.*)$"
)
FIELD = re.compile(r"\b([a-z_]+)=([^\s\]]*)")
WAKING = re.compile(r"comm=.* pid=\d+ prio=(-?\d+) .*\btarget_cpu=(\d+)")
WAKING_SHORT = re.compile(r"^.*:\d+ \[(-?\d+)\].*\bCPU:(\d+)")  # trace-cmd's own short form

TIMER_VECTOR = 1
LONG_VECTORS = {2, 3, 4, 5}  # NET_TX, NET_RX, BLOCK, IRQ_POLL
FIRST_NORMAL_PRIO = 100
CPUS_PER_ESTIMATED_GROUP = 8

# Events that name a CPU and its level-0 group, for texts that begin after the groups were built.
CPU_AND_PARENT = {
    "tmigr_cpu_active",
    "tmigr_cpu_idle",
    "tmigr_cpu_new_timer",
    "tmigr_cpu_new_timer_idle",
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
        self.possible = None
        self.isolated = None
        self.cpus_trace_cmd = None
        self.cpus_online = None

    def read(self, line):
        """Takes one line that is not an event."""
        match = re.match(r"^# cpus: possible (\d[\d,-]*?),?\s", line)
        if match:
            self.possible = parse_cpu_list(match.group(1))
        match = re.match(r"^# isolated: ([^;\s]*)", line)
        if match:
            self.isolated = parse_cpu_list(match.group(1))
        match = re.match(r"^cpus=(\d+)\s*$", line)
        if match:
            self.cpus_trace_cmd = int(match.group(1))
        match = re.search(r"^#.*#P:(\d+)", line)
        if match:
            self.cpus_online = int(match.group(1))

    def cpu_count(self, highest_seen):
        """Possible CPUs, as well as the text knows."""
        if self.possible is not None:
            return len(self.possible)
        for known in (self.cpus_trace_cmd, self.cpus_online):
            if known is not None:
                return known
        return highest_seen + 1 if highest_seen is not None else None


class Counter:
    """Walks the events once and keeps what the figures need; sorting out comes in `report`."""

    def __init__(self):
        self.header = Header()
        self.seen = {}  # event name -> lines
        self.highest_cpu = None
        self.starts = {}  # timer -> (armed on, base)
        self.unknown_start = 0
        self.expiries = []  # (function, armed on, base, ran on) of every expiry with a known start
        self.awaiting_restart = {}  # timer -> old base, after a remote expiry
        self.ping_pongs = 0
        self.groups = {"connect": {}, "mention": {}}  # cpu -> group
        self.timer_softirq = {}  # cpu -> has a timer run in the TIMER softirq that is open there
        self.timer_entries = 0
        self.timer_empty = {}
        self.open_long = {}  # cpu -> vectors of LONG softirqs that are open there
        self.hr_starts = {}  # hrtimer -> (cpu, "comm-pid")
        self.hr_off = 0
        self.hr_by_task = {}
        self.watchdog = {"expired": 0, "off_arming_cpu": 0, "by_cpu": {}}
        self.rt_count = 0
        self.rt_behind = 0

    def read(self, lines):
        """Takes the whole text."""
        for line in lines:
            match = LINE.match(line)
            if not match:
                self.header.read(line)
                continue
            event = match.group("event")
            cpu = int(match.group("cpu"))
            self.seen[event] = self.seen.get(event, 0) + 1
            self.highest_cpu = cpu if self.highest_cpu is None else max(cpu, self.highest_cpu)
            handler = getattr(self, "on_" + event, None)
            if handler is None and event not in CPU_AND_PARENT:
                continue
            text = match.group("fields")
            fields = {}
            for key, value in FIELD.findall(text):
                fields.setdefault(key, value)
            if event in CPU_AND_PARENT:
                self.note_group("mention", fields)
            else:
                handler(cpu, fields, text, match)

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
        self.starts[timer] = (cpu, base)

    def on_timer_expire_entry(self, cpu, fields, _text, _match):
        if cpu in self.timer_softirq:
            self.timer_softirq[cpu] = True
        timer = identity(fields, "timer")
        start = self.starts.get(timer)
        if start is None:
            self.unknown_start += 1
            return
        armed, base = start
        self.expiries.append((function_name(fields), armed, base, cpu))
        if base is not None and base != cpu:
            self.awaiting_restart[timer] = base
        else:
            self.awaiting_restart.pop(timer, None)

    def on_softirq_entry(self, cpu, fields, _text, _match):
        vector = int(fields["vec"])
        if vector == TIMER_VECTOR:
            self.timer_entries += 1
            self.timer_softirq[cpu] = False
        elif vector in LONG_VECTORS:
            self.open_long.setdefault(cpu, set()).add(vector)

    def on_softirq_exit(self, cpu, fields, _text, _match):
        vector = int(fields["vec"])
        if vector == TIMER_VECTOR:
            if self.timer_softirq.pop(cpu, None) is False:
                bump(self.timer_empty, cpu)
        elif vector in LONG_VECTORS:
            self.open_long.get(cpu, set()).discard(vector)

    def on_hrtimer_start(self, cpu, fields, _text, match):
        task = f"{match.group('task').strip()}-{match.group('pid')}"
        self.hr_starts[identity(fields, "hrtimer")] = (cpu, task)

    def on_hrtimer_expire_entry(self, cpu, fields, _text, _match):
        function = function_name(fields)
        armed, task = self.hr_starts.get(identity(fields, "hrtimer"), (None, None))
        off = armed is not None and armed != cpu
        self.hr_off += off
        if function == "hrtimer_wakeup" and task is not None:
            bump(self.hr_by_task, task)
        if function == "qdisc_watchdog":
            self.watchdog["expired"] += 1
            self.watchdog["off_arming_cpu"] += off
            bump(self.watchdog["by_cpu"], cpu)

    def on_sched_waking(self, _cpu, _fields, text, _match):
        match = WAKING.search(text) or WAKING_SHORT.search(text)
        if not match or int(match.group(1)) >= FIRST_NORMAL_PRIO:
            return
        self.rt_count += 1
        self.rt_behind += bool(self.open_long.get(int(match.group(2))))


def group_numbers(counter, cpus):
    """cpu -> number of its level-0 group; groups are numbered by their lowest CPU. Estimated as
    cpu // 8 when the text does not name the group of every CPU asked for."""
    known = counter.groups["connect"] or counter.groups["mention"]
    if not known or any(cpu not in known for cpu in cpus):
        return {cpu: cpu // CPUS_PER_ESTIMATED_GROUP for cpu in cpus}
    lowest = {}
    for cpu, group in known.items():
        lowest[group] = min(cpu, lowest.get(group, cpu))
    order = {group: number for number, group in enumerate(sorted(lowest, key=lowest.get))}
    return {cpu: order[known[cpu]] for cpu in cpus}


def crossing(counter, chosen, recorded):
    """The figures of `foreign` and `between_isolated` over the expiries in `chosen`."""
    figures = {"total": 0, "pulled": 0, "placed": 0}
    maps = {"by_function": {}, "by_cpu": {}, "by_base_cpu": {}, "by_group": {}}
    if not recorded:
        return dict.fromkeys((*figures, *maps))
    groups = group_numbers(counter, {ran for _, _, _, ran in chosen})
    for function, _armed, base, ran in chosen:
        figures["total"] += 1
        figures["pulled" if ran != base else "placed"] += 1
        bump(maps["by_function"], function)
        bump(maps["by_cpu"], ran)
        bump(maps["by_base_cpu"], base)
        bump(maps["by_group"], groups[ran])
    return {**figures, **maps}


def report(counter, isolated):
    """All figures, in the shape of `quietcore explain --json`."""
    has = counter.seen.__contains__
    start_expire = has("timer_start") and has("timer_expire_entry")
    hr_both = has("hrtimer_start") and has("hrtimer_expire_entry")
    foreign = [e for e in counter.expiries if e[3] in isolated and e[1] not in isolated]
    between = [e for e in counter.expiries if e[3] in isolated and e[1] in isolated and e[1] != e[3]]
    remote = {}
    for _function, _armed, base, ran in counter.expiries:
        if base is not None and ran != base:
            bump(remote, ran)
    softirq = has("softirq_entry")
    empty_known = softirq and has("softirq_exit") and has("timer_expire_entry")
    watchdog = counter.watchdog

    def when(condition, value):
        return value if condition else None

    return {
        "cpus": counter.header.cpu_count(counter.highest_cpu),
        "isolated": format_cpu_list(isolated),
        "timers": {
            "started": counter.seen.get("timer_start"),
            "expired": counter.seen.get("timer_expire_entry"),
            "cancel_events": counter.seen.get("timer_cancel"),
            "expired_unknown_start": when(start_expire, counter.unknown_start),
        },
        "foreign": crossing(counter, foreign, start_expire),
        "between_isolated": crossing(counter, between, start_expire),
        "remote": {
            "total": when(start_expire, sum(remote.values())),
            "by_cpu": when(start_expire, remote),
        },
        "ping_pong": {"count": when(start_expire, counter.ping_pongs)},
        "softirq": {
            "timer_entries": when(softirq, counter.timer_entries),
            "timer_empty": when(empty_known, sum(counter.timer_empty.values())),
            "by_cpu": when(empty_known, counter.timer_empty),
        },
        "hrtimers": {
            "expired": counter.seen.get("hrtimer_expire_entry"),
            "off_arming_cpu": when(hr_both, counter.hr_off),
            "by_task": when(hr_both, counter.hr_by_task),
            "qdisc_watchdog": {
                "expired": when(has("hrtimer_expire_entry"), watchdog["expired"]),
                "off_arming_cpu": when(hr_both, watchdog["off_arming_cpu"]),
                "by_cpu": when(has("hrtimer_expire_entry"), watchdog["by_cpu"]),
            },
        },
        "rt_wakeups": {
            "count": when(has("sched_waking"), counter.rt_count),
            "behind_softirq": when(has("sched_waking") and softirq, counter.rt_behind),
        },
    }


MISSING = object()
COUNT_MAPS = ("by_function", "by_cpu", "by_base_cpu", "by_group", "by_task")


def all_null(value):
    """True for null and for an object of nulls."""
    if isinstance(value, dict):
        return bool(value) and all(all_null(v) for v in value.values())
    return value is None


def shown(value):
    """A value as a line of the comparison prints it."""
    return "nothing" if value is MISSING else json.dumps(value, sort_keys=True)


def differences(ours, counted, path=""):
    """One line per figure that differs. Keys of `ours` that are not counted here are not looked at,
    except in the maps of counts, where an extra key is a difference."""
    if isinstance(counted, dict) and isinstance(ours, dict):
        keys = list(counted)
        if path.rpartition(".")[2] in COUNT_MAPS:
            keys += [key for key in ours if key not in counted]
        for key in keys:
            below = f"{path}.{key}" if path else key
            yield from differences(ours.get(key, MISSING), counted.get(key, MISSING), below)
    elif ours is None and all_null(counted):
        return
    elif type(ours) is not type(counted) or ours != counted:
        yield f"{path}: ours {shown(ours)}, counted {shown(counted)}"


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
    parser.add_argument("recording", help="ftrace or trace-cmd text, .zst, or - for standard input")
    parser.add_argument("--isolated", metavar="LIST", help="isolated CPUs, instead of the recording's")
    parser.add_argument("--compare", metavar="FILE", help="JSON of `quietcore explain --json`, or -")
    args = parser.parse_args(argv)
    try:
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
    except (InputError, OSError, ValueError) as error:
        print(f"independent_count.py: {error}", file=sys.stderr)
        return 2
    counted = report(counter, isolated)
    if ours is None:
        print(json.dumps(counted, indent=2, sort_keys=True))
        return 0
    lines = list(differences(ours, counted))
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends us quietly
    sys.exit(main(sys.argv[1:]))
