#!/usr/bin/env python3
"""Compares quietcore's disciplines with a kernel's, line of `tc` by line, and prints a table.

    fidelity.py record KERNEL INTO [ROW ...]     sends through the rows on a kernel in an emulated machine
    fidelity.py compare RECORDED REPLAY [ROW ...]   plays the recorded moments to quietcore, and compares

README.md tells what KERNEL and REPLAY are, and how verdicts are made.
"""

import itertools
import json
import lzma
import random
import subprocess
import sys
from pathlib import Path

import figures
import guest
import rows

SEEDS = 40
# Nanoseconds that a packet or a timer is late at most, of plays that are late.
PATH = 20_000


def chosen(names):
    made = rows.rows()
    unknown = set(names) - {row.name for row in made}
    if unknown:
        raise SystemExit(
            f"no rows: {', '.join(sorted(unknown))}; there are {', '.join(row.name for row in made)}"
        )
    return [row for row in made if not names or row.name in names]


def record(kernel, into, names):
    said, version = guest.run(Path(kernel), chosen(names))
    Path(into).write_bytes(lzma.compress(json.dumps({"kernel": version, "rows": said}).encode(), preset=1))


def play(row, replay, sent, *words):
    """What quietcore makes of what was sent at those moments; `words` are the replay's."""
    plan = [words.split(" ", 1)[1] for words in row.plan()]
    text = "".join(f"{line}\n" for line in row.lines)
    text += "".join(f"send {at} {rest}\n" for at, rest in zip(sent, plan))
    done = subprocess.run([replay, *map(str, words)], input=text, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{row.name}: {done.stderr}")
    return [figures.parse(block.split("\n", 1)[1], sent) for block in done.stdout.split("@@ seed ")[1:]]


def plays(row, replay, sent):
    """Plays of quietcore's: of random rows with each seed; of exact ones as it was sent, and then with
    packets and timers late by a few microseconds, as in a kernel."""
    if row.kind != "exact":
        return play(row, replay, sent, SEEDS)
    draw, made = random.Random(1), play(row, replay, sent)
    for seed in range(1, SEEDS + 1):
        late = itertools.accumulate((at + draw.randrange(PATH) for at in sent), max)
        made += play(row, replay, list(late), 1, draw.randrange(PATH), seed)
    return made


def compare_random(row, kernel, ours):
    told, same = [], True
    counted = [play.counts() for play in ours]
    found = kernel.counts()
    for name in row.counts:
        fits, bounds = figures.within(found[name], [counts[name] for counts in counted])
        same &= fits
        told.append(f"{name} {found[name]} ({bounds})")
    if row.delays:
        pooled = [delay for play in ours for delay in play.delays()]
        here = kernel.delays()
        apart, most = figures.distance(here, pooled), figures.limit(here, pooled)
        if row.walk:
            # Delays that depend on those before: what our own seeds differ by from all of them.
            most = max(figures.distance(play.delays(), pooled) for play in ours)
        same &= apart <= most
        (mean, deviation), (other, spread) = figures.spread(here), figures.spread(pooled)
        told.append(
            f"mean/deviation {mean / 1e6:.2f}/{deviation / 1e6:.2f}"
            f" ({other / 1e6:.2f}/{spread / 1e6:.2f}) ms"
        )
        told.append(f"KS {apart:.3f} ({most:.3f})")
    return told, same


def beside(one, other):
    """How an exact play differs from another: packets that only one has, those at another place, how far 99 %
    of departures are apart, and half of them."""
    there, here = one.order(), other.order()
    both = set(there) & set(here)
    at = {number: moment for number, moment, *_ in other.arrivals}
    apart = [abs(moment - at[number]) for number, moment, *_ in one.arrivals if number in at]
    others = len(there) + len(here) - 2 * len(both)
    moved = len(there) - sum(first == second for first, second in zip(there, here))
    return others, moved, figures.quantile(apart, 0.99), figures.quantile(apart, 0.5)


def compare_exact(row, kernel, ours):
    first, *late = ours
    plan = [int(words.split()[1]) for words in row.plan()]

    def flows(play):
        return [sum(plan[number] == flow for number in play.order()) for flow in sorted(set(plan))]

    told, same = [], True
    mine = flows(first)
    for at, count in enumerate(flows(kernel)):
        counts = [flows(play)[at] for play in ours]
        same &= min(counts) <= count <= max(counts) or figures.within(count, counts)[0]
    told.append(
        " ".join(map(str, flows(kernel)))
        + ("" if flows(kernel) == mine else f" ({' '.join(map(str, mine))})")
    )
    differs = beside(kernel, first)
    most = [max(values) for values in zip(*(beside(play, first) for play in late))]
    # The kernel's path takes time of its own.
    most[2] += row.apart
    same &= all(value <= limit for value, limit in zip(differs[:3], most))
    others, moved, p99, p50 = differs
    told.append(
        f"{len(kernel.order()) - moved} of {len(kernel.order())} at the same place ({most[1]} may not be)"
    )
    if others:
        told.append(f"{others} that only one has ({most[0]})")
    told.append(f"apart p50 {p50 / 1e3:.0f} us, p99 {p99 / 1e3:.0f} us ({most[2] / 1e3:.0f})")
    return told, same


def compare_counters(row, kernel, ours):
    """What `tc -s` counts, and where that differs."""
    there = figures.counters(kernel.shown)
    here = [figures.counters(play.shown) for play in ours]
    differ = []
    for name, counted in there.items():
        for what, count in counted.items():
            if name not in here[0]:
                differ.append(f"{name}: not shown")
                break
            values = [shown[name][what] for shown in here]
            fits, bounds = figures.within(count, values)
            if not (fits or min(values) <= count <= max(values)):
                differ.append(f"{name} {what} {count} ({bounds})")
    return differ


def told(row):
    """The lines of a row, as short as they can be told."""
    made = [line.split(" handle ", 1)[1].split(": ", 1)[1] for line in row.lines if " qdisc add " in line]
    others = [line.split()[1] for line in row.lines if " qdisc add " not in line]
    counts = [f"{others.count(what)} {what}s" for what in ("class", "filter") if what in others]
    return " + ".join([f"`{words}`" for words in made] + counts).replace("classs", "classes")


def compare(recorded, replay, names):
    recorded = json.loads(lzma.decompress(Path(recorded).read_bytes()))
    print(
        f"Kernel {recorded['kernel']}.\n\n| row | lines | kernel (ours) | verdict | counters |\n"
        "| --- | --- | --- | --- | --- |"
    )
    failed = 0
    for row in chosen(names):
        if row.name not in recorded["rows"]:
            continue
        kernel = figures.parse(recorded["rows"][row.name])
        ours = plays(row, replay, kernel.sent)
        found, same = (compare_exact if row.kind == "exact" else compare_random)(row, kernel, ours)
        counters = compare_counters(row, kernel, ours)
        failed += not same
        verdict = "same" if same else "**differs**"
        columns = [row.name, told(row), "; ".join(found), verdict, "; ".join(counters) or "same"]
        print(f"| {' | '.join(columns)} |", flush=True)
    print(f"\n{failed} differ.")
    return failed


def main():
    words = sys.argv[1:]
    if len(words) < 3 or words[0] not in ("record", "compare"):
        sys.exit(__doc__)
    if words[0] == "record":
        record(words[1], words[2], words[3:])
    else:
        sys.exit(1 if compare(words[1], words[2], words[3:]) else 0)


main()
