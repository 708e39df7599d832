"""The exact search: signatures -> blocks -> joins -> tree.

Each stage is a function of the one before; `ExactOptions` switches pruning rules off one at a time. The method and the
argument for every rule: docs/exact.md, docs/model/pruning.md (after FFM, section 6).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from ...cost.evaluate import evaluate
from ...errors import BudgetExhausted, Infeasible, SpecError
from ...mapping.normal import normal_form
from ...mapping.tree import Mapping
from ...problem import Budget, Certificate, Guarantee, Problem
from ...result import Result
from ..protocol import Recorder, Watcher
from .aim import TIE, Aim, settled
from .consistency import Consistency, common, keys_of
from .fused import Allowed, Block, Explorer, Setting
from .join import Joiner, Partial
from .lower import column_limits, least_alone
from .rebuild import Piece, piece, tree
from .signature import Signature, signature
from .skyline import FloatArray
from .spatial import Classes
from .tables import Rules

STEPS = (0.002, 0.02, 0.06, 0.15, 0.3, 0.6, 1.5, 4.0, 16.0, np.inf)  # limits tried, as shares above the bound
DIVES = (0.02, 0.05, 0.12, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class ExactOptions:
    """Which pruning rules the search may use.

    consistency: rows that no partner can save go before joining. incumbent: bounds and a limit on the objective cut the
    tables and joins; off, nothing does. limit: look only for
    mappings of at most this value, instead of raising limits from the bound ("is anything better than this?").
    """

    rules: Rules = field(default_factory=Rules)
    incumbent: bool = True
    consistency: bool = True
    limit: float | None = None


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

    def search(self, problem: Problem, budget: Budget | None = None, watch: Watcher | None = None) -> Result:
        """The optimum of `problem`; if the budget ends first, the best so far with the bound proven so far.

        Raises Infeasible with the limit that stands in the way, BudgetExhausted if the budget ended before any legal
        mapping was found, SpecError for a latency rule other than ``einsum``: the tables add Einsums up.
        """
        if problem.latency_rule != "einsum":
            raise SpecError(
                f"exact proves optima under latency rule 'einsum', not {problem.latency_rule!r}", suggestion="einsum"
            )
        run = _Run(problem, self.options, budget or Budget(), watch or Watcher())
        try:
            solution = run.solve()
            guarantee, bound = Guarantee.OPTIMAL, None
        except Stopped:
            if run.best is None:
                raise BudgetExhausted(run.bound) from None
            solution, guarantee, bound = run.best, Guarantee.BOUNDED, run.bound
        return run.result(self.name, solution, guarantee, bound)


class Stopped(Exception):
    """The budget ended, or the watcher asked to stop."""


class _Run:
    """One search under a budget: the attempts, the best solution and the bound so far."""

    def __init__(self, problem: Problem, options: ExactOptions, budget: Budget, watcher: Watcher) -> None:
        self.problem = problem
        self.options = options
        self.budget = budget
        self.watcher = watcher
        self.counts: dict[str, int] = {}
        self.best: Solution | None = None
        self.bound = 0.0
        self.started = time.monotonic()

    def checkpoint(self) -> None:
        """Raise Stopped if the budget is spent."""
        seconds, steps = self.budget.seconds, self.budget.steps
        spent = seconds is not None and time.monotonic() - self.started > seconds
        spent = spent or (steps is not None and self.counts.get("evaluated", 0) > steps)
        if spent or self.watcher.stopped():
            raise Stopped

    def solve(self) -> Solution:
        """Raise a limit from the sum of lower bounds until some cascade stays below it: then the best is optimal."""
        attempt = _Pass(self)
        if not self.options.incumbent:
            return attempt.run(float("inf"))
        bound = attempt.lower_bound()
        self._prove(bound * attempt.repeats)
        limits = [bound * (1 + step) if bound > 0 and np.isfinite(bound) else float("inf") for step in STEPS]
        if self.options.limit is not None:
            return attempt.run(self.options.limit / attempt.repeats * (1 + TIE))
        hurried = self.budget.seconds is not None or self.budget.steps is not None
        if bound > 0 and (hurried or self.problem.objective.name not in ("energy", "traffic")):
            dived = self._dive(attempt, bound)
            if dived is not None and dived.value <= bound * (1 + TIE):
                return dived
            if dived is not None:
                limits = [dived.value]
        for limit in limits:
            self.watcher.stage(f"looking below {limit * attempt.repeats:.6g}")
            try:
                solution = attempt.run(limit)
            except Infeasible:
                if not np.isfinite(limit):
                    raise
                self._prove(limit * attempt.repeats)
                continue
            self._found(solution, attempt.repeats)
            if solution.value <= limit * (1 + TIE):
                return solution
        raise AssertionError("the last limit admits a solution or none exists")

    def _prove(self, bound: float) -> None:
        self.bound = max(self.bound, bound)
        self.watcher.bound(bound)

    def _found(self, solution: Solution, repeats: int) -> None:
        if self.best is None or solution.value < self.best.value:
            self.best = solution
            self.watcher.incumbent(solution.value * repeats, solution.mapping)

    def _dive(self, attempt: _Pass, bound: float) -> Solution | None:
        """A quick feasible solution near the bound, or None."""
        most = attempt.setting.max_fused_loops
        quick = _Pass(self, replace(self.options, rules=replace(self.options.rules, dive=True)))
        quick.setting = replace(quick.setting, max_fused_loops=2 if most is None else min(most, 2))
        quick.least, quick.classes = attempt.least, attempt.classes
        for step in DIVES:
            try:
                solution = quick.run(bound * (1 + step))
                break
            except Infeasible:
                continue
        else:
            return None
        self._found(solution, attempt.repeats)
        return solution

    def result(self, method: str, solution: Solution, guarantee: Guarantee, bound: float | None) -> Result:
        """The solution priced again by `evaluate`, with its certificate."""
        problem, watcher = self.problem, self.watcher
        cost = evaluate(problem.workload, problem.machine, solution.mapping, problem.latency_rule)
        value = problem.objective.value(cost)
        repeats = problem.workload.repeat**problem.objective.degree
        if not np.isclose(value, solution.value * repeats, rtol=1e-9, atol=0.0):
            raise AssertionError(f"the tables say {solution.value * repeats!r}, the tree costs {value!r}")
        watcher.incumbent(value, solution.mapping)
        proven = value if bound is None else min(bound, value)
        watcher.bound(proven)
        for rule, number in self.counts.items():
            watcher.count(rule, number)
        counts = MappingProxyType(dict(self.counts))
        certificate = Certificate(guarantee, value, proven, problem.mapspace.describe(), counts)
        trace = watcher.trace if isinstance(watcher, Recorder) else ()
        seconds = time.monotonic() - self.started
        return Result.of(
            problem, solution.mapping, cost, certificate=certificate, method=method, seconds=seconds, trace=trace
        )


class _Pass:
    """Complete solutions of one problem under a limit on the objective (of one repeat)."""

    def __init__(self, run: _Run, options: ExactOptions | None = None) -> None:
        self.problem = problem = run.problem
        self.options = options or run.options
        self.watcher = run.watcher
        self.counts = run.counts
        self.checkpoint = run.checkpoint
        self.repeats = problem.workload.repeat**problem.objective.degree
        workload, machine = problem.workload, problem.machine
        limits = problem.mapspace.limits
        self.signatures = [signature(workload, machine, e.name, limits) for e in workload.einsums]
        self.classes = {sig: Classes(sig) for sig in self.signatures}
        self.setting = self._setting()
        self.objectives = settled(problem.objective)
        self.least = np.zeros((len(self.signatures), len(self.objectives)))
        self.aim = Aim(problem.objective.powers[: len(self.objectives)])

    def lower_bound(self) -> float:
        """The objective of the sums of what every Einsum costs at least."""
        for column, objective in enumerate(self.objectives):
            setting = Setting.of(self.problem.machine, objective, (), self.setting.capacities, 0, self.options.rules)
            found: dict[Signature, float] = {}
            for i, sig in enumerate(self.signatures):
                self.watcher.stage(f"bounding {objective}", i, len(self.signatures))
                if sig not in found:
                    found[sig] = least_alone(setting, self.classes[sig], self.checkpoint)
                self.least[i, column] = found[sig]
                if not np.isfinite(found[sig]):
                    name = self.problem.workload.einsums[i].name
                    raise Infeasible(f"Einsum {name} has no mapping on its own: " + self._blame())
        return float(self.aim.value(self.least.sum(axis=0, keepdims=True))[0])

    def _setting(self) -> Setting:
        workload, machine = self.problem.workload, self.problem.machine
        capacities: list[int | None] = []
        for i, memory in enumerate(machine.memories):
            everything = (
                sum(
                    t.size
                    * max(
                        s.bits[i]
                        for sig, e in zip(self.signatures, workload.einsums, strict=True)
                        for s, name in zip(sig.tensors, e.tensors, strict=True)
                        if name == t.name
                    )
                    for t in workload.tensors
                )
                * memory.capacity_share()
            )
            capacities.append(None if memory.size is None or everything <= memory.size else memory.size)
        tracked = [
            i
            for i, c in enumerate(capacities)
            if c is not None and (i == 0 or any(self._may_back(sig, i) for sig in self.signatures))
        ]
        return Setting.of(
            machine,
            self.problem.objective,
            tuple(tracked),
            tuple(capacities),
            self.problem.mapspace.max_fused_loops,
            self.options.rules,
        )

    def _may_back(self, sig: Signature, memory: int) -> bool:
        """True if some choice of stores backs an intermediate in `memory`."""
        fusable = [t for t, tensor in enumerate(sig.tensors) if tensor.intermediate]
        return any(
            memory < len(held) and any(t in held[memory] and not any(t in h for h in held[:memory]) for t in fusable)
            for option in sig.units
            for held in option.held
        )

    def run(self, limit: float) -> Solution:
        """The best cascade whose value is at most `limit` (others may come out too), or Infeasible."""
        return self.towards(replace(self.aim, limit=limit * (1 + TIE)))

    def towards(self, aim: Aim) -> Solution:
        """The best cascade that is not beyond `aim` (others may come out too), or Infeasible."""
        return self._best(self.complete(aim))

    def complete(self, aim: Aim) -> list[Partial]:
        """All undominated complete cascades that are not beyond `aim`, or Infeasible."""
        self.aim = aim
        self.rest = np.concatenate([np.cumsum(self.least[::-1], axis=0)[::-1][1:], self.least[:1] * 0])
        blocks = self._blocks(self._column_limits())
        if self.options.consistency and aim.finite:
            self.watcher.stage("comparing neighbours")
            consistency = Consistency(self.problem.workload, self.least, aim, self.counts)
            blocks = consistency.filter(blocks)
            if not all(blocks):
                raise Infeasible("no combination of mappings stays within the limit")
        joiner = Joiner(
            self.problem.workload,
            self.setting,
            tuple(axis.name for fanout in self.problem.machine.fanouts for axis in fanout.axes),
            self._hopeless,
            self.counts,
            self.checkpoint,
        )
        total = len(blocks)
        partials = joiner.start()
        for position in range(total):
            self.watcher.stage("joining Einsums", position, total)
            partials = joiner.step(position, partials, blocks[position])
            if not partials:
                name = self.problem.workload.einsums[position].name
                raise Infeasible(
                    f"no combination of mappings fits from the first Einsum up to {name}: " + self._blame()
                )
        return partials

    def _column_limits(self) -> list[FloatArray]:
        """Per Einsum the largest useful value of each column."""
        width = len(self.setting.columns)
        if not self.aim.finite:
            return [np.full(width, np.inf) for _ in self.signatures]
        total = self.least.sum(axis=0)
        most = self.aim.most(total)
        limits = []
        for least in self.least:
            mine = most - (total - least)
            if len(total) == 1:
                limits.append(column_limits(self.setting, mine[0]))
            else:
                limits.append(np.array([mine[0] if c.kind == "energy" else mine[1] for c in self.setting.columns]))
        return [limit + np.abs(limit) * TIE for limit in limits]

    def _blocks(self, limits: list[FloatArray]) -> list[list[Block]]:
        loosest: dict[Signature, FloatArray] = {}
        for sig, limit in zip(self.signatures, limits, strict=True):
            loosest[sig] = np.maximum(loosest.get(sig, limit), limit)
        cache: dict[Signature, list[Block]] = {}
        found: list[list[Block]] = [[] for _ in self.signatures]
        uses = Counter(self.signatures)
        order = sorted(range(len(self.signatures)), key=lambda i: -len(self.signatures[i].tensors))
        for done, i in enumerate(order):
            sig = self.signatures[i]
            self.watcher.stage("exploring Einsums", done, len(order))
            if sig not in cache:
                classes = self.classes[sig]
                explorer = Explorer(self.setting, classes, loosest[sig], self.counts, self.checkpoint)
                if self.options.consistency and uses[sig] == 1:
                    explorer.allowed = self._allowed(i, found)
                cache[sig] = explorer.blocks()
            else:
                self.counts["isomorphic"] = self.counts.get("isomorphic", 0) + 1
            if not cache[sig]:
                name = self.problem.workload.einsums[i].name
                raise Infeasible(f"Einsum {name} has no mapping on its own: " + self._blame())
            found[i] = cache[sig]
        return found

    def _allowed(self, position: int, found: list[list[Block]]) -> dict[int, Allowed]:
        """For each tensor that explored Einsums share with this one, the ways in which all of them store it."""
        workload = self.problem.workload
        allowed: dict[int, Allowed] = {}
        for t, tensor in enumerate(workload.einsums[position].tensors):
            for other, blocks in enumerate(found):
                if blocks and tensor in workload.einsums[other].tensors:
                    keys = keys_of(workload, other, tensor, blocks)
                    allowed[t] = common(allowed[t], keys) if t in allowed else keys
        return allowed

    def _blame(self) -> str:
        parts = []
        for i, memory in enumerate(self.problem.machine.memories):
            if self.setting.capacities[i] is not None:
                parts.append(f"{memory.name} holds {memory.size} bits")
        return ("; ".join(parts) + " and what must stay there is larger") if parts else "the constraints contradict"

    def _hopeless(self, position: int, cost: FloatArray) -> np.ndarray:
        """Partial costs that exceed the limit once every later Einsum adds what it costs at least."""
        if not self.aim.finite or not self.options.incumbent:
            return np.zeros(len(cost), bool)
        return self.aim.beyond(cost + self.rest[position])

    def _best(self, partials: list[Partial]) -> Solution:
        best: tuple[float, Partial, int] | None = None
        for partial in partials:
            values = self.aim.value(partial.cost)
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
