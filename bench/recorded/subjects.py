"""What is asked: a small problem with some trees, as a file that holds the recorded answers, too.

A file has the plain data of workload, machine and mapspace (or names of the zoo), the texts of legal trees and of
changed ones that may be illegal, and the answers. Seeds only draw what is written down; the tests read the files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from einloom.cost.evaluate import legality
from einloom.machine.files import machine_from_data
from einloom.machine.write import machine_data
from einloom.mapping.text import parse_mapping, print_mapping
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.enumerate import enumerate_trees
from einloom.mapspace.files import mapspace_from_data
from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.questions import problem
from einloom.reading import writing
from einloom.testing.problems.claims import ProblemTrees
from einloom.testing.problems.dimensions import DIMENSIONS, impossible
from einloom.testing.problems.drawing import draw, sketches
from einloom.testing.trees import TreeGrower
from einloom.workload.files import workload_data, workload_from_data

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = ROOT / "tests" / "recorded" / "answers"
LEGAL, CHANGED = 3, 6
"""Legal trees of the space, and changed trees, that a problem is recorded with."""
SHARE = 0.08
"""The part of the dimensions that a problem of any size is drawn for."""

CHIP = "simple:glb_bits={}"
NAMED = {
    "zoo-matmuls": ("zoo", {"workload": "matmuls:n=4,m=8,kn=8", "machine": "simple:glb_bits=512", "goal": "edp"}),
    "zoo-diamond": ("zoo", {"workload": "residual-diamond", "machine": "simple:glb_bits=512", "goal": "edp"}),
    "zoo-windows": ("zoo", {"workload": "conv-chain:c=2,h=4,w=4,l=2,k=2", "machine": "two-level", "goal": "energy"}),
    "layers-chain": ("layers", {"workload": "matmuls:n=5,m=4,kn=4", "machine": CHIP.format(256), "goal": "energy"}),
    "layers-traffic": (
        "layers",
        {"workload": "matmuls:n=4,m=4,kn=6", "machine": CHIP.format(200), "goal": "traffic:DRAM"},
    ),
    "layers-uneven": (
        "layers",
        {"workload": "matmuls:n=3,m=6,kn=4", "machine": CHIP.format(256), "goal": "edp", "space": "ragged"},
    ),
    "layers-free": (
        "layers",
        {"workload": "residual-diamond", "machine": CHIP.format(512), "goal": "energy", "order": "free"},
    ),
    "layers-shared": (
        "layers",
        {"workload": "residual-diamond", "machine": CHIP.format(400), "goal": "energy", "stores": "shared"},
    ),
    "walk-transformer": ("walk", {"workload": "gpt3-6.7b:tokens=64", "machine": "ffm-edge", "goal": "edp"}),
    "walk-residual": ("walk", {"workload": "residual-diamond", "machine": "tpu-v4i", "goal": "latency"}),
    "pair-square": ("pair", {"workload": "matmul:m=12,n=12,k=12", "machine": "two-level", "goal": "traffic:DRAM"}),
    "pair-long": ("pair", {"workload": "matmul:m=6,n=10,k=30", "machine": "two-level", "goal": "traffic:DRAM"}),
    "pair-thin": ("pair", {"workload": "matmul:m=30,n=2,k=8", "machine": "two-level", "goal": "traffic:DRAM"}),
    "pair-chain": ("pair", {"workload": "matmuls:n=2,m=12,kn=8", "machine": "two-level", "goal": "traffic:DRAM"}),
    "pair-tall": ("pair", {"workload": "matmuls:n=2,m=30,kn=4", "machine": "two-level", "goal": "traffic:DRAM"}),
}
"""Problems of the zoo: kind, and what `einloom.questions.problem` is given."""


@dataclass(frozen=True)
class Subject:
    """One file. given: plain data of the three files, or names of the zoo.

    kind: ``problem``, ``large``, ``tree``, ``zoo``, ``layers`` (for `exact` alone), ``walk`` (for methods
    without a proof), or ``pair`` of multiplications (or one), for the closed forms.
    """

    name: str
    kind: str
    seed: int
    given: dict[str, Any]
    trees: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    answers: dict[str, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def all_trees(self) -> ProblemTrees:
        """The problem with every tree of its space, which is listed where it is asked for."""
        if self.kind in ("zoo", "layers", "walk", "pair"):
            asked = problem(**self.given)
            return ProblemTrees(asked.workload, asked.machine, asked.mapspace, self.seed)
        machine = machine_from_data(self.given["machine"])
        mapspace = mapspace_from_data(self.given.get("mapspace", {"schema": "mapspace/1"}), machine)
        return ProblemTrees(workload_from_data(self.given["workload"]), machine, mapspace, self.seed)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """What is asked of the searches."""
        if self.kind in ("zoo", "layers", "walk", "pair"):
            return (problem(**self.given).objective,)
        return tuple(dict.fromkeys(self.all_trees.objectives))

    def problem(self, objective: Objective) -> Problem:
        return self.all_trees.problem(objective)

    def within(self, mapspace: Mapspace) -> Subject:
        """The same problem in another space, without trees."""
        found = Subject(self.name, self.kind, self.seed, self.given)
        found.__dict__["all_trees"] = replace(self.all_trees, mapspace=mapspace)
        return found

    def parsed(self, text: str) -> Mapping:
        return parse_mapping(text, self.all_trees.workload, self.all_trees.machine)

    def write(self, folder: Path) -> None:
        """Write the file: one line for each part of an answer, so that a difference is short."""
        data = {
            "kind": self.kind,
            "seed": self.seed,
            **{name: [value] if isinstance(value, dict) else value for name, value in self.given.items()},
            "trees": list(self.trees),
            "changed": list(self.changed),
        }
        lines = [f" {_text(key)}: {_lines(value)}" for key, value in data.items()]
        lines += [f" {_text(f'answer {key}')}: {_lines(value)}" for key, value in self.answers.items()]
        writing.write("{\n" + ",\n".join(lines) + "\n}\n", folder / f"{self.name}.json")


def read(path: Path) -> Subject:
    """The subject in a file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    kind, seed, trees, changed = (data.pop(key) for key in ("kind", "seed", "trees", "changed"))
    answers = {key.removeprefix("answer "): data.pop(key) for key in list(data) if key.startswith("answer ")}
    given = {key: value[0] if isinstance(value, list) else value for key, value in data.items()}
    return Subject(path.stem, kind, seed, given, tuple(trees), tuple(changed), answers)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=True)


def _lines(value: Any) -> str:
    """JSON with a line for each item of a list or table."""
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"  {_text(key)}: {_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {_text(one)}" for one in value) + "]"
    return _text(value)


def drawn(seed: int) -> Subject:
    """The random problem of a seed (`einloom.testing.problems`), with legal trees and changed ones."""
    files = draw(seed).files
    given = {"workload": files.workload, "machine": files.machine, "mapspace": files.mapspace}
    bare = Subject(f"problem-{seed:04}", "problem", seed, given)
    subject, rng = bare.all_trees, Random(f"recorded {seed}")
    legal = [tree for tree, _ in subject.trees]
    chosen = rng.sample(legal, min(len(legal), LEGAL))
    grown = TreeGrower(Random(f"tree {seed} 0"), subject.workload, subject.machine).mapping()
    some = chosen or list(islice(enumerate_trees(subject.workload, subject.machine, subject.mapspace), LEGAL))
    return _with_trees(bare, [*chosen, grown], [*some, grown], rng)


def large(seed: int) -> Subject:
    """A random problem of any size, with fewer dimensions than the small ones. ValueError: none comes up."""
    rng = Random(f"large {seed}")
    on: list[str] = []
    for name in rng.sample(DIMENSIONS, len(DIMENSIONS)):
        if rng.random() < SHARE and not any(impossible(name, other) for other in on):
            on.append(name)
    files = next(sketches(rng, frozenset(on)), None)
    if files is None:
        raise ValueError(f"large-{seed}: no problem comes up; take another seed")
    given = {"workload": files.workload, "machine": files.machine, "mapspace": files.mapspace}
    bare = Subject(f"large-{seed:04}", "large", seed, given)
    some = list(first_trees(bare.all_trees))
    chosen = rng.sample(some, min(len(some), LEGAL))
    return _with_trees(bare, chosen, chosen, rng)


def first_trees(about: ProblemTrees, most: int = 100) -> Iterator[Mapping]:
    """The first trees of a space, as far as they are found in so many steps of the grammar for each."""
    left = 40 * most

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise _Enough

    with suppress(_Enough):
        yield from islice(enumerate_trees(about.workload, about.machine, about.mapspace, step), most)


class _Enough(Exception):
    """The steps are used up."""


def single(name: str, seed: int, case: tuple[Any, Any, Mapping]) -> Subject:
    """A workload, a machine and one tree, outside of any space."""
    workload, machine, tree = case
    bare = Subject(f"{name}-{seed:04}", "tree", seed, dict(_plain(workload, machine)))
    return _with_trees(bare, [tree], [tree], Random(f"recorded {name} {seed}"))


def _plain(workload: Any, machine: Any) -> Iterator[tuple[str, Any]]:
    yield "workload", workload_data(workload)
    yield "machine", machine_data(machine)


def _with_trees(bare: Subject, trees: list[Mapping], starts: list[Mapping], rng: Random) -> Subject:
    """The subject with the legal ones of these trees, and with changes of the others that a text can say."""
    from tree_edits import edited  # of the tests, which the command puts on the path

    subject = bare.all_trees
    workload, machine = subject.workload, subject.machine
    fine = [tree for tree in trees if not legality(workload, machine, tree)]
    texts = dict.fromkeys(print_mapping(tree, workload) for tree in fine)
    changed: dict[str, None] = {}
    for i in range(6 * CHANGED if starts else 0):
        one = edited(rng, workload, machine, starts[i % len(starts)])
        text = print_mapping(one, workload)
        if len(changed) < CHANGED and text not in texts and _same(text, one, bare):
            changed[text] = None
    return Subject(bare.name, bare.kind, bare.seed, bare.given, tuple(texts), tuple(changed))


def _same(text: str, tree: Mapping, subject: Subject) -> bool:
    """True if the text says this tree."""
    from einloom.errors import SpecError

    try:
        return subject.parsed(text) == tree
    except SpecError:
        return False
