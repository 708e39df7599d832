"""`principles` as a method: the closed forms' mapping of one matrix multiplication, or of a pair, onto one buffer.

The question is the traffic of the outermost memory of a machine of two memories. In the space ``ffm`` tiles divide, in
``ragged`` they are any integers. One multiplication has a proof: no tree of the space moves less (docs/principles.md).
Of a pair the best of the fused family and of the unfused trees is returned; its bound is that each operand moves once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from ...errors import Infeasible, SpecError
from ...mapping.tree import Mapping
from ...mapspace.space import Space
from ...problem import Budget, Certificate, Guarantee, Problem
from ...result import Result
from ..checked import certified, priced, sound
from ..evaluator import Evaluator
from ..method import Capabilities, Watcher
from ..watcher import trace_of
from .matmul import Cutting, best_schedule
from .pairs import best_fused
from .roles import Roles, pair_of, roles
from .trees import fused_tree, unfused_tree


class Principles:
    """The mapping that the closed forms give; OPTIMAL for one multiplication, BOUNDED for a pair."""

    name = "principles"
    guarantee = Guarantee.OPTIMAL
    able = Capabilities(spaces=("ffm", "ragged"))

    def refuse(self, problem: Problem) -> None:
        """Raise SpecError for what the closed forms do not speak of, as `search`."""
        with suppress(Infeasible):  # what no unit can do is said by the search
            checked(problem)

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best mapping of the closed forms, which visit no points.

        Raises Infeasible if the buffer does not hold tiles of one; SpecError for what they do not speak of: other
        objectives than the traffic of the outermost memory, other machines than two memories and a unit, other
        workloads than one matrix multiplication or two in a row, and limits.
        """
        start = time.monotonic()
        parts = checked(problem)
        with sound(self.name, problem):
            found = [Result.of(problem, tree) for tree in _candidates(problem, parts) if not space.outside(tree)]
            if not found:
                raise Infeasible(f"{problem.machine.memories[1].name} is smaller than one value of each operand")
            best = min(found, key=lambda one: one.value)
            watch.count("evaluated", len(found))
            tree, cost = best.mapping, priced(problem, best.mapping, best.value)
            bound = best.value if len(parts) == 1 else float(compulsory(problem))
            guarantee = Guarantee.OPTIMAL if bound == best.value else Guarantee.BOUNDED
            described, counts = problem.mapspace.describe(), {"evaluated": len(found)}
            certificate = certified(Certificate(guarantee, best.value, bound, described, counts), problem, tree)
            watch.incumbent(best.value, tree)
            watch.bound(bound)
        trace = trace_of(watch)
        seconds = time.monotonic() - start
        return Result.of(problem, tree, cost, certificate=certificate, method=self.name, seconds=seconds, trace=trace)


def buffer_values(problem: Problem) -> int:
    """How many values the buffer holds."""
    memory = problem.machine.memories[1]
    widths = {memory.bits(problem.workload, e.name, t) for e in problem.workload.einsums for t in e.tensors}
    if len(widths) > 1:
        raise _refused(f"{memory.name} keeps values of different widths")
    share = widths.pop() * memory.capacity_share()
    most = sum(t.size for t in problem.workload.tensors)
    return most if memory.size is None else memory.size // share


def checked(problem: Problem) -> tuple[Roles, ...]:
    """The parts of the workload's Einsums. Raises SpecError for every problem that the closed forms do not answer."""
    machine = problem.machine
    if problem.mapspace.stores != "own":
        raise _refused("a store may serve several Einsums (stores: shared)")
    if problem.mapspace.limits or problem.mapspace.places:
        raise _refused("the mapspace has limits or groups")
    if len(machine.memories) != 2 or machine.fanouts or machine.tolls:
        raise _refused(f"{machine.name} is more than two memories and a compute unit")
    outer = machine.memories[0].name
    if problem.objective.name != "traffic" or problem.objective.memory != outer:
        raise _refused(f"they minimise traffic:{outer}, not {problem.objective}")
    parts = roles(problem.workload)
    for part in parts:
        for memory in machine.memories[1:]:
            if machine.must_hold(memory, problem.workload, part.einsum, ()) < {*part.tensors}:
                raise _refused(f"{memory.name} does not have to hold every operand of {part.einsum}")
        if (why := machine.unexecuted(problem.workload.einsum(part.einsum))) is not None:
            raise Infeasible(why)
    buffer_values(problem)
    return parts


def _candidates(problem: Problem, parts: tuple[Roles, ...]) -> Iterator[Mapping]:
    """The unfused tree, and of a pair the fused one."""
    workload, machine = problem.workload, problem.machine
    cutting: Cutting = "integer" if problem.mapspace.name == "ragged" else "divisors"
    room, rule = buffer_values(problem), machine.partial_sums
    memories = (machine.memories[0].name, machine.memories[1].name)
    units = {p.einsum: machine.units_for(workload.einsum(p.einsum))[0].name for p in parts}
    each = [best_schedule(p.matmul(workload), room, rule, cutting, "apart") for p in parts]
    chosen = [schedule for schedule in each if schedule is not None]
    if len(chosen) == len(parts):
        yield unfused_tree(workload, parts, chosen, memories, units)
    if len(parts) == 2:
        fused = best_fused(pair_of(workload, parts), room, rule, cutting)
        if fused is not None:
            yield fused_tree(workload, parts, fused, memories, units)


def compulsory(problem: Problem) -> int:
    """Bits that every mapping moves at the outermost memory: inputs and outputs of the cascade once a repeat."""
    workload, outer = problem.workload, problem.machine.memories[0]
    ends = {*workload.inputs, *workload.outputs}
    users = {t: e.name for e in workload.einsums for t in e.tensors}
    once = sum(workload.tensor(t).size * outer.bits(workload, users[t], t) for t in ends)
    return once * workload.repeat


def _refused(why: str) -> SpecError:
    return SpecError(f"method principles does not answer this problem: {why}", suggestion="exact")
