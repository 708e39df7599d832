"""Pipelines in stages of pipelines, branches in parallel: where the closed form claims to be exact, it is."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from cases import cascade
from concurrent_trees import kinds
from einloom.cost.evaluate import latencies
from einloom.cost.event import event_time
from einloom.cost.time import schedule
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Mapping
from einloom.oracle import simulate
from einloom.workload.einsum import Workload

CASES = 80


class Grower:
    """Grows chains of maps, each Einsum on a unit of its own: E[i] turns T[i] into T[i+1], or starts from an input."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.tokens, self.values = rng.randint(1, 6), rng.randint(1, 4)
        self.lines: list[str] = []
        self.sizes: dict[str, int] = {}
        self.speeds: list[float] = []
        self.inputs: list[str] = []
        self.features: set[str] = set()

    def einsum(self, source: str | None) -> tuple[int, str]:
        """A new Einsum that reads `source` (None: an input of its own); its number and what it writes."""
        i = len(self.lines)
        if source is None:
            self.inputs.append(source := f"X{i}")
        self.lines.append(f"E{i}: T{i}[a{i},b{i}] = exp({source}[a{i},b{i}])")
        self.sizes |= {f"a{i}": self.tokens, f"b{i}": self.values}
        self.speeds.append(1 / self.rng.choice((1, 2, 4, 8)))
        return i, f"T{i}"

    def leaf(self, source: str | None) -> tuple[list[str], list[int], str]:
        """A stage of one Einsum: its lines, the numbers of its Einsums, what it hands on."""
        i, made = self.einsum(source)
        return [f"for b{i} in {self.values}", f"compute E{i} @ U{i}"], [i], made

    def pipeline(self, source: str | None, stages: int, depth: int) -> tuple[list[str], list[int], str]:
        """A split of stages, what they exchange stored right above it."""
        bodies, members, exchanged = [], [], []
        for stage in range(stages):
            body, numbers, made = self.stage(source, depth - 1)
            bodies.append(body)
            members += numbers
            exchanged += [made] if stage < stages - 1 else []
            source = made
        assert source is not None
        return [f"store G: {' '.join(exchanged)}", *split("pipelined", bodies)], members, source

    def stage(self, source: str | None, depth: int) -> tuple[list[str], list[int], str]:
        kind = self.rng.choice(("leaf", "flat", "drained")) if depth else "leaf"
        if kind == "leaf":
            return self.leaf(source)
        self.features.add(kind)
        if kind == "flat":
            return self.pipeline(source, 2, 0 if self.rng.random() < 0.5 else depth)
        start = len(self.lines)
        inner = []
        exchanged = []
        for _ in range(self.rng.randint(2, 3)):
            i, made = self.einsum(source)
            exchanged.append(made)
            inner.append([f"compute E{i} @ U{i}"])
            source = made
        members = list(range(start, len(self.lines)))
        binds = ", ".join(f"E{i}.b{i}" for i in members)
        head = [f"for {binds} in {self.values}", f"store G: {' '.join(exchanged[:-1])}"]
        assert source is not None
        return [*head, *split("pipelined", inner)], members, source

    def whole(self) -> tuple[Workload, Machine, str]:
        """One pipeline, or several in parallel."""
        tops = []
        outputs = []
        for _ in range(1 if self.rng.random() < 0.7 else 2):
            body, members, made = self.pipeline(None, self.rng.randint(2, 3), 2)
            outputs.append(made)
            binds = ", ".join(f"E{i}.a{i}" for i in members)
            tops.append([f"for {binds} in {self.tokens}", *body])
        if len(tops) > 1:
            self.features.add("parallel")
        body = tops[0] if len(tops) == 1 else split("parallel", tops)
        workload = cascade("\n".join(self.lines), self.sizes, outputs=tuple(outputs))
        units = tuple(ComputeUnit(f"U{i}", speed) for i, speed in enumerate(self.speeds))
        text = "\n".join([f"store G: {' '.join((*self.inputs, *outputs))}", *body]) + "\n"
        return workload, Machine("stages", (Memory("G"), *units)), text


def split(kind: str, bodies: list[list[str]]) -> list[str]:
    lines = [f"split {kind} @ unit:"]
    for body in bodies:
        lines += [("  - " if i == 0 else "    ") + line for i, line in enumerate(body)]
    return lines


def grown(seed: int) -> tuple[Workload, Machine, Mapping, set[str]]:
    grower = Grower(Random(f"nested {seed}"))
    workload, machine, text = grower.whole()
    return workload, machine, parse_mapping(text, workload, machine), grower.features


@pytest.mark.parametrize("first", [0, pytest.param(CASES, marks=pytest.mark.slow)])
def test_nested_pipelines_take_what_the_closed_form_says(first: int) -> None:
    found = Counter[str]()
    for seed in range(first, first + CASES):
        workload, machine, mapping, features = grown(seed)
        seen = simulate(workload, machine, mapping, timed=True)
        views = latencies(workload, machine, mapping)
        assert seen.correct and not seen.reasons
        assert views.floor <= views.tile == views.einsum
        assert seen.cycles == pytest.approx(views.tile), (seed, mapping)
        assert event_time(workload, machine, mapping).seconds == pytest.approx(views.tile), seed
        found.update({*features, *(place for place, _ in kinds(mapping.nest)), "all"})
    assert found["all"] == CASES and min(found["flat"], found["drained"], found["parallel"]) >= 15, found


@pytest.mark.parametrize("mistake", ["nested stages are one", "nothing drains"])
def test_a_mistake_about_nesting_is_caught(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if mistake == "nested stages are one":
        monkeypatch.setattr(schedule.SplitNest, "stages", property(lambda part: part.branches))
    else:
        right = schedule.full_tokens
        monkeypatch.setattr(
            schedule, "full_tokens", lambda chains: right([(extent, token, 1) for extent, token, _ in chains])
        )
    wrong = 0
    for seed in range(40):
        workload, machine, mapping, _ = grown(seed)
        cycles = simulate(workload, machine, mapping, timed=True).cycles
        wrong += latencies(workload, machine, mapping).tile != pytest.approx(cycles)
    assert wrong >= 3
