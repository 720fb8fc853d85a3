#!/usr/bin/env python3
"""Compares hrtimers.by_task of an explanation with what cyclictest counted itself.

compare_cyclictest.py EXPLAIN.json CYCLICTEST.txt: exits with 0 when every thread's expiries are within
0.5 % of its own C: count and no event was lost, with 1 otherwise.
"""

import json
import re
import sys

TOLERANCE = 0.005


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        explanation = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        threads = re.findall(r"^T:\s*\d+ \(\s*(\d+)\).*?C:\s*(\d+)", file.read(), re.MULTILINE)
    if not threads:
        print("no T: line of cyclictest")
        return 1
    if explanation["lost_events"]:
        print(f"{explanation['lost_events']} events were lost")
        return 1
    by_task = explanation["hrtimers"]["by_task"] or {}
    code = 0
    for thread, cycles in threads:
        ours = sum(count for task, count in by_task.items() if task.rsplit("-", 1)[1] == thread)
        off = abs(ours - int(cycles)) / int(cycles)
        print(f"      thread {thread}: cyclictest {cycles}, by_task {ours}, {off:.3%} apart")
        code |= off > TOLERANCE
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
