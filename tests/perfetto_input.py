#!/usr/bin/env python3
"""Checks that a Perfetto trace is read as the schema has it.

    perfetto_input.py QUIETCORE [FILE]

Writes a trace with the published schema, in which every event has its fields by name, and compares the text
that `quietcore cat` reads it as with the lines that the kernel prints for these events. The trace is made up:
it is no recording. FILE keeps it. Needs the packages of requirements.txt.

Exits 0 when all lines are equal, 1 when one is not, 2 when QUIETCORE cannot be run.
"""

import os
import subprocess
import sys
import tempfile

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
except ImportError as error:
    sys.exit(f"perfetto_input.py: {error}; install what tests/requirements.txt lists")

FUNCTIONS = {1: "process_timeout", 2: "tick_nohz_handler", 3: "vmstat_update"}

# Event, its fields, and the kernel's words for them; all on CPU 0, one microsecond apart.
EVENTS = [
    ("softirq_raise", {"vec": 1}, "vec=1 [action=TIMER]"),
    ("softirq_entry", {"vec": 9}, "vec=9 [action=RCU]"),
    ("softirq_exit", {"vec": 9}, "vec=9 [action=RCU]"),
    ("irq_handler_entry", {"irq": 35, "name": "nvme0q1"}, "irq=35 name=nvme0q1"),
    ("irq_handler_exit", {"irq": 35, "ret": 1}, "irq=35 ret=handled"),
    ("irq_handler_exit", {"irq": 36, "ret": 0}, "irq=36 ret=unhandled"),
    ("ipi_entry", {"reason": "Rescheduling interrupts"}, "(Rescheduling interrupts)"),
    ("ipi_exit", {"reason": "Rescheduling interrupts"}, "(Rescheduling interrupts)"),
    ("cpu_idle", {"state": 2, "cpu_id": 0}, "state=2 cpu_id=0"),
    ("timer_cancel", {"timer": 0xAB}, "timer=00000000000000ab"),
    (
        "timer_start",
        {"timer": 0xAB, "function": 1, "expires": 4294937300, "now": 4294937296, "bucket_expiry": 4294937301,
         "flags": 0x5500003},
        "timer=00000000000000ab function=process_timeout expires=4294937300 [timeout=4] "
        "bucket_expiry=4294937301 cpu=3 idx=21 flags=P",
    ),
    (
        "timer_expire_entry",
        {"timer": 0xAB, "function": 1, "now": 4294937300, "baseclk": 4294937301},
        "timer=00000000000000ab function=process_timeout now=4294937300 baseclk=4294937301",
    ),
    ("timer_expire_exit", {"timer": 0xAB}, "timer=00000000000000ab"),
    (
        "hrtimer_start",
        {"hrtimer": 0xCD, "function": 2, "expires": 5000, "softexpires": 4000, "mode": 10},
        "hrtimer=00000000000000cd function=tick_nohz_handler expires=5000 softexpires=4000 "
        "mode=ABS|PINNED|HARD",
    ),
    (
        "hrtimer_expire_entry",
        {"hrtimer": 0xCD, "now": 5001, "function": 2},
        "hrtimer=00000000000000cd function=tick_nohz_handler now=5001",
    ),
    ("hrtimer_expire_exit", {"hrtimer": 0xCD}, "hrtimer=00000000000000cd"),
    ("hrtimer_cancel", {"hrtimer": 0xCD}, "hrtimer=00000000000000cd"),
    ("local_timer_entry", {"vector": 236}, "vector=236"),
    ("local_timer_exit", {"vector": 236}, "vector=236"),
    (
        "workqueue_queue_work",
        {"work": 0xEF, "function": 3, "req_cpu": 0, "cpu": 0},
        "work struct=00000000000000ef function=vmstat_update req_cpu=0 cpu=0",
    ),
    ("workqueue_activate_work", {"work": 0xEF}, "work struct 00000000000000ef"),
    (
        "workqueue_execute_start",
        {"work": 0xEF, "function": 3},
        "work struct 00000000000000ef: function vmstat_update",
    ),
    (
        "workqueue_execute_end",
        {"work": 0xEF, "function": 3},
        "work struct 00000000000000ef: function vmstat_update",
    ),
    (
        "sched_wakeup",
        {"comm": "rt", "pid": 9, "prio": 98, "target_cpu": 1},
        "comm=rt pid=9 prio=98 target_cpu=001",
    ),
    (
        "sched_wakeup_new",
        {"comm": "rt", "pid": 9, "prio": 98, "target_cpu": 1},
        "comm=rt pid=9 prio=98 target_cpu=001",
    ),
    (
        "sched_waking",
        {"comm": "rt", "pid": 9, "prio": 98, "target_cpu": 1},
        "comm=rt pid=9 prio=98 target_cpu=001",
    ),
    (
        "sched_migrate_task",
        {"comm": "rt", "pid": 9, "prio": 98, "orig_cpu": 1, "dest_cpu": 2},
        "comm=rt pid=9 prio=98 orig_cpu=1 dest_cpu=2",
    ),
    (
        "sched_switch",
        {
            "prev_comm": "sh", "prev_pid": 42, "prev_prio": 120, "prev_state": 1,
            "next_comm": "rt", "next_pid": 9, "next_prio": 98,
        },
        "prev_comm=sh prev_pid=42 prev_prio=120 prev_state=S ==> next_comm=rt next_pid=9 next_prio=98",
    ),
]  # fmt: skip


def made():
    """The trace, and the lines that it is: event, colon, fields; and marks."""
    trace = schema.Trace()
    trace.packet.add(trusted_packet_sequence_id=1)  # fuzz/ puts this packet before its inputs
    front = trace.packet.add(trusted_packet_sequence_id=1, sequence_flags=1)
    for number, name in FUNCTIONS.items():
        front.interned_data.kernel_symbols.add(iid=number, str=name.encode())
    trace.packet[-1].system_info.num_cpus = 4
    system = trace.packet[-1].system_info.utsname
    system.sysname, system.release, system.machine = "Linux", "6.12.48", "x86_64"
    for phase, overrun in (("START_OF_TRACE", 3), ("END_OF_TRACE", 10)):
        stats = trace.packet.add(trusted_packet_sequence_id=1).ftrace_stats
        stats.phase = getattr(schema.FtraceStats, phase)
        stats.cpu_stats.add(cpu=1, overrun=overrun)
    lines = ["cpus=4; uname: Linux perfetto 6.12.48 x86_64"]

    bundle = trace.packet.add(trusted_packet_sequence_id=1).ftrace_events
    bundle.cpu = 0
    for count, (name, fields, words) in enumerate(EVENTS):
        event = bundle.event.add(timestamp=1_000_000_000 + 1000 * count, pid=42)
        message = getattr(event, name)
        message.SetInParent()
        for field, value in fields.items():
            setattr(message, field, value)
        lines.append(f"{name}: {words}")
    unknown = bundle.event.add(timestamp=1_100_000_000, pid=9)
    unknown.cpu_frequency.state = 1
    lines.append("perfetto_event_11:")
    generic = bundle.event.add(timestamp=1_200_000_000, pid=9).generic
    generic.event_name = "reschedule_entry"
    generic.field.add(name="vector", int_value=253)
    lines.append("reschedule_entry: vector=253")

    compact = trace.packet.add(trusted_packet_sequence_id=1).ftrace_events
    compact.cpu, compact.lost_events = 1, True
    sched = compact.compact_sched
    sched.intern_table.extend(["one", "two"])
    sched.switch_timestamp.extend([2_000_000_000, 2000])
    sched.switch_prev_state.extend([0, 256])
    sched.switch_next_pid.extend([11, 12])
    sched.switch_next_prio.extend([120, 97])
    sched.switch_next_comm_index.extend([0, 1])
    sched.waking_timestamp.extend([2_000_001_000])
    sched.waking_pid.extend([12])
    sched.waking_target_cpu.extend([1])
    sched.waking_prio.extend([97])
    sched.waking_comm_index.extend([1])
    lines += [
        "CPU:1 [LOST EVENTS]",
        "sched_switch_from_unknown_task: next_comm=one next_pid=11 next_prio=120",
        "sched_waking: comm=two pid=12 prio=97 target_cpu=001",
        "sched_switch: prev_comm=one prev_pid=11 prev_prio=120 prev_state=R+ ==> next_comm=two next_pid=12 "
        "next_prio=97",
        # Seven by the counts, one of which has its mark above.
        "CPU:1 [LOST 6 EVENTS]",
    ]
    return trace.SerializeToString(), lines


def without_columns(line):
    """The line from the event's name on; what has no columns is whole."""
    return line if line.startswith(("cpus=", "CPU:")) else line.split(": ", 1)[1]


def main(argv):
    if len(argv) not in (1, 2):
        print("usage: perfetto_input.py QUIETCORE [FILE]", file=sys.stderr)
        return 2
    data, expected = made()
    with tempfile.TemporaryDirectory() as folder:
        path = argv[1] if len(argv) == 2 else os.path.join(folder, "made.pftrace")
        with open(path, "wb") as file:
            file.write(data)
        try:
            read = subprocess.run([argv[0], "cat", path], capture_output=True, check=False)
        except OSError as error:
            print(f"perfetto_input.py: {argv[0]}: {error}", file=sys.stderr)
            return 2
    shown = [without_columns(line) for line in read.stdout.decode(errors="replace").splitlines()]
    if read.returncode != 0 or shown != expected:
        print(read.stderr.decode(errors="replace"), end="")
        for number, pair in enumerate(zip(expected + [None] * len(shown), shown + [None] * len(expected))):
            if pair[0] != pair[1]:
                print(f"line {number + 1}\n  expected {pair[0]!r}\n  read     {pair[1]!r}")
        return 1
    print(f"{len(shown)} lines of a trace of Perfetto are as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
