"""In what two inputs of the same name, or two questions, differ, in few words.

Comes in: a workload or a machine as plain data, twice. Goes out: the first keys whose values differ, with both values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...machine.write import machine_data
from ...mapspace.space import Mapspace
from ...problem import Problem
from ...workload.einsum import Workload
from ...workload.files import workload_data

SHOWN = 2  # differences that are named
LONGEST = 60  # characters of a value that are shown


def unlike(one: object, other: object, labels: tuple[str, str]) -> str:
    """What differs, with the value of each; of many differences the first, and how many there are.

    >>> unlike({"levels": [{"memory": "GLB", "size": 8}]}, {"levels": [{"memory": "GLB", "size": 4}]}, ("a", "b"))
    'GLB.size is 8 in a and 4 in b'
    """
    left, right = dict(_values(one)), dict(_values(other))
    paths = [path for path in dict.fromkeys((*left, *right)) if left.get(path) != right.get(path)]
    told = [
        f"{path} is {_shown(left.get(path))} in {labels[0]} and {_shown(right.get(path))} in {labels[1]}"
        for path in paths[:SHOWN]
    ]
    more = len(paths) - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")


def _shown(value: object) -> str:
    return "the default" if value is None else f"{value!s:.{LONGEST}}"


def _values(data: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every value in plain data by its path, in which entries of a list go by their names."""
    if isinstance(data, dict):
        if "value" in data:
            yield path, data["value"]
            data = {key: value for key, value in data.items() if key != "value"}
        for key, value in data.items():
            yield from _values(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list | tuple) and all(isinstance(item, dict) for item in data):
        for number, item in enumerate(data):
            name = next((value for value in item.values() if isinstance(value, str)), str(number))
            yield from _values(item, name)
    else:
        yield path, data if not isinstance(data, list | tuple) else ", ".join(map(str, data))


def questions_apart(one: Problem, other: Problem, labels: tuple[str, str]) -> str:
    """In what two problems differ, part by part; empty if in nothing that a reader can see."""
    found = {
        "workload": unlike(computed(one.workload), computed(other.workload), labels),
        "machine": unlike(machine_data(one.machine), machine_data(other.machine), labels),
    }
    words = (
        ("objective", str(one.objective), str(other.objective)),
        ("latency rule", one.latency_rule, other.latency_rule),
        ("mapspace", space_words(one.mapspace), space_words(other.mapspace)),
    )
    found |= {what: f"{a} in {labels[0]} and {b} in {labels[1]}" for what, a, b in words if a != b}
    return "; ".join(f"{what}: {said}" for what, said in found.items() if said)


def computed(workload: Workload) -> dict[str, object]:
    """The workload's data without what only people read: its modules and nodes, and what was absorbed."""
    plain = tuple(replace(einsum, group="", nodes=()) for einsum in workload.einsums)
    return workload_data(replace(workload, einsums=plain, absorbed=()))


def space_words(space: Mapspace) -> str:
    """The name of a space and of its choice of limits, its limit on fused loops, and what else is not as usual."""
    most = space.max_fused_loops
    again = space.max_fused_loops_per_rank_variable
    limit = "" if most is None else f" with at most {most} fused loop{'' if most == 1 else 's'}"
    return (
        space.name
        + ("" if space.title is None else f" {space.title!r:.80}")
        + limit
        + (" in free order" if space.order == "free" else "")
        + (" with shared stores" if space.stores == "shared" else "")
        + (f" with up to {again} fused loops per rank" if again > 1 else "")
    )
