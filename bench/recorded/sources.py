"""What is asked of others before answers are recorded: all trees, the oracle, the second reading of the rules, verify.

Each check yields a line where an answer is not what an independent source says; one line, and nothing is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from einloom.certify.verify import verify
from einloom.cost.evaluate import evaluate, legality
from einloom.errors import EinloomError, Infeasible
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import print_mapping
from einloom.mapping.tree import Mapping, Split
from einloom.mapspace.ffm.rules import outside
from einloom.mapspace.registry import space_for
from einloom.oracle import simulate
from einloom.problem import Objective
from einloom.questions import problem
from einloom.search.exact import Exact
from einloom.testing.problems.claims import CLAIMS, ProblemTrees, asked, same

from .asked import NARROWER, elsewhere, goal_of
from .subjects import Subject, first_trees

CONVENTIONS = tuple(
    "but is listed; must be backed by; is persistent; has no common backing store; may not hold; must hold; "
    "is stored twice; may not be the backing; is no intermediate; must stand directly above; may serve; "
    "cannot execute; executes no; instances along".split("; ")
)
"""What machines ask for, not data: trees that are refused for these reasons may compute the right values."""
ABOVE = 1 + 1e-9


def disagreements(subject: Subject, answers: dict[str, Any]) -> Iterator[str]:
    """A line for each answer that an independent source contradicts."""
    if subject.kind == "problem":
        yield from (f"{claim}: {said}" for claim, said in asked(subject.all_trees, CLAIMS).items())
        yield from _searched(subject, answers)
        yield from _read_twice(subject)
    if subject.kind in ("problem", "tree"):
        yield from _run(subject, answers)
        yield from _priced_at_once(subject, answers)
    if subject.kind in ("zoo", "large", "layers", "pair"):
        yield from _proven(subject, answers)
    for where, made in answers.get("machine code", {}).items():
        wrong = made["wrong"] if isinstance(made, dict) else ()
        yield from (f"machine code, {where}: {text!r}" for text in wrong)
    if "exact elsewhere" in answers:
        yield from _elsewhere(subject, answers)
    for name, said in answers.get("exact by parts", {}).items():
        other = answers["exact"][name]
        if isinstance(said, str) or isinstance(other, str) or not _alike(said, other):
            yield f"{name}: by parts {said!r}, else {other!r}"
    goal = str(next((one for one in subject.objectives if one.name != "pareto"), "energy"))
    optimum, drawn = _claimed(answers.get("exact", {}).get(goal))[0], answers.get("drawn")
    if optimum is not None and isinstance(drawn, dict) and any(v * ABOVE < optimum for _, v in drawn["values"]):
        yield f"{goal}: drawn {drawn['values']}, the optimum is {optimum!r}"


def _elsewhere(subject: Subject, answers: dict[str, Any]) -> Iterator[str]:
    """In other spaces: wider ones have nothing worse, no listed tree and no method is below, states are right."""
    said, own = answers["exact elsewhere"], {name: _claimed(one)[0] for name, one in answers["exact"].items()}
    for name, other in elsewhere(subject):
        goal = goal_of(other)
        value, bound = _claimed(said.get(f"{name}, {goal}"))
        before = own.get(str(goal))
        if not (value is None or before is None or name in NARROWER) and value == bound and value > before * ABOVE:
            yield f"{name}, {goal}: {value!r}, but {before!r} in the space that it holds"
        about = other.all_trees
        for tree in first_trees(about):
            if legality(about.workload, about.machine, tree):
                continue
            found = goal.value(evaluate(about.workload, about.machine, tree))
            if bound is not None and found * ABOVE < bound:
                yield f"{name}, {goal}: the bound is {bound!r}, but {print_mapping(tree, about.workload)} has {found!r}"
        for question, one in answers.get("states elsewhere", {}).items():
            if question == name and isinstance(one, dict):
                yield from (f"{name}: a state and its tree disagree: {text!r}" for text in one["wrong"])
            elif question.startswith(f"{name}, ") and question.endswith(str(goal)):
                theirs = _claimed(one)[0]
                if theirs is not None and bound is not None and theirs * ABOVE < bound:
                    yield f"{question}: {theirs!r} is below the bound of exact, {bound!r}"


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Equal values and fronts, where either has one; ties may have other mappings."""
    value, theirs = _claimed(one)[0], _claimed(other)[0]
    fronts = [
        [x for point in said.get("front", ()) for x in (point["energy"], point["latency"])] for said in (one, other)
    ]
    pairs = [(value, theirs), *zip(*fronts, strict=False)]
    return len(fronts[0]) == len(fronts[1]) and all(x == y or (x and y and same(x, y)) for x, y in pairs)


def _searched(subject: Subject, answers: dict[str, Any]) -> Iterator[str]:
    """Values, bounds, and mappings of methods, beside the best of all trees."""
    about = subject.all_trees
    goals = {str(one): one for one in (*subject.objectives, Objective("energy"))}
    for name, said in (*answers["exact"].items(), *answers["methods"].items()):
        goal = next(
            (goals[word] for word in (name, name.split(" in ")[0], name.split(", ")[-1]) if word in goals), None
        )
        best = about.best(goal or subject.objectives[0])
        value, bound = _claimed(said)
        if name == "below" and best is not None and "Infeasible" not in str(said):
            yield f"below the optimum exact finds {said!r}"
        elif name == "relaxed" and isinstance(said, float) and best is not None and said > best * ABOVE:
            yield f"the bound over integer tiles, {said!r}, is above the optimum {best!r}"
        elif bound is not None and best is not None and bound > best * ABOVE:
            yield f"{name}: the bound {bound!r} is above the best of all trees, {best!r}"
        elif value is not None and (best is None or value * ABOVE < best):
            yield f"{name}: {value!r} is below the best of all trees, {best!r}"
        elif name == "from a start" and best is not None and not same(value or 0.0, best):
            yield f"from a start exact finds {said!r}, all trees {best!r}"
    if isinstance(states := answers["states"], dict):
        yield from (f"a state and its tree disagree on what is legal: {text!r}" for text in states["wrong"])
    wrong = [check for check in answers["verify"].get("true", ()) if check[1] is False]
    yield from (f"verify says of the true result: {check}" for check in wrong)


def _claimed(said: Any) -> tuple[float | None, float | None]:
    """The value and the bound of an answer, None for what it does not have."""
    if not isinstance(said, dict):
        return None, None
    certificate = said.get("certificate") or {}
    return certificate.get("value"), certificate.get("bound", said.get("bound"))


def _read_twice(subject: Subject) -> Iterator[str]:
    """The rules that trees break, by the space and by the second reading, which knows no limits and no splits but
    sequential ones."""
    from space_rules import Reading  # of the tests, which the command puts on the path

    about = subject.all_trees
    space = about.mapspace
    if space.limits or space.places or space.name != "ffm" or space.order != "program" or space.stores != "own":
        return
    for text in (*subject.trees, *subject.changed):
        tree = subject.parsed(text)
        if problems(about.workload, about.machine, tree) or _concurrent(tree):
            continue
        mine = frozenset(Reading(about.workload, about.machine, space.max_fused_loops, tree).broken)
        reasons = outside(about.workload, about.machine, space, tree)
        theirs = {int(n) for reason in reasons for n in re.findall(r"^rule (\d+)", reason)}
        if (mine ^ theirs) - ({7} if 1 in mine else set()):
            yield f"the second reading says that rules {sorted(mine)} are broken, the space {sorted(theirs)}: {text!r}"


def _concurrent(tree: Mapping) -> bool:
    nests = [tree.nest]
    while nests:
        last = nests.pop()[-1]
        if isinstance(last, Split):
            if last.kind != "sequential":
                return True
            nests += last.branches
    return False


def _run(subject: Subject, answers: dict[str, Any]) -> Iterator[str]:
    """Legal trees compute the right values, illegal ones do not; counts are those of the analysis."""
    about = subject.all_trees
    yield from (line for said in answers["execute"] for line in said.get("differs", ()))
    if about.large:
        return
    for text in (*subject.trees, *subject.changed):
        tree = subject.parsed(text)
        reasons = problems(about.workload, about.machine, tree)
        seen = simulate(about.workload, about.machine, tree)
        right = seen.correct and not seen.reasons
        if not reasons and not right:
            yield f"a tree without a reason against it does not run: {seen.reasons}, {text!r}"
        if reasons and right and not any(word in reason for word in CONVENTIONS for reason in reasons):
            yield f"a tree runs though there are reasons against it: {reasons}, {text!r}"


def _priced_at_once(subject: Subject, answers: dict[str, Any]) -> Iterator[str]:
    """Many choices of tiles in one call cost what each costs alone."""
    about: ProblemTrees = subject.all_trees
    space = space_for(about.workload, about.machine, about.mapspace)
    for text, said in zip(subject.trees, answers["evaluate"], strict=True):
        many = said["at once"]
        if isinstance(many, str) or (many and isinstance(many[0], list) and many[0] and isinstance(many[0][0], str)):
            continue
        skeleton = space.skeleton(subject.parsed(text))
        for row, price in zip(next(iter(space.tilings(skeleton)), ()), many, strict=False):
            one = space.tree(skeleton, row)
            alone = (
                [] if legality(about.workload, about.machine, one) else [*evaluate(about.workload, about.machine, one)]
            )
            if len(alone) != len(price) or not all(map(same, alone, price)):
                yield f"at once {price}, alone {alone}: {text!r}"


def _proven(subject: Subject, answers: dict[str, Any]) -> Iterator[str]:
    """A second route says that the optimum of a network is one; `exact` answers what the closed forms do."""
    best: dict[str, float | None] = {}
    for goal in () if subject.kind == "pair" else subject.objectives:
        try:
            found = Exact().search(subject.problem(goal))
        except EinloomError:
            continue
        best[str(goal)] = found.value
        yield from (f"{goal}: verify says: {reason}" for reason in verify(found).reasons)
    for name, said in {**answers.get("exact", {}), **answers.get("methods", {})}.items():
        value, bound = _claimed(said)
        optimum = best.get(name.split(" in ")[0].split(", ")[-1])
        if optimum is not None and ((value or optimum) * ABOVE < optimum or (bound or 0.0) > optimum * ABOVE):
            yield f"{name}: {value!r}, bound {bound!r}, the optimum is {optimum!r}"
    for name, said in answers.get("principles", {}).items():
        value, bound = _claimed(said["mapping"])
        space, bits = name.removesuffix(" bits").split(", ")
        asked = problem(**{**subject.given, "machine": f"{subject.given['machine']}:glb_bits={bits}", "space": space})
        try:
            best = Exact().search(asked).value
        except Infeasible:
            best = None
        if (best is None) != (value is None):
            yield f"{name}: the closed forms say {value!r}, exact {best!r}"
        elif value is not None and (value * ABOVE < best or bound > best * ABOVE):
            yield f"{name}: the closed forms say {value!r}, bound {bound!r}, exact {best!r}"
