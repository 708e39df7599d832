"""Cells of the comparison of dataflows (TileFlow, MICRO'23, section 7.3): which there are, and what is known of one."""

from __future__ import annotations

from ..dataclass import dataclass

ATTENTIONS = tuple(
    f"tileflow-{name}"
    for name in "bert-s bert-b bert-l vit-14-b vit-14-l vit-14-h vit-16-b vit-16-l vit-16-h t5 xlm".split()
)
CONVOLUTIONS = tuple(f"tileflow-cc{i}" for i in range(1, 6))
MACHINES = ("tileflow-edge", "tileflow-cloud")
FREE = "unrestricted"
COMPARED = {  # what contains others comes after them, so that a search has their mappings to start from
    "attention": (
        "layerwise uni-pipe flat-m flat-b flat-h flat-r chimera transfusion tileflow-attention flash-attention "
        "chimera-online"
    ).split(),
    "convolution-chain": "layerwise-convolution fused-layer isos tileflow-convolution".split(),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What one dataflow reaches on one workload and machine.

    status: ``optimal``, ``bounded`` (the CPU seconds ended first; nothing is below `bound`), ``infeasible``,
    ``refused`` (the workload is none of the dataflow's) or ``open`` (nothing was found in the CPU seconds). cycles: of
    the machine's unit. concurrent: cycles of the same tree with a concurrent split, the best legal one, and which;
    None where no such tree is legal. grouped: cycles where groups of up to four Einsums may run at the same time, tiles
    searched again (`grouped_bound`: nothing of that space is below). why: where there are no numbers. tiles: the best
    number of tiles, of those that a rewrite was tried with; the mapping is one of that workload.
    """

    workload: str
    machine: str
    dataflow: str
    objective: str
    status: str
    cycles: float | None = None
    energy: float | None = None
    bound: float | None = None
    gap: float | None = None
    concurrent: float | None = None
    concurrent_split: str = ""
    grouped: float | None = None
    grouped_bound: float | None = None
    grouped_status: str = ""
    seconds: float = 0.0
    why: str = ""
    tiles: str = ""
    mapping: str = ""


def family_of(workload: str) -> str:
    """The family of a workload of the table."""
    return "convolution-chain" if workload.partition(":")[0] in CONVOLUTIONS else "attention"


def quickest(found: Cell) -> float:
    """Cycles of the fastest mapping known for a cell that has one, whatever runs at the same time."""
    return min(x for x in (found.cycles, found.concurrent, found.grouped) if x is not None)
