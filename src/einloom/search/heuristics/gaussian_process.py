"""A Gaussian process that grows by a point at a time, and what it expects to gain: for `bayes`.

The kernel is the squared exponential, over coordinates divided by their spread. Of the matrix of all points the inverse
of the Cholesky factor is kept; a further point adds a row to it, which costs the square of the number of points.
"""

from __future__ import annotations

from math import erf, pi, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NOISE = 1e-3


class GaussianProcess:
    """Knows the values of some points. The scales of its coordinates and its width are those of the first rows.

    rows: [points, coordinates]; values: [points]. Sums are taken in one order whatever the threads of a library: the
    same points give the same answers.
    """

    def __init__(self, rows: Floats, values: Floats) -> None:
        self._scale = rows.std(axis=0) + 1e-9
        scaled = rows / self._scale
        self._width = float(np.median(_apart(scaled, scaled))) or 1.0
        self.count = 0
        self._rows = np.empty((0, rows.shape[1]))
        self._values = np.empty(0)
        self._inverse = np.empty((0, 0))  # of the lower Cholesky factor; more rows than are used
        for row, value in zip(rows, values, strict=True):
            self.add(row, float(value))

    def add(self, row: Floats, value: float) -> None:
        """Enter one more point."""
        n = self.count
        if n == len(self._values):
            self._rows = np.pad(self._rows, ((0, n + 8), (0, 0)))
            self._values, self._inverse = np.pad(self._values, (0, n + 8)), np.pad(self._inverse, (0, n + 8))
        scaled = row / self._scale
        near = self._near(scaled[None])[0]
        across = _times(self._inverse[:n, :n], near)
        rest = sqrt(max(1 + NOISE - float((across * across).sum()), NOISE))
        self._inverse[n, :n] = -_times(self._inverse[:n, :n].T, across) / rest
        self._inverse[n, n] = 1 / rest
        self._rows[n], self._values[n] = scaled, value
        self.count = n + 1

    def _near(self, scaled: Floats) -> Floats:
        """The kernel between these rows, divided by their scale, and all known points: [rows, points]."""
        return np.asarray(np.exp(-0.5 * (_apart(scaled, self._rows[: self.count]) / self._width) ** 2))

    def predicted(self, rows: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation at each row, of values less their mean, over their spread."""
        inverse, targets = self._inverse[: self.count, : self.count], self._targets()
        near = self._near(rows / self._scale)
        mean = _times(near, _times(inverse.T, _times(inverse, targets)))
        across = np.einsum("ij,kj->ki", inverse, near)
        return mean, np.sqrt(np.maximum(1 + NOISE - (across * across).sum(axis=1), 1e-12))

    def _targets(self) -> Floats:
        values = self._values[: self.count]
        return np.asarray((values - values.mean()) / (float(values.std()) or 1.0))

    def improvement(self, rows: Floats) -> Floats:
        """The improvement on the least value that is expected at each row, in spreads of the values."""
        mean, sigma = self.predicted(rows)
        better = float(self._targets().min()) - mean
        z = better / sigma
        below = np.array([0.5 * (1 + erf(one / sqrt(2))) for one in z])
        return np.asarray(better * below + sigma * np.exp(-0.5 * z**2) / sqrt(2 * pi), dtype=np.float64)


def _apart(rows: Floats, others: Floats) -> Floats:
    """The distance of each row from each other row."""
    return np.asarray(np.sqrt(((rows[:, None] - others[None]) ** 2).sum(axis=2)))


def _times(matrix: Floats, vector: Floats) -> Floats:
    return np.asarray(np.einsum("ij,j->i", matrix, vector))
