"""Where a mapping cuts what a softmax in one Einsum normalizes over: its cost counts one pass, which needs whole rows.

Comes in: a workload and a mapping. Goes out: a sentence for each such Einsum (docs/model/not-modelled.md).
"""

from __future__ import annotations

from ..machine.levels import Machine
from ..mapping.analysed import Analysed
from ..mapping.tree import Mapping
from ..workload.einsum import Einsum, Workload


def cut_rows(workload: Workload, machine: Machine, mapping: Mapping) -> tuple[str, ...]:
    """A note for each softmax whose input is kept in no memory but the outermost by whole rows, though it is in one."""
    softmaxes = [einsum for einsum in workload.einsums if einsum.function == "softmax"]
    if not softmaxes:
        return ()
    analysed = Analysed(workload, mapping)
    outermost = machine.memories[0].name
    return tuple(_note(e) for e in softmaxes if _cut(analysed, e, normalized(workload, e), outermost))


def normalized(workload: Workload, softmax: Einsum) -> frozenset[str]:
    """The rank variables along which a softmax adds up to one: those that a reader sums over; else the last."""
    tensor, own = softmax.output.tensor, softmax.output.indices
    summed = set[str]()
    for reader in workload.einsums:
        if tensor in [access.tensor for access in reader.inputs]:
            for index, mine in zip(reader.access(tensor).indices, own, strict=True):
                if index.simple and mine.simple and index.variables[0] in reader.reduced:
                    summed.add(mine.variables[0])
    return frozenset(summed or softmax.output.variables[-1:])


def _cut(analysed: Analysed, softmax: Einsum, along: frozenset[str], outermost: str) -> bool:
    """True if stores hold its input on chip, each below a temporal loop that cuts a row."""
    tensor = softmax.inputs[0].tensor
    stores = analysed.stores.get(softmax.name, ())
    places = [i for i, store in stores if store.memory != outermost and tensor in store.tensors]
    loops = analysed.several(softmax.name) if places else []
    cutting = [i for i, loop, variable in loops if loop.axis is None and variable in along]
    return bool(places) and any(i < min(places) for i in cutting)


def _note(softmax: Einsum) -> str:
    return (
        f"softmax {softmax.name} is cut along the rank that it normalizes over; its cost is that of one pass, for "
        "which a schedule needs whole rows or online_softmax (docs/model/not-modelled.md)"
    )
