"""What the model assumes, one sentence or two per page of ``docs/model``; a test compares them with the pages."""

from __future__ import annotations

from ...dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Assumption:
    """A rule of the model: `text` stands word for word on the page docs/model/`page`.md."""

    page: str
    title: str
    text: str


ASSUMPTIONS = (
    Assumption(
        "energy",
        "Energy",
        "Energy is bits moved times energy per bit, plus operations times energy per operation, plus leakage times"
        " latency.",
    ),
    Assumption(
        "latency",
        "Latency",
        "Rule `einsum`: the latency of an Einsum is that of its busiest component over the whole run, and Einsums"
        " follow one another.",
    ),
    Assumption(
        "moves",
        "Moves and retention",
        "A store moves exactly what it does not keep, and what it keeps is declared by where it stands.",
    ),
    Assumption(
        "occupancy",
        "Occupancy",
        "The occupancy of a memory is the largest number of bits of live tiles in one instance, in exact integers,"
        " without tolerance. A tile is where it is written: its size follows from the loops above its store.",
    ),
    Assumption(
        "splits-and-lifetime",
        "Splits and lifetime",
        "When a branch of a sequential split ends, everything stored inside it is gone. What is stored above stays.",
    ),
    Assumption(
        "bindings",
        "Branches at the same time",
        "Only a sequential split ends the life of what is stored below it. Branches that run at the same time keep"
        " their tiles from token to token, occupy memory together, and add up on every component that they share.",
    ),
    Assumption(
        "fanouts",
        "Fanouts",
        "For one tensor, all spatial loops between a store and the next store of that tensor above decide together who"
        " gets what.",
    ),
    Assumption(
        "partial-sums",
        "Partial sums",
        "A result that leaves a store before it is finished is written up, and read back if it is needed again. The"
        " first read of each element is skipped: before the first sum there is nothing to read.",
    ),
    Assumption(
        "copies",
        "Copies",
        "A copy performs no operation. Where its input and its output have their innermost store in the same memory"
        " nothing moves; otherwise every element is read once at the input's store and written once at the output's.",
    ),
    Assumption(
        "halos-and-padding",
        "Halos and padding",
        "A window has the extent that its index expression reaches, cut at the declared shape. Elements outside are"
        " padding: they are never read, moved or stored, but operations on them count.",
    ),
    Assumption(
        "parts",
        "Tensors in parts",
        "An Einsum may write a part of a tensor: each element once, its own elements and no others. What nobody writes"
        " is there from the start.",
    ),
    Assumption(
        "views",
        "Views",
        "A tensor may be read under other ranks, with the same elements in row-major order: that moves nothing, takes"
        " no room and performs no operation.",
    ),
    Assumption(
        "imperfect-tiles",
        "Imperfect tiles",
        "A loop that does not divide its extent has a last tile that is smaller, and everything is counted exactly.",
    ),
    Assumption(
        "not-modelled",
        "What is not modelled",
        "Leaving these out makes a number an idealisation, not always a bound",
    ),
)
NOT_MODELLED = (
    "Causal or other non-rectangular bounds",
    "Sparsity",
    "Layouts",
    "Bank conflicts and arbitration",
    "Network topology",
    "Control",
    "Links for anything but a pipeline",
    "Recomputation",
    "One position of a rank, read while the rank is computed",
    "Recurrences",
    "Loops across a view",
    "Zeros around a tensor that stays on chip",
    "Rows of a softmax in one Einsum",
    "Outputs on chip",
    "Power gating",
)
"""Headings of docs/model/not-modelled.md."""
