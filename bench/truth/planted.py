"""Old mistakes brought back, and after how many problems the generators notice each.

A `Plant` replaces text in the source of some functions and puts what comes of it in their place, wherever einloom has
imported them. It is noticed by the first problem of which a claim fails with it and holds without.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

from einloom.testing.problems.claims import ProblemTrees, asked
from einloom.testing.problems.drawing import DrawnProblem, draw

Edit = tuple[str, str, str, str]
"""Module, dotted name of a function in it, text, and what stands in its place."""
EXACT = "einloom.search.exact"


@dataclass(frozen=True)
class Plant:
    """An old mistake. claim: that it may break. needs: only problems with all of these dimensions can show it, and
    others are not tried."""

    name: str
    claim: str
    edits: tuple[Edit, ...]
    needs: frozenset[str] = frozenset()

    def tries(self, drawn: DrawnProblem) -> bool:
        return self.needs <= drawn.has

    @property
    def spares_trees(self) -> bool:
        """True if it is in `exact` alone, so that all trees of a problem and their prices stay what they are."""
        return all(module.startswith(EXACT) for module, *_ in self.edits)


def plant(
    name: str,
    *edits: Edit,
    needs: Sequence[str] = (),
    claim: str = "exact = all trees",
) -> Plant:
    return Plant(name, claim, edits, frozenset(needs))


PLANTS = (
    plant(
        "shared-reader",
        (f"{EXACT}.attempt", "Attempt._serving", "if any(asking) else None", "if not asking else None"),
        needs=("store over two readers",),
    ),
    plant(
        "small-beside-large",
        (
            f"{EXACT}.least_costs",
            "LeastCosts._column_limits",
            "mine = most - (total - least) + slack",
            "mine = most - (total - least)",
        ),
    ),
    plant(
        "role-widths",
        (f"{EXACT}.prices.traffic", "Prices._tile_bits", "signature.backed[memory] if first else ", ""),
        needs=("wider for a consumer",),
    ),
    plant(
        "copy-spread",
        (f"{EXACT}.einsums.spatial", "RankClasses.suited", "if self.signature.copy:", "if False:"),
        (
            f"{EXACT}.einsums.spatial",
            "_backs_behind_fanouts",
            "(m for memories in backings_of(option.held, len(s.tensors)) for m in memories)",
            "(m for held in option.held for m, tensors in enumerate(held) if tensors)",
        ),
        needs=("copy held behind a fanout",),
    ),
    plant(
        "read-output",
        (
            f"{EXACT}.einsums.holds",
            "homes",
            "frozenset(workload.ends)",
            "frozenset(workload.ends) - set(workload.intermediates)",
        ),
        (f"{EXACT}.einsums.users", "Users.linking", "if t not in ends", "if True"),
        needs=("read output",),
    ),
    plant(
        "home-of-the-reader",
        (
            f"{EXACT}.einsums.holds",
            "homes",
            "first = workload.producers.get(tensor) or workload.consumers[tensor][0]",
            "first = einsum",
        ),
        needs=("home by role",),
    ),
    plant(
        "home-inside",
        (f"{EXACT}.einsums.holds", "homes", "None if home is None else number[home]", "0"),
    ),
    plant(
        "persistent-intermediate",
        (f"{EXACT}.einsums.classes", "_tensor", "persistent=(lasting and (links or home > 0))", "persistent=False"),
        needs=("persistent result",),
    ),
    plant(
        "floor-of-shares",
        ("einloom.cost.time.schedule", "Schedule._meetings", "return self._known[cut] if cut else None", "return None"),
        claim="nested trees",
    ),
    plant(
        "repeated-operand",
        ("einloom.oracle.execute", "Execution._operand", "if key not in asked:", "if True:"),
        needs=("repeated operand",),
        claim="analysis = oracle",
    ),
    plant(
        "scalar",
        (
            f"{EXACT}.prices.traffic",
            "Prices.__init__",
            "reshape(len(self.classes.relevance), len(self.whole))",
            "reshape(-1, len(self.whole))",
        ),
        needs=("scalar",),
    ),
    plant(
        "no-ranks",
        ("einloom.mapping.legality.dependence", "_oversized_chains", ", default=1)", ")"),
    ),
    plant(
        "constant-index",
        (f"{EXACT}.prices.traffic", "Prices._by_window", " if dims else np.zeros(len(x), np.int64)", ""),
        needs=("constant index",),
    ),
    plant(
        "kept-further-in",
        (f"{EXACT}.fusion.explore", "Explorer._may_keep", "return keeps_tiles", "return False and keeps_tiles"),
        needs=("store behind what backs",),
    ),
    plant(
        "kept-without-room",
        (f"{EXACT}.explored_rows", "ExploredRows._followed", "m <= innermost or any(", "m <= innermost and any("),
        needs=("store behind what backs",),
    ),
    plant(
        "kept-over-stores",
        (f"{EXACT}.pmappings.expand", "Expansion.below_kept", "if not self.pruner.rules.lowering:", "if True:"),
        needs=("memories for different tensors",),
    ),
    plant(
        "loops-under-no-store",
        (f"{EXACT}.fusion.templates", "Stacker._descend", "at.begun", "(at.begun or not at.left)"),
        needs=("fanout",),
    ),
    plant(
        "own-stores-above-inner-backing",
        (
            f"{EXACT}.rooms",
            "followed_across",
            "i == 0 or backing",
            "i == 0 or any(0 < m <= i for s in signatures for option in s.units"
            " for backs in backings_of(option.held, len(s.tensors)) for m in backs)",
        ),
        needs=("backs",),
    ),
    plant(
        "parts-housed-inside",
        (
            f"{EXACT}.einsums.classes",
            "_whole",
            "tensor.housed and (tensor.persistent or tensor.cut)",
            "tensor.housed and tensor.persistent",
        ),
        needs=("part housed inside",),
    ),
    plant(
        "parts-behind-a-fanout",
        (f"{EXACT}.bounds.choices", "_loops", "row[:end].tobytes()", "row.tobytes()"),
        needs=("part behind a fanout",),
    ),
    plant(
        "turned-behind-a-fanout",
        (f"{EXACT}.fusion.templates", "Stacker._orders", "map(permutations, axes)", "([tuple(axis)] for axis in axes)"),
        needs=("turned on an axis",),
    ),
    plant(
        "free-front",
        (f"{EXACT}.bounds.cutoff", "Cutoff.beyond", " & (latency > 0)", ""),
    ),
    plant(
        "no-time",
        (f"{EXACT}.answer", "Exact.search", "refuse_timeless(problem.objective, problem.machine)", "pass"),
        needs=("no time",),
        claim="refusals",
    ),
)


@contextmanager
def planted(one: Plant) -> Iterator[None]:
    """The mistake, inside a ``with`` block. Raises LookupError where a text is not found: the source has changed."""
    with ExitStack() as stack:
        for module, name, was, now in one.edits:
            stack.enter_context(_edited(module, name, was, now))
        yield


@contextmanager
def _edited(module: str, name: str, was: str, now: str) -> Iterator[None]:
    home = import_module(module)
    owner: Any = home
    *outer, last = name.split(".")
    for part in outer:
        owner = getattr(owner, part)
    old = vars(owner)[last]
    function = old.func if isinstance(old, cached_property) else old
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(was) != 1:
        raise LookupError(f"{module}.{name} has {source.count(was)} times the text {was!r}")
    scope: dict[str, Any] = {}
    text = "from __future__ import annotations\n" + source.replace(was, now)
    exec(compile(text, f"<{name}, planted>", "exec"), vars(home), scope)  # noqa: S102 (its text stands above)
    new = scope[last]
    if isinstance(new, cached_property):
        new.__set_name__(owner, last)
    places = [owner] if outer else [m for m in list(sys.modules.values()) if vars(m).get(last) is old]
    for place in places:
        setattr(place, last, new)
    try:
        yield
    finally:
        for place in places:
            setattr(place, last, old)


def noticed(plants: Sequence[Plant], most: int) -> Iterator[tuple[Plant, int, str]]:
    """(plant, number of the problem that shows it, counted from 1, what it says), as they are noticed."""
    waiting = list(plants)
    for seed in range(most):
        if not waiting:
            return
        drawn = draw(seed)
        whole = ProblemTrees(*drawn.files.read, seed)
        for one in [p for p in waiting if p.tries(drawn)]:
            if said := shows(one, whole):
                waiting.remove(one)
                yield one, seed + 1, said


def shows(one: Plant, subject: ProblemTrees) -> str | None:
    """What the claim says of the problem with the mistake; None if it says so without it, or nothing."""
    fresh = subject if one.spares_trees else replace(subject)
    _ = subject.trees  # worked out before the mistake is planted
    with planted(one):
        said = asked(fresh, (one.claim,)).get(one.claim)
    return None if said is None or one.claim in asked(replace(subject), (one.claim,)) else f"{one.claim}: {said}"
