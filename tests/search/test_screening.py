"""Fused parts that are left out before their tiles are listed have no rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from bench.ragged_problems import ragged_problem, shared_problem, window_problem

from axis_problems import drawn
from einloom.errors import SpecError
from einloom.problem import Problem
from einloom.search.exact.fusion import explore
from einloom.search.exact.fusion.explore import Explorer
from einloom.search.exact.fusion.screening import Screen
from fused_again import levelled
from varied_problems import answer, anything, layers

Source = Callable[[int], Problem]
SOURCES: tuple[Source, ...] = (anything, ragged_problem, window_problem, shared_problem, layers, levelled, drawn)


def looked(source: Source, seeds: Sequence[int], patch: pytest.MonkeyPatch) -> Counter[str]:
    """Of the fused parts in searches of these problems, how many screening, or one like them, leaves out and why,
    and how many of these have rows ("wrong")."""
    found = Counter[str]()
    fill, may_fit, within, like = Explorer._fill, Screen.may_fit, Screen.within, explore.in_any_order
    seen: dict[object, set[object]] = {}

    def filled(self, structure, own, option, held, remainder):  # type: ignore[no-untyped-def]
        screen = Screen(self.classes, remainder.levels, remainder.choice, held, {})
        limited = self.setting.rules.limits
        empty = seen.setdefault((id(self), id(remainder), held), set())
        reasons = {
            "room": not may_fit(screen, structure, own),
            "cost": limited and not within(screen, self.limits - remainder.below.least, structure, own),
            "like": like(structure, own) in empty,
        }
        before = sum(map(len, self.found.values()))
        some = fill(self, structure, own, option, held, remainder)
        added = sum(map(len, self.found.values())) > before
        assert some or not added
        found.update(reason for reason, said in reasons.items() if said)
        found["wrong"] += added and any(reasons.values())
        if not some:
            empty.add(like(structure, own))
        return some

    with patch.context() as patched:
        patched.setattr(Explorer, "_fill", filled)
        patched.setattr(Screen, "may_fit", lambda *_: True)
        patched.setattr(Screen, "within", lambda *_: True)
        patched.setattr(explore, "in_any_order", lambda *_: (object(),))
        for seed in seeds:
            with suppress(SpecError):
                answer(source(seed))
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_left_out_has_no_rows(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not looked(source, range(12), monkeypatch)["wrong"]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 400, 100))
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_left_out_of_many_has_no_rows(source: Source, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not looked(source, range(first, first + 100), monkeypatch)["wrong"]


TELLING: dict[str, tuple[Source, int]] = {"room": (levelled, 12), "cost": (levelled, 25), "like": (drawn, 6)}


@pytest.mark.parametrize("reason", TELLING)
def test_every_reason_leaves_some_out(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, count = TELLING[reason]
    assert looked(source, range(count), monkeypatch)[reason] > 20


# -- planted mistakes -------------------------------------------------------------------------------------------------


def whole_tiles(patch: pytest.MonkeyPatch) -> None:
    """Loops are taken to leave the tiles as they are."""
    real = Screen._least_bits
    patch.setattr(Screen, "_least_bits", lambda self, t, m, tile, b: real(self, t, m, self.classes.extents, b))


def more_moves(patch: pytest.MonkeyPatch) -> None:
    """Every loop above a store is taken to fill it again."""
    real = Screen._least_moves

    def moves(self, structure, store, parent):  # type: ignore[no-untyped-def]
        again = sum(loop.axis is None for loop in structure.loops[: store.depth])
        return real(self, structure, store, parent) * 2**again

    patch.setattr(Screen, "_least_moves", moves)


def any_order(patch: pytest.MonkeyPatch) -> None:
    """Loops are taken to change places across stores."""
    real = explore.in_any_order

    def like(structure, own):  # type: ignore[no-untyped-def]
        top = replace(structure, backings=())
        return real(top, ()), len(own)

    patch.setattr(explore, "in_any_order", like)


@pytest.mark.parametrize("mistake", [whole_tiles, more_moves, any_order])
def test_mistakes_are_noticed(mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    assert any(looked(source, range(20), monkeypatch)["wrong"] for source in (layers, ragged_problem, drawn, levelled))
