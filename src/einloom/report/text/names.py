"""Names that must stay apart: cut to the room that there is, and files named by as little of their path as does."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix
from pathlib import Path

DOTS = "…"


def shortened(names: Sequence[str], rooms: int | Sequence[int], dots: str = DOTS) -> list[str]:
    """Every name in at most so many letters (one number, or one for each name); different names stay different.

    A name loses its end. Names that look the same then lose their middle, or what they share, or get a number.

    >>> shortened(["softmax", "query", "softplus"], 6), shortened(["seed_number_1", "seed_number_2"], 8)
    (['softm…', 'query', 'softp…'], ['seed…r_1', 'seed…r_2'])
    """
    room = [rooms] * len(names) if isinstance(rooms, int) else list(rooms)
    least = min(room, default=0)
    shown = [_end(name, most, dots) for name, most in zip(names, room, strict=True)]
    tight = [_end(name, least, dots) for name in names]
    for way in (_middle, _differing):
        for group in _alike(names, tight):
            among = [names[i] for i in group]
            for i in group:
                shown[i], tight[i] = (way(among, names[i], most, dots) for most in (room[i], least))
    for group in _alike(names, shown):
        first = list(dict.fromkeys(names[i] for i in group))
        for i in group:
            number = f"#{first.index(names[i]) + 1}"
            shown[i] = _end(names[i], max(1, room[i] - len(number)), dots) + number
    return shown


def _alike(names: Sequence[str], shown: Sequence[str]) -> list[list[int]]:
    """Places of different names that look the same."""
    places: dict[str, list[int]] = {}
    for i, text in enumerate(shown):
        places.setdefault(text, []).append(i)
    return [group for group in places.values() if len({names[i] for i in group}) > 1]


def _end(name: str, room: int, dots: str) -> str:
    return name if len(name) <= room else name[: max(1, room - len(dots))] + dots


def _middle(group: Sequence[str], name: str, room: int, dots: str) -> str:
    kept = max(2, room - len(dots))
    return name if len(name) <= room else name[: kept - kept // 2] + dots + name[len(name) - kept // 2 :]


def _differing(group: Sequence[str], name: str, room: int, dots: str) -> str:
    """The name from where it begins to differ from the others of its group."""
    if len(name) <= room:
        return name
    start = min(len(commonprefix(list(group))), len(name) - 1)  # noqa: RUF071 - letters of names, no paths
    rest = name[start:]
    return dots + _end(rest, max(2, room - len(dots)), dots)


def file_labels(files: Sequence[str | Path]) -> list[str]:
    """A label for each file: its name without the ending, with folders before it where that is another's name, too.

    >>> file_labels(["a/exact.json", "b/exact.json", "dat.json"])
    ['a/exact', 'b/exact', 'dat']
    """
    parts = [Path(file).with_suffix("").parts for file in files]
    taken = [1] * len(files)
    labels = [tail[-1] if tail else str(file) for tail, file in zip(parts, files, strict=True)]
    for count in range(2, max(map(len, parts), default=0) + 1):
        for group in _alike(["/".join(one) for one in parts], labels):
            for i in group:
                taken[i] = count
        labels = ["/".join(one[-most:]) for one, most in zip(parts, taken, strict=True)]
    return numbered(labels)


def numbered(labels: Sequence[str]) -> list[str]:
    """The labels, with a number behind each that was there before.

    >>> numbered(["a", "b", "a"])
    ['a', 'b', 'a #2']
    """
    found: list[str] = []
    for label in labels:
        again = sum(other == label or other.startswith(f"{label} #") for other in found)
        found.append(f"{label} #{again + 1}" if again else label)
    return found
