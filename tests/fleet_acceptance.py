#!/usr/bin/env python3
"""A thousand recordings on two workers of which one is killed, beside the command in a shell's loop.

    tests/fleet_acceptance.py QUIETCORE [COUNT]     QUIETCORE is the command; needs the Python module and Dask

The bundled recordings under other names. Checked: every input has its rows once, with the figures that the
command has; memory per worker stays below a limit; a sweep of 200 runs has the hashes of the command's.
"""

import collections
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import distributed
import pyarrow.parquet as pq

from quietcore import fleet

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
ISOLATION = ["g61-c16-iso", "g612-c16-iso", "g612-c16-iso-tm0", "g619-c16-iso"]
FOREIGN = [0, 74, 90, 0]
#: A worker with the interpreter, Dask, pyarrow and one recording's tables needs a fraction of it.
PEAK_BYTES_MAX = 512 << 20
#: The grid and the seeds: 200 runs.
GRID = {"cpus": ["24", "32"]}
SEEDS = (1, 100)


def main(quietcore, count):
    # The command answers in this folder, whatever it is called.
    quietcore = os.path.abspath(quietcore)
    with tempfile.TemporaryDirectory(prefix="quietcore-fleet-") as work:
        folder = pathlib.Path(work, "hosts")
        folder.mkdir()
        for number in range(count):
            name = ISOLATION[number % 4]
            recording = REPOSITORY / "recordings" / f"{name}.txt.zst"
            (folder / f"{number:05d}-{name}.txt.zst").symlink_to(recording)
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster, distributed.Client(cluster) as client:
            seconds = explained(client, folder, pathlib.Path(work, "killed"), kill_at=count // 3)
            whole = explained(client, folder, pathlib.Path(work, "whole"), kill_at=None)
            swept(client, quietcore, pathlib.Path(work))
        loop = in_a_loop(quietcore, folder)
    print(f"{count} recordings: {seconds:.1f} s with a worker killed, {whole:.1f} s with none killed,")
    print(f"  {loop:.1f} s by the command in a shell's loop: {loop / whole:.2f} times as long")


def explained(client, folder, out, kill_at):
    """Explains all of `folder`, checks the result, and says how many seconds it took."""
    is_over, killed = threading.Event(), []

    def kill():
        while not is_over.wait(0.01):
            if len(list(out.glob("figures/*.parquet"))) >= kill_at:
                victim = next(iter(client.run(os.getpid).values()))
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
                return

    thread = threading.Thread(target=kill)
    if kill_at is not None:
        thread.start()
    begin = time.monotonic()
    result = fleet.explain(folder, out=out, client=client, progress=False)
    seconds = time.monotonic() - begin
    is_over.set()
    if kill_at is not None:
        thread.join()
        assert len(killed) == 1, "no worker was killed: it was over too soon"
    checked(result, folder)
    peak = max(result.peak_bytes.values())
    assert peak <= PEAK_BYTES_MAX, f"a worker held {peak >> 20} MiB"
    how = "one worker killed" if killed else "none killed"
    print(f"explain: {result.done} done, {len(result.failed)} failed, {how},", end=" ")
    print(f"at most {peak >> 20} MiB a worker")
    return seconds


def checked(result, folder):
    """Every input is there once, with the figures of its recording, and nothing half-written is."""
    names = sorted(str(path) for path in folder.iterdir())
    assert (result.done, len(result.failed)) == (len(names), 0), result.failed.to_pylist()[:5]
    rows = result.table("figures").to_pylist()
    times = collections.Counter(row["input"] for row in rows if row["figure"] == "foreign")
    assert sorted(times) == names and set(times.values()) == {1}, "an input is missing, or there twice"
    foreign = {row["input"]: row["value"] for row in rows if row["figure"] == "foreign"}
    wrong = [name for number, name in enumerate(names) if foreign[name] != FOREIGN[number % 4]]
    assert not wrong, wrong[:5]
    assert not list(pathlib.Path(result.out).rglob("*.tmp"))


def swept(client, quietcore, work):
    """200 runs by the command and by Dask: the same rows, hash for hash."""
    file = work / "runs.parquet"
    grid = ["--set", "cpus=24,32", "--seeds", "1..100"]
    words = [quietcore, "sweep", "@hotplug-storm", *grid, "-o", str(file)]
    begin = time.monotonic()
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    command = time.monotonic() - begin
    begin = time.monotonic()
    result = fleet.sweep("@hotplug-storm", GRID, SEEDS, out=work / "runs", client=client, progress=False)
    dask = time.monotonic() - begin
    here, there = pq.read_table(file), result.table("runs")
    assert here.equals(there), "the rows differ"
    hashes = here["hash"].to_pylist()
    assert len(hashes) == 600 and hashes == there["hash"].to_pylist()
    print(f"sweep: {said.splitlines()[0].split(' in ')[0]}; all {len(hashes)} hashes equal", end=" ")
    print(f"(command {command:.1f} s, Dask {dask:.1f} s), {len(set(hashes))} different ones")


def in_a_loop(quietcore, folder):
    """Seconds of `for f in FOLDER/*; do quietcore explain "$f" --json; done`."""
    loop = 'for file in "$1"/*; do "$0" explain "$file" --json > "$2" || exit 1; done'
    with tempfile.NamedTemporaryFile() as report:
        begin = time.monotonic()
        subprocess.run(["sh", "-c", loop, quietcore, str(folder), report.name], check=True)
        seconds = time.monotonic() - begin
    return seconds


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 1_000)
