"""Figures of what was sent and of what arrived, and how two of them are compared."""

import re
from bisect import bisect_right
from dataclasses import dataclass

# Delays are compared in steps of so many nanoseconds, as the kernel's path takes some ten microseconds.
STEP = 100_000
# The limit of the distance of Kolmogorov and Smirnov at 99 %, for two samples of one size.
KS_99 = 1.628
# Standard deviations that 99.9 % of a normal distribution are within.
SIGMAS = 3.29


@dataclass
class Played:
    """What was sent at `sent`, in order; arrivals as (number, moment, tos, damaged); what `tc -s` showed."""

    sent: list
    arrivals: list
    shown: str

    def good(self):
        return [arrival for arrival in self.arrivals if not arrival[3]]

    def delays(self):
        return [at - self.sent[number] for number, at, _, _ in self.good()]

    def order(self):
        return [number for number, *_ in self.good()]

    def counts(self):
        order = self.order()
        seen = set(order)
        damaged = len(self.arrivals) - len(order)
        highest, overtaken = -1, 0
        for number in order:
            overtaken += number < highest
            highest = max(highest, number)
        missing = [number not in seen for number in range(len(self.sent))]
        bursts = sum(gone and not before for before, gone in zip([False, *missing], missing))
        return {
            "received": len(self.arrivals),
            "twice": len(order) - len(seen),
            "lost": len(self.sent) - len(seen) - damaged,
            "loss bursts": bursts,
            "damaged": damaged,
            "marked": sum(tos & 3 == 3 for _, _, tos, _ in self.arrivals),
            "overtakings": overtaken,
            "at once": sum(delay < 1_000_000 for delay in self.delays()),
        }


def parse(text, sent=None):
    """What a replay or the machine wrote of one play; `sent` where it was told, as the machine writes it."""
    told, _, shown = text.partition("@@ shown\n")
    if failed := re.search(r"@@ failed.*\n.*", told):
        raise SystemExit(failed[0])
    lines = [line.split() for line in told.splitlines()]
    sent = sent or [int(words[1]) for words in lines if words[:1] == ["s"]]
    arrivals = [tuple(map(int, words[1:])) for words in lines if words[:1] == ["r"]]
    return Played(sent, arrivals, shown)


SENT = re.compile(r"Sent (\d+) bytes (\d+) pkt \(dropped (\d+), overlimits (\d+) requeues (\d+)\)")


# What cake shows of each tin, and of all of them.
TIN = re.compile(
    r"  (thresh|target|interval|.._delay|backlog|pkts|bytes|way_....|drops|marks|ack_drop|.._flows|max_len"
    r"|quantum) "
)
ALL_TINS = re.compile(r" (memory used|capacity estimate|min/max .* size|average network hdr offset):")
NUMBER = re.compile(r"([\d.]+)(us|ms|s|b|Kb|Mb|bit|Kbit|Mbit)?(?= |$)")
UNITS = {"ms": 1e3, "s": 1e6, "Kb": 1 << 10, "Mb": 1 << 20, "Kbit": 1e3, "Mbit": 1e6}


def numbers(line):
    """Numbers of a line, times in microseconds."""
    return [round(float(number) * UNITS.get(unit, 1)) for number, unit in NUMBER.findall(line)]


def counters(shown):
    """The counters of each discipline and class, by its name."""
    found, name = {}, None
    for line in shown.splitlines():
        if line.startswith(("qdisc ", "class ")):
            name = " ".join(line.split()[:3])
        elif counted := SENT.search(line):
            names = ["bytes", "packets", "dropped", "overlimits", "requeues"]
            found[name] = dict(zip(names, map(int, counted.groups())))
        elif row := TIN.match(line) or ALL_TINS.match(line):
            rest = numbers(line[row.end() :])
            found[name].update((f"{row[1]}[{at}]", number) for at, number in enumerate(rest))
    return found


def distance(one, other):
    """The largest distance between the distribution functions of two samples, in steps."""
    one, other = ([value // STEP for value in sorted(values)] for values in (one, other))
    return max(
        abs(bisect_right(one, value) / len(one) - bisect_right(other, value) / len(other))
        for value in {*one, *other}
    )


def limit(one, other):
    """Which distance 99 % of two samples of one distribution are below."""
    return KS_99 * (1 / len(one) + 1 / len(other)) ** 0.5


def spread(values):
    mean = sum(values) / len(values)
    square = sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)
    return mean, square**0.5


def within(value, values):
    """Whether a count is where 99.9 % are of what made `values`; and the text of those bounds."""
    mean, deviation = spread(values)
    room = SIGMAS * deviation * (1 + 1 / len(values)) ** 0.5 + 1
    return abs(value - mean) <= room, f"{max(0, mean - room):.0f}..{mean + room:.0f}"


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]
