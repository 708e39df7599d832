"""`tileflow`: a genetic algorithm over ordering and binding, tree search over tile factors (TileFlow, section 6)."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from ...dataclass import dataclass
from .factors import tree_search
from .points import Points, Valued
from .states import TiledTrees


@dataclass(frozen=True)
class Tileflow(TiledTrees):
    """Trees compete by the best tiles that Monte Carlo tree search finds for each; the best of them survive.

    seed: the same seed gives the same answer. points: the most, as in `StateMethod`. population: trees that survive a
    generation. crossover, mutation: their probabilities. iterations, rollouts: of the tree search, for each tree.
    constant: of its upper confidence bound.
    """

    name: ClassVar[str] = "tileflow"
    iterations: int = 10
    rollouts: int = 5
    constant: float = 1.0

    def __post_init__(self) -> None:
        self.least(1, "points", "iterations", "rollouts")
        self.least(2, "population")
        self.least(0, "constant")
        self.share("crossover", "mutation")

    def tiled(self, points: Points, found: Valued, rng: Random) -> Valued:
        """The tree with the best tiles of a tree search over their factors."""
        return tree_search(points, found, self.iterations, self.rollouts, self.constant, rng)
