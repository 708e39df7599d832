"""`einloom.dataclass` makes classes that do what those of `dataclasses` do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field, fields, replace
from typing import Any

import pytest

from einloom.dataclass import dataclass

BOTH = (dataclass, dataclasses.dataclass)
OPTIONS = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"eq": False},
    {"frozen": True, "eq": False},
    {"frozen": True, "repr": False},
]


def made(how: Any, options: dict[str, bool]) -> tuple[type, type]:
    """A class and one that inherits from it."""

    @how(**options)
    class Base:
        """A base."""

        a: int
        b: list[int] = field(default_factory=list)
        c: str = "c"

    @how(**options)
    class Kin(Base):
        """Of its kin."""

        d: int = 4
        unseen: float = field(default=0.5, compare=False, repr=False)
        found: int = field(default=7, init=False)
        named: int = field(kw_only=True)

    return Base, Kin


CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((1,), {"named": 2}),
    ((1, [2], "x", 5, 0.25), {"named": 2}),
    ((1, [2], "x", 5, 0.75), {"named": 2}),
    ((), {"a": 1, "d": 3, "named": 2}),
    ((), {"named": 1}),
    ((1, 2, 3, 4, 5, 6), {"named": 1}),
    ((1,), {"named": 1, "found": 2}),
    ((1,), {"named": 1, "other": 2}),
    ((1,), {}),
)


def said(action: Callable[[], object]) -> object:
    """What an action answers, or how it fails."""
    try:
        return action()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_objects_are_alike(options: dict[str, bool]) -> None:
    kinds = [made(how, options)[1] for how in BOTH]

    def values(kind: type, call: tuple[tuple[Any, ...], dict[str, Any]]) -> object:
        one = kind(*call[0], **call[1])
        return [getattr(one, f.name) for f in fields(one)], repr(one) if options.get("repr", True) else ""

    for call in CALLS:
        ours, theirs = (said(lambda k=kind, c=call: values(k, c)) for kind in kinds)
        assert ours == theirs
    assert str(inspect.signature(kinds[0])) == str(inspect.signature(kinds[1]))
    assert [f.name for f in fields(kinds[0])] == [f.name for f in fields(kinds[1])]
    assert kinds[0].__match_args__ == kinds[1].__match_args__
    assert (kinds[0].__doc__, kinds[0].__qualname__) == (kinds[1].__doc__, kinds[1].__qualname__)
    assert hasattr(kinds[0](1, named=1), "__dict__") == hasattr(kinds[1](1, named=1), "__dict__")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_comparisons_are_alike(options: dict[str, bool]) -> None:
    """Equality of every pair, the hash, and replaced and copied objects."""
    answers = []
    for how in BOTH:
        base, kin = made(how, options)
        objects = [kin(1, (), named=2), kin(1, (), named=2, unseen=9.0), kin(1, (), named=3), base(1, ()), 1]
        hashed = [said(lambda one=one, first=objects[0]: hash(one) == hash(first)) for one in objects[:4]]
        copies = [replace(objects[0], a=5).a, copy.copy(objects[0]).named, copy.deepcopy(objects[0]).b]
        answers.append(([[one == two for two in objects] for one in objects], hashed, copies))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_refusals_are_alike(options: dict[str, bool]) -> None:
    answers = []
    for how in BOTH:
        _, kin = made(how, options)

        class Loose(kin):  # type: ignore[misc, valid-type]
            """Not a dataclass: it may have names of its own."""

        found = []
        for one in (kin(1, named=2), Loose(1, named=2)):
            for name in ("a", "d", "more"):
                found.append(said(lambda one=one, name=name: setattr(one, name, 3)))
                found.append(said(lambda one=one, name=name: delattr(one, name)))
        answers.append(found)
    # a slotted class of `dataclasses` looks itself up by a class that it no longer is, where it may have no such name
    beyond = {i for i, (ours, theirs) in enumerate(zip(*answers, strict=True)) if ours != theirs}
    assert not beyond or (options.get("frozen") and options.get("slots"))
    assert all(isinstance(answers[0][i], tuple) or answers[0][i] is None for i in beyond)


@dataclass(frozen=True, slots=True)
class Kept:
    """One that is pickled."""

    a: int
    b: tuple[int, ...] = ()


def test_a_frozen_object_with_slots_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,))


def test_own_methods_stay() -> None:
    @dataclass(frozen=True)
    class Own:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    assert (Own(1), hash(Own(1)), repr(Own(1))) == (Own(2), 5, "own")


def test_what_is_done_after_the_fields_are_set() -> None:
    @dataclass(frozen=True, slots=True)
    class Even:
        a: int

        def __post_init__(self) -> None:
            if self.a % 2:
                raise ValueError("odd")

    assert Even(2).a == 2
    with pytest.raises(ValueError, match="odd"):
        Even(1)


def test_kin_of_other_packages() -> None:
    """A package's class made by `dataclasses` may inherit from a frozen one, and may not thaw it."""
    base, _ = made(dataclass, {"frozen": True})

    @dataclasses.dataclass(frozen=True)
    class Theirs(base):  # type: ignore[misc, valid-type]
        z: int = 0

    assert Theirs(1, z=3) == Theirs(1, z=3)
    with pytest.raises(TypeError, match="non-frozen"):
        dataclasses.dataclass(type("Thawed", (base,), {}))


def test_nothing_is_compiled_before_it_is_asked_for() -> None:
    _, kin = made(dataclass, {"frozen": True, "slots": True})
    assert not any(inspect.isfunction(kin.__dict__[name]) for name in ("__init__", "__eq__", "__hash__"))
    assert kin(1, (), named=2) == kin(1, (), named=2)
    assert inspect.isfunction(kin.__dict__["__init__"])
    assert inspect.isfunction(kin.__dict__["__eq__"])
    assert not inspect.isfunction(kin.__dict__["__hash__"])
