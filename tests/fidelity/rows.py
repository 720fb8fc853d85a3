"""What is compared: lines of `tc`, what is sent through them, and which figures have to agree."""

import random
from dataclasses import dataclass, field

MILLI = 1_000_000
SECOND = 1_000_000_000


@dataclass
class Row:
    """One comparison. `kind` says which figures decide: of `random` ones the counts within what our seeds
    make of them, and the distribution of delays if `delays`; of `exact` ones order and counts."""

    name: str
    lines: list
    send: object
    kind: str = "random"
    counts: list = field(default_factory=list)
    delays: bool = False
    # Nanoseconds that a departure may differ by, beside the kernel's path, of exact ones.
    apart: int = 100_000
    # Whether a delay depends on those before.
    walk: bool = False

    def plan(self):
        return [
            f"{at} {flow} {size} {tos} {rate} {txtime}" for at, flow, size, tos, rate, txtime in self.send()
        ]


def every(gap, count, size=150, flow=0, tos=0, start=0):
    """So many packets of one size, one each `gap`."""
    return [(start + number * gap, flow, size, tos, 0, -1) for number in range(count)]


def mixed(seed, gap, count, sizes, flows=(0,), tos=(0,)):
    """Packets of sizes, flows and classes by chance, one each `gap` on average."""
    draw, at, sent = random.Random(seed), 0, []
    for _ in range(count):
        at += draw.randrange(1, 2 * gap)
        sent.append((at, draw.choice(flows), draw.randrange(*sizes), draw.choice(tos), 0, -1))
    return sent


def together(*streams):
    """Several streams at once."""
    return sorted((sent for stream in streams for sent in stream), key=lambda sent: sent[0])


def bursts(count, each, gap, size, flows=1, within=1_000):
    """Bursts of `each` packets, of one flow after the other."""
    return [
        (burst * gap + number * within, (burst if flows > 1 else 0) % flows, size, 0, 0, -1)
        for burst in range(count)
        for number in range(each)
    ]


def netem(words, below=None):
    lines = [f"tc qdisc add dev v0 root handle 1: netem {words}"]
    return lines + ([f"tc qdisc add dev v0 parent 1:1 handle 2: {below}"] if below else [])


def by_port(parent, ports):
    """Filters that send each flow to its class."""
    return [
        f"tc filter add dev v0 parent {parent} protocol ip prio 1"
        f" u32 match ip sport {5000 + flow} 0xffff flowid {to}"
        for flow, to in ports.items()
    ]


def classes(kind, *told):
    return [
        f"tc class add dev v0 parent {parent} classid {name} {kind} {words}" for parent, name, words in told
    ]


def slowly():
    return every(1 * MILLI, 8000)


LOST = ["lost", "loss bursts"]
TWICE = ["received", "twice", "lost"]


def delay_rows():
    limit = "limit 100000"
    yield Row(
        "delay-uniform", netem(f"delay 70ms 22ms {limit}"), slowly, delays=True, counts=["overtakings"]
    )
    yield Row(
        "delay-correlated",
        netem(f"delay 45ms 12ms 40% {limit}"),
        slowly,
        delays=True,
        counts=["overtakings"],
    )
    for name, words in [
        ("normal", "50ms 9ms 20% distribution normal"),
        ("negative", "3ms 14ms distribution normal"),
        ("pareto", "80ms 18ms distribution pareto"),
        ("paretonormal", "55ms 12ms distribution paretonormal"),
    ]:
        counts = ["overtakings", "at once"] if name == "negative" else ["overtakings"]
        yield Row(f"delay-{name}", netem(f"delay {words} {limit}"), slowly, delays=True, counts=counts)


def loss_rows():
    def many():
        return every(200_000, 16000)

    yield Row("loss-random", netem("loss 4%"), many, counts=LOST)
    yield Row("loss-correlated", netem("loss 12% 25%"), many, counts=LOST)
    yield Row("loss-state", netem("loss state 5% 55% 45% 30% 2%"), many, counts=LOST)
    yield Row("loss-gemodel", netem("loss gemodel 3% 25% 80% 1%"), many, counts=LOST)
    yield Row("duplicate", netem("duplicate 9%"), many, counts=TWICE)
    # tc 6.1 sends no correlation unless there is a delay, too.
    yield Row("duplicate-delay", netem("delay 8ms 0ms 1% duplicate 15% 35%"), many, counts=TWICE)
    yield Row("loss-duplicate", netem("loss 15% duplicate 22%"), many, counts=TWICE)
    yield Row(
        "limit-duplicate",
        netem("limit 140 delay 70ms duplicate 45%"),
        lambda: every(487_000, 8000),
        counts=TWICE,
    )
    yield Row("corrupt", netem("corrupt 6%"), many, counts=["damaged", "lost"])
    yield Row(
        "corrupt-correlated", netem("delay 5ms 0ms 1% corrupt 14% 30%"), many, counts=["damaged", "lost"]
    )
    yield Row(
        "loss-ecn",
        netem("loss 14% ecn"),
        lambda: mixed(31, 200_000, 8000, (150, 151), tos=(0, 2)),
        counts=["marked", "lost"],
    )


def netem_rows():
    few = "limit 100000"
    yield Row(
        "reorder-gap",
        netem(f"delay 25ms reorder 40% 30% gap 3 {few}"),
        slowly,
        counts=["at once", "overtakings"],
    )
    yield Row(
        "reorder-jitter",
        netem(f"delay 35ms 8ms reorder 15% {few}"),
        slowly,
        delays=True,
        counts=["at once", "overtakings"],
    )
    yield Row(
        "rate-cells",
        netem(f"rate 5mbit 14 53 5 {few}"),
        lambda: mixed(18, 1_200_000, 2000, (60, 1515)),
        "exact",
    )
    yield Row(
        "rate-jitter",
        netem(f"rate 3mbit delay 15ms 4ms {few}"),
        lambda: mixed(19, 2_500_000, 3000, (60, 1515)),
        delays=True,
        walk=True,
    )
    yield Row(
        "rate-limit", netem("limit 80 rate 2mbit delay 30ms"), lambda: every(2_930_000, 2000, 1000), "exact"
    )
    yield Row("limit", netem("limit 70 delay 60ms"), lambda: every(487_000, 4000), "exact")
    yield Row(
        "slot",
        netem(f"slot 3ms 9ms packets 4 {few}"),
        lambda: every(2 * MILLI, 4000),
        delays=True,
        walk=True,
    )
    yield Row(
        "slot-distribution",
        netem(f"slot distribution normal 8ms 3ms packets 6 bytes 4000 {few}"),
        lambda: every(2 * MILLI, 4000, 600),
        delays=True,
        walk=True,
    )
    yield Row(
        "netem-tbf",
        netem("delay 12ms 3ms", "tbf rate 4mbit burst 6k limit 60k"),
        lambda: every(2 * MILLI, 3000, 1400),
        delays=True,
        walk=True,
        counts=["lost"],
    )
    # What a slot lets go, all of it comes to what is inside before that chooses.
    yield Row(
        "slot-prio",
        netem(f"slot 20ms 20ms {few}", "prio"),
        lambda: mixed(44, 1_700_000, 3000, (100, 1000), tos=(0, 8, 16)),
        "exact",
    )
    prio = [
        "tc qdisc add dev v0 root handle 1: prio bands 4 priomap 1 2 3 0 1 2 3 0 1 2 3 0 1 2 3 0",
        "tc qdisc add dev v0 parent 1:1 handle 10: netem delay 9ms",
        "tc qdisc add dev v0 parent 1:2 handle 20: netem delay 33ms 6ms limit 100000",
        "tc qdisc add dev v0 parent 1:4 handle 40: netem loss 25%",
    ]
    yield Row(
        "prio-netem",
        prio,
        lambda: mixed(43, MILLI, 8000, (100, 1000), tos=(0, 8, 16, 24)),
        delays=True,
        counts=["lost", "overtakings"],
    )


def fq_rows():
    def fq(words, parent="root"):
        return f"tc qdisc add dev v0 {parent} handle 2: fq buckets 16384 {words}"

    def flows(seed, count, gap, size):
        return mixed(seed, gap, count, size, flows=(0, 0, 0, 1, 1, 2, 3, 4))

    yield Row(
        "fq-maxrate",
        [fq("maxrate 3mbit flow_limit 30 quantum 4000")],
        lambda: flows(26, 5000, 500_000, (200, 1515)),
        "exact",
    )
    yield Row(
        "fq-slow",
        [fq("maxrate 300kbit")],
        lambda: mixed(27, 15 * MILLI, 500, (200, 1515), flows=(0, 1)),
        "exact",
    )
    below = [
        "tc qdisc add dev v0 root handle 1: tbf rate 6mbit burst 5k limit 10mb",
        fq("flow_limit 35", "parent 1:1"),
    ]
    yield Row(
        "fq-tbf", below, lambda: mixed(28, 400_000, 8000, (200, 1515), flows=(0, 0, 1, 2, 3)), "exact"
    )
    yield Row(
        "fq-ce",
        [fq("maxrate 4mbit ce_threshold 5ms")],
        lambda: mixed(29, 700_000, 3000, (200, 1515), flows=(0, 0, 1, 2), tos=(2,)),
        "exact",
    )
    yield Row(
        "fq-limit",
        [fq("maxrate 6mbit limit 120 flow_limit 25")],
        lambda: bursts(120, 12, 5 * MILLI, 1200, flows=7),
        "exact",
    )

    def paced():
        paced = [(at, flow, 1000, 0, 400_000, -1) for at, flow, *_ in every(2 * MILLI, 900)]
        return together(
            paced,
            [(at, 1, 700, 0, 0, 15 * MILLI) for at, *_ in every(3 * MILLI, 600)],
            [(at, 2, 700, 0, 0, 90 * MILLI) for at, *_ in every(6 * MILLI, 300)],
        )

    yield Row("fq-pacing", [fq("horizon 40ms horizon_drop flow_limit 1000")], paced, "exact")


def htb_rows():
    def htb(words, *told):
        return [f"tc qdisc add dev v0 root handle 1: htb {words}", *classes("htb", *told)]

    def four(seed, count, gap):
        return mixed(seed, gap, count, (200, 1515), flows=(0, 1, 2, 3))

    levels = htb(
        "default 40",
        ("1:", "1:1", "rate 8mbit burst 6k cburst 6k"),
        ("1:1", "1:2", "rate 5mbit ceil 8mbit burst 5k cburst 5k"),
        ("1:2", "1:3", "rate 3mbit ceil 6mbit burst 5k cburst 5k"),
        ("1:3", "1:10", "rate 1mbit ceil 6mbit prio 0 burst 4k cburst 4k"),
        ("1:3", "1:20", "rate 2mbit ceil 5mbit prio 2 burst 4k cburst 4k"),
        ("1:2", "1:30", "rate 2mbit ceil 7mbit prio 1 burst 4k cburst 4k"),
        ("1:1", "1:40", "rate 3mbit ceil 8mbit prio 3 burst 4k cburst 4k"),
    )
    ports = by_port("1:", {0: "1:10", 1: "1:20", 2: "1:30"})

    def phases():
        second = [
            (at + 2 * SECOND, *rest) for at, *rest in mixed(33, 900_000, 2000, (200, 1515), flows=(1, 3))
        ]
        third = [
            (at + 5 * SECOND, *rest) for at, *rest in mixed(34, 600_000, 2000, (200, 1515), flows=(0, 2))
        ]
        return together(four(32, 3000, 500_000), second, third)

    yield Row("htb-4-levels", levels + ports, phases, "exact")
    deep = htb(
        "default 50",
        ("1:", "1:1", "rate 6mbit burst 6k cburst 6k"),
        ("1:1", "1:2", "rate 5mbit ceil 6mbit burst 5k cburst 5k"),
        ("1:2", "1:3", "rate 4mbit ceil 6mbit burst 5k cburst 5k"),
        ("1:3", "1:4", "rate 3mbit ceil 5mbit burst 5k cburst 5k"),
        ("1:4", "1:10", "rate 1mbit ceil 5mbit burst 4k cburst 4k"),
        ("1:4", "1:20", "rate 1500kbit ceil 4mbit burst 4k cburst 4k"),
        ("1:2", "1:30", "rate 700kbit ceil 3mbit burst 4k cburst 4k"),
        ("1:1", "1:50", "rate 900kbit ceil 6mbit burst 4k cburst 4k"),
    )
    yield Row("htb-5-levels", deep + ports, lambda: four(35, 6000, 450_000), "exact")
    burst = htb("default 10", ("1:", "1:10", "rate 3mbit ceil 9mbit burst 20k cburst 4k"))
    yield Row("htb-burst", burst, lambda: bursts(24, 45, 150 * MILLI, 1100), "exact")
    atm = htb(
        "default 10", ("1:", "1:10", "rate 2mbit burst 5k cburst 5k overhead 30 mpu 106 linklayer atm")
    )
    yield Row("htb-atm", atm, lambda: mixed(37, 6 * MILLI, 2400, (60, 1515)), "exact")
    borrow = htb(
        "default 30",
        ("1:", "1:1", "rate 4mbit burst 5k cburst 5k"),
        ("1:1", "1:10", "rate 500kbit ceil 3mbit prio 0 burst 4k cburst 4k"),
        ("1:1", "1:20", "rate 500kbit ceil 4mbit prio 1 burst 4k cburst 4k"),
        ("1:1", "1:30", "rate 500kbit ceil 4mbit prio 2 burst 4k cburst 4k"),
    )
    yield Row(
        "htb-prio",
        borrow + by_port("1:", {0: "1:10", 1: "1:20"}),
        lambda: mixed(38, 800_000, 6000, (200, 1515), flows=(0, 1, 2)),
        "exact",
    )


def hfsc_rows():
    def hfsc(words, *told):
        return [f"tc qdisc add dev v0 root handle 1: hfsc {words}", *classes("hfsc", *told)]

    four = hfsc(
        "default 40",
        ("1:", "1:1", "ls rate 6mbit ul rate 6mbit"),
        ("1:1", "1:10", "rt m1 3mbit d 20ms m2 800kbit ls rate 1mbit"),
        ("1:1", "1:20", "sc rate 2mbit"),
        ("1:1", "1:30", "ls rate 1500kbit ul rate 1mbit"),
        ("1:1", "1:40", "ls m1 500kbit d 50ms m2 2500kbit"),
    )
    yield Row(
        "hfsc-4-leaves",
        four + by_port("1:", {0: "1:10", 1: "1:20", 2: "1:30"}),
        lambda: mixed(40, 700_000, 6000, (200, 1515), flows=(0, 1, 1, 2, 3)),
        "exact",
    )
    deep = hfsc(
        "default 40",
        ("1:", "1:1", "ls rate 9mbit ul rate 9mbit"),
        ("1:1", "1:2", "ls m1 7mbit d 30ms m2 5mbit"),
        ("1:1", "1:3", "ls m1 2mbit d 30ms m2 4mbit"),
        ("1:2", "1:10", "rt m1 4mbit d 10ms m2 1mbit ls rate 2mbit"),
        ("1:2", "1:20", "ls m1 1mbit d 40ms m2 3mbit"),
        ("1:3", "1:30", "sc m1 1mbit d 25ms m2 3mbit"),
        ("1:3", "1:40", "ls rate 1mbit ul m1 5mbit d 15ms m2 2mbit"),
    )
    yield Row(
        "hfsc-3-levels",
        deep + by_port("1:", {0: "1:10", 1: "1:20", 2: "1:30"}),
        lambda: mixed(41, 500_000, 8000, (200, 1515), flows=(0, 1, 2, 2, 3)),
        "exact",
    )


def tbf_rows():
    def tbf(words):
        return [f"tc qdisc add dev v0 root handle 1: tbf {words}"]

    yield Row(
        "tbf-peakrate",
        tbf("rate 4mbit burst 20k limit 40k peakrate 7mbit mtu 2000"),
        lambda: mixed(42, MILLI, 4000, (200, 1515)),
        "exact",
    )
    yield Row(
        "tbf-adsl",
        tbf("rate 900kbit burst 4k latency 120ms overhead 18 mpu 96 linklayer atm"),
        lambda: mixed(43, 3 * MILLI, 2000, (60, 600)),
        "exact",
    )
    yield Row(
        "tbf-bursts",
        tbf("rate 3mbit burst 16k limit 300k"),
        lambda: bursts(5, 55, 400 * MILLI, 900),
        "exact",
    )
    yield Row(
        "tbf-short",
        tbf("rate 2mbit burst 700 limit 30k"),
        lambda: mixed(45, 4 * MILLI, 1500, (100, 1400)),
        "exact",
    )


def share_rows():
    """Of what shares by turns, behind a bucket so that there is something to share."""
    bucket = ["tc qdisc add dev v0 root handle 1: tbf rate 4mbit burst 3k limit 10mb"]
    five = {flow: f"2:{flow + 1}" for flow in range(5)}

    def send():
        return mixed(46, 900_000, 4000, (200, 1515), flows=(0, 1, 2, 3, 4))

    drr = ["tc qdisc add dev v0 parent 1:1 handle 2: drr"]
    drr += classes("drr", *(("2:", name, f"quantum {700 * (1 + flow)}") for flow, name in five.items()))
    yield Row("drr-tbf", bucket + drr + by_port("2:", five), send, "exact")
    ets = ["tc qdisc add dev v0 parent 1:1 handle 2: ets bands 5 strict 1 quanta 3000 1514 800 600"]
    yield Row("ets-tbf", bucket + ets + by_port("2:", five), send, "exact")
    codel = ["tc qdisc add dev v0 parent 1:1 handle 2: codel target 8ms interval 60ms limit 400"]
    yield Row("codel-tbf", bucket + codel, lambda: mixed(47, 1_500_000, 4000, (200, 1515)), "exact")
    red = [
        "tc qdisc add dev v0 root handle 1: tbf rate 4mbit burst 3k limit 10mb",
        "tc qdisc add dev v0 parent 1:1 handle 2: red limit 200k min 15k max 45k avpkt 900 burst 30 "
        "bandwidth 4mbit "
        "probability 0.05",
    ]
    yield Row("red-tbf", red, lambda: mixed(48, 1_600_000, 6000, (200, 1515)), counts=["lost"])


def cake_rows():
    def cake(words):
        return [f"tc qdisc add dev v0 root handle 1: cake {words}"]

    def flood(gaps, until, sizes=(200, 1515), seed=50):
        """Of each flow packets by chance, one each so many nanoseconds, as (flow, tos)."""
        streams = [
            mixed(seed + at, gap, until // gap, sizes, flows=(flow,), tos=(tos,))
            for at, ((flow, tos), gap) in enumerate(gaps.items())
        ]
        return together(*streams)

    one = {(0, 0): 3 * MILLI}
    yield Row(
        "cake-rtt", cake("bandwidth 2mbit besteffort rtt 30ms"), lambda: flood(one, 12 * SECOND), "exact"
    )
    yield Row(
        "cake-ecn",
        cake("bandwidth 2mbit besteffort"),
        lambda: flood({(0, 2): 3 * MILLI, (1, 0): 20 * MILLI}, 12 * SECOND),
        "exact",
    )
    four = {(0, 0): 2 * MILLI, (1, 0): 3 * MILLI, (2, 0): 12 * MILLI, (3, 0): 40 * MILLI}
    yield Row(
        "cake-flows", cake("bandwidth 4mbit besteffort flows"), lambda: flood(four, 10 * SECOND), "exact"
    )
    yield Row(
        "cake-blind", cake("bandwidth 4mbit besteffort flowblind"), lambda: flood(four, 8 * SECOND), "exact"
    )
    # Host 0 has one flow, host 1 four, host 2 two.
    hosts = {(flow, 0): 4 * MILLI for flow in (0, 64, 65, 66, 67, 128, 129)}
    for mode in ("dual-srchost", "triple-isolate", "srchost"):
        lines = cake(f"bandwidth 5mbit besteffort {mode}")
        yield Row(f"cake-{mode}", lines, lambda: flood(hosts, 8 * SECOND), "exact")
    # Best effort, bulk, video, voice; and a sparse one of each of two.
    classes = {
        (0, 0): 3 * MILLI,
        (1, 32): 3 * MILLI,
        (2, 136): 4 * MILLI,
        (3, 184): 9 * MILLI,
        (4, 0): 50 * MILLI,
    }
    for tins in ("diffserv3", "diffserv4", "diffserv8", "precedence"):
        lines = cake(f"bandwidth 5mbit {tins}")
        yield Row(f"cake-{tins}", lines, lambda: flood(classes, 8 * SECOND), "exact")
    yield Row(
        "cake-shares",
        [
            "tc qdisc add dev v0 root handle 1: tbf rate 4mbit burst 3k limit 10mb",
            "tc qdisc add dev v0 parent 1:1 handle 2: cake unlimited diffserv4",
        ],
        lambda: flood(classes, 6 * SECOND),
        "exact",
    )
    light = {(0, 0): 7 * MILLI, (1, 0): 9 * MILLI}
    for link in ("pppoe-vcmux", "bridged-ptm ether-vlan", "docsis", "ethernet", "overhead -20 mpu 90"):
        name = link.split()[0]
        yield Row(
            f"cake-{name}",
            cake(f"bandwidth 1800kbit besteffort {link}"),
            lambda: flood(light, 8 * SECOND, (60, 1515)),
            "exact",
        )
    yield Row(
        "cake-ingress", cake("bandwidth 3mbit besteffort ingress"), lambda: flood(four, 8 * SECOND), "exact"
    )
    # Floods that do not answer: BLUE.
    yield Row(
        "cake-memory",
        cake("bandwidth 2mbit besteffort memlimit 120k"),
        lambda: flood({(0, 0): MILLI, (1, 0): 10 * MILLI}, 8 * SECOND, (1000, 1001)),
        counts=["lost"],
        delays=True,
        walk=True,
    )
    # Acknowledgements that wait behind data, some with data, with flags of ECN, or twice.
    def acknowledgements():
        draw, acks = random.Random(61), []
        for at in range(3000):
            flags = draw.choices((0x10, 0, 0x50, 0x18), (30, 2, 3, 1))[0]
            size = 300 if draw.random() < 0.03 else 54
            acks.append((at * MILLI, 192 + draw.randrange(2), size, 0, flags, -1))
        return together(acks, mixed(62, 6 * MILLI, 500, (1000, 1515)))

    for words in ("ack-filter", "ack-filter-aggressive"):
        lines = cake(f"bandwidth 2mbit besteffort flowblind {words}")
        yield Row(f"cake-{words}", lines, acknowledgements, "exact")
    yield Row(
        "cake-autorate",
        cake("bandwidth 1mbit besteffort autorate-ingress"),
        lambda: flood({(0, 0): 4 * MILLI}, 8 * SECOND),
        "exact",
    )


def rows():
    makers = [delay_rows, loss_rows, netem_rows, fq_rows, htb_rows, hfsc_rows, tbf_rows, share_rows]
    return [row for make in [*makers, cake_rows] for row in make()]
