"""Levels changed so that machine and workload have what they rarely come by alone: who holds what, and how wide.

Comes in: the levels of a machine file as drawn. Goes out: the same levels, with some keys put in, replaced or left out.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from random import Random
from typing import Any

from ...workload.einsum import Workload
from .dimensions import FITTING
from .files import Data

Fitting = list[Any]
"""What of a workload a dimension can be about, as `FITTING` finds it."""
TIMES = ("read_throughput", "write_throughput", "throughput")


def arrange(rng: Random, on: Collection[str], workload: Workload, levels: list[Data], beside: bool = False) -> None:
    """Give the levels these dimensions, as far as the workload and the number of memories let them have them.

    beside: each dimension gets memories of its own, so that one does not undo the other.
    """
    inner = [level for level in levels if "memory" in level][1:]
    changes = [name for name in CHANGES if name in on] if inner else []
    if beside and not inner and "home by role" in on:
        _housed(rng, levels[0])
    beside = beside and len(changes) > 1
    for name in changes:
        if fitting := list(FITTING[name](workload)):
            CHANGES[name](rng, workload, levels, inner, fitting)
        if beside:
            _settle(rng, inner)
            inner = _fresh(levels, inner[-1]) if name != changes[-1] else inner
    if "unheld" in on and not any("unheld" in level.get("must", "") for level in levels):
        fitting = [level for level in inner if level.get("may") != "nothing"]
        if fitting:
            level = rng.choice(fitting)
            must = f"unheld & ({level['may']})" if "may" in level else "unheld"
            level["must"] = f"{level['must']} | {must}" if "must" in level else must
    if "no time" in on:
        for level in levels:
            for key in TIMES:
                level.pop(key, None)


def _holding(level: Data, tensors: Collection[str], *, backs: bool) -> None:
    """The memory may hold just these, and backs anything or nothing."""
    level["may"] = " | ".join(tensors)
    level.pop("must", None)
    level.pop("backs", None)
    if not backs:
        level["backs"] = "nothing"


def _bar(levels: list[Data], others: Collection[Data]) -> None:
    """All memories but the others hold nothing, so that trees are few."""
    for level in levels:
        if not any(level is other for other in others):
            level["may"] = "nothing"
            level.pop("must", None)


def _room(rng: Random, workload: Workload, tensors: Collection[str]) -> int:
    """Bits for one value of each, for all values of each, or something in between."""
    least = sum(workload.tensor(t).bits for t in tensors)
    return rng.choice(
        (least, rng.randint(least, sum(workload.tensor(t).bits * workload.tensor(t).size for t in tensors)))
    )


def _wider(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    level, tensor = rng.choice(inner), rng.choice(fitting)
    narrow, least = rng.choice((1, 1, 2)), workload.tensor(tensor).bits
    level["widths"] = {"output": narrow, **({"input | weight": least + narrow} if least <= narrow else {})}
    beside = rng.choice(workload.tensors).name
    _holding(level, (tensor, beside) if beside != tensor and rng.random() < 0.3 else (tensor,), backs=True)
    level["size"] = narrow * rng.randint(1, 2 * workload.tensor(tensor).size)


def _over_readers(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    level, (between, read) = rng.choice(inner), rng.choice(fitting)
    _holding(level, (between, read), backs=True)
    one, whole = workload.tensor(between), workload.tensor(read)
    level["size"] = rng.choice((one.bits + whole.bits * whole.size, _room(rng, workload, (between, read))))
    level.update(read_energy=0, write_energy=0)
    if rng.random() < 0.8:
        level["must"] = level["may"]
    _bar(inner, (level,))


def _further_in(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    if len(inner) == 1:
        inner = [dict(inner[0], memory="M9"), *inner]
        levels.insert(1, inner[0])
    at = sorted(rng.sample(range(len(inner)), 2))
    between, read, everywhere = rng.choice(fitting)
    outside = (between, read) if everywhere and rng.random() < 0.3 else (between,)
    _holding(inner[at[0]], outside, backs=True)
    _holding(inner[at[1]], (read,), backs=rng.random() < 0.3)
    for i, tensors in zip(at, (outside, (read,)), strict=True):
        inner[i]["size"] = _room(rng, workload, tensors)
        if rng.random() < 0.3:
            inner[i]["must"] = inner[i]["may"]
    _bar(inner, [inner[i] for i in at])


def _copied_behind(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    behind = levels[next((i for i, level in enumerate(levels) if "fanout" in level), len(levels)) :]
    among = [level for level in behind if "memory" in level]
    if among:
        level = rng.choice(among)
        level["must"] = rng.choice(("output", "input", "copy", rng.choice(rng.choice(fitting).tensors)))
        level.pop("may", None)
        if rng.random() < 0.6:
            _bar(inner, (level,))


def _housed(rng: Random, outer: Data) -> None:
    outer[rng.choice(("may", "backs"))] = rng.choice(("~output", "~output", "~output | input", "~input", "~weight"))
    outer.pop("must", None)


def _by_role(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    _housed(rng, levels[0])
    level = rng.choice(inner)
    for key in ("may", "must", "backs", "size"):
        level.pop(key, None)
    _bar(inner, (level,))


def _settle(rng: Random, inner: list[Data]) -> None:
    """Memories mostly must hold what they may, so that trees are few."""
    for level in inner:
        may = level.setdefault("may", "output")
        if may != "nothing" and rng.random() < 0.8:
            level["must"] = may


def _fresh(levels: list[Data], like: Data) -> list[Data]:
    """Two more memories behind all others, so that what was arranged before stays."""
    at = 1 + max(i for i, level in enumerate(levels) if "memory" in level or "fanout" in level)
    plain = {key: value for key, value in like.items() if key not in ("may", "must", "backs")}
    for place in (at, at + 1):
        levels.insert(place, {**plain, "memory": _unnamed(levels)})
    return levels[at : at + 2]


def _unnamed(levels: list[Data]) -> str:
    taken = {level["memory"] for level in levels if "memory" in level}
    return next(name for i in count(8) if (name := f"M{i}") not in taken)


def _place(levels: list[Data], one: Data) -> int:
    return next(i for i, level in enumerate(levels) if level is one)


def _two(rng: Random, levels: list[Data], inner: list[Data]) -> list[Data]:
    """Two of the inner memories, the outer one first; one more is put in where there is one alone."""
    if len(inner) == 1:
        outer = dict(inner[0], memory=_unnamed(levels))
        levels.insert(rng.choice((1, _place(levels, inner[0]))), outer)
        return [outer, inner[0]]
    return [inner[i] for i in sorted(rng.sample(range(len(inner)), 2))]


def _behind_idle(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    """Spread over every instance of a fanout, with a memory below it that holds nothing."""
    chosen, between = _two(rng, levels, inner), rng.choice(fitting)
    _bar(inner, ())
    chosen[0].update(may="nothing")
    _holding(chosen[1], (between,), backs=True)
    chosen[1].update(size=_room(rng, workload, (between,)), must=between, read_energy=0, write_energy=0)
    if not any("fanout" in level for level in levels[: _place(levels, chosen[0])]):
        axis = {"axis": "u", "size": 2, "use": "full"}
        levels.insert(_place(levels, chosen[0]), {"fanout": "F9", "axes": [axis]})


def _kept_above(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    """There is room for either of the own stores, mostly, and not for both."""
    chosen, (between, *own) = _two(rng, levels, inner), rng.choice(fitting)
    _holding(chosen[0], own, backs=False)
    _holding(chosen[1], (between,), backs=True)
    chosen[1]["must"] = between
    if rng.random() < 0.5:
        chosen[0]["must"] = chosen[0]["may"]
    whole = [workload.tensor(t).bits * workload.tensor(t).size for t in own]
    chosen[0].update(size=rng.choice((max(whole), _room(rng, workload, own))), read_energy=0, write_energy=0)
    chosen[1].update(size=_room(rng, workload, (between,)), read_energy=0, write_energy=0)
    _bar(inner, chosen)


def _divided(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    """One of the two operands is changed while the other one, in the memory further in, stays."""
    chosen, pair = _two(rng, levels, inner), rng.choice(fitting)
    for level, tensor in zip(chosen, pair, strict=True):
        _holding(level, (tensor,), backs=False)
        level.update(size=_room(rng, workload, (tensor,)), read_energy=0, write_energy=0)
    _bar(inner, chosen)


def _turned_on_an_axis(
    rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting
) -> None:
    """What is backed behind the axis takes its time alone, so that using all of the axis pays."""
    level, between = rng.choice(inner), rng.choice(fitting)
    _bar(inner, ())
    _holding(level, (between,), backs=True)
    level.update(must=between, write_throughput=1)
    level.pop("size", None)
    levels.insert(_place(levels, level), {"fanout": "F8", "axes": [{"axis": "w", "size": 4}]})
    for other in levels:
        if other is not level:
            for key in TIMES:
                other.pop(key, None)


def _part_housed(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    """The outermost memory may not hold or not back it; one of the others may hold anything."""
    levels[0][rng.choice(("may", "backs"))] = f"~{rng.choice(fitting)}"
    levels[0].pop("must", None)
    level = rng.choice(inner)
    for key in ("may", "must", "backs", "size"):
        level.pop(key, None)
    _bar(inner, (level,))


def _part_behind(rng: Random, workload: Workload, levels: list[Data], inner: list[Data], fitting: Fitting) -> None:
    """One of them behind a fanout holds it and nothing else; where time counts, only the outermost memory costs any."""
    level = rng.choice(inner)
    _holding(level, (rng.choice(fitting),), backs=True)
    for key in ("size", *TIMES):
        level.pop(key, None)
    levels[0].update(read_throughput=1)
    levels.insert(_place(levels, level), {"fanout": "behind", "axes": [{"axis": "v", "size": 2}]})
    _bar(inner, (level,))


CHANGES = {
    "home by role": _by_role,
    "copy held behind a fanout": _copied_behind,
    "store over two readers": _over_readers,
    "store behind what backs": _further_in,
    "wider for a consumer": _wider,
    "backed behind an idle memory": _behind_idle,
    "own stores above what is backed": _kept_above,
    "memories for different tensors": _divided,
    "turned on an axis": _turned_on_an_axis,
    "part housed inside": _part_housed,
    "part behind a fanout": _part_behind,
}
