"""The scale of an axis: from values to places between its ends, and round values between them."""

from __future__ import annotations

from math import ceil, floor, log10

from ...dataclass import dataclass
from .drawing import Ruler

MOST_DIGITS = 12
LARGEST = 1e300  # files may hold numbers of which not even the axis can be drawn


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low` to 0 and `high` to 1, evenly or by powers of ten."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        low = min(max(self.low, 1 / LARGEST if self.log else -LARGEST), LARGEST / 10)
        high = min(self.high, LARGEST)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high if high > low else 10 * low if self.log else low + max(abs(low), 1.0))

    def at(self, value: float) -> float:
        value = min(max(value, -LARGEST), LARGEST)
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Round values between the ends."""
        if self.log:
            first, last = ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9)
            step = max(1, round((last - first) / wanted))
            return [10.0**power for power in range(first, last + 1, step)]
        raw = (self.high - self.low) / wanted
        power = 10.0 ** floor(log10(raw))
        step_size = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
        first = ceil(self.low / step_size - 1e-9)
        return [step_size * i for i in range(first, floor(self.high / step_size + 1e-9) + 1)]


def marked(ruler: Ruler, wanted: int = 5) -> list[tuple[float, str]]:
    """(value, text) of what is written along an axis: round values in its unit, with digits enough to differ."""
    if ruler.ticks is not None:
        return list(ruler.ticks)
    if ruler.log:
        values = Scale(ruler.low, ruler.high, log=True).ticks(wanted)
        if len(values) < 2:
            values = [v for v in Scale(ruler.low, ruler.high).ticks(wanted) if ruler.low <= v <= ruler.high]
    else:
        values = [v * ruler.unit for v in Scale(ruler.low / ruler.unit, ruler.high / ruler.unit).ticks(wanted)]
    for digits in range(4, MOST_DIGITS + 1):
        texts = [ruler.shown(value, digits) for value in values]
        if len(set(texts)) == len(texts):
            break
    return list(zip(values, texts, strict=True)) if values else []
