"""Expressions and templates of foreign files mean what they say, and can do nothing else."""

from __future__ import annotations

import doctest
import importlib
from fractions import Fraction

import pytest

from einloom.errors import SpecError
from einloom.interop.accelforge.expressions import TensorSet, evaluate
from einloom.interop.accelforge.tagged import parse_tagged
from einloom.interop.accelforge.template import expand

SPACE = frozenset("ABZ")
NAMES = {
    "All": TensorSet(SPACE, SPACE, {"A": 8, "B": 8, "Z": 32}),
    "weight": TensorSet(frozenset("B"), SPACE, {"A": 8, "B": 8, "Z": 32}),
    "Nothing": TensorSet(frozenset(), SPACE, {}),
    "n": Fraction(4),
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1024*64*8", 524288),
        ("8 * 38.4e9", Fraction(307200000000)),
        ("weight.bits_per_value if weight else 0", 8),
        ("Nothing.bits_per_value if Nothing else 0", 0),
        ("len(All) == 3", True),
        ("len(~weight) - 1", 1),
        ("sum(i * i for i in range(n) if i > 1)", 13),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("max(1, 2.5)", Fraction(5, 2)),
        ("'a' in {'a': 1} and not False", True),
        ("m | default(7)", 7),
        ("m is defined", False),
        ("min(inf, 3)", 3),
    ],
)
def test_values(text: str, value: object) -> None:
    assert evaluate(text, NAMES) == value


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "().__class__.__bases__[0].__subclasses__()",
        "open('/etc/passwd').read()",
        "exec('1')",
        "eval('1')",
        "(lambda: 1)()",
        "All.__class__",
        "weight.bits.__class__",
        "getattr(All, 'names')",
        "[x for x in range(10**9)]",
        "9**9**9",
        "10**(10**6)",
        "'a' * 10**9",
        "[0] * 10**9",
        "sum(sum(j for j in range(9999)) for i in range(9999))",
        "f'{n}'",
        "n := 3",
        "{**{}}",
        "[*range(3)]",
        "1 / 0",
        "0 * inf",
        "dict(a=1)",
        "range(3, 4, 0)",
        "(" * 500 + ")" * 500,
        "n" * 3000,
        "1 if",
        "'a' < 1",
        "len(3)",
        "All + All",
        "unknown_name",
    ],
)
def test_nothing_else_is_evaluated(text: str) -> None:
    with pytest.raises(SpecError):
        evaluate(text, NAMES)


def test_unknown_names_are_corrected() -> None:
    with pytest.raises(SpecError, match="did you mean 'weight'"):
        evaluate("wieght", NAMES)


def test_templates() -> None:
    text = (
        "{% set n = n | default(2) %}\n"
        "items:\n"
        "{% for i in range(n) %}\n"
        "- {name: T{{ i }}, last: {{ i + 1 == n }}}\n"
        "{% endfor %}\n"
        "{% if n > 2 %}\nmore: yes\n{% elif n == 2 %}\nmore: two\n{% else %}\nmore: no\n{% endif %}\n"
    )
    view = parse_tagged(text)
    assert [item.require("name").text() for item in view.require("items").items()] == ["T0", "T1"]
    assert view.require("more").text() == "two"
    assert len(parse_tagged(text, values={"n": Fraction(3)}).require("items").items()) == 3


def test_errors_point_into_the_template() -> None:
    text = "a: 1\n{% for i in range(3) %}\n# comment\n- {{ i }}\n{% endfor %}\nb: [\n"
    with pytest.raises(SpecError) as caught:
        parse_tagged(text, "t.yaml")
    assert caught.value.file == "t.yaml"
    assert caught.value.line is not None
    assert caught.value.line <= 7
    with pytest.raises(SpecError, match=r"t\.yaml:2") as caught:
        expand("a\n{{ missing }}\n", "t.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "{{ include_text('secret.yaml') }}",
        "{% include 'secret.yaml' %}",
        "{{ add_to_path('..') }}",
        "{% for i in range(10**9) %}x{% endfor %}",
        "{% for i in range(9999) %}{% for j in range(9999) %}xxxxxxxxxx{% endfor %}{% endfor %}",
        "{% for i in range(3) %}",
        "{% endfor %}",
        "{% else %}",
        "{% import os %}",
        "{% set x %}",
        "{% if 1 %}" * 50,
        "{% set x = 'a' %}{{ x.__class__ }}",
        "{% set x = [1] %}" + "{% set x = x + x %}" * 60,
        "{{ self }}",
        "{{ ''.join(['a']) }}",
    ],
)
def test_templates_can_do_nothing_else(text: str) -> None:
    with pytest.raises(SpecError):
        expand(text, "t.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['true']",
        "a: !!python/name:os.system",
        "- !Memory name",
        "- !Memory [1]",
        "a: &a [*a]",
        "<<: 3\n",
        "- !<tag:yaml.org,2002:map> {a: 1}",
    ],
)
def test_tags_construct_nothing(text: str) -> None:
    with pytest.raises(SpecError):
        parse_tagged(text)


@pytest.mark.parametrize("name", ["expressions", "sets", "tagged", "template", "write"])
def test_examples(name: str) -> None:
    tested = doctest.testmod(importlib.import_module(f"einloom.interop.accelforge.{name}"))
    assert (tested.failed, tested.attempted > 0) == (0, True)


def test_merge_keys() -> None:
    view = parse_tagged("x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz: {<<: [*x, *y], a: 0}\n")
    found = {name: value.integer() for name, _, value in view.require("z").entries()}
    assert found == {"a": 0, "b": 2, "c": 4}
