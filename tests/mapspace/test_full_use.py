"""The least work on full-use axes, pooled and axis by axis, is that of all choices one after the other."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import pytest

from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.divisors import divisors_up_to
from einloom.mapspace.ffm import full_use
from einloom.mapspace.ffm.encoding import spreads as encoded
from einloom.mapspace.ffm.encoding.facts import Facts
from einloom.mapspace.ffm.encoding.spreads import DRAWN_FULLEST, spreads, used_on
from einloom.mapspace.ffm.full_use import Reach, Takes, least_iterations, pooled
from einloom.mapspace.limits.data import AxisLimit, Limits, Numbers
from einloom.mapspace.space import Mapspace
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

NUMBERS = (Numbers(most=2), Numbers(values=(1, 3)), Numbers(values=(2, 4)))
Totals = tuple[tuple[int, ...] | None, ...]


def drawn(rng: Random) -> tuple[tuple[int, ...], tuple[int, ...], Takes, Totals]:
    """One to three axes, full or not, and variables that may take any divisor, none, some, or what does not divide."""
    sizes = tuple(rng.choice((2, 3, 4, 6, 8)) for _ in range(rng.randint(1, 3)))
    takes = []
    for _ in range(rng.randint(1, 4)):
        extent, options = rng.choice((1, 2, 3, 4, 6, 7, 12)), []
        uneven = rng.random() < 0.2
        for size in sizes:
            every = divisors_up_to(extent, size)
            if uneven:
                every = tuple(range(1, min(extent, size) + 1))
            kind = rng.random()
            some = tuple(n for n in every if n == 1 or rng.random() < 0.6)
            options.append(every if kind < 0.7 else (1,) if kind < 0.85 else some)
        takes.append((extent, tuple(options)))
    full = tuple(a for a in range(len(sizes)) if rng.random() < 0.8)
    totals = tuple(
        tuple(n for n in range(1, size + 1) if rng.random() < 0.5) if rng.random() < 0.2 else None for size in sizes
    )
    return sizes, full, tuple(takes), totals


def walked(sizes: tuple[int, ...], full: tuple[int, ...], takes: Takes, totals: Totals) -> int:
    """Every choice of every variable, one after the other."""
    least = None
    for chosen in product(*(product(*options) for _, options in takes)):
        work = 1
        for (extent, _), each in zip(takes, chosen, strict=True):
            if extent % prod(each) and sum(n > 1 for n in each) > 1:
                break
            work *= -(-extent // prod(each[a] for a in full))
        else:
            used = [prod(each[a] for each in chosen) for a in range(len(sizes))]
            fits = all(n <= size for n, size in zip(used, sizes, strict=True))
            if fits and all(allowed is None or n in allowed for n, allowed in zip(used, totals, strict=True)):
                least = work if least is None else min(least, work)
    return prod(extent for extent, _ in takes) if least is None else least


def test_the_least_work_is_that_of_all_choices() -> None:
    rng, alone, shared = Random(1), 0, 0
    for _ in range(600):
        asked = drawn(rng)
        assert least_iterations(*asked) == walked(*asked), asked
        alone += len(pooled(*asked[::2])) == len(asked[2])
        shared += len(pooled(*asked[::2])) < len(asked[2])
    assert alone > 100 and shared > 100


MISTAKES = ["pool of all", "what does not divide twice", "most, not fewest", "too much asked of an axis"]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mistake == "most, not fewest":

        def most(rest: int, options: tuple[int, ...]) -> tuple[int, ...]:
            return tuple({-(-rest // n): n for n in options if n <= max(rest, 1)}.values())

        monkeypatch.setattr(full_use, "_fewest", most)
    elif mistake == "too much asked of an axis":
        taken = full_use._taken

        def asked_for_more(left, extents, options, room, least=1.0):  # type: ignore[no-untyped-def]
            return taken(left, extents, options, room, least * 1.2 if least > 1 else least)

        monkeypatch.setattr(full_use, "_taken", asked_for_more)
    elif mistake == "pool of all":

        def one_pool(sizes: tuple[int, ...], takes: Takes) -> Takes:
            extent = prod(each for each, _ in takes)
            return ((extent, tuple(divisors_up_to(extent, size) for size in sizes)),)

        monkeypatch.setattr(full_use, "pooled", one_pool)
    else:

        def anything(left, extents, options, room, least=1.0):  # type: ignore[no-untyped-def]
            return (n for n in product(*options) if prod(n) <= room)

        monkeypatch.setattr(full_use, "_taken", anything)
    rng = Random(1)
    least_iterations.cache_clear()
    try:
        wrong = 0
        for _ in range(300):
            asked = drawn(rng)
            try:
                wrong += least_iterations(*asked) != walked(*asked)
            except ZeroDivisionError:
                wrong += 1
        assert wrong
    finally:
        least_iterations.cache_clear()


def test_what_can_be_reached_is_the_most_of_all_choices() -> None:
    """From every place in the order of axes and variables, with what is left of each variable and of the room."""
    rng, none = Random(2), 0
    for _ in range(300):
        sizes = tuple(rng.choice((2, 3, 4, 6)) for _ in range(rng.randint(1, 2)))
        takes = []
        for _ in range(rng.randint(1, 3)):
            extent, options = rng.choice((1, 2, 3, 4, 6)), []
            for size in sizes:
                every = divisors_up_to(extent, size)
                some = tuple(n for n in range(1, min(extent, size) + 1) if rng.random() < 0.6)
                options.append(rng.choice((every, every, (1,), some)))
            takes.append((extent, tuple(options)))
        left = tuple(rng.choice(divisors_up_to(extent, extent)) for extent, _ in takes)
        axis, variable = rng.randrange(len(sizes)), rng.randrange(len(takes) + 1)
        room = rng.randint(1, sizes[axis])
        slots = [(a, v) for a in range(axis, len(sizes)) for v in range(len(takes)) if (a, v) >= (axis, variable)]
        most = 0
        for chosen in product(*(takes[v][1][a] for a, v in slots)):
            on = [prod(n for (a, _), n in zip(slots, chosen, strict=True) if a == b) for b in range(len(sizes))]
            of = [prod(n for (_, v), n in zip(slots, chosen, strict=True) if v == w) for w in range(len(takes))]
            rooms = [room if b == axis else sizes[b] for b in range(len(sizes))]
            fits = all(n <= size for n, size in zip(on, rooms, strict=True))
            if fits and all(n % m == 0 for n, m in zip(left, of, strict=True)):
                most = max(most, prod(chosen))
        assert Reach(sizes, tuple(takes)).most(axis, variable, left, room) == most, (sizes, takes, axis, variable, left)
        none += most == 0
    assert none > 5


def test_the_choices_listed_are_all_that_use_the_most() -> None:
    rng, many = Random(3), 0
    for _ in range(60):
        extents = {v: rng.choice((1, 2, 3, 4, 6)) for v in "mnk"}
        workload = build_workload("one", ("Z[m,n] = A[m,k] * B[k,n]",), extents, bits=8)
        barred = [selector(rng.choice(("nothing", "output"))) for _ in range(2)]
        axes = [Axis(f"X{i}", rng.choice((2, 3, 4, 6)), use="full", only_irrelevant_to=barred[i]) for i in range(2)]
        levels = (Memory("DRAM", None, 1.0, 1.0), Fanout("P", tuple(axes)), ComputeUnit("MAC"))
        limits = Limits(axes=(AxisLimit("X0", rng.choice(NUMBERS), ("m",)),) if rng.random() < 0.5 else ())
        facts = Facts(workload, Machine("m", levels), Mapspace(limits=limits))
        slots = [(axis.name, v) for axis in axes for v in "mnk"]
        every = []
        for chosen in product(*(facts.takes(0, *slot)[::-1] for slot in slots)):
            one = tuple((axis, v, n) for (axis, v), n in zip(slots, chosen, strict=True) if n > 1)
            fits = all(used_on(one, axis.name) <= axis.size for axis in axes)
            if fits and all(extents[v] % prod(n for _, w, n in one if w == v) == 0 for v in "mnk"):
                every.append(one)
        if not every:  # no loop of m has as many trips as the limit wants
            assert spreads(facts, 0, "MAC") == []
            continue
        most = max(prod(n for _, _, n in one) for one in every)
        assert most == facts.most(0, "MAC")
        assert list(spreads(facts, 0, "MAC")) == [one for one in every if prod(n for _, _, n in one) == most]
        many += len(spreads(facts, 0, "MAC")) > 1
    assert many > 20


def test_of_many_choices_some_are_drawn() -> None:
    """Eight variables on four axes of 4 x 16 x 256 x 256 instances: no dead ends, or this would take minutes."""
    workload, machine = load_workload("tileflow-cc1"), load_machine("tileflow-cloud").in_full_use()
    facts = Facts(workload, machine, Mapspace())
    drawn = spreads(facts, 1, "mac")
    assert DRAWN_FULLEST / 2 < len(drawn) == len(set(drawn)) <= DRAWN_FULLEST
    for one in drawn:
        assert prod(n for _, _, n in one) == facts.most(1, "mac")
        assert all(used_on(one, axis.name) <= axis.size for axis in machine.axes.values())
        assert all(extent % prod(n for _, w, n in one if w == v) == 0 for v, extent in workload.extents.items())
    assert len({n for one in drawn for axis, _, n in one if axis == "core"}) > 1


def test_choices_of_a_network_are_drawn_as_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some at each question, and in the end the same ones as of a small cascade."""
    workload, machine = load_workload("tileflow-cc1"), load_machine("tileflow-cloud").in_full_use()
    for mapspace, most in ((Mapspace(), DRAWN_FULLEST), (Mapspace("ragged"), 2 * DRAWN_FULLEST)):
        monkeypatch.setattr(encoded, "NETWORK", 100)
        every = list(spreads(Facts(workload, machine, mapspace), 1, "mac"))
        monkeypatch.setattr(encoded, "NETWORK", 1)
        facts = Facts(workload, machine, mapspace)
        counts = [len(spreads(facts, 1, "mac")) for _ in range(40)]
        drawn = spreads(facts, 1, "mac")
        assert 0 < counts[0] <= encoded.AT_ONCE + encoded.UNEVEN < counts[1] < counts[-1] == len(drawn) <= most
        assert set(drawn) == set(every) and len(drawn) == len(every)


def test_more_choices_than_a_network_lists_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four are listed at once; where three may be, each question brings one that is drawn."""
    monkeypatch.setattr(encoded, "NETWORK", 1)
    monkeypatch.setattr(encoded, "AT_ONCE", 1)
    workload = build_workload("two", ("T[m,n] = A[m,n]", "Z[m,n] = T[m,n]"), {"m": 8, "n": 8}, bits=8)
    levels = (Memory("DRAM", None, 1.0, 1.0), Fanout("P", (Axis("X", 8, use="full"),)), ComputeUnit("MAC"))
    facts = Facts(workload, Machine("m", levels), Mapspace())
    assert len(spreads(facts, 0, "MAC")) == 4  # m and n take 8, 4, 2 or 1
    monkeypatch.setattr(encoded, "FEW_OF_NETWORK", 3)
    assert len(spreads(facts, 1, "MAC")) == 1 and len(spreads(facts, 1, "MAC")) == 2


def test_of_choices_that_leave_nothing_to_other_axes_the_least_counts() -> None:
    """Of nineteen values four instances have five at most, three seven; both are uneven."""
    assert least_iterations((4,), (0,), ((19, ((1, 2, 3, 4),)),), (None,)) == 5
