"""Thousands of recordings, or a sweep's runs, on Dask: a laptop's cores, Slurm, Kubernetes, SSH.

``client=None`` starts a local cluster; any ``dask.distributed.Client`` of another deployment is used as it
is. Workers write what they find as Parquet parts, named by a hash of their input, whole or not at all: a part
that is written again by a retry replaces itself, so nothing is there twice. An input without an answer is a
row of the table ``failed``, and the rest goes on; so is one on which workers die again and again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import resource
import shutil
import sys
import tempfile
import uuid
from dataclasses import dataclass, field

import fsspec
import fsspec.core
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import quietcore

#: Endings of files that are taken for recordings in a folder.
ENDINGS = (".txt", ".gz", ".xz", ".zst", ".dat", ".data", ".pftrace", ".perfetto-trace", ".trace")
#: Inputs that the scheduler knows of at once.
WAVE = 2_000
#: Bytes that are copied at once from an object store.
COPIED = 4 << 20
#: Seeds of one task of a sweep.
SEEDS_PER_TASK = 16

_FAILED = pa.schema([("input", pa.string()), ("error", pa.string())])


@dataclass(frozen=True)
class FleetResult:
    """What a fleet came to: tables as Parquet parts below ``out``, read when they are asked for."""

    #: A folder's path or address.
    out: str
    #: Inputs, or tasks of a sweep, that have an answer; those that were there before are among them.
    done: int
    #: Those that have none, with the sentence why.
    failed: pa.Table
    #: The most memory that a worker held, in bytes, by the worker's address.
    peak_bytes: dict = field(default_factory=dict)
    storage_options: dict = field(default_factory=dict, repr=False)

    def table(self, name: str) -> pa.Table:
        """All rows of the table ``name``: ``figures``, ``findings``, ``disturbances`` or ``runs``."""
        return self.dataset(name).to_table()

    def dataset(self, name: str) -> ds.Dataset:
        """The same without reading it; its parts are in the order of a sweep."""
        fs, root = fsspec.core.url_to_fs(self.out, **self.storage_options)
        parts = sorted(fs.glob(f"{root}/{name}/*.parquet"))
        return ds.dataset(parts, filesystem=fs, format="parquet") if parts else ds.dataset([pa.table({})])


def explain(
    inputs,
    *,
    out=None,
    client=None,
    workers=None,
    retries=2,
    resume=False,
    progress=True,
    isolated=None,
    kernel=None,
    storage_options=None,
):
    """Explains every recording of ``inputs``: a folder, a pattern, an address that fsspec knows, or a list.

    Each row of ``figures``, ``findings`` and ``disturbances`` has the column ``input``. Without ``out`` the
    parts are in a new temporary folder. ``retries`` is how often an input is tried again after an error of
    the machine (a full disk, a store that does not answer); one that quietcore refuses is not tried again.
    With ``resume`` what ``out`` has already is kept.
    """
    options = storage_options or {}
    urls = _inputs(inputs, options)
    out = _prepared(out, ["figures", "findings", "disturbances"], resume, options)
    asked = {"isolated": isolated, "kernel": kernel}
    tasks = [(url, (url, out, asked, options)) for url in urls]
    if resume:
        there = _there(out, "figures", options)
        tasks = [task for task in tasks if f"{_part(task[0])}.parquet" not in there]
    before = len(urls) - len(tasks)
    with _client(client, workers) as connected:
        done, failed, peaks = _run(connected, _explain_one, tasks, retries, progress)
    return _finished(out, before + done, failed, peaks, options)


def sweep(
    scenario,
    grid=None,
    seeds=(1, 1),
    *,
    out=None,
    client=None,
    workers=None,
    retries=2,
    resume=False,
    progress=True,
    storage_options=None,
):
    """Runs a scenario over a grid (``{"cpus": [64, 128]}``) and seeds (the first and the last).

    The rows of ``runs`` are those of ``quietcore sweep``, in the same order and with the same hashes.
    """
    options = storage_options or {}
    out = _prepared(out, ["runs"], resume, options)
    files = _scenario_files(scenario)
    tasks = []
    for point in _points(quietcore.written(grid)):
        for first in range(seeds[0], seeds[1] + 1, SEEDS_PER_TASK):
            last = min(first + SEEDS_PER_TASK - 1, seeds[1])
            with_values = "".join(f" {key}={value}" for key, value in point)
            name = f"{scenario}{with_values} seeds={first}..{last}"
            part = f"{len(tasks):08d}-{_part(name + repr(files))}"
            tasks.append((name, (part, str(scenario), files, point, (first, last), out, options)))
    if not tasks:
        raise quietcore.Error("the sweep has no runs")
    _check(str(scenario), files, quietcore.written(grid))
    all_tasks = len(tasks)
    if resume:
        there = _there(out, "runs", options)
        tasks = [task for task in tasks if f"{task[1][0]}.parquet" not in there]
    with _client(client, workers) as connected:
        done, failed, peaks = _run(connected, _sweep_one, tasks, retries, progress)
    return _finished(out, all_tasks - len(tasks) + done, failed, peaks, options)


# What workers do.


def _explain_one(url, out, asked, options):
    with _local(url, options) as path:
        answer = quietcore.explain(path, threads=1, **asked)
    # `figures` is the last: a part of it says that the others are there.
    for name in ["disturbances", "findings", "figures"]:
        _write(_with_input(pa.table(answer[name]), url), out, name, _part(url), options)


def _sweep_one(part, name, files, point, seeds, out, options):
    with _scenario(name, files) as path:
        grid = {key: [value] for key, value in point}
        runs = quietcore.sweep(path, grid, seeds, threads=1, name=name)
    _write(pa.table(runs), out, "runs", part, options)


def _guarded(task, arguments):
    """Runs on a worker: the sentence if there is no answer, who it was, and the most memory it held."""
    import distributed

    sentence = None
    try:
        task(*arguments)
    except quietcore.Error as error:
        sentence = str(error)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return sentence, distributed.get_worker().address, peak


def _write(table, out, name, part, options):
    """A part appears whole: renamed in a file system, put at once into an object store."""
    held = io.BytesIO()
    pq.write_table(table, held, compression="zstd")
    fs, root = fsspec.core.url_to_fs(out, **options)
    target = f"{root}/{name}/{part}.parquet"
    if not _is_local(fs):
        fs.pipe_file(target, held.getvalue())
        return
    temporary = f"{root}/{name}/.{part}.{uuid.uuid4().hex}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(held.getbuffer())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise


def _with_input(table, url):
    return table.add_column(0, pa.field("input", pa.string()), pa.array([url] * len(table), pa.string()))


@contextlib.contextmanager
def _local(url, options):
    """A file of this machine with the recording in it: itself, or a copy that goes again."""
    if url.startswith("@"):
        yield url
        return
    fs, path = fsspec.core.url_to_fs(url, **options)
    if _is_local(fs):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="quietcore-") as folder:
        copy = os.path.join(folder, os.path.basename(path) or "recording")
        with fs.open(path, "rb") as source, open(copy, "wb") as target:
            shutil.copyfileobj(source, target, COPIED)
        try:
            yield copy
        except quietcore.Error as error:
            # The sentence names the input, not our copy of it.
            raise quietcore.Error(str(error).replace(copy, url)) from None


@contextlib.contextmanager
def _scenario(name, files):
    """The scenario's path: bundled, or the files that came along."""
    if not files:
        yield name
        return
    with tempfile.TemporaryDirectory(prefix="quietcore-") as folder:
        for file, text in files.items():
            with open(os.path.join(folder, file), "w", encoding="utf-8") as written:
                written.write(text)
        yield os.path.join(folder, next(iter(files)))


# What the one that asks does.


def _run(client, task, tasks, retries, progress):
    """All tasks, a wave at a time; how many have an answer, those that have none, and memory by worker."""
    import distributed

    done, failed, peaks = 0, [], {}
    for begin in range(0, len(tasks), WAVE):
        wave = tasks[begin : begin + WAVE]
        arguments = [one[1] for one in wave]
        futures = client.map(_guarded, [task] * len(wave), arguments, retries=retries, pure=False)
        names = {future.key: one[0] for future, one in zip(futures, wave)}
        if progress:
            distributed.progress(futures, notebook=False)
            print(file=sys.stdout, flush=True)
        # Results come in batches: one by one each would be a call of its own.
        for future, result in distributed.as_completed(futures, with_results=True, raise_errors=False):
            if future.status != "finished":
                failed.append((names[future.key], _why(future)))
                continue
            sentence, worker, peak = result
            peaks[worker] = max(peak, peaks.get(worker, 0))
            if sentence is None:
                done += 1
            else:
                failed.append((names[future.key], sentence))
        del futures
    return done, failed, peaks


def _why(future):
    """What became of a task that did not end: its exception, or that workers died of it."""
    import distributed

    try:
        error = future.exception(timeout=10)
    except Exception as other:  # noqa: BLE001 - whatever it is, the rest goes on
        error = other
    if isinstance(error, distributed.KilledWorker):
        return "every worker that took it died: it may need more memory than they have"
    return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _client(client, workers):
    """The client that was given, or a local cluster of processes for as long as it is needed."""
    if client is not None:
        yield client
        return
    import distributed

    count = workers or os.cpu_count() or 1
    with distributed.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as own:
            yield own


def _inputs(inputs, options):
    """The addresses of all recordings, sorted, none twice."""
    if not isinstance(inputs, (str, os.PathLike)):
        return sorted({os.fspath(one) for one in inputs})
    place = os.fspath(inputs)
    if place.startswith("@"):
        return [place]
    fs, path = fsspec.core.url_to_fs(place, **options)
    if any(char in path for char in "*?["):
        found = fs.glob(path)
    elif fs.isdir(path):
        found = [file for file in fs.find(path) if file.endswith(ENDINGS)]
    else:
        found = [path]
    found = [file for file in found if not os.path.basename(file).startswith(".")]
    if not found:
        raise quietcore.Error(f"{place}: there is no recording; files end with {', '.join(ENDINGS)}")
    return sorted({path if _is_local(fs) else fs.unstrip_protocol(path) for path in found})


def _is_local(fs):
    protocol = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
    return protocol in ("file", "local")


def _prepared(out, tables, resume, options):
    """A folder for the parts; one that has parts of another run is refused."""
    if out is None:
        out = tempfile.mkdtemp(prefix="quietcore-fleet-")
    out = os.fspath(out)
    fs, root = fsspec.core.url_to_fs(out, **options)
    if _is_local(fs):
        out = root = os.path.abspath(root)
    for name in tables:
        fs.makedirs(f"{root}/{name}", exist_ok=True)
        if not resume and fs.glob(f"{root}/{name}/*.parquet"):
            raise quietcore.Error(f"{out} has results already; name another folder, or resume")
    return out


def _there(out, name, options):
    fs, root = fsspec.core.url_to_fs(out, **options)
    return {os.path.basename(path) for path in fs.glob(f"{root}/{name}/*.parquet")}


def _part(name):
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _points(keys):
    """All combinations, the last key changing first."""
    points = [[]]
    for key, values in keys:
        points = [point + [(key, value)] for point in points for value in values]
    return points


def _scenario_files(scenario):
    """What workers need of a scenario that is a file: itself, and its costs beside it."""
    name = os.fspath(scenario)
    if name.startswith("@"):
        return {}
    files = {}
    for path in [name, os.path.join(os.path.dirname(name), "costs.toml")]:
        if path == name or os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                files[os.path.basename(path)] = file.read()
    return files


def _check(name, files, keys):
    """Refuses a mistake before the first task."""
    with _scenario(name, files) as path:
        try:
            quietcore.check_sweep(path, dict(keys))
        except quietcore.Error as error:
            raise quietcore.Error(str(error).replace(path, name)) from None


def _swept_up(fs, root):
    """Removes what a worker had begun to write when it was killed; it has a hidden name until it is whole."""
    if not _is_local(fs):
        return
    for folder, _, files in os.walk(root):
        for name in files:
            if name.startswith(".") and name.endswith(".tmp"):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(os.path.join(folder, name))


def _finished(out, done, failed, peaks, options):
    failed = pa.table(
        {"input": [name for name, _ in failed], "error": [why for _, why in failed]}, schema=_FAILED
    ).sort_by("input")
    fs, root = fsspec.core.url_to_fs(out, **options)
    fs.makedirs(f"{root}/failed", exist_ok=True)
    _write(failed, out, "failed", "failed", options)
    _swept_up(fs, root)
    return FleetResult(out, done, failed, peaks, options)


def _arguments(words):
    parser = argparse.ArgumentParser(prog="python -m quietcore.fleet", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    explained = verbs.add_parser("explain", help="explain every recording of a folder or object store")
    explained.add_argument("inputs", nargs="+", help="a folder, a pattern, an address, or several files")
    explained.add_argument("--isolated", help="the CPUs that must stay quiet, as 1-7,9, or none")
    swept = verbs.add_parser("sweep", help="run a scenario over a grid of values and seeds")
    swept.add_argument("scenario", help="a file, or one of the program, as @isolated")
    swept.add_argument("--set", dest="keys", action="append", default=[], metavar="KEY=A,B")
    swept.add_argument("--seeds", default="1..1", metavar="FIRST..LAST")
    for verb in [explained, swept]:
        verb.add_argument("--out", required=True, help="a folder or address for the results")
        verb.add_argument("--workers", type=int, help="processes of a local cluster (one for each CPU)")
        verb.add_argument("--scheduler", help="the address of a Dask scheduler that is there already")
        verb.add_argument("--resume", action="store_true", help="keep what the folder has already")
        verb.add_argument("--retries", type=int, default=2, help="tries after an error of the machine")
    return parser.parse_args(words)


def main(words=None):
    """``python -m quietcore.fleet``: 0 all have answers, 1 some have none, 2 an error."""
    asked = _arguments(words)
    common = {"out": asked.out, "workers": asked.workers, "resume": asked.resume, "retries": asked.retries}
    try:
        with contextlib.ExitStack() as stack:
            if asked.scheduler:
                import distributed

                common["client"] = stack.enter_context(distributed.Client(asked.scheduler))
            if asked.verb == "explain":
                inputs = asked.inputs[0] if len(asked.inputs) == 1 else asked.inputs
                result = explain(inputs, isolated=asked.isolated, **common)
            else:
                grid = dict(_key(setting) for setting in asked.keys)
                first, _, last = asked.seeds.partition("..")
                result = sweep(asked.scenario, grid, (int(first), int(last or first)), **common)
    except (quietcore.Error, OSError, ValueError) as error:
        print(f"quietcore.fleet: {error}", file=sys.stderr)
        return 2
    for name, why in zip(result.failed["input"].to_pylist(), result.failed["error"].to_pylist()):
        print(f"failed: {name}: {why}", file=sys.stderr)
    print(f"{result.done} done, {len(result.failed)} failed; results in {result.out}")
    return 1 if len(result.failed) else 0


def _key(setting):
    key, _, values = setting.partition("=")
    if not key or not values:
        raise ValueError(f"{setting!r} sets nothing; give a key and its values, as cpus=64,128")
    is_list = key in ("isolated", "nohz_full") or key.endswith(".cpus")
    return key, [value.replace("+", ",") if is_list else value for value in values.split(",")]


if __name__ == "__main__":
    # Workers import it under its own name.
    from quietcore import fleet

    sys.exit(fleet.main())
