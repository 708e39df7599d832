"""In what two inputs of the same name differ, in few words.

Comes in: a workload or a machine as plain data, twice. Goes out: the first keys whose values differ, with both values.
"""

from __future__ import annotations

from collections.abc import Iterator

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
