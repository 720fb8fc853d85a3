"""The functions: tables that every library takes, the command's sentences, null for what is not known."""

import json
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import quietcore
from conftest import RECORDINGS, REPOSITORY

PULLS = RECORDINGS / "g612-c16-iso.txt.zst"
CURED = RECORDINGS / "g619-c16-iso.txt.zst"


def figure(answer, name):
    return {row["figure"]: row["value"] for row in answer["figures"].to_pylist()}[name]


def test_explain_has_the_figures_of_the_command():
    answer = quietcore.explain(PULLS)
    assert answer.keys() == ["figures", "findings", "disturbances"]
    assert figure(answer, "foreign") == 74
    assert figure(quietcore.explain("@g619-c16-iso"), "foreign") == 0
    assert json.loads(answer.json)["foreign"]["total"] == 74
    assert answer.findings.to_pylist()[0]["finding"] == "foreign-timers-pulled"
    assert figure(quietcore.explain(PULLS, isolated="none"), "foreign") == 0


def test_what_was_not_recorded_is_null_and_not_zero():
    values = pa.table(quietcore.explain(PULLS).figures)
    unknown = dict(zip(values["figure"].to_pylist(), values["value"].to_pylist()))
    assert unknown["rt_delay_p99"] is None and unknown["lost_events"] == 0
    assert values["value"].null_count > 0


def test_every_library_takes_a_table_without_a_copy():
    answer = quietcore.explain(PULLS)
    table = pa.table(answer.figures)
    assert table.schema.names == answer.figures.column_names == ["figure", "unit", "value"]
    assert pa.table(answer).equals(table), "an answer stands for its first table"
    assert table.num_rows == len(answer.figures) == answer.figures.num_rows == 16
    first, second = (pa.table(answer.figures)["value"].chunk(0).buffers()[1].address for _ in range(2))
    assert first == second, "both are the buffers of the one table"


@pytest.mark.parametrize("library", ["polars", "duckdb", "pandas"])
def test_other_libraries(library):
    module = pytest.importorskip(library)
    timers = quietcore.timers(PULLS)
    if library == "polars":
        assert module.DataFrame(timers)["foreign"].sum() == 74
    elif library == "duckdb":
        rows = module.sql('SELECT count(*) FROM timers WHERE "foreign"').fetchall()
        assert rows == [(74,)]
    else:
        assert module.DataFrame.from_arrow(timers)["foreign"].sum() == 74


def test_timers_and_events():
    timers = pa.table(quietcore.timers(PULLS))
    foreign = timers.filter(timers["foreign"])
    assert len(foreign) == 74
    assert all(cpu in (0, 8) for cpu in foreign["armed_cpu"].to_pylist())
    events = pa.table(quietcore.events(PULLS))
    assert len(events) == json.loads(quietcore.explain(PULLS).json)["events"]
    assert events["line"].to_pylist() == sorted(events["line"].to_pylist())


def test_verify_whatif_and_diff():
    verified = quietcore.verify(PULLS)
    figures = {row["figure"]: row["value"] for row in verified.verification.to_pylist()}
    assert (figures["ok"], figures["mismatches_of_all_kinds"]) == (1, 0)
    assert len(verified.mismatches) == 0
    recorded, before, after = quietcore.whatif(PULLS, keep_awake="0,8")["whatif"].to_pylist()
    assert (recorded["side"], recorded["foreign"], recorded["pending"]) == ("recorded", 74, None)
    assert after["foreign"] < before["foreign"] and after["kept_awake"] == "0,8"
    compared = {row["figure"]: row for row in quietcore.diff(PULLS, CURED)["diff"].to_pylist()}
    assert compared["foreign"]["verdict"] == "less"
    assert compared["rt_delay_p99"]["before"] is None


def test_a_simulated_run_has_its_hash_and_verdicts():
    ran = quietcore.sim("@hotplug-storm", seed=3, duration_ns=20_000_000)
    again = quietcore.sim("@hotplug-storm", seed=3, duration_ns=20_000_000)
    other = quietcore.sim("@hotplug-storm", seed=4, duration_ns=20_000_000)
    hashes = [[row["hash"] for row in run.runs.to_pylist()] for run in (ran, again, other)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert [row["variant"] for row in ran.runs.to_pylist()] == ["pull", "push", "stay"]
    assert len(ran.verdicts) > 0


def test_errors_are_the_sentences_of_the_command(tmp_path):
    for path, sentence in [
        ("@none", "@none: no recording of this name is in the program"),
        (tmp_path / "none.txt", "none.txt"),
    ]:
        with pytest.raises(quietcore.Error, match=sentence):
            quietcore.explain(path)
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n")
    with pytest.raises(quietcore.Error, match="there is no event in it"):
        quietcore.verify(empty)
    with pytest.raises(quietcore.Error, match="cpuz: no such key; there are duration, cpus"):
        quietcore.sweep("@isolated", {"cpuz": [1]})
    with pytest.raises(quietcore.Error, match="say what is to change"):
        quietcore.whatif(PULLS)
    with pytest.raises(quietcore.Error, match="no policy; choose from pull, push and stay"):
        quietcore.whatif(PULLS, policy="pul")


def test_a_table_becomes_a_file_whole_or_not_at_all(tmp_path):
    path = tmp_path / "timers.parquet"
    timers = quietcore.timers(PULLS)
    timers.write_parquet(path)
    assert pq.read_table(path).equals(pa.table(timers))
    with pytest.raises(quietcore.Error, match="writing"):
        timers.write_parquet(tmp_path / "no" / "x.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["timers.parquet"]


def test_other_threads_run_meanwhile():
    ticks, is_over = [], threading.Event()

    def tick():
        while not is_over.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    before = time.monotonic()
    quietcore.sweep("@hotplug-storm", seeds=(1, 3), threads=1)
    after = time.monotonic()
    is_over.set()
    thread.join()
    during = [moment for moment in ticks if before < moment < after]
    assert len(during) > 10, "the interpreter was not released"


def test_the_lines_of_the_readme_work():
    text = (REPOSITORY / "python" / "README.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "74 timers armed on housekeeping CPUs were pulled" in ran.stdout
