#!/usr/bin/env python3
"""Prints every kernel setting as "path value": the writable files of /proc/sys, and of tracefs the
top-level files, options and event switches. Two outputs are compared to see what changed between them.

A setting is a file that may be written and that keeps its value until it is. Left out are files that the
kernel itself changes, or whose reading takes events away or has no end (trace_pipe).
"""

import os
import stat

TRACING = "/sys/kernel/tracing"
NO_SETTINGS = {"trace", "trace_pipe", "trace_marker", "trace_marker_raw", "free_buffer"}
# Writable, and changed by whatever the machine does.
CHANGING = {"/proc/sys/kernel/ns_last_pid"}


def settings():
    for folder, _, names in os.walk("/proc/sys"):
        for name in names:
            path = os.path.join(folder, name)
            if os.stat(path).st_mode & 0o222 and path not in CHANGING:
                yield path
    for name in sorted(os.listdir(TRACING)):
        path = os.path.join(TRACING, name)
        mode = os.stat(path).st_mode
        if name not in NO_SETTINGS and stat.S_ISREG(mode) and mode & 0o222:
            yield path
    for folder, _, names in os.walk(os.path.join(TRACING, "options")):
        yield from (os.path.join(folder, name) for name in names)
    for folder, _, names in os.walk(os.path.join(TRACING, "events")):
        if "enable" in names:
            yield os.path.join(folder, "enable")


def main():
    for path in sorted(settings()):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                value = os.read(descriptor, 65536)
            finally:
                os.close(descriptor)
        except OSError as error:
            value = f"({error.strerror})".encode()
        print(path, value.replace(b"\n", b" ").decode("utf-8", "replace"))


if __name__ == "__main__":
    main()
