#!/usr/bin/env python3
"""Holds what `quietcore explain --json` counts of interrupts and softirqs against the osnoise tracer.

    compare_osnoise.py REPORT.json     one line per CPU and kind; exit 1 where they do not agree

REPORT is of a recording that has the tracer's own events and those that it makes them of. They agree where
the counts are the same to 1 % (or to 5: its thread begins after the events do), and the times to 10 %: the
tracer looks at its clock a moment after the event that begins, and before the one that ends.
"""

import json
import math
import sys

KINDS = {"interrupt": ("device", "processor"), "softirq": ("softirq",)}


def total(rows, cpu, sources):
    """How many, and how long they took in all."""
    rows = [row for row in rows if row["cpu"] == cpu and row["source"] in sources]
    return sum(row["count"] for row in rows), sum(row["total_ns"] or 0 for row in rows)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    measured = sorted({(row["cpu"], row["source"]) for row in report["osnoise"] if row["source"] in KINDS})
    if not measured:
        sys.exit("compare_osnoise.py: no interrupt was measured; was the tracer on?")
    differ = False
    for cpu, kind in measured:
        theirs = total(report["osnoise"], cpu, (kind,))
        ours = total(report["interruptions"], cpu, KINDS[kind])
        same = abs(theirs[0] - ours[0]) <= max(5, theirs[0] // 100) and math.isclose(*(
            time / max(count, 1) for count, time in (theirs, ours)
        ), rel_tol=0.1)
        differ |= not same
        print(f"CPU {cpu} {kind}: osnoise {theirs[0]} in {theirs[1]} ns, explain {ours[0]} in {ours[1]} ns"
              f"{'' if same else ': DIFFERENT'}")
    sys.exit(differ)


if __name__ == "__main__":
    main()
