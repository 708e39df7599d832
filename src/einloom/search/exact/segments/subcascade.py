"""Some neighbouring Einsums of a cascade as an attempt of their own: what segments and neighbours have in common.

Comes in: an attempt for the whole cascade, and which of its Einsums. Goes out: an attempt at these, which takes what
the whole one knows of them. What happens outside is left open: nothing takes room but what its Einsums access, and
loops end where no tensor of theirs needs them (docs/model/pruning.md, segments).
"""

from __future__ import annotations

from dataclasses import replace

from ....dataclass import dataclass
from ....workload.einsum import Workload
from ..attempt import Attempt
from ..bounds.cutoff import Cutoff
from ..einsums.orders import JoinStep
from ..einsums.users import is_shared
from ..fusion.explore import PmappingGroup
from ..fusion.serving import Serving
from ..fusion.templates import SplitConstraint
from ..joining.compatibility import Axes, Compatibility, LiveTensor, Stored
from ..joining.join import Joiner


@dataclass
class SubcascadeJoiner(Joiner):
    """Joins some neighbouring Einsums. cascade: these alone; enters, leaves: the tensors at its ends."""

    cascade: Workload | None = None
    enters: str | None = None
    leaves: str | None = None

    @property
    def workload(self) -> Workload:
        return self.cascade or self.users.workload

    @property
    def _stays(self) -> frozenset[str]:
        return frozenset()

    def several(self, tensor: str) -> bool:
        return is_shared(self.users.workload, tensor)

    def still_needed(self, step: JoinStep, tensor: str) -> bool:
        return tensor == self.leaves or super().still_needed(step, tensor)

    def after(
        self, step: JoinStep, before: Compatibility, block: PmappingGroup, mine: dict[str, LiveTensor]
    ) -> Compatibility | None:
        found = super().after(step, before, block, mine)
        if found is None or self.enters not in mine or before.entered is not None:
            return None if found is None else replace(found, entered=before.entered)
        return replace(found, entered=stored(mine[self.enters], self.axes(block.structure.loops)))

    def _reasoned(self, after: list[LiveTensor]) -> int | None:
        """Loops that stand above some tensor: in the whole cascade these, or more for tensors that only pass."""
        return max((live.depth for live in after), default=0)

    def _asked(self, before: Compatibility, block: PmappingGroup, split: int) -> frozenset[SplitConstraint] | None:
        return frozenset()


def stored(live: LiveTensor, axes: Axes) -> Stored:
    """How the tensor is stored as all its users must have it, tiles aside."""
    return live.memory, live.ranks[: live.depth], axes[: live.depth]


def subcascade(workload: Workload, start: int, end: int) -> Workload:
    """The Einsums from `start` to before `end` alone."""
    einsums = workload.einsums[start:end]
    names = {tensor for einsum in einsums for tensor in einsum.tensors}
    tensors = tuple(tensor for tensor in workload.tensors if tensor.name in names)
    outputs = tuple(name for name in workload.outputs if name in names)
    return replace(workload, einsums=einsums, tensors=tensors, outputs=outputs)


class Subcascade(Attempt):
    """The Einsums of `whole` from `start` to before `end`. enters, leaves: the tensors at its ends, if any matter."""

    plain = False
    enters: str | None = None
    leaves: str | None = None

    def __init__(self, whole: Attempt, start: int, end: int, cutoff: Cutoff) -> None:
        self.problem = replace(whole.problem, workload=subcascade(whole.problem.workload, start, end))
        self.options, self.watcher, self.counts = whole.options, whole.watcher, whole.counts
        self.checkpoint, self.repeats, self.users = whole.checkpoint, whole.repeats, whole.users
        self.signatures, self.classes, self.many = whole.signatures[start:end], whole.classes, whole.many
        self.tracked, self.objectives = whole.tracked, whole.objectives
        self.setting = replace(whole.setting, tracked=whole.tracked)
        self.least, self.agreed = whole.least[start:end], 0.0
        self.consistency, self.cutoff = None, cutoff
        self._keys, choices = whole._keys, whole._choices
        self._choices = None if choices is None else choices[start:end]

    def _serving(self, blocks: list[list[PmappingGroup]]) -> Serving | None:
        return None

    def _joiner(self) -> Joiner:
        return SubcascadeJoiner(
            self.users,
            self.setting,
            self._hopeless,
            self.counts,
            self.checkpoint,
            cascade=self.problem.workload,
            enters=self.enters,
            leaves=self.leaves,
        )
