"""How many problems hold which claim, by dimension; and how many have both dimensions of a pair."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.rows import stamp
from bench.truth.runs import Outcome, pair_counts
from einloom.testing.problems.claims import CLAIMS
from einloom.testing.problems.dimensions import DIMENSIONS

CLAIM_COLUMNS = tuple(CLAIMS)
ALL = "all"


def counts(outcomes: Iterable[Outcome]) -> list[dict[str, object]]:
    """A row for each dimension, and one for all: problems, infeasible ones, trees, executions, differences."""
    chosen = list(outcomes)
    by_pair = pair_counts(chosen)
    marks = marked(chosen)
    rows = []
    for name in (ALL, *DIMENSIONS):
        mine = [o for o in chosen if name in (ALL, *o.has)]
        with_others = [n for pair, n in by_pair.items() if name in pair]
        rows.append(
            {
                "dimension": name,
                "problems": len(mine),
                "infeasible": sum(o.trees == 0 for o in mine),
                "trees": sum(max(o.trees, 0) for o in mine),
                "executed": sum(o.executed for o in mine),
                "least_pair": min(with_others, default=0) if name != ALL else min(by_pair.values()),
                **{claim: sum(claim in o.failed for o in mine) for claim in CLAIMS},
                **marks,
            }
        )
    return rows


def write(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write the rows as a CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def pair_rows(outcomes: Iterable[Outcome]) -> list[dict[str, object]]:
    """A row for each pair of dimensions."""
    chosen = list(outcomes)
    marks = marked(chosen)
    return [{"one": a, "other": b, "problems": n, **marks} for (a, b), n in pair_counts(chosen).items()]


def marked(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Version, commits of the outcomes, and the time of day."""
    commits = dict.fromkeys(outcome.commit for outcome in outcomes)
    return {**stamp(), "commit": ", ".join(filter(None, commits))}
