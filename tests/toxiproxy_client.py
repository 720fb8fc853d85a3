#!/usr/bin/env python3
"""`quietcore netem relay --api`, asked by a client library that was written for toxiproxy.

usage: toxiproxy_client.py QUIETCORE
Needs what tests/toxiproxy_requirements.txt lists. The library is used as its documentation says; what a
program sees of each toxic is looked at through real connections. Delays are looked at from below only.
"""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from toxiproxy import Toxiproxy
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

PATIENCE = 60


class Echo:
    """A server that sends back what it gets, until its client ends."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.echo, args=(connection,), daemon=True).start()

    @staticmethod
    def echo(connection):
        with contextlib.suppress(OSError), connection:
            while data := connection.recv(65536):
                connection.sendall(data)


def read_exactly(connection, length):
    data = b""
    while len(data) < length:
        more = connection.recv(length - len(data))
        if not more:
            break
        data += more
    return data


def trip(connection, data=b"hello"):
    """Seconds that an echo takes."""
    started = time.monotonic()
    connection.sendall(data)
    if read_exactly(connection, len(data)) != data:
        raise AssertionError("what came back is not what was sent")
    return time.monotonic() - started


class ClientLibrary(unittest.TestCase):
    quietcore = None

    @classmethod
    def setUpClass(cls):
        words = [cls.quietcore, "netem", "relay", "--api=127.0.0.1:0", "--seed", "3"]
        cls.relay = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        said = ""
        while "end:" not in said:
            line = cls.relay.stdout.readline()
            if not line:
                raise AssertionError("the relay ended: " + said)
            said += line
        host, port = re.search(r"http://([0-9.]+):([0-9]+)/proxies", said).groups()
        cls.server = Toxiproxy()
        cls.server.update_api_consumer(host, int(port))
        cls.echo = Echo()

    @classmethod
    def tearDownClass(cls):
        cls.relay.send_signal(signal.SIGINT)
        said, _ = cls.relay.communicate(timeout=PATIENCE)
        if cls.relay.returncode != 130 or "connections" not in said:
            raise AssertionError("it ended with %d: %s" % (cls.relay.returncode, said))

    def tearDown(self):
        self.server.destroy_all()

    def connect(self, proxy):
        host, port = proxy.listen.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def proxy(self, name="echo"):
        return self.server.create(name=name, upstream=self.echo.address)

    def test_the_server_is_known(self):
        self.assertTrue(self.server.running())
        self.assertEqual(json.loads(self.server.version())["version"], "2.6.0")

    def test_proxies(self):
        proxy = self.proxy()
        self.assertEqual((proxy.name, proxy.upstream, proxy.enabled), ("echo", self.echo.address, True))
        trip(self.connect(proxy))
        self.assertEqual(self.server.get_proxy("echo").listen, proxy.listen)
        self.assertIsNone(self.server.get_proxy("other"))
        with self.assertRaises(ProxyExists):
            self.proxy()
        there = {"name": "echo", "upstream": self.echo.address, "listen": proxy.listen}
        other = {"name": "other", "upstream": self.echo.address, "listen": "127.0.0.1:0"}
        self.assertEqual([made.name for made in self.server.populate([there, other])], ["other"])
        self.assertEqual(sorted(self.server.proxies()), ["echo", "other"])
        self.assertTrue(self.server.destroy(proxy))
        with self.assertRaises(NotFound):
            self.server.destroy(proxy)
        with self.assertRaises(ConnectionRefusedError):
            self.connect(proxy)

    def test_down(self):
        proxy = self.proxy()
        connection = self.connect(proxy)
        trip(connection)
        with proxy.down():
            self.assertEqual(connection.recv(1), b"")
            with self.assertRaises(ConnectionRefusedError):
                self.connect(proxy)
        trip(self.connect(proxy))

    def test_toxics_are_listed(self):
        proxy = self.proxy()
        proxy.add_toxic(type="latency", attributes={"latency": 10, "jitter": 2})
        slow = {"type": "bandwidth", "stream": "upstream", "toxicity": 0.5, "attributes": {"rate": 9}}
        proxy.add_toxic(name="slow", **slow)
        toxics = proxy.toxics()
        self.assertEqual(sorted(toxics), ["latency_downstream", "slow"])
        latency, slow = toxics["latency_downstream"], proxy.get_toxic("slow")
        self.assertEqual(latency.attributes, {"latency": 10, "jitter": 2})
        self.assertEqual((slow.stream, slow.toxicity, slow.attributes), ("upstream", 0.5, {"rate": 9}))
        with self.assertRaises(ProxyExists):
            proxy.add_toxic(type="latency")
        with self.assertRaises(InvalidToxic):
            proxy.add_toxic(type="unheard_of")
        with self.assertRaises(InvalidToxic):
            proxy.add_toxic(type="latency", stream="sideways")
        with self.assertRaises(NotFound):
            proxy.destroy_toxic("unheard_of")
        self.assertTrue(proxy.destroy_toxic("slow"))
        self.assertEqual(list(proxy.toxics()), ["latency_downstream"])
        self.assertTrue(self.server.reset())
        self.assertEqual(proxy.toxics(), {})

    def test_latency(self):
        proxy = self.proxy()
        connection = self.connect(proxy)
        trip(connection)
        proxy.add_toxic(type="latency", attributes={"latency": 80, "jitter": 20})
        proxy.add_toxic(type="latency", stream="upstream", attributes={"latency": 50})
        self.assertGreaterEqual(trip(connection), 0.110)
        self.server.reset()
        trip(connection)

    def test_bandwidth(self):
        proxy = self.proxy()
        proxy.add_toxic(type="bandwidth", attributes={"rate": 100})
        self.assertGreaterEqual(trip(self.connect(proxy), b"x" * 20000), 0.2)

    def test_slicer(self):
        proxy = self.proxy()
        attributes = {"average_size": 100, "size_variation": 50, "delay": 1000}
        proxy.add_toxic(type="slicer", attributes=attributes)
        # At most 150 bytes a piece, and a millisecond between two of them.
        self.assertGreaterEqual(trip(self.connect(proxy), b"x" * 3000), 0.019)

    def test_limit_data(self):
        proxy = self.proxy()
        proxy.add_toxic(type="limit_data", attributes={"bytes": 100})
        connection = self.connect(proxy)
        connection.sendall(b"x" * 1000)
        self.assertEqual(read_exactly(connection, 1000), b"x" * 100)

    def test_timeout(self):
        proxy = self.proxy()
        proxy.add_toxic(type="timeout", attributes={"timeout": 50})
        started = time.monotonic()
        connection = self.connect(proxy)
        connection.sendall(b"x")
        self.assertEqual(connection.recv(1), b"")
        self.assertGreaterEqual(time.monotonic() - started, 0.05)

    def test_reset_peer(self):
        proxy = self.proxy()
        proxy.add_toxic(type="reset_peer", attributes={"timeout": 20})
        with self.assertRaises(ConnectionResetError):
            self.connect(proxy).recv(1)

    def test_slow_close(self):
        proxy = self.proxy()
        proxy.add_toxic(type="slow_close", attributes={"delay": 60})
        connection = self.connect(proxy)
        trip(connection)
        started = time.monotonic()
        connection.shutdown(socket.SHUT_WR)
        self.assertEqual(connection.recv(1), b"")
        self.assertGreaterEqual(time.monotonic() - started, 0.06)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    ClientLibrary.quietcore = sys.argv.pop(1)
    unittest.main()
