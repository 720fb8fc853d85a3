#!/usr/bin/env python3
"""Types random lines of tc at a `quietcore netem tun` through which TCP streams run.

    tc_lines_under_load.py QUIETCORE [LINES [SEED]]      as root, with iperf3; exit 1 where something is wrong

Some lines belong together and make a tree of classes; some are right in themselves, of all kinds of
disciplines, classes, filters and actions with random settings, at random places, where they may not fit; of a
third of these the words are in another order, doubled or left out. Each
line ends within a minute, with tc's exit codes; the program lives on, its memory stays in bounds, it says
nothing of a panic, packets pass when the last discipline is gone, and Ctrl-C leaves nothing behind.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

QUEUES = 4
LINK = ["eth1", "eth2"]
HANDLES = ["1:", "2:", "10:"]
CLASSES = [f"{major}{minor}" for major in HANDLES for minor in (1, 2, 3)]
MEBIBYTE = 1 << 20


class Lines:
    """Lines of tc, drawn."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        # What is typed next, as lines that belong together.
        self.following = []

    def one(self, *words):
        return self.draw.choice(words)

    def number(self, least, most):
        return str(self.draw.randint(least, most))

    def rate(self):
        return self.number(1, 999) + self.one("kbit", "mbit", "mbit", "gbit", "mbps", "")

    def size(self):
        return self.number(1, 200) + self.one("k", "kb", "b", "kbit", "")

    def span(self):
        return self.number(0, 90) + self.one("us", "ms", "ms", "")

    def percent(self):
        return self.number(0, 110) + "%"

    def some(self, *pairs):
        """Some of these, each a text."""
        chosen = [pair for pair in pairs if self.draw.random() < 0.4]
        self.draw.shuffle(chosen)
        return " ".join(chosen)

    def qdisc(self):
        n, s, p, r, z = self.number, self.span, self.percent, self.rate, self.size
        delay = f"delay {s()} {s()} {p()}" + self.one("", " distribution normal", " distribution pareto")
        kinds = [
            "netem " + self.some(delay, f"loss {p()}", f"loss gemodel {p()} {p()}", f"duplicate {p()}",
                                 f"corrupt {p()}", f"reorder {p()} gap {n(0, 9)}", f"rate {r()}",
                                 f"limit {n(0, 5000)}", f"slot {s()} {s()} packets {n(1, 9)}"),
            f"htb default {n(0, 20)} r2q {n(1, 30)}",
            f"hfsc default {n(0, 20)}",
            f"tbf rate {r()} burst {z()} " + self.one(f"latency {s()}", f"limit {z()}"),
            "fq " + self.some(f"limit {n(1, 9999)}", f"maxrate {r()}", f"flow_limit {n(1, 99)}"),
            "fq_codel " + self.some(f"limit {n(1, 9999)}", f"flows {n(1, 2000)}", f"target {s()}", "ecn"),
            "codel " + self.some(f"limit {n(1, 9999)}", f"target {s()}", f"interval {s()}", "noecn"),
            "sfq " + self.some(f"perturb {n(0, 9)}", f"quantum {n(1000, 3000)}", f"depth {n(1, 200)}"),
            f"red limit {n(9, 99)}kb avpkt {n(100, 1500)} " + self.some("ecn", f"probability 0.{n(1, 9)}"),
            f"prio bands {n(1, 17)}",
            f"ets bands {n(1, 8)} strict {n(0, 4)}",
            f"pfifo limit {n(0, 2000)}",
            f"bfifo limit {z()}",
            "pfifo_fast", "noqueue", "multiq", "drr", "mq", "cbq", "ingress", "clsact",
        ]
        place, handle = self.one(
            ("root", "handle 1:"), (f"parent {self.one(*CLASSES)}", ""), ("root", ""), ("", ""),
            (f"parent {self.one(*CLASSES)}", f"handle {self.one(*HANDLES)}"),
        )
        verb = self.one("add", "replace", "replace", "change")
        return f"qdisc {verb} {{dev}} {place} {handle} {self.one(*kinds)}"

    def tree(self):
        """A discipline with classes in place of what is there, and what hangs on it."""
        dev = f"dev {self.one(*LINK)}"
        kind = self.one("htb default 2", "hfsc default 2", "drr", "ets bands 3")
        word = kind.split()[0]
        names = CLASSES[:3] if word != "ets" else []
        inner = self.one("netem delay 1ms", "fq_codel", "sfq", "tbf rate 1gbit burst 100k limit 1m")
        self.following = [
            f"qdisc del {dev} root",
            f"qdisc add {dev} root handle 1: {kind}",
            *(f"class add {dev} parent 1: classid {name} {self.setting(word)}" for name in names),
            *(f"filter add {dev} parent 1: protocol ip {self.rule()} flowid {name}" for name in CLASSES[:3]),
            f"qdisc add {dev} parent 1:2 handle 10: {inner}",
            f"filter add {dev} parent 1: protocol ip {self.rule()} action {self.one('drop', 'ok', 'pipe')}",
            f"-s class show {dev}",
            f"-s filter show {dev}",
        ]
        return self.following.pop(0)

    def setting(self, kind):
        """A class of that kind."""
        return {
            "htb": f"htb rate {self.number(1, 99)}mbit ceil 10gbit",
            "hfsc": f"hfsc ls rate {self.number(1, 99)}mbit",
            "drr": f"drr quantum {self.number(1500, 9000)}",
        }[kind]

    def rule(self):
        port = self.number(1, 9)
        return self.one(f"u32 match ip dport {port} 0xffff", f"prio 3 flower ip_proto tcp dst_port {port}")

    def class_(self):
        r, z, n = self.rate, self.size, self.number
        kind = self.one(
            f"htb rate {r()} " + self.some(f"ceil {r()}", f"burst {z()}", f"cburst {z()}", f"prio {n(0, 9)}"),
            f"hfsc {self.one('sc', 'ls', 'rt')} rate {r()} " + self.some(f"ul rate {r()}"),
            f"drr quantum {n(1, 9000)}",
            f"ets quantum {n(1, 9000)}",
            f"cbq bandwidth 1gbit rate {r()} allot 1514 avpkt 1000",
        )
        parent = self.one(*HANDLES, *CLASSES[:3])
        verb = self.one("add", "replace", "replace", "change")
        return f"class {verb} {{dev}} parent {parent} classid {self.one(*CLASSES)} {kind}"

    def filter(self):
        n = self.number
        port = f"match ip {self.one('dport', 'sport')} {n(1, 65535)} 0x{n(0, 9)}f"
        kind = self.one(
            f"u32 {port}", f"u32 match u32 0 0 at {n(0, 60)}", "matchall", "fw",
            f"flower ip_proto tcp dst_port {n(1, 65535)}", f"basic match 'meta(pkt_len gt {n(1, 1500)})'",
        )
        action = self.one("", "", f"action {self.one('ok', 'drop', 'pipe', 'continue')}",
                          f"action police rate {self.rate()} burst {self.size()} conform-exceed drop")
        place = self.one("", *(f"parent {handle}" for handle in HANDLES), "ingress", "egress")
        target = self.one(f"flowid {self.one(*CLASSES)}", f"classid {self.one(*CLASSES)}", "")
        verb, protocol = self.one("add", "add", "add", "replace"), self.one("ip", "all")
        return f"filter {verb} {{dev}} {place} protocol {protocol} prio {n(1, 5)} {kind} {target} {action}"

    def other(self):
        return self.one(
            f"qdisc del {{dev}} {self.one('root', 'ingress', f'parent {self.one(*CLASSES)}')}",
            f"class del {{dev}} classid {self.one(*CLASSES)}",
            f"filter del {{dev}} parent {self.one(*HANDLES)}",
            f"filter del {{dev}} parent {self.one(*HANDLES)} prio {self.number(1, 5)}",
            "-s qdisc show {dev}", "-s -d -j class show {dev}", "-s filter show {dev}", "-s -j qdisc show",
        )

    def line(self):
        if self.following:
            return self.following.pop(0).split()
        draw = self.one(self.qdisc, self.tree, self.class_, self.filter, self.filter, self.other)
        words = draw().replace("{dev}", f"dev {self.one(*LINK)}").replace("'", "").split()
        if self.draw.random() < 0.33:
            at = self.draw.randrange(len(words))
            self.one(lambda: self.draw.shuffle(words), lambda: words.pop(at),
                     lambda: words.insert(at, self.one(*words)))()
        return words


class Tun:
    """A `netem tun` of its own, and what is asked of it."""

    def __init__(self, quietcore, folder):
        self.quietcore, self.name = quietcore, f"qclines{os.getpid()}"
        self.errors = open(os.path.join(folder, "errors"), "w+", encoding="utf-8")
        command = [quietcore, "netem", "tun", "--name", self.name, "--queues", str(QUEUES)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        for line in self.process.stdout:
            if "Ctrl-C" in line:
                return
        raise SystemExit(f"tc_lines_under_load: netem tun did not begin: {self.said()}")

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def inside(self, side, *command, **how):
        return subprocess.Popen(["ip", "netns", "exec", f"{self.name}-{side}", *command], **how)

    def tc(self, words):
        command = [self.quietcore, "tc", "-n", self.name, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


def stream(tun):
    """Streams that go on until they are ended; begun anew, as they break where nothing passes for long."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    again = "while :; do iperf3 -c 10.77.0.2 -P 2 -t 600 --connect-timeout 2000; sleep 0.2; done"
    server = tun.inside("b", "iperf3", "-s", start_new_session=True, **quiet)
    client = tun.inside("a", "sh", "-c", again, start_new_session=True, **quiet)
    return [server, client]


def passed(tun):
    """Bytes that left the first interface."""
    shown = tun.inside("a", "ip", "-s", "-j", "link", "show", "eth1", stdout=subprocess.PIPE, text=True)
    return json.loads(shown.communicate()[0])[0]["stats64"]["tx"]["bytes"]


def type_lines(tun, lines, count):
    """What is wrong, and what came of them."""
    wrong, codes, longest, before = [], {}, 0.0, tun.resident()
    for number in range(count):
        words = lines.line()
        begin = time.monotonic()
        done = tun.tc(words)
        longest = max(longest, time.monotonic() - begin)
        codes[done.returncode] = codes.get(done.returncode, 0) + 1
        # A message of one of them may be tc's whole help, which is on the other output.
        is_told = done.returncode == 0 or done.stderr.strip() or done.stdout.strip()
        if done.returncode not in (0, 1, 2, 255) or not is_told or "panicked" in done.stderr:
            wrong.append(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()[:200]}")
        if tun.process.poll() is not None:
            return [*wrong, f"netem tun ended by {' '.join(words)}: {tun.said()[-400:]}"]
        if number % 250 == 249:
            print(f"  {number + 1} lines, {tun.resident() / MEBIBYTE:.1f} MiB", flush=True)
    after = tun.resident()
    print(f"  exit codes {dict(sorted(codes.items()))}, the longest took {longest:.2f} s,", end=" ")
    print(f"memory {before / MEBIBYTE:.1f} -> {after / MEBIBYTE:.1f} MiB")
    if codes.get(0, 0) * 10 < count:
        wrong.append("fewer than a tenth of the lines were carried out")
    if after > before + 256 * MEBIBYTE:
        wrong.append("memory grew by more than 256 MiB")
    return wrong


def main(quietcore, count="2000", seed="1"):
    with tempfile.TemporaryDirectory() as folder:
        tun = Tun(os.path.realpath(quietcore), folder)
        streams = stream(tun)
        try:
            wrong = type_lines(tun, Lines(int(seed)), int(count))
            for device in LINK:
                for place in ("root", "ingress", "clsact"):
                    tun.tc(["qdisc", "del", "dev", device, place])
            time.sleep(3)
            begin = passed(tun)
            time.sleep(3)
            more = passed(tun) - begin
            print(f"  {more / MEBIBYTE:.0f} MiB passed within 3 s after all disciplines were deleted")
            if more < MEBIBYTE:
                wrong.append("nothing passes after all disciplines were deleted")
        finally:
            for process in streams:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            code = tun.end()
        if code != 128 + signal.SIGINT or "panicked" in tun.said():
            wrong.append(f"netem tun ended with {code}: {tun.said()[-400:]}")
        if tun.name in subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout:
            wrong.append("a namespace is left")
        for text in wrong:
            print(f"! {text}")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
