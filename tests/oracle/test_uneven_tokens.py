"""Pipelines whose last token is smaller than the others take no longer than their price says, and mostly just as long.

Stages work on units of their own, so what executing them takes is the truth: docs/model/bindings.md.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from textwrap import dedent, indent

import pytest

from cases import cascade, machine
from einloom.cost.evaluate import latencies
from einloom.cost.event import event_time
from einloom.cost.formulas.terms import Number
from einloom.cost.time import schedule
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Mapping
from einloom.oracle import simulate
from einloom.workload.einsum import Workload

Case = tuple[Workload, Machine, Mapping, bool]


def chain(seed: int) -> Case:
    """Two to four maps of an odd extent, token by token, perhaps with drains in between; and whether the closed form is
    what happens: no drains (which may overlap in part), and the last stage is the slowest, so that it waits for none of
    what comes in the end."""
    rng = Random(f"uneven tokens {seed}")
    count, extent = rng.randint(2, 4), rng.choice((3, 5, 7, 7, 9, 11))
    workload = cascade("\n".join(f"E{i}: T{i + 1}[m] = exp(T{i}[m])" for i in range(count)), {"m": extent})
    rates = [rng.choice((0.25, 0.5, 1.0)) for _ in range(count)]
    slow = rng.random() < 0.5
    if slow:
        rates[-1] = min(rates)
    units = tuple(ComputeUnit(f"U{i}", rate) for i, rate in enumerate(rates))
    made = machine(Memory("G"), Memory("S"), *units)
    token = rng.randint(1, extent - 1)
    outer = rng.choice([t for t in range(token, extent) if t % token == 0])
    drains = outer > token and rng.random() < 0.5
    lines = [f"store G: T0 T{count}", *([_loop(extent, outer)] if outer > token else [])]
    lines += ["store S: T0"] * drains + [_loop(outer if outer > token else extent, token)]
    lines.append("store G: " + " ".join(f"T{i}" for i in range(1, count)))
    stages = (f"{_loop(token, 1)}\ncompute E{i} @ U{i}" if token > 1 else f"compute E{i} @ U{i}" for i in range(count))
    branches = "\n".join(indent(f"- {indent(stage, '  ').strip()}", "  ") for stage in stages)
    text = "\n".join(lines) + f"\nsplit pipelined @ unit:\n{branches}"
    return workload, made, parse_mapping(dedent(text), workload, made), slow and not drains


def _loop(extent: int, tile: int) -> str:
    return f"for m in {-(-extent // tile)} tile {tile}"


@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.slow)])
def test_the_price_is_what_happens_or_more(first: int) -> None:
    equal = sure = 0
    for seed in range(first, first + 100 if first == 0 else 1000):
        workload, made, mapping, exact = chain(seed)
        assert not problems(workload, made, mapping)
        seen = simulate(workload, made, mapping, timed=True)
        assert seen.correct and seen.cycles is not None
        views = latencies(workload, made, mapping)
        assert views.floor <= seen.cycles * (1 + 1e-9)
        assert seen.cycles <= views.einsum * (1 + 1e-9), seed
        assert event_time(workload, made, mapping).seconds == pytest.approx(seen.cycles)
        same = views.einsum == pytest.approx(seen.cycles)
        assert same or not exact, seed
        equal, sure = equal + same, sure + exact
    assert equal >= 60 and sure >= 30, (equal, sure)


def loops_as_written(patch: pytest.MonkeyPatch) -> None:
    """Tokens are the product of the trips, empty ones too."""
    patch.setattr(schedule, "_chains", lambda path, border, stop: _nominal(path, border, stop))


def _nominal(path: schedule.Path, border: int, stop: int) -> list[tuple[Number, Number, Number]]:
    loops = [loop for loop in path.loops if loop.place < stop]
    return [(loop.trips, 1, loop.trips if loop.place < border else 1) for loop in loops]


def tokens_of_mean_size(patch: pytest.MonkeyPatch) -> None:
    right = schedule.full_tokens

    def tokens(chains: object) -> Number:
        rows = [(-(-extent // token), 1, drains) for extent, token, drains in chains]  # type: ignore[attr-defined]
        return right(rows)

    patch.setattr(schedule, "full_tokens", tokens)


@pytest.mark.parametrize("mistake", [loops_as_written, tokens_of_mean_size], ids=lambda f: f.__name__)
def test_a_mistake_is_caught(mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    wrong = 0
    for seed in range(40):
        workload, made, mapping, _ = chain(seed)
        cycles = simulate(workload, made, mapping, timed=True).cycles
        assert cycles is not None
        wrong += latencies(workload, made, mapping).einsum < cycles * (1 - 1e-9)
    assert wrong >= 5
