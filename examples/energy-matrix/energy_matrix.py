"""A picture in a package of its own: energy as a table of squares, a row per Einsum and a column per level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from einloom.errors import SpecError
from einloom.report.draw.drawing import Box, Canvas, Stroke, Words
from einloom.result import Result

LEFT, TOP, CELL, MOST = 90.0, 26.0, 34.0, 40


@dataclass(frozen=True)
class Matrix:
    """Names of Einsums and levels, and joules of each pair."""

    einsums: tuple[str, ...]
    levels: tuple[str, ...]
    joules: dict[tuple[str, str], float]


class EnergyMatrix:
    """The area of a square is the energy of its Einsum in its level; what fills its cell is the largest of all."""

    name, title, several = "energy-matrix", "Energy, Einsum by level", False

    def data(self, results: Sequence[Result], labels: Sequence[str]) -> Matrix:
        """The table of the one result."""
        (result,) = results
        table = {pair: joules for pair, joules in result.cost.energy_by("einsum", "component").items() if joules}
        if not table:
            raise SpecError("this mapping takes no energy")
        levels = [part.name for part in result.machine.components if any(part.name == level for _, level in table)]
        return Matrix(result.mapping.einsums[:MOST], tuple(levels), table)

    def draw(self, data: Matrix) -> Canvas:
        """Squares in their cells, with the names of rows and columns."""
        width, height = LEFT + CELL * len(data.levels), TOP + CELL * len(data.einsums)
        shapes: list[Box | Stroke | Words] = []
        for column, level in enumerate(data.levels):
            shapes.append(Words(LEFT + CELL * (column + 0.5), TOP / 2, level[:7], 8.0, "middle"))
        for row, einsum in enumerate(data.einsums):
            y = TOP + CELL * row
            shapes.append(Stroke(((0.0, y), (width, y)), "line"))
            shapes.append(Words(LEFT - 6, y + CELL / 2, einsum[:16], 8.0, "end"))
            for column, level in enumerate(data.levels):
                joules = data.joules.get((einsum, level), 0.0)
                side = (CELL - 4) * sqrt(joules / max(data.joules.values()))
                x = LEFT + CELL * column + (CELL - side) / 2
                shapes.append(Box(x, y + (CELL - side) / 2, side, side, column, f"{einsum} in {level}: {joules:.4g} J"))
        label = f"Energy of {len(data.einsums)} Einsums in {len(data.levels)} levels"
        return Canvas(label, width, height, tuple(shapes))
