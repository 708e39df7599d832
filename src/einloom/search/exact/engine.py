"""The exact search: signatures -> blocks -> joins -> tree.

Each stage is a function of the one before; `ExactOptions` switches pruning rules off one at a time. The method and the
argument for every rule: docs/exact.md, docs/model/pruning.md (after FFM, section 6).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from ...cost.evaluate import evaluate
from ...errors import Infeasible
from ...mapping.normal import normal_form
from ...mapping.tree import Mapping
from ...problem import Budget, Certificate, Guarantee, Objective, Problem
from ...result import Result
from ..protocol import Recorder, Watcher
from .fused import Block, Explorer, Setting
from .join import Joiner, Partial
from .pricing import columns
from .rebuild import Piece, piece, tree
from .signature import Signature, signature
from .skyline import FloatArray
from .tables import Rules


@dataclass(frozen=True)
class ExactOptions:
    """Which pruning rules the search may use. incumbent: a first feasible mapping and bounds limit the tables and joins."""

    rules: Rules = field(default_factory=Rules)
    incumbent: bool = True


@dataclass(frozen=True)
class Solution:
    """The best complete cascade of one pass: objective value, columns, and the tree."""

    value: float
    cost: FloatArray
    mapping: Mapping


class Exact:
    """The optimal fused mapping in the stated mapspace, with its certificate."""

    name = "exact"
    guarantee = Guarantee.OPTIMAL

    def __init__(self, options: ExactOptions | None = None) -> None:
        self.options = options or ExactOptions()

    def search(self, problem: Problem, budget: Budget = Budget(), watch: Watcher | None = None) -> Result:
        """The optimum of `problem`. Raises Infeasible with the limit that stands in the way."""
        started = time.monotonic()
        watcher = watch or Watcher()
        counts: dict[str, int] = {}
        solution = self._solve(problem, watcher, counts)
        cost = evaluate(problem.workload, problem.machine, solution.mapping, problem.latency_rule)
        value = problem.objective.value(cost)
        repeats = problem.workload.repeat * (problem.workload.repeat if problem.objective.name == "edp" else 1)
        if not np.isclose(value, solution.value * repeats, rtol=1e-9, atol=0.0):
            raise AssertionError(f"the tables say {solution.value * repeats!r}, the tree costs {value!r}")
        watcher.incumbent(value, solution.mapping)
        watcher.bound(value)
        for rule, number in counts.items():
            watcher.count(rule, number)
        certificate = Certificate(
            Guarantee.OPTIMAL, value, value, problem.mapspace.describe(), MappingProxyType(dict(counts))
        )
        trace = watcher.trace if isinstance(watcher, Recorder) else ()
        return Result.of(
            problem,
            solution.mapping,
            cost,
            certificate=certificate,
            method=self.name,
            seconds=time.monotonic() - started,
            trace=trace,
        )

    def _solve(self, problem: Problem, watcher: Watcher, counts: dict[str, int]) -> Solution:
        limit = float("inf")
        if self.options.incumbent and problem.objective.name == "edp" and len(problem.workload.einsums) > 1:
            first = problem.mapspace.max_fused_loops
            coarse = replace(problem.mapspace, max_fused_loops=1 if first is None else min(first, 1))
            easier = replace(problem, mapspace=coarse, objective=Objective("energy"))
            try:
                start = _Pass(easier, self.options, float("inf"), watcher, counts).run()
                priced = evaluate(problem.workload, problem.machine, start.mapping, problem.latency_rule)
                limit = problem.objective.value(priced) / problem.workload.repeat**2
                watcher.incumbent(problem.objective.value(priced), start.mapping)
            except Infeasible:
                pass
        return _Pass(problem, self.options, limit, watcher, counts).run()


class _Pass:
    """One complete solution of a problem, given an upper bound (inf if none) on the objective of one repeat."""

    def __init__(
        self, problem: Problem, options: ExactOptions, limit: float, watcher: Watcher, counts: dict[str, int]
    ) -> None:
        self.problem = problem
        self.options = options
        self.limit = limit * (1 + 1e-9)
        self.watcher = watcher
        self.counts = counts
        workload, machine = problem.workload, problem.machine
        self.signatures = [signature(workload, machine, e.name) for e in workload.einsums]
        self.setting = self._setting()

    def _setting(self) -> Setting:
        workload, machine = self.problem.workload, self.problem.machine
        capacities: list[int | None] = []
        for i, memory in enumerate(machine.memories):
            everything = sum(
                t.size * max(s.bits[i] for sig, e in zip(self.signatures, workload.einsums, strict=True)
                             for s, name in zip(sig.tensors, e.tensors, strict=True) if name == t.name)
                for t in workload.tensors
            ) * memory.capacity_share()
            capacities.append(None if memory.size is None or everything <= memory.size else memory.size)
        tracked = [
            i for i, c in enumerate(capacities)
            if c is not None and (i == 0 or any(self._may_back(sig, i) for sig in self.signatures))
        ]
        return Setting.of(
            machine, self.problem.objective, tuple(tracked), tuple(capacities),
            self.problem.mapspace.max_fused_loops, self.options.rules,
        )

    def _may_back(self, sig: Signature, memory: int) -> bool:
        """True if some choice of stores backs an intermediate in `memory`."""
        fusable = [t for t, tensor in enumerate(sig.tensors) if tensor.intermediate]
        return any(
            memory < len(held) and any(t in held[memory] and not any(t in h for h in held[:memory]) for t in fusable)
            for option in sig.units
            for held in option.held
        )

    def run(self) -> Solution:
        """The optimum, or Infeasible."""
        limits, rest = self._bounds()
        blocks = self._blocks(limits)
        joiner = Joiner(
            self.problem.workload,
            self.setting,
            tuple(axis.name for fanout in self.problem.machine.fanouts for axis in fanout.axes),
            lambda position, cost: self._hopeless(position, cost, rest),
            self.counts,
        )
        total = len(blocks)
        partials = joiner.start()
        for position in range(total):
            self.watcher.stage("joining Einsums", position, total)
            partials = joiner.step(position, partials, blocks[position])
            if not partials:
                name = self.problem.workload.einsums[position].name
                raise Infeasible(f"no combination of mappings fits from the first Einsum up to {name}: " + self._blame())
        return self._best(partials)

    def _bounds(self) -> tuple[list[FloatArray], FloatArray]:
        """Per Einsum the largest useful value per column, and per position the least cost of all later Einsums."""
        n = len(self.signatures)
        width = len(self.setting.columns)
        unlimited = [np.full(width, np.inf) for _ in range(n)]
        self.least = np.zeros((n, 2))
        if self.limit == float("inf") or self.problem.objective.name != "edp":
            return unlimited, np.zeros((n, 2))
        energy = self._least("energy")
        latency = self._least("latency")
        self.least = np.stack([energy, latency], axis=1)
        rest = np.concatenate([np.cumsum(self.least[::-1], axis=0)[::-1][1:], np.zeros((1, 2))])
        limits = []
        for i in range(n):
            most_energy = self.limit / latency.sum() - (energy.sum() - energy[i]) if latency.sum() > 0 else np.inf
            most_time = self.limit / energy.sum() - (latency.sum() - latency[i]) if energy.sum() > 0 else np.inf
            bound = [most_energy if c.kind == "energy" else most_time for c in self.setting.columns]
            limits.append(np.array(bound) * (1 + 1e-9))
        return limits, rest

    def _least(self, name: str) -> FloatArray:
        """The least energy or latency of every Einsum on its own: shared tensors anywhere, nothing else in their way."""
        objective = Objective(name)
        setting = Setting.of(
            self.problem.machine, objective, (), self.setting.capacities, 0, self.options.rules
        )
        found: dict[Signature, float] = {}
        for sig in self.signatures:
            if sig not in found:
                found[sig] = _alone(setting, sig)
        return np.array([found[sig] for sig in self.signatures])

    def _blocks(self, limits: list[FloatArray]) -> list[list[Block]]:
        loosest: dict[Signature, FloatArray] = {}
        for sig, limit in zip(self.signatures, limits, strict=True):
            loosest[sig] = np.maximum(loosest.get(sig, limit), limit)
        cache: dict[Signature, list[Block]] = {}
        found = []
        for i, sig in enumerate(self.signatures):
            self.watcher.stage("exploring Einsums", i, len(self.signatures))
            if sig not in cache:
                cache[sig] = Explorer(self.setting, sig, loosest[sig], self.counts).blocks()
            else:
                self.counts["isomorphic"] = self.counts.get("isomorphic", 0) + 1
            if not cache[sig]:
                name = self.problem.workload.einsums[i].name
                raise Infeasible(f"Einsum {name} has no mapping on its own: " + self._blame())
            found.append(cache[sig])
        return found

    def _blame(self) -> str:
        parts = []
        for i, memory in enumerate(self.problem.machine.memories):
            if self.setting.capacities[i] is not None:
                parts.append(f"{memory.name} holds {memory.size} bits")
        return ("; ".join(parts) + " and what must stay there is larger") if parts else "the constraints contradict"

    def _hopeless(self, position: int, cost: FloatArray, rest: FloatArray) -> np.ndarray:
        if self.limit == float("inf") or not self.options.incumbent:
            return np.zeros(len(cost), bool)
        if cost.shape[1] == 2:
            reachable = (cost[:, 0] + rest[position, 0]) * (cost[:, 1] + rest[position, 1])
        else:
            reachable = cost[:, 0] + rest[position, 0]
        return np.asarray(reachable > self.limit)

    def _best(self, partials: list[Partial]) -> Solution:
        best: tuple[float, Partial, int] | None = None
        for partial in partials:
            values = partial.cost.prod(axis=1)
            i = int(np.argmin(values))
            if best is None or values[i] < best[0]:
                best = (float(values[i]), partial, i)
        assert best is not None
        value, partial, row = best
        cost = partial.cost[row]
        pieces: list[Piece] = []
        shared: list[int] = []
        workload, machine = self.problem.workload, self.problem.machine
        position = len(workload.einsums) - 1
        current: Partial | None = partial
        while position >= 0:
            assert current is not None
            previous, block = current.parents[current.parent[row]]
            pieces.append(piece(workload, machine, position, block, int(current.right[row])))
            shared.append(len(current.frontier.axes))
            row, current, position = int(current.left[row]), previous, position - 1
        mapping = tree(workload, machine, pieces[::-1], shared[::-1])
        return Solution(value, cost, normal_form(mapping, workload))


def _alone(setting: Setting, sig: Signature) -> float:
    """The least value of one Einsum in any context: every admissible choice of stores, no fused loops, no partners."""
    from .lower import least_alone

    return least_alone(setting, sig)


__all__ = ["Exact", "ExactOptions", "columns"]
