"""The questions: each is a function of a subject whose answer is plain data, the same on every machine and every run.

Seconds, versions and digests are left out. An error that a user may meet is an answer, with its words.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Table
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from bench.answers import damaged
from einloom.certify.verify import verify
from einloom.cost.batch.arrays import price_many
from einloom.cost.evaluate import LATENCY_RULES, evaluate, latencies, legality
from einloom.cost.event import event_seconds
from einloom.diagnose import explain_problem, explain_result
from einloom.diagnose.document import explanation_data
from einloom.errors import EinloomError, IllegalMapping
from einloom.mapping.text import print_mapping
from einloom.mapping.tree import Mapping
from einloom.mapspace.ffm.enumerate import candidates, ordered
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.registry import space_for
from einloom.oracle import simulate
from einloom.problem import Budget, Objective, Problem, keeps_time
from einloom.questions import problem
from einloom.result import Result
from einloom.result.document import digest, text
from einloom.result.unmapped import Unmapped, parse_answer
from einloom.search.answer import answer
from einloom.search.exact import Exact, ExactOptions
from einloom.search.exact.integer import integer_bound
from einloom.search.method import Recorder
from einloom.search.principles.told import told
from einloom.search.several import Labelled
from einloom.testing.problems.claims import counted

from .states import annealed, first_mappings, walk
from .subjects import Subject, first_trees
from .thresholds import lowered

MANY = Budget(steps=10**9)
"""No clock decides anything under a budget of steps."""
CUT = (1, 30)
"""Steps after which searches are cut off."""
STATED = ("method", "ended", "objective", "energy", "latency", "mapping", "roofline", "latencies", "front", "notes")
UNSTATED = ("status", "reason", "method", "ended", "objective", "bound", "counts", "notes")
METHODS = ("random", "anneal", "genetic", "local", "tileflow", "dat", "auto", "exhaustive")
"""Not `gradient` and `bayes`: NumPy rounds exponentials and products of matrices by the processor."""
LARGER = tuple(name for name in METHODS if name not in ("auto", "exhaustive"))
"""Those that are quick on larger problems, too."""
POINTS = 60
TOGETHER = 4
"""Methods that one problem is asked of; they take turns."""
FORGED, SAMPLED = 4, 4
LISTED, BESIDE = 150, 12
"""Trees that are listed at most, and trees beside one."""
BUFFERS, CHECKED = (24, 96, 400, 2000), 96
"""Bits of the buffers that the closed forms are asked of, and of that whose mapping is verified."""
ROWS = 24
BRIEFLY = Budget(steps=2000)
"""For each other space."""
OTHER_SPACES: dict[str, dict[str, Any]] = {
    "ragged": {"name": "ragged"},
    "free order": {"order": "free"},
    "shared stores": {"stores": "shared"},
    "in groups": {"concurrent": "any"},
    "in groups along axes": {"concurrent": "everywhere"},
    "two fused loops of a rank": {"max_fused_loops_per_rank_variable": 2},
    "one fused loop": {"max_fused_loops": 1},
}
"""What a mapspace is changed in."""
NARROWER = ("one fused loop",)
"""Those of them that hold less; all others hold more."""
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def _or_error(ask: Callable[[], Any]) -> Any:
    """The answer, or the error with its words."""
    try:
        return ask()
    except EinloomError as error:
        return f"{type(error).__name__}: {error}"


def evaluated(subject: Subject) -> list[Any]:
    """Of each legal tree: the complete breakdown under both rules, every view of its latency, what its space says, and
    the same tree beside others in one call."""
    return [_or_error(lambda one=one: _priced(subject, subject.parsed(one))) for one in subject.trees]


def _priced(subject: Subject, tree: Mapping) -> dict[str, Any]:
    about = subject.all_trees
    workload, machine = about.workload, about.machine
    cost = evaluate(workload, machine, tree)
    return {
        "energy": cost.energy,
        "latency": {rule: evaluate(workload, machine, tree, rule).latency for rule in LATENCY_RULES},
        "views": {**asdict(latencies(workload, machine, tree)), "event": event_seconds(workload, machine, tree)},
        "einsums": [list(one) for one in cost.einsum_latency],
        "busy": [list(one) for one in cost.busy],
        "occupancy": [[o.memory, o.bits, o.size, [list(one) for one in o.tensors]] for o in cost.occupancy],
        "actions": [
            [a.einsum, a.component, a.tensor, a.action, a.count, a.bits, a.busiest, a.energy] for a in cost.actions
        ],
        "outside": list(outside(workload, machine, about.mapspace, tree)),
        "at once": _or_error(lambda: _at_once(subject, tree)),
    }


def _at_once(subject: Subject, tree: Mapping) -> list[list[float]]:
    """Energy and latency of some choices of tiles for the loops of a tree; nothing for illegal ones."""
    about = subject.all_trees
    space = space_for(about.workload, about.machine, about.mapspace)
    skeleton = space.skeleton(tree)
    if not skeleton.loops:
        return []
    block = next(iter(space.tilings(skeleton)), np.zeros((0, len(skeleton.loops)), np.int64))[:ROWS]
    if not len(block):
        return []
    tiles = {address: np.ascontiguousarray(block[:, i]) for i, address in enumerate(skeleton.loops)}
    try:
        found = price_many(about.workload, about.machine, skeleton.mapping, tiles)
    except IllegalMapping as error:
        return [list(error.reasons)]
    return [[e, t] if legal else [] for e, t, legal in zip(found.energy, found.latency, found.legal, strict=True)]


def refused(subject: Subject) -> list[Any]:
    """Of each changed tree: every reason against it, by the machine and by the space, word by word, in any order."""
    about = subject.all_trees
    found = []
    for one in subject.changed:
        tree = subject.parsed(one)
        reasons = legality(about.workload, about.machine, tree)
        found.append({"illegal": sorted(reasons)})
        if not reasons:
            found[-1]["outside"] = sorted(outside(about.workload, about.machine, about.mapspace, tree))
            found[-1]["price"] = list(evaluate(about.workload, about.machine, tree))
    return found


def executed(subject: Subject) -> list[Any]:
    """Of each tree: what the oracle sees, as far as the analysis does not say the same; seconds of its execution."""
    about = subject.all_trees
    found: list[Any] = []
    if about.large:
        return found
    timed = not any(memory.through for memory in about.machine.memories)
    for one in (*subject.trees, *subject.changed):
        tree = subject.parsed(one)
        seen = simulate(about.workload, about.machine, tree, timed=timed)
        said: dict[str, Any] = {"correct": seen.correct, "reasons": list(seen.reasons), "cycles": seen.cycles}
        if not legality(about.workload, about.machine, tree):
            said["waits"] = not seen.exact
            said["differs"] = list(counted(about, tree, evaluate(about.workload, about.machine, tree)))
            said["busiest"] = _by_component(seen.busiest)
        found.append(said)
    return found


def _by_component(busiest: Table[tuple[str, str, str], int]) -> dict[str, int]:
    """Bits, or operations, of the busiest instances: the sum of all Einsums."""
    found = Counter[str]()
    for (_, component, action), bits in sorted(busiest.items()):
        found[f"{component} {action}"] += bits
    return dict(found)


def listed(subject: Subject) -> dict[str, Any]:
    """The first trees of the space, and the first that its grammar writes: how many, and a digest of all in order."""
    about, found = subject.all_trees, {}
    workload, machine, mapspace = _asked(subject)
    orders = ordered(workload, mapspace)
    for name, trees in (
        ("trees", first_trees(about)),
        ("written", (tree for w in orders for tree in candidates(w, machine, mapspace.name, stores=mapspace.stores))),
    ):
        texts = [print_mapping(tree, workload) for tree in islice(trees, LISTED)]
        found[name] = {"number": len(texts), "digest": _digest(texts)}
    return found


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


def optimal(subject: Subject) -> dict[str, Any]:
    """What `exact` answers for each objective: mapping, certificate, front, and how bound and best came about; what is
    known when it is cut off; what it says from a start and below a limit; the bound over all integer tiles."""
    found: dict[str, Any] = {}
    for objective in subject.objectives:
        found[str(objective)] = _exact(subject, objective, MANY)
    first = subject.objectives[0]
    for steps in CUT:
        found[f"{first} in {steps} steps"] = _exact(subject, first, Budget(steps=steps))
    known = _or_error(lambda: Exact().search(subject.problem(first), MANY))
    if isinstance(known, Result) and first.name != "pareto":
        if known.value:
            less = ExactOptions(limit=known.value * (1 - 1e-6))
            found["below"] = _or_error(lambda: Exact(less).search(subject.problem(first), MANY).value)
        if subject.kind == "problem":
            found["relaxed"] = _or_error(lambda: integer_bound(subject.problem(first), known.value, MANY)[0])
        inside = [one for one in subject.trees if not outside(*_asked(subject), subject.parsed(one))]
        for one in inside[-1:]:
            options = ExactOptions(start=(subject.parsed(one),))
            found["from a start"] = _or_error(
                lambda options=options: stated(Exact(options).search(subject.problem(first), MANY))
            )
    return found


def optimal_by_parts(subject: Subject) -> dict[str, Any]:
    """What `exact` answers to the first objective with the parts at work that wait for large problems."""
    first = subject.objectives[0]
    with lowered():
        return {str(first): _exact(subject, first, MANY)}


def optimal_elsewhere(subject: Subject) -> dict[str, Any]:
    """What `exact` answers to the first objective in other spaces; to latency where Einsums run at the same time."""
    found: dict[str, Any] = {}
    for name, other in elsewhere(subject):
        objective = goal_of(other)
        asked = (Labelled("", other.problem(objective)),)
        found[f"{name}, {objective}"] = _or_error(
            lambda asked=asked: _briefly(answer(asked, "exact", BRIEFLY, Recorder()))
        )
    return found


def elsewhere(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """The subject in every other space."""
    own = subject.all_trees.mapspace
    for name, changed in OTHER_SPACES.items():
        if (space := replace(own, **changed)) != own:
            yield name, subject.within(space)


def goal_of(subject: Subject) -> Objective:
    """What one mapping is the answer to: latency where Einsums run at the same time, else the first such objective."""
    about = subject.all_trees
    if about.mapspace.places and keeps_time(about.machine):
        return Objective("latency")
    return next((one for one in subject.objectives if one.name != "pareto"), Objective("energy"))


def _asked(subject: Subject) -> tuple[Any, Any, Any]:
    about = subject.all_trees
    return about.workload, about.machine, about.mapspace


class Heard(Recorder):
    """A recorder that keeps every stage it is told of, one that comes again at once only with its last step."""

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[list[Any]] = []

    def stage(self, name: str, done: int = 0, total: int | None = None) -> None:
        super().stage(name, done, total)
        numbers = [float(one) for one in NUMBER.findall(name)]  # apart, so that they are compared as numbers
        told = [NUMBER.sub("#", name), numbers, done, total]
        if self.stages and self.stages[-1][:2] == told[:2]:
            self.stages.pop()
        self.stages.append(told)


def _exact(subject: Subject, objective: Objective, budget: Budget) -> Any:
    asked, heard = (Labelled("", subject.problem(objective)),), Heard()
    said = _or_error(lambda: stated(answer(asked, "exact", budget, heard)))
    return {**said, "stages": heard.stages} if isinstance(said, dict) else said


def stated(found: Result | Unmapped) -> dict[str, Any]:
    """What an answer says, without seconds, versions and the problem."""
    data = found.to_data()
    said = {key: data[key] for key in (STATED if isinstance(found, Result) else UNSTATED) if data.get(key)}
    certificate = data.get("certificate")
    if certificate:
        said["certificate"] = {key: value for key, value in certificate.items() if key != "mapspace"}
    said["trace"] = [[point["best"], point["bound"]] for point in data["trace"]]
    return said


def found_by_methods(subject: Subject) -> dict[str, Any]:
    """What methods find from the same seed in few points: mapping, value, and how often each rule refused."""
    objectives = [one for one in subject.objectives if one.name != "pareto"] or [Objective("energy")]
    found = {}
    turn = [METHODS[(subject.seed * TOGETHER + i) % len(METHODS)] for i in range(TOGETHER)]
    for i, name in enumerate(turn if subject.kind == "problem" else LARGER):
        asked = (Labelled("", subject.problem(objectives[i % len(objectives)])),)
        found[f"{name}, {objectives[i % len(objectives)]}"] = _or_error(lambda name=name, asked=asked: _by(asked, name))
    return found


def _by(asked: tuple[Labelled, ...], name: str) -> dict[str, Any]:
    return _briefly(answer(asked, name, Budget(steps=POINTS), Recorder()))


def _briefly(found: Result | Unmapped) -> dict[str, Any]:
    return {key: value for key, value in stated(found).items() if key not in ("trace", "latencies", "roofline")}


def explained(subject: Subject) -> Any:
    """Why there is no mapping, or what binds the best one; without the searches that larger machines would take."""
    goal = next((one for one in subject.objectives if one.name != "pareto"), Objective("energy"))
    asked = subject.problem(goal)
    known = _or_error(lambda: Exact().search(asked, MANY))
    if isinstance(known, Result):
        return _or_error(lambda: _without_clock(explanation_data(explain_result(known, quick=True))))
    return _or_error(lambda: _without_clock(explanation_data(explain_problem(asked, quick=subject.seed % 4 > 0))))


def _without_clock(data: dict[str, Any]) -> dict[str, Any]:
    aside = ("schema", "workload", "machine", "mapspace", "digest", "of", "objective")
    said = {key: value for key, value in data.items() if key not in aside and value not in ([], None)}
    for run in said.get("runs", ()):
        del run["seconds"]
    return said


def verified(subject: Subject) -> dict[str, Any]:
    """Every check of a true result, and what is said of forged ones."""
    objective = next((one for one in subject.objectives if one.name != "pareto"), Objective("energy"))
    known = _or_error(lambda: Exact().search(subject.problem(objective), MANY))
    if not isinstance(known, Result):
        return {}
    known = replace(known, seconds=1.0, trace=())
    found: dict[str, Any] = {"true": [list(one) for one in _checks(known, False)]}
    original = known.to_json()
    for i in range(FORGED):
        forged = damaged(original, f"{subject.seed}/{i}").decode(errors="surrogateescape")
        found[f"forged {i}"] = _or_error(lambda forged=forged: _forged(forged))
    return found


def _checks(result: Result, quick: bool) -> Iterator[tuple[str, bool | None, str]]:
    for check in verify(result, quick).checks:
        yield check.name, check.passed, check.detail


def _forged(content: str) -> Any:
    with suppress(ValueError):
        data = json.loads(content)
        if isinstance(data, dict) and "digest" in data:
            data["digest"] = digest(data)
            content = text(data)
    found = parse_answer(content)
    return [list(one) for one in _checks(found, True) if one[1] is not True] if isinstance(found, Result) else "none"


def judged(subject: Subject) -> dict[str, Any]:
    """What the closed forms say of a problem with buffers of several sizes, and their mapping."""
    found: dict[str, Any] = {}
    for space in ("ffm", "ragged"):
        for bits in BUFFERS:
            given = {**subject.given, "machine": f"{subject.given['machine']}:glb_bits={bits}", "space": space}
            asked = problem(**given)
            found[f"{space}, {bits} bits"] = {
                "told": _or_error(lambda asked=asked: list(told(asked).lines)),
                "mapping": _or_error(lambda asked=asked: _by((Labelled("", asked),), "principles")),
            }
            if bits == CHECKED:
                found[f"{space}, {bits} bits"]["verify"] = _or_error(lambda asked=asked: _closed_form_checked(asked))
    return found


def _closed_form_checked(asked: Problem) -> list[Any]:
    known = answer((Labelled("", asked),), "principles", Budget(steps=POINTS), Recorder())
    return [list(one) for one in _checks(replace(known, seconds=1.0), False)] if isinstance(known, Result) else []


def around(subject: Subject) -> list[Any]:
    """Of trees of the space, listed or drawn: the trees beside them, and the choices of tiles for their loops."""
    about, rng = subject.all_trees, Random(subject.seed)
    space = space_for(*_asked(subject))
    inside = [tree for one in subject.trees if not space.outside(tree := subject.parsed(one))]
    drawn = [] if about.workload.parted else [space.sample(rng) for _ in range(SAMPLED)]
    found = []
    for tree in (*inside, *(one for one in drawn if one is not None)):
        beside = [print_mapping(one, about.workload) for one in islice(space.neighbours(tree, Random(1)), BESIDE)]
        tiles = [row.tolist() for block in islice(space.tilings(space.skeleton(tree)), 1) for row in block]
        found.append([len(beside), _digest(beside), len(tiles), _digest([str(row) for row in tiles])])
    return found


def walked(subject: Subject) -> Any:
    """Where moves, crossovers and mendings of states lead from a seed, and states that are not what their trees are."""
    return _or_error(lambda: walk(subject))


def walked_elsewhere(subject: Subject) -> dict[str, Any]:
    """The same in two other spaces that the seed chooses, and what a method finds there."""
    found, others = dict[str, Any](), list(elsewhere(subject))
    for i in range(2):
        name, other = others[(subject.seed * 2 + i) % len(others)]
        method, objective = METHODS[(subject.seed + i) % len(METHODS)], goal_of(other)
        asked = (Labelled("", other.problem(objective)),)
        found[name] = walked(other)
        found[f"{name}, {method}, {objective}"] = _or_error(lambda method=method, asked=asked: _by(asked, method))
    return found


def in_machine_code(subject: Subject) -> dict[str, Any]:
    """Privates and rows of trips by machine code, in the space itself and with tiles of the other kind."""
    mapspace = subject.all_trees.mapspace
    other = subject.within(replace(mapspace, name="ffm" if mapspace.name == "ragged" else "ragged"))
    return {"here": _or_error(lambda: annealed(subject)), "other tiles": _or_error(lambda: annealed(other))}


def first_drawn(subject: Subject) -> Any:
    """Which mappings are drawn, and what is made of them, before a search has one."""
    return _or_error(lambda: first_mappings(subject))


QUESTIONS: dict[str, Callable[[Subject], Any]] = {
    "evaluate": evaluated,
    "refuse": refused,
    "execute": executed,
    "list": listed,
    "neighbours": around,
    "states": walked,
    "states elsewhere": walked_elsewhere,
    "machine code": in_machine_code,
    "methods": found_by_methods,
    "exact": optimal,
    "exact by parts": optimal_by_parts,
    "exact elsewhere": optimal_elsewhere,
    "drawn": first_drawn,
    "verify": verified,
    "explain": explained,
    "principles": judged,
}
KINDS = {
    "problem": tuple(name for name in QUESTIONS if name != "principles"),
    "tree": ("evaluate", "refuse", "execute"),
    "zoo": ("states", "machine code", "methods", "exact", "exact by parts", "exact elsewhere", "drawn"),
    "layers": ("exact", "exact by parts", "exact elsewhere", "drawn"),
    "walk": ("states", "machine code", "methods", "drawn"),
    "large": tuple(name for name in QUESTIONS if name not in ("execute", "methods", "verify", "explain", "principles")),
    "pair": ("principles",),
}


def plain(value: Any) -> Any:
    """As it comes back from JSON."""
    return json.loads(json.dumps(value, default=_number))


def _number(value: Any) -> Any:
    return value.item()  # of NumPy
