"""Record the answers of the tests anew, once their independent sources agree: ``python -m bench.recorded``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from .asked import KINDS, QUESTIONS, plain
from .compared import differences
from .sources import disagreements
from .subjects import ANSWERS, NAMED, ROOT, Subject, drawn, large, read, single

SHOWN = 12
"""Differences that are printed of each file."""


def main(words: Sequence[str] | None = None) -> int:
    """0: every file says what is so now, and its sources agree; 1: some source does not, and that file is as it was."""
    parser = argparse.ArgumentParser(prog="python -m bench.recorded", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="files of tests/recorded/answers; by default all")
    parser.add_argument(
        "--draw", nargs="*", default=[], metavar="LABEL", help="add files: problem-7, nested-3, zoo-diamond"
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(words)
    sys.path.insert(0, str(ROOT / "tests"))  # changed trees and the second reading are of the tests
    subjects: Iterator[Subject] = map(made, options.draw)
    if options.names or not options.draw:
        subjects = chain(subjects, map(read, files(options.names)))
    return 1 if sum([one(subject, options.check) for subject in subjects]) else 0


def files(names: Sequence[str] = ()) -> list[Path]:
    """The files with answers, or those of these names."""
    return [path for path in sorted(ANSWERS.glob("*.json")) if not names or path.stem in names]


def made(label: str) -> Subject:
    """What a kind and a seed draw, or a problem of the zoo."""
    if label in NAMED:
        return Subject(label, NAMED[label][0], 0, NAMED[label][1])
    kind, _, seed = label.rpartition("-")
    number = int(seed)
    if kind == "problem":
        return drawn(number)
    if kind == "large":
        return large(number)
    if kind == "nested":
        from einloom.testing.nested import nested_tree

        return single(kind, number, nested_tree(number))
    import trees
    import wide_trees

    case = {"random": trees.random_case, "wide": wide_trees.wide_case}[kind](number)
    return single(kind, number, (case.workload, case.machine, case.mapping))


def answered(subject: Subject, questions: Sequence[str] = ()) -> Iterator[tuple[str, object]]:
    """The answers of now."""
    for name in questions or KINDS[subject.kind]:
        yield name, plain(QUESTIONS[name](subject))


def one(subject: Subject, only_check: bool) -> bool:
    """Ask a subject's questions and its sources, and write the file; True if a source disagrees."""
    begun = time.process_time()
    answers = dict(answered(subject))
    took = time.process_time() - begun
    against = list(disagreements(subject, answers))
    changed = list(differences(subject.answers, answers)) if subject.answers else []
    print(f"{subject.name}: {took:.1f} CPU s, {len(changed)} changes, {len(against)} disagreements", flush=True)
    for line in (*against, *changed[:SHOWN]):
        print(f"  {line}")
    if not against and not only_check:
        replace(subject, answers=answers).write(ANSWERS)
    return bool(against)


if __name__ == "__main__":
    sys.exit(main())
