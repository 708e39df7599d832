"""What a search method is: the `Method` protocol, its `Capabilities`, and the `Watcher` that it reports to.

A `Problem`, its `Space`, an `Evaluator` and a `Budget` go in, a `Result` comes out; on the way the search tells its
watcher what it knows. Methods by name: `registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..dataclass import dataclass
from ..problem import Budget, Guarantee, LatencyRule, Problem
from ..result import Result
from .watcher import Recorder as Recorder
from .watcher import Watcher as Watcher

if TYPE_CHECKING:
    from ..mapspace.space import Space
    from .evaluator import Evaluator


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a method can do besides finding one mapping; what it cannot is refused before it is asked.

    starts: begins from the known mappings `Evaluator.starts`. cutoff: looks only for values of at most
    `Evaluator.cutoff`. fronts: answers objective ``pareto``. latency_rules: those that it minimises under. spaces:
    names of the mapspaces that it searches; empty means any.
    """

    starts: bool = False
    cutoff: bool = False
    fronts: bool = False
    latency_rules: tuple[LatencyRule, ...] = ("einsum", "tile")
    spaces: tuple[str, ...] = ()


class Method(Protocol):
    """A search method. Methods differ in the points that they visit; space and price are the same for all.

    able: see `Capabilities`. guarantee: the most that its certificates claim.
    """

    name: str
    guarantee: Guarantee
    able: Capabilities

    def search(self, problem: Problem, space: Space, price: Evaluator, budget: Budget, watch: Watcher) -> Result:
        """The best mapping that the method finds within the budget.

        price: prices points, keeps the best of them and ends the search when the budget is spent; `price.result` makes
        the answer. Raises Infeasible only with a proof that no mapping is legal, BudgetExhausted if none was found.
        """


@runtime_checkable
class Refusing(Protocol):
    """A method that answers only some problems of its spaces."""

    def refuse(self, problem: Problem) -> None:
        """Raise SpecError, which names the method, for a problem that it does not answer; it is asked for none then."""
