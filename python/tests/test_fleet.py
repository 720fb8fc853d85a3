"""Fleets: every input once, whatever dies; a sweep's rows are those of the command."""

import os
import pathlib
import signal
import threading
import time

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import quietcore
from quietcore import fleet

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def kill_one_worker_when(client, out, parts):
    """Kills a worker's process once so many parts are there; its number by name."""
    killed = []

    def kill():
        deadline = time.monotonic() + 120
        while len(list(pathlib.Path(out, "figures").glob("*.parquet"))) < parts:
            if time.monotonic() > deadline:
                return
            time.sleep(0.005)
        pid = next(iter(client.run(os.getpid).values()))
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread, killed


def test_all_are_there_once_though_a_worker_is_killed(copies, tmp_path, cluster):
    folder, out = copies(40), tmp_path / "out"
    (out / "figures").mkdir(parents=True)
    # What a worker leaves that is killed while it writes.
    (out / "figures" / ".0123.4567.tmp").write_bytes(b"PAR1")
    thread, killed = kill_one_worker_when(cluster, out, 8)
    result = fleet.explain(folder, out=out, client=cluster, progress=False)
    thread.join()
    assert len(killed) == 1
    assert (result.done, len(result.failed)) == (40, 0)
    figures = result.table("figures")
    foreign = figures.filter(pc.equal(figures["figure"], "foreign")).sort_by("input")
    assert foreign["input"].to_pylist() == sorted(str(path) for path in folder.iterdir())
    assert foreign["value"].to_pylist() == [0, 74, 90, 0] * 10
    assert not list(out.rglob("*.tmp")), "nothing half-written is left"
    assert max(result.peak_bytes.values()) < 1 << 30


def test_an_input_without_an_answer_is_named_and_the_rest_goes_on(copies, tmp_path, cluster):
    folder = copies(4)
    (folder / "empty.txt").write_text("# nothing\n")
    (folder / "cut.txt.zst").write_bytes((folder / "0001-g612-c16-iso.txt.zst").read_bytes()[:5_000])
    result = fleet.explain(folder, out=tmp_path / "out", client=cluster, progress=False)
    assert result.done == 4
    failed = {pathlib.Path(row["input"]).name: row["error"] for row in result.failed.to_pylist()}
    assert sorted(failed) == ["cut.txt.zst", "empty.txt"]
    assert "there is no event in it" in failed["empty.txt"]
    assert str(folder / "cut.txt.zst") in failed["cut.txt.zst"]
    assert len(set(result.table("findings")["input"].to_pylist())) <= 4


def test_results_of_another_run_are_refused_or_kept(copies, tmp_path, cluster):
    folder, out = copies(4), tmp_path / "out"
    fleet.explain([folder / "0000-g61-c16-iso.txt.zst"], out=out, client=cluster, progress=False)
    with pytest.raises(quietcore.Error, match="has results already"):
        fleet.explain(folder, out=out, client=cluster, progress=False)
    part = next((out / "figures").glob("*.parquet"))
    before = part.stat().st_mtime_ns
    result = fleet.explain(folder, out=out, client=cluster, progress=False, resume=True)
    assert (result.done, part.stat().st_mtime_ns) == (4, before)
    assert len(result.table("figures")) == 4 * 16


def test_recordings_of_an_object_store(copies, tmp_path, cluster):
    # A chained address is read through fsspec as a store's is: it is no file of this machine.
    import zipfile

    folder = copies(3)
    archive = tmp_path / "all.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in folder.iterdir():
            packed.write(path, path.name)
    urls = [f"zip://{path.name}::file://{archive}" for path in folder.iterdir()]
    urls.append(f"zip://none.txt::file://{archive}")
    result = fleet.explain(urls, out=tmp_path / "out", client=cluster, retries=0, progress=False)
    assert result.done == 3
    assert result.failed["input"].to_pylist() == [urls[-1]]
    assert set(result.table("figures")["input"].to_pylist()) == set(urls[:3])


def test_a_sweep_is_the_one_of_the_command(tmp_path, cluster):
    grid = {"duration": ["20ms", "30ms"], "cpus": [24, 32]}
    here = pa.table(quietcore.sweep("@hotplug-storm", grid, (1, 20)))
    result = fleet.sweep("@hotplug-storm", grid, (1, 20), out=tmp_path / "o", client=cluster, progress=False)
    there = result.table("runs")
    assert len(result.failed) == 0
    assert there.num_rows == here.num_rows == 4 * 20 * 3
    assert there.equals(here), "the same rows in the same order, hashes among them"


def test_a_scenario_of_a_file_travels_with_its_costs(tmp_path, cluster):
    from conftest import REPOSITORY

    scenario = REPOSITORY / "scenarios" / "hotplug-storm.toml"
    grid = {"duration": ["20ms"]}
    result = fleet.sweep(scenario, grid, (1, 2), out=tmp_path / "o", client=cluster, progress=False)
    runs, bundled = result.table("runs"), pa.table(quietcore.sweep("@hotplug-storm", grid, (1, 2)))
    assert runs["hash"].to_pylist() == bundled["hash"].to_pylist()
    assert set(runs["scenario"].to_pylist()) == {str(scenario)}
    with pytest.raises(quietcore.Error, match="cpuz: no such key"):
        fleet.sweep(scenario, {"cpuz": [1]}, (1, 2), out=tmp_path / "p", client=cluster, progress=False)


def test_the_command_starts_a_cluster_of_its_own(copies, tmp_path, capsys):
    folder, out = copies(3), tmp_path / "out"
    (folder / "empty.txt").write_text("# nothing\n")
    words = ["explain", str(folder), "--out", str(out), "--workers", "1"]
    assert fleet.main(words) == 1
    said = capsys.readouterr()
    assert f"3 done, 1 failed; results in {out}" in said.out
    assert "failed: " in said.err and "empty.txt" in said.err
    assert fleet.main(["explain", str(tmp_path / "none"), "--out", str(tmp_path / "p")]) == 1
    assert fleet.main(words) == 2 and "has results already" in capsys.readouterr().err
