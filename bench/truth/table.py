"""How many problems hold which claim, by dimension; and how many have both dimensions of a pair."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.measured import Column, Row, markdown
from bench.rows import read, stamp
from bench.truth.impossible import Looked
from bench.truth.runs import NEEDED, Outcome, Pair, pair_counts
from einloom.testing.problems.claims import CLAIMS
from einloom.testing.problems.dimensions import DIMENSIONS, impossible, possible_pairs

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


def published(path: Path) -> dict[Pair, int]:
    """Pair of dimensions, in their order -> problems, of a file with `pair_rows`."""
    order = {name: i for i, name in enumerate(DIMENSIONS)}
    found: dict[Pair, int] = {}
    for row in read(path):
        one, other = sorted((row["one"], row["other"]), key=order.__getitem__)
        found[one, other] = int(row["problems"])
    return found


def rare_rows(before: Mapping[Pair, int], outcomes: Iterable[Outcome]) -> list[dict[str, object]]:
    """A row for each pair that fewer than `NEEDED` problems had: how many, how many of these outcomes, and both."""
    chosen = list(outcomes)
    drawn, failed = pair_counts(chosen), pair_counts(o for o in chosen if o.failed)
    marks = marked(chosen)
    rows = []
    for pair in possible_pairs():
        earlier = before.get(pair, 0)
        if earlier < NEEDED:
            numbers = {"before": earlier, "drawn": drawn[pair], "together": earlier + drawn[pair]}
            rows.append({"one": pair[0], "other": pair[1], **numbers, "differences": failed[pair], **marks})
    return rows


def rare_table(rows: Sequence[Row]) -> str:
    """By dimension: how many of its pairs were rare, and how many problems have the least of them now; and the
    pairs that no problem has yet."""
    names = list(dict.fromkeys(name for row in rows for name in (row["one"], row["other"])))
    shown = []
    for name in (ALL, *sorted(names, key=DIMENSIONS.index)):
        mine = [row for row in rows if name in (ALL, row["one"], row["other"])]
        together = [int(row["together"]) for row in mine]
        shown.append(
            {
                "dimension": name,
                "rare pairs": str(len(mine)),
                "in none": str(sum(row["before"] == "0" for row in mine)),
                "least then": str(min(int(row["before"]) for row in mine)),
                "still rare": str(sum(n < NEEDED for n in together)),
                "least now": str(min(together)),
                "differences": str(sum(int(row["differences"]) for row in mine)),
            }
        )
    none = "; ".join(f"{row['one']} and {row['other']}" for row in rows if row["together"] == "0")
    return markdown([Column(name, name) for name in shown[0]], shown) + f"\n\nIn no problem yet: {none or 'none'}."


def impossible_rows(seen: Iterable[Looked]) -> list[dict[str, object]]:
    """A row for each pair that is said to be impossible: the reason, and what was looked at."""
    return [{**asdict(one), "reason": impossible(one.one, one.other), **stamp()} for one in seen]


def impossible_table(rows: Sequence[Row]) -> str:
    """By reason: the pairs, and what was looked at for them."""
    shown = []
    for (one, reason), mine in _grouped(rows).items():
        numbers = {key: str(sum(int(row[key]) for row in mine)) for key in ("sentences", "files", "both", "refused")}
        others = ", ".join(row["other"] for row in mine)
        shown.append({"dimension": one, "never with": others, "because": reason, **numbers})
    names = {
        "sentences": "sentences refused",
        "files": "files drawn",
        "both": "with both",
        "refused": "of those refused",
    }
    return markdown([Column(names.get(key, key), key) for key in shown[0]], shown)


def _grouped(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["one"], row["reason"]), []).append(row)
    return found


def marked(outcomes: Iterable[Outcome]) -> dict[str, str]:
    """Version, commits of the outcomes, and the time of day."""
    commits = dict.fromkeys(outcome.commit for outcome in outcomes)
    return {**stamp(), "commit": ", ".join(filter(None, commits))}
