"""Moves that change two shared loops at once, so that uneven tiles fit: states of the space, and better ones."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from einloom.mapspace.ffm.encoding import Encoding, NoProposal
from einloom.mapspace.ffm.encoding.retiling import round_tile
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.search.exact import Exact
from einloom.search.first import FirstMappings
from einloom.search.method import Watcher
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload
from state_checks import agrees, random_reads


def test_tiles_are_round_where_as_many_trips_allow_it() -> None:
    for extent in (7, 64, 197, 4096):
        for trips in range(1, extent + 1):
            least = -(-extent // trips)
            for multiple in (1, 2, 32):
                size = round_tile(extent, trips, multiple)
                assert least <= size <= extent and -(-extent // size) == -(-extent // least)
    assert round_tile(16384, 3, 128) == 43 * 128 and round_tile(16384, 3, 1) == 5462


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 400), marks=pytest.mark.slow)])
def test_what_is_retiled_is_in_the_space_and_fits(seeds: range) -> None:
    seen = Counter[str]()
    for seed, read in random_reads("uneven tiles", seeds, seen):
        encoding, rng = Encoding(*read), Random(seed)
        for _ in range(6):
            state = encoding.sample(rng)
            sharing = [] if state is None else [i for i, loops in enumerate(state.shared) if loops]
            for i in sharing:
                assert state is not None
                try:
                    found = encoding.retiled(state, i, rng)
                except NoProposal:
                    continue
                assert encoding.fault(found) is None
                agrees(encoding, found)
                seen["moved"] += found.shared != state.shared
                seen["uneven"] += any(own.covers for own in found.owns)
                seen["other loops"] += [v for v, _, _ in found.shared[i]] != [v for v, _, _ in state.shared[i]]
    assert min(seen[name] for name in ("moved", "uneven", "other loops")) > 1, seen


@pytest.mark.slow
def test_uneven_tiles_are_found_near_the_best_even_ones() -> None:
    """Two products of 40 x 64 and 64 x 64 in a buffer of 1,300 bytes: the best of all tiles costs 1.8 % less."""
    workload, machine = load_workload("matmuls:n=2,m=40,kn=64"), load_machine("two-level:glb_bits=10400")
    even, every = (Problem(workload, machine, Mapspace(name), Objective("energy")) for name in ("ffm", "ragged"))
    known, best = Exact().search(even), Exact().search(every)
    assert best.value < known.value * 0.99
    first = FirstMappings(every, Watcher(), machine_code=True)
    points = first._begun()
    assert points is not None
    points.machine_code = True  # compiled where it has not been
    first.go_on_near(known.mapping)
    for _ in range(400):
        first.work(0.0)
        if first.value <= best.value * (1 + 1e-9):
            break
    assert first.value == pytest.approx(best.value, rel=1e-9)
