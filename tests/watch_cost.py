#!/usr/bin/env python3
"""What it costs the kernel to be watched: two tasks that wake each other on the watched CPU
(`perf bench sched pipe`), with nothing else, and beside `quietcore watch`, `quietcore explain --live`,
events in the kernel's own buffers, and a bpftrace script that counts.

    watch_cost.py QUIETCORE CPU [ROUNDS]      as root; needs perf, tracefs and, for the last one, bpftrace

Rounds are interleaved; printed are medians, with the least and the most, and the ratio to nothing.
"""

import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
TRACING = pathlib.Path("/sys/kernel/tracing/instances")
#: What of the kernel's own events is what the others look at.
EVENTS = ["timer", "irq", "irq_vectors", "ipi", "nmi", "workqueue"]
EVENTS += ["sched/sched_switch", "sched/sched_waking"]
LOOPS = "30000"


class Process:
    """A program that looks at the kernel, until it is ended."""

    def __init__(self, words, begun):
        self.words, self.begun = words, begun

    def __enter__(self):
        said = subprocess.PIPE
        self.process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL, stderr=said, text=True)
        time.sleep(self.begun)
        if self.process.poll() is not None:
            raise SystemExit(f"{' '.join(self.words)} ended: {self.process.stderr.read()}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Nothing:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


class Buffers:
    """Events in buffers that no reader empties, and that overwrite themselves."""

    def __enter__(self):
        self.instance = TRACING / "watch-cost"
        self.instance.mkdir()
        for event in EVENTS:
            enable = self.instance / "events" / event / "enable"
            if enable.exists():
                enable.write_text("1")
        time.sleep(1)

    def __exit__(self, *_):
        self.instance.rmdir()


def pipe(cpu):
    """Microseconds for one wake-up and back."""
    words = ["taskset", "-c", cpu, "perf", "bench", "sched", "pipe", "-l", LOOPS]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return float(re.search(r"([0-9.]+) usecs/op", said)[1])


def main():
    command, cpu, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 5
    live = [command, "explain", "--live", "1h", "--isolated", cpu, "--questions", "isolation"]
    modes = {
        "nothing": Nothing(),
        "quietcore watch": Process([command, "watch", "--isolated", cpu], 2),
        "quietcore watch, another CPU watched": Process([command, "watch", "--isolated", "0"], 2),
        "quietcore explain --live": Process(live, 3),
        "events in the kernel's buffers": Buffers(),
    }
    if shutil.which("bpftrace"):
        script = ["bpftrace", str(HERE / "watch_agreement.bt"), str(1 << int(cpu))]
        modes["a bpftrace script that counts"] = Process(script, 5)
    took = {name: [] for name in modes}
    for _ in range(rounds):
        for name, mode in modes.items():
            with mode:
                took[name].append(pipe(cpu))
    base = statistics.median(took["nothing"])
    print(f"{'beside':<38} {'us per round trip':>18} {'least':>7} {'most':>7} {'ratio':>6}")
    for name, all_of in took.items():
        median = statistics.median(all_of)
        print(f"{name:<38} {median:>18.2f} {min(all_of):>7.2f} {max(all_of):>7.2f} {median / base:>6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
