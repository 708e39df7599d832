"""The smallest problem that shows the same: parts are taken out one at a time, as long as it still does.

First Einsums, then levels, then limits and other keys, at last sizes and numbers; each step is tried anew from the
start after one that worked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from re import findall
from typing import Any

from ...errors import EinloomError
from .cascades import built
from .files import Data, Files

Shows = Callable[[Files], bool]
KEPT = ("schema", "name", "memory", "toll", "link", "fanout", "compute", "axis", "einsum", "einsums", "ranks", "levels")
"""Keys that are not taken out."""


def minimised(files: Files, shows: Shows, most: int = 2000) -> Files:
    """The smallest problem that was found in `most` tries. shows: does a problem still show what is looked for?"""
    tries = 0
    seen = set()
    while True:
        for smaller in _smaller(files):
            key = repr((smaller.workload, smaller.machine, smaller.mapspace))
            if key in seen:
                continue
            seen.add(key)
            tries += 1
            if tries > most:
                return files
            if _shown(smaller, shows):
                files = smaller
                break
        else:
            return files


def _shown(files: Files, shows: Shows) -> bool:
    try:
        _ = files.read
    except EinloomError:
        return False
    return shows(files)


def _smaller(files: Files) -> Iterator[Files]:
    work, chip, space = files.workload, files.machine, files.mapspace
    fewer: tuple[tuple[str, Iterator[Data]], ...] = (
        ("workload", (_without(work, ("einsums", i)) for i in range(len(work["einsums"])))),
        ("machine", (_without(chip, ("levels", i)) for i in range(len(chip["levels"])))),
        ("mapspace", _fewer_keys(space)),
        ("machine", _fewer_keys(chip)),
        ("workload", chain(_fewer_keys(work), _smaller_ranks(work))),
        ("machine", _smaller_numbers(chip)),
        ("workload", _smaller_numbers(work)),
        ("mapspace", _smaller_numbers(space)),
    )
    for name, found in fewer:
        for data in found:
            yield replace(files, **{name: _fitted(data) if name == "workload" else data})


def _fitted(workload: Data) -> Data:
    """The workload without ranks and tensors that no Einsum has any more."""
    data = deepcopy(workload)
    text = " ".join(str(e["einsum"] if isinstance(e, dict) else e) for e in data["einsums"])
    words = set(findall(r"[^][,+\-()*=\s]+", text))
    words |= {view["of"] for name, view in data.get("views", {}).items() if name in words}
    for key in ("ranks", "shapes", "bits", "views"):
        if isinstance(data.get(key), dict):
            data[key] = {name: x for name, x in data[key].items() if name in words or name == "default"}
    for key in ("outputs", "persistent", "initial"):
        if isinstance(data.get(key), list):
            data[key] = [t for t in data[key] if t in words]
    if "outputs" in data:
        try:
            built({k: x for k, x in data.items() if k != "schema"})
        except EinloomError:
            data.pop("outputs")
    return {key: value for key, value in data.items() if value not in ({}, [])}


def _paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below, outer ones first."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def _without(data: Data, path: tuple[Any, ...]) -> Data:
    copy = deepcopy(data)
    del _at(copy, path[:-1])[path[-1]]
    return copy


def _changed(data: Data, path: tuple[Any, ...], value: Any) -> Data:
    copy = deepcopy(data)
    _at(copy, path[:-1])[path[-1]] = value
    return copy


def _fewer_keys(data: Data) -> Iterator[Data]:
    for path in _paths(data):
        if path[-1] in ("group", "nodes") or (path[0] not in ("einsums", "ranks") and path[-1] not in KEPT):
            yield _without(data, path)


def _smaller_ranks(workload: Data) -> Iterator[Data]:
    for variable, extent in workload.get("ranks", {}).items():
        for less in sorted({1, 2, extent // 2, extent - 1}):
            if 1 <= less < extent:
                yield _changed({k: v for k, v in workload.items() if k != "shapes"}, ("ranks", variable), less)
                yield _changed(workload, ("ranks", variable), less)


def _smaller_numbers(data: Data) -> Iterator[Data]:
    for path in _paths(data):
        value = _at(data, path)
        if isinstance(value, bool) or not isinstance(value, int | float) or path[0] in ("ranks", "shapes", "views"):
            continue
        for less in (0, 1, 2, int(value) // 2, int(value) - 1, int(value)):
            if 0 <= less < value:
                yield _changed(data, path, less)
