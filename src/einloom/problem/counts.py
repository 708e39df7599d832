"""Numbers by name, as certificates and answers hold them: points seen and dropped, by pruning rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Counts(Mapping[str, int]):
    """Numbers by name that nobody changes; unlike a view of a table they can be copied and sent to a process."""

    __slots__ = ("_table",)

    def __init__(self, table: Mapping[str, int]) -> None:
        self._table = dict(table)

    def __getitem__(self, name: str) -> int:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __hash__(self) -> int:
        return hash(frozenset(self._table.items()))

    def __repr__(self) -> str:
        return repr(self._table)
