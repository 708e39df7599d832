"""What a result file says of the search that found its mapping: nobody can check it, but it must not contradict itself.

The mapping, its price and its bound are what they are, whoever found them. Method, seconds, counts, trace and version
are the word of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ..problem import PRICED, Guarantee
from ..result import Result
from ..search.registry import methods
from ..version import VERSION
from .verdict import Check

SLACK = 1e-8  # searches compare values up to 1e-9


def contradictions(result: Result) -> Iterator[Check]:
    """A failed check for each thing that cannot have been so."""
    certificate = result.certificate
    if result.method == "evaluate" and (certificate is not None or result.trace):
        yield Check("method", False, "'evaluate' searches nothing, so it has no certificate and no trace")
    if certificate is not None and certificate.guarantee is Guarantee.OPTIMAL and result.ended is not None:
        yield Check("ended", False, f"said to be optimal, and that {result.ended.words}")
    if result.seconds < 0:
        yield Check("seconds", False, f"{result.seconds!r} s of search")
    wrong = _trace(result)
    if wrong is not None:
        yield Check("trace", False, wrong)


def _trace(result: Result) -> str | None:
    """Why best and bound cannot have come like this; None if they can."""
    points, certificate = result.trace, result.certificate
    if any(a.seconds > b.seconds for a, b in pairwise(points)) or any(point.seconds < 0 for point in points):
        return "its moments are not in order"
    best = [point.best for point in points if point.best is not None]
    bound = [point.bound for point in points if point.bound is not None]
    if any(a < b for a, b in pairwise(best)) or any(a > b for a, b in pairwise(bound)):
        return "its best values do not fall, or its bounds do not rise"
    if certificate is None:
        return None
    if best and best[-1] < certificate.value * (1 - SLACK):
        return f"a best value of {best[-1]!r}, below the {certificate.value!r} that was found"
    if bound and bound[-1] > certificate.value * (1 + SLACK):
        return f"a bound of {bound[-1]!r}, above the {certificate.value!r} that was found"
    return None


def recorded(result: Result) -> Check:
    """What is left of the file's word, for a reader who wants to know what this verdict does not cover."""
    known = result.method in (*methods(), *PRICED)
    version, certificate = result.provenance.version, result.certificate
    weaker = certificate is not None and certificate.guarantee is not Guarantee.OPTIMAL
    parts = [
        f"method {result.method!r:.80}" + ("" if known else ", which this einloom does not have"),
        f"{result.seconds:.3g} seconds",
        f"{len(certificate.counts) if certificate else 0} counts",
        f"a trace of {len(result.trace)} moments",
        *([f"that {result.ended.words}"] if result.ended else ["that nothing ended it early"] if weaker else []),
        *(["that it proved no higher bound"] if weaker else []),
        *(["that it proved no higher bound of any integer tiles"] if certificate and certificate.integer else []),
        f"einloom version {version:.40}" + ("" if version == VERSION else f" (this is {VERSION})"),
    ]
    return Check("not checked", None, "how it was found, by the file's word: " + "; ".join(parts))
