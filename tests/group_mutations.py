"""Planted mistakes in the search for groups: every entry of MUTATIONS replaces one rule by a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from einloom.search.exact.concurrent import candidates as groups
from einloom.search.exact.concurrent import joins as pipelines
from einloom.search.exact.concurrent import passes as concurrent
from einloom.search.exact.concurrent import rows as members
from einloom.search.exact.concurrent.candidates import Candidates
from einloom.search.exact.concurrent.joins import GroupJoiner
from einloom.search.exact.einsums.classes import EinsumClass, UnitOption
from einloom.search.exact.einsums.holds import Placement, backing
from einloom.search.exact.fusion import explore as fused
from einloom.search.exact.fusion.explore import Explorer, PmappingGroup
from einloom.search.exact.joining.compatibility import Compatibility
from einloom.search.exact.joining.join import Joiner, Partial
from einloom.search.exact.numerics.pareto import FloatArray, IntArray

Mutation = Callable[[pytest.MonkeyPatch], None]
MUTATIONS: dict[str, Mutation] = {}


def mutation(function: Mutation) -> Mutation:
    MUTATIONS[function.__name__] = function
    return function


def compare(patch: pytest.MonkeyPatch, left_out: str) -> None:
    """`GroupJoiner._compared` written again, without one kind of columns."""

    def compared(self: GroupJoiner, partial: Partial) -> FloatArray:
        if partial.compatibility.group is None:
            return partial.cost
        sums, busy, start, stages = self._parts(partial.opened)
        columns = {"sums": sums, "busy": busy, "start": start[:, None]}
        if self.candidates.chained(partial.compatibility.group.members[0]):
            columns |= {"stage sum": stages.sum(axis=1)[:, None], "longest stage": stages.max(axis=1)[:, None]}
        else:
            columns |= {f"stage {i}": stages[:, i : i + 1] for i in range(stages.shape[1])}
        kept = [values for name, values in columns.items() if not name.startswith(left_out)]
        return np.concatenate([*kept, np.zeros((len(sums), 1))], axis=1)

    patch.setattr(GroupJoiner, "_compared", compared)


@mutation
def dominance_without_the_sum_of_stages(patch: pytest.MonkeyPatch) -> None:
    compare(patch, "stage sum")


@mutation
def dominance_without_the_stages_of_a_fork(patch: pytest.MonkeyPatch) -> None:
    compare(patch, "stage ")


@mutation
def dominance_without_busy_components(patch: pytest.MonkeyPatch) -> None:
    compare(patch, "busy")


@mutation
def dominance_without_where_tokens_begin_to_flow(patch: pytest.MonkeyPatch) -> None:
    compare(patch, "start")


@mutation
def dominance_without_sums(patch: pytest.MonkeyPatch) -> None:
    compare(patch, "sums")


@mutation
def dominance_of_open_groups_without_room(patch: pytest.MonkeyPatch) -> None:
    right = Joiner._reduce

    def reduce(self: Joiner, parts: list[Partial]) -> Partial:
        if parts[0].compatibility.group is None:
            return right(self, parts)
        careless = replace(self, setting=replace(self.setting, rules=replace(self.setting.rules, dominance=False)))
        whole = right(careless, parts)
        rows = np.arange(len(whole))
        blind = replace(whole, alive=whole.alive * 0, peak=whole.peak * 0, left=rows)
        return whole.take(right(self, [blind]).left)

    patch.setattr(GroupJoiner, "_reduce", reduce)


@mutation
def rows_of_members_compete_by_energy_and_longest_component(patch: pytest.MonkeyPatch) -> None:
    """Rows keep one component each: the busiest."""
    right = fused.pareto

    def pareto(trips: IntArray, cost: FloatArray, reserved: IntArray) -> IntArray:
        kept = np.stack([cost[:, 0], cost[:, 1:].max(axis=1, initial=0.0)], axis=1)
        return right(trips, kept, reserved)

    def reduce(self: members.GroupExplorer, parts: list[PmappingGroup]) -> PmappingGroup:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(fused, "pareto", pareto)
            return Explorer._reduce(self, parts)

    patch.setattr(members.GroupExplorer, "_reduce", reduce)


@mutation
def stages_on_one_component_do_not_add(patch: pytest.MonkeyPatch) -> None:
    right = GroupJoiner._parts

    def parts(self: GroupJoiner, opened: FloatArray) -> tuple[FloatArray, ...]:
        sums, busy, start, stages = right(self, opened)
        return sums, busy * 0.0, start, stages

    patch.setattr(GroupJoiner, "_parts", parts)


@mutation
def pipelines_need_no_filling(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pipelines, "drain_time", lambda times, edges, tokens, busiest: busiest * 0.0)


@mutation
def every_loop_feeds_the_pipeline(patch: pytest.MonkeyPatch) -> None:
    def drains(*_: object) -> tuple[int, frozenset[object]]:
        return 0, frozenset()

    patch.setattr(members, "drains", drains)
    patch.setattr(concurrent, "drains", drains)


@mutation
def groups_take_at_least_what_their_members_take_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Candidates, "seconds", lambda self, alone: alone.copy())


@mutation
def exchanged_tiles_have_one_slot(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupJoiner, "_slots", lambda self, memory, distance: self.setting.slots[memory])


@mutation
def members_take_room_one_after_the_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupJoiner, "_at_once", Joiner._at_once)


@mutation
def stores_stand_below_loops_that_they_drain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(members.GroupExplorer, "_lowering", Explorer._lowering)


@mutation
def members_may_share_a_unit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(GroupJoiner, "_apart", lambda self, group, block: True)


@mutation
def members_stand_on_the_innermost_memory(patch: pytest.MonkeyPatch) -> None:
    def may_be_apart(signature: EinsumClass, option: UnitOption, held: Placement) -> bool:
        links = [t for t, tensor in enumerate(signature.tensors) if tensor.intermediate]
        return all(backing(held, t) in (0, len(option.above) - 1) for t in links)

    patch.setattr(groups, "may_be_apart", may_be_apart)
    patch.setattr(members, "may_be_apart", may_be_apart)


@mutation
def members_need_a_loop_of_all_their_tensors(patch: pytest.MonkeyPatch) -> None:
    def may_be_apart(signature: EinsumClass, option: UnitOption, held: Placement) -> bool:
        return any(all(v in tensor.variables for tensor in signature.tensors) for v in range(len(signature.extents)))

    patch.setattr(groups, "may_be_apart", may_be_apart)
    patch.setattr(members, "may_be_apart", may_be_apart)


@mutation
def partial_cascades_are_matched_whatever_group_is_open(patch: pytest.MonkeyPatch) -> None:
    right = GroupJoiner.follows

    def follows(self: GroupJoiner, position: int, compatibility: Compatibility, block: PmappingGroup) -> bool:
        return right(self, position, replace(compatibility, group=None), block)

    patch.setattr(GroupJoiner, "follows", follows)
