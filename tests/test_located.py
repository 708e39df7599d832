"""The door: every kind of broken file gives one SpecError that says where."""

from __future__ import annotations

import pickle
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from einloom.errors import SpecError, SpecErrors, nearest
from einloom.reading.located import from_data, read_file, read_text
from einloom.reading.yamltree import dump_yaml

GOOD = """\
schema: machine/1
name: x
size: 3 MiB
list: [a, b]
inner: {one: 1, two: 2}
"""


def test_typed_fields_and_places() -> None:
    view = read_text(GOOD, "good.yaml")
    view.schema("machine", 1)
    assert view.require("name").text() == "x"
    assert view.require("size").number("size") == 3 * 2**23
    assert view.require("list").names() == ("a", "b")
    assert [(key, value.integer()) for key, _, value in view.require("inner").entries()] == [("one", 1), ("two", 2)]
    assert view.get("absent") is None
    view.finish()
    error = view.require("inner").require("two").error("bad")
    assert str(error) == "good.yaml:5:22: bad (at inner.two)"


def test_unknown_keys_are_all_named_with_suggestions() -> None:
    view = read_text("nmae: 1\nsize: 2\nsise: 3\n", "f.yaml")
    view.get("name"), view.get("size")
    with pytest.raises(SpecErrors) as caught:
        view.finish()
    assert [(e.line, e.suggestion) for e in caught.value.problems] == [(1, "name"), (3, "size")]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1:", "stands here twice, first in line 1"),
        ("1: x\n'1': y\n", "f.yaml:2:1:", "stands here twice"),
        ("a: [1, 2\n", "f.yaml:2:1:", "not YAML"),
        ("a: 'x\n", "f.yaml:2:1:", "not YAML"),
        ("a: b: c\n", "f.yaml:1:5:", "not YAML"),
        ("a: \x00", "f.yaml:", "not YAML"),
        ("", "f.yaml:", "empty"),
        ("# nothing\n", "f.yaml:", "empty"),
        ("a: 1\n---\nb: 2\n", "f.yaml:", "2 YAML documents"),
        ("a: !!python/object/apply:os.system ['x']\n", "f.yaml:1:4:", "tag"),
        ("a: !secret x\n", "f.yaml:1:4:", "tag"),
        ("a: *missing\n", "f.yaml:1:4:", "no anchor"),
        ("? {a: 1}\n: 2\n", "f.yaml:1:3:", "key must be plain text"),
        pytest.param("[" * 100_000, "f.yaml:1:1:", "nested deeper", id="brackets"),
        ("a: " + "9" * 500, "f.yaml:1:4:", "400 digits"),
        ("%YAML 9.9\n---\na: 1\n", "f.yaml:1:1:", "not YAML"),
    ],
)
def test_broken_yaml(text: str, place: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_text(text, "f.yaml")
    assert str(caught.value).startswith(place)
    assert message in str(caught.value)


def test_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20)]
    with pytest.raises(SpecError, match="more than 50000 values"):
        read_text("\n".join(lines))


def test_aliases_are_read() -> None:
    assert read_text("a: &x [1, 2]\nb: *x\n").require("b").items()[1].integer() == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_text("a: " + "x" * 10_000_000)
    with pytest.raises(SpecError, match=r"10\.0 MB; einloom reads at most 5 MB"):
        read_file(large)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x80")
    for path in (binary, tmp_path / "none.yaml", tmp_path, "a\0b.yaml"):
        with pytest.raises(SpecError) as caught:
            read_file(path)
        assert caught.value.file == str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n", "key 'schema' is missing"),
        ("schema: workload/1\n", "this is a 'workload' file"),
        ("schema: machine/2\n", "version '2'"),
        ("schema: 1\n", "expected a schema"),
    ],
)
def test_schema(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=r"f\.yaml:1") as caught:
        read_text(text, "f.yaml").schema("machine", 1)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "call", "message"),
    [
        ("a: .nan", lambda v: v.number("energy"), "cannot read"),
        ("a: .inf", lambda v: v.number("energy"), "cannot read"),
        ("a: 1e999", lambda v: v.number("energy"), "finite"),
        ("a: -1 pJ", lambda v: v.number("energy", minimum=0), "may not be negative"),
        ("a: 0", lambda v: v.number("size", positive=True), "greater than zero"),
        ("a: true", lambda v: v.number("size"), "expected a number, found True"),
        ("a: [1]", lambda v: v.number("size"), "expected a number, found a list"),
        ("a: 1.5", lambda v: v.integer(), "not a whole number"),
        ("a: 2**63", lambda v: v.integer(), "too large"),
        ("a: 3", lambda v: v.text(), "expected text, found 3"),
        ("a: ''", lambda v: v.text(), "expected text"),
        ("a: shred", lambda v: v.choice(("shared", "separate")), "did you mean 'shared'"),
        ("a: yes", lambda v: v.boolean(), "expected true or false"),
        ("a: [x, x]", lambda v: v.names(), "stands here twice"),
        ("a: 3", lambda v: v.items(), "expected a list"),
        ("a: [3]", lambda v: v.entries(), "expected a mapping"),
        ("a: {nam: 1}", lambda v: v.require("name"), "key 'name' is missing; is 'nam' meant"),
        ("a: __import__('os').system('x')", lambda v: v.integer(), "is not arithmetic"),
        ("a: 2 * tokns", lambda v: v.integer(names={"tokens": 3}), "did you mean 'tokens'"),
    ],
)
def test_wrong_values_say_where(text: str, call: object, message: str) -> None:
    view = read_text(text, "f.yaml").require("a")
    with pytest.raises(SpecError) as caught:
        call(view)  # type: ignore[operator]
    assert (caught.value.file, caught.value.line) == ("f.yaml", 1) and caught.value.column in (4, 8)
    assert message in str(caught.value)


def test_several_errors_come_at_once() -> None:
    view = read_text("a: x y\nb: 3 pJ\nc: 1\n", "f.yaml")
    for key in "abc":
        with view.gather():
            view.require(key).number("size")
    with pytest.raises(SpecErrors) as caught:
        view.raise_gathered()
    assert [error.line for error in caught.value.problems] == [1, 2]
    assert len(str(caught.value).splitlines()) == 2


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def plain(view: object) -> object:
    """What a view shows, as plain data."""
    node = view._node  # type: ignore[attr-defined]

    def walk(node: object) -> object:
        if node.kind == "mapping":  # type: ignore[attr-defined]
            return {key.scalar: walk(value) for key, value in node.pairs}  # type: ignore[attr-defined]
        if node.kind == "list":  # type: ignore[attr-defined]
            return [walk(item) for item in node.items]  # type: ignore[attr-defined]
        return node.scalar  # type: ignore[attr-defined]

    return walk(node)


@example(
    {
        "ab": {
            "P\u00c3\U000e071e\U00031cd4\u00dc\u00b2r": None,
            "": "H\u00f7\x18V\U000e2637\x9f\U000af3f3\u00c2\u00a8 \x0f",
        }
    }
)
@example({"?a": {"?b": "?c"}, "x": ["?d", {"y": "?"}]})
@example({"_": {":0": None, "x": ":a"}, "x": [":d", {":": ":"}]})
@example({"x": "\x01" * 40 + "\u00c2\u00a8 \x0f" * 8})
@given(st.dictionaries(st.text("abcxyz_", min_size=1, max_size=8), DATA, min_size=1, max_size=4))
def test_what_is_dumped_reads_back(data: dict[str, object]) -> None:
    assert plain(read_text(dump_yaml(data))) == plain(from_data(data))


@given(st.text(max_size=200))
def test_any_text_reads_or_gives_a_spec_error(text: str) -> None:
    with suppress(SpecError):
        read_text(text)


def test_errors_travel_between_processes_and_suggest() -> None:
    errors = SpecErrors([SpecError("a", file="f", line=1, column=2, path="p"), SpecError("b", suggestion="c")])
    assert str(pickle.loads(pickle.dumps(errors))) == "f:1:2: a (at p)\nb; did you mean 'c'?" == str(errors)
    assert nearest("Read_enregy", ["read_energy", "size"]) == "read_energy" and nearest("zzz", ["a"]) is None


def test_plain_data_gives_errors_with_a_path() -> None:
    with pytest.raises(SpecError, match=r"expected a number, found 'x y' \(at a\.b\)|cannot read 'x y'.*\(at a\.b\)"):
        from_data({"a": {"b": "x y"}}).require("a").require("b").integer()
