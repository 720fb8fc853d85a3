"""Compares the tool's figures with those that independent_count.py counted, and sees that all are counted.

Every key of the JSON is counted or is in NOT_COUNTED with the reason; a key in neither is a difference,
so that a new figure cannot go uncounted. Equal nulls, zeros and empty maps show nothing: a figure counts
as compared where it has a value, and each must have one in some recording.
"""

import collections
import json
import math

# Keys of the JSON that are no figures of a recording, and why.
NOT_COUNTED = {
    "schema": "the version of the layout",
    "isolated_source": "where an input is from",
    "incomplete": "sentences on lost events, unreadable lines and full tables",
    "at": "what was open around a moment that was typed",
    "malformed": "lines that look like events to the tool, and that it cannot read",
    "evicted": "is about the tool's own tables",
    "warnings": "sentences",
    "findings": "sentences on figures that are counted",
    "own_disturbance": "is about a live recording's own threads",
}

# Objects that are one figure: their keys are numbers or names of the recording.
MAPS = ("by_function", "by_cpu", "by_base_cpu", "by_group", "by_task", "groups.cpus", "unknown_events")

# Quantiles are given to three significant digits, those of interruptions to two.
ROUNDED = {
    "rt_wakeups.delay_ns.p50": 1e-3,
    "rt_wakeups.delay_ns.p99": 1e-3,
    "softirq.empty_ns.p50": 1e-3,
    "softirq.empty_ns.p99": 1e-3,
    "foreign.took_ns.p50": 1e-3,
    "foreign.took_ns.p99": 1e-3,
    "between_isolated.took_ns.p50": 1e-3,
    "between_isolated.took_ns.p99": 1e-3,
    "figures.rt_delay_p50": 1e-3,
    "figures.rt_delay_p99": 1e-3,
    "figures.interruption_p99": 1e-2,
}
# What two ways to divide may differ in.
FLOAT = 1e-12

MISSING = object()


def shown(value):
    """A value as a line of the comparison prints it."""
    return "nothing" if value is MISSING else json.dumps(value, sort_keys=True)


def is_map(path):
    """Whether the object at `path` is one figure."""
    return path.endswith(MAPS)


def is_same(path, ours, counted):
    """Whether two values are the same figure."""
    if path == "interruptions":
        return is_alike(ours, counted)
    if path in ROUNDED and None not in (ours, counted):
        return math.isclose(ours, counted, rel_tol=ROUNDED[path])
    if isinstance(ours, float) and isinstance(counted, float):
        return math.isclose(ours, counted, rel_tol=FLOAT)
    if path == "not_recorded":
        return sorted(ours) == counted
    return type(ours) is type(counted) and ours == counted


def is_close(one, two):
    """Whether two quantiles are the same to two digits, or both are none."""
    return one == two or None not in (one, two) and math.isclose(one, two, rel_tol=1e-2)


def is_alike(ours, counted):
    """Whether two tables are, but for quantiles, which have two significant digits."""
    plain = [[{**row, "p99_ns": 0} for row in rows] for rows in (ours, counted)]
    return plain[0] == plain[1] and all(
        is_close(one["p99_ns"], two["p99_ns"]) for one, two in zip(ours, counted)
    )


def differences(ours, counted):
    """One line per figure that differs, that is missing on one side, or that nobody counts."""
    counted = dict(counted)
    unknown = ours.get("unknown_events", {})
    counted["unknown_events"] = {k: v for k, v in counted["unknown_events"].items() if k in unknown}
    ours = {key: value for key, value in ours.items() if key not in NOT_COUNTED}
    yield from below("", ours, counted)


def below(path, ours, counted):
    """As `differences`, for the value at `path`."""
    if isinstance(ours, dict) and isinstance(counted, dict):
        keys = [*counted, *(key for key in ours if key not in counted)]
        for key in keys:
            name = f"{path}.{key}" if path else key
            yield from below(name, ours.get(key, MISSING), counted.get(key, MISSING))
    elif MISSING in (ours, counted) or not is_same(path, ours, counted):
        yield f"{path}: ours {shown(ours)}, counted {shown(counted)}"


def leaves(value, path=""):
    """Name and value of every figure."""
    if isinstance(value, dict) and not is_map(path):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path, value


def with_value(counted):
    """Names of the figures that have a value: neither null nor 0, and not empty."""
    return [path for path, value in leaves(counted) if value or value is False]


def total(of_nothing, lines):
    """Prints how many figures were compared; 1 if one never had a value. `of_nothing` has all keys."""
    keys = [path for path, _ in leaves(of_nothing)]
    compared = collections.Counter(line.strip() for line in lines)
    never = [key for key in keys if not compared[key]]
    for key in never:
        print(f"{key}: no recording has a value of it, so it was never compared")
    seen = sum(1 for key in keys if compared[key])
    print(f"{sum(compared.values())} figures with a value compared, of {seen} keys of {len(keys)}")
    return 1 if never else 0
