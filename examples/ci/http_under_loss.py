#!/usr/bin/env python3
"""Tests of an HTTP client on a bad network: 30 ms there, 1 % of the packets lost. No privilege is needed.

    quietcore netem tun --unprivileged -- python3 examples/ci/http_under_loss.py

What runs behind `--` is in a network of its own: this host (10.77.0.1) and another one, `qc-b`
(10.77.0.2), where the server runs. Python's standard library is enough. Take it as a start: the client is
yours, and so is the network.
"""

import functools
import http.client
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

SERVER = "10.77.0.2"
PORT = 8080
DELAY_MS = 30
REQUESTS = 100
QUIETCORE = os.environ.get("QUIETCORE") or shutil.which("quietcore")


def tc(line: str) -> str:
    """A line of tc, for the wire of this host."""
    done = subprocess.run([QUIETCORE, "tc", *line.split()], check=True, capture_output=True, text=True)
    return done.stdout


def get(path: str, timeout: float = 10.0) -> bytes:
    """The client that is tested: one that tries three times."""
    for attempt in range(3):
        connection = http.client.HTTPConnection(SERVER, PORT, timeout=timeout)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status != 200:
                raise RuntimeError(f"{path}: status {answer.status}")
            return answer.read()
        except (TimeoutError, ConnectionError):
            if attempt == 2:
                raise
        finally:
            connection.close()
    raise AssertionError("three attempts end in an answer or an error")


class BadNetwork(unittest.TestCase):
    server: subprocess.Popen

    @classmethod
    def setUpClass(cls) -> None:
        serve = ["-m", "http.server", str(PORT), "--bind", SERVER]
        command = ["ip", "netns", "exec", "qc-b", sys.executable, *serve]
        here = os.path.dirname(os.path.abspath(__file__))
        cls.server = subprocess.Popen(command, cwd=here, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.terminate)
        for _ in range(100):
            try:
                get("/", timeout=1.0)
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server does not answer")

    def network(self, there: str, back: str) -> None:
        """Both ways of the wire, as lines of netem."""
        for device, netem in [("eth1", there), ("eth2", back)]:
            tc(f"qdisc replace dev {device} root netem {netem}")
            self.addCleanup(functools.partial(tc, f"qdisc del dev {device} root"))

    def lost(self) -> int:
        """Packets that the network has lost."""
        both = [json.loads(tc(f"-s -j qdisc show dev {device}")) for device in ("eth1", "eth2")]
        return sum(qdisc["drops"] for qdiscs in both for qdisc in qdiscs)

    def test_answers_are_whole_and_none_is_sooner_than_the_wire(self) -> None:
        # The same seed loses the same packets of a wire, counted from its first.
        self.network(f"delay {DELAY_MS}ms loss 1% seed 7", "loss 1% seed 8")
        with open(__file__, "rb") as file:
            expected = file.read()
        took = []
        for _ in range(REQUESTS):
            begin = time.monotonic()
            self.assertEqual(get("/" + os.path.basename(__file__)), expected)
            took.append((time.monotonic() - begin) * 1000)
        took.sort()
        times = f"{took[0]:.0f} ms at least, {took[REQUESTS // 2]:.0f} in the middle, {took[-1]:.0f} at most"
        print(f"{REQUESTS} requests, {self.lost()} packets lost: {times}")
        # To connect and to ask: the wire twice.
        self.assertGreaterEqual(took[0], 2 * DELAY_MS)
        self.assertGreater(self.lost(), 0)

    def test_a_server_that_cannot_be_reached_is_given_up(self) -> None:
        self.network("loss 100%", "loss 0%")
        with self.assertRaises(TimeoutError):
            get("/", timeout=0.3)


if __name__ == "__main__":
    if not QUIETCORE:
        sys.exit("there is no quietcore on PATH: install it, or set QUIETCORE to where it is")
    if subprocess.run([QUIETCORE, "tc", "qdisc", "show", "dev", "eth1"], capture_output=True).returncode != 0:
        sys.exit(f"run it as: quietcore netem tun --unprivileged -- python3 {sys.argv[0]}")
    unittest.main(verbosity=2)
