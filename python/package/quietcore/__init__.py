"""Who disturbed which isolated CPU of Linux, as Arrow tables.

Every function opens its input as the command ``quietcore`` does: a file, or ``@NAME`` of those that are
bundled. What it returns is taken without a copy by pandas, Polars, DuckDB and pyarrow (the PyCapsule
protocol). Columns are described in docs/guide/tables.md.
"""

from __future__ import annotations

from . import _quietcore
from ._quietcore import Answer, Error, Table, __version__, diff, events, sim, timers, verify

__all__ = [
    "Answer",
    "Error",
    "Table",
    "__version__",
    "check_sweep",
    "diff",
    "events",
    "explain",
    "sim",
    "sweep",
    "timers",
    "verify",
    "whatif",
]


def explain(path, *, isolated=None, kernel=None, max_expansion=None, threads=None):
    """Who disturbed which CPU of a recording: ``figures``, ``findings``, ``disturbances``."""
    options = {
        "isolated": isolated,
        "kernel": kernel,
        "max_expansion": max_expansion,
        "threads": threads,
    }
    return _quietcore.explain(path, options)


def whatif(
    path,
    *,
    policy=None,
    exclude=None,
    keep_awake=None,
    isolated=None,
    kernel=None,
    max_expansion=None,
):
    """A recording's timers under another policy, or with CPUs excluded or kept awake: ``whatif``."""
    options = {
        "policy": policy,
        "exclude": exclude,
        "keep_awake": keep_awake,
        "isolated": isolated,
        "kernel": kernel,
        "max_expansion": max_expansion,
    }
    return _quietcore.whatif(path, options)


def sweep(scenario, grid=None, seeds=None, *, threads=None, name=None):
    """A scenario over a grid (``{"cpus": [64, 128]}``) and seeds (the first and the last): ``runs``.

    The same as the command ``quietcore sweep``: rows in the order of keys and seeds, the same hashes.
    """
    options = {"seeds": seeds, "threads": threads, "name": name}
    return _quietcore.sweep(scenario, written(grid), options)


def check_sweep(scenario, grid=None):
    """Raises what ``sweep`` would raise for a scenario or a grid with a mistake; runs nothing."""
    _quietcore.check_sweep(scenario, written(grid))


def written(grid):
    """A grid as it would be typed: keys with their values as texts."""

    def text(value):
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return [(key, [text(value) for value in values]) for key, values in (grid or {}).items()]
