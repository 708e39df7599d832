"""No published optimum stands in the sources: the searches find their numbers, they do not know them.

Every number of at least six significant digits in `tests/published` and in the table of docs/peer.md is looked for in
every source and data file of the package, whatever its notation: underscores, exponents, other units (a power of ten
changes no digit), hexadecimal, or arithmetic of constants.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "einloom"
DIGITS = 6
PAPERS = (
    PACKAGE / "published"
)  # tables of the papers, shown beside what is computed; nothing that computes imports them
NUMBER = re.compile(
    r"(?<![\w.])(0[xX][0-9a-fA-F_]+|\d{1,3}(?:,\d{3})+(?!\d)|\d[\d_]*\.?[\d_]*(?:[eE][+-]?\d+)?|\.\d[\d_]*(?:[eE][+-]?\d+)?)"
)
FOLDED = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}


def digits(number: int | float | str) -> str:
    """The significant digits of a number, without sign, point, exponent and zeros at the end: 1.50e-3 has 15."""
    shown = Decimal(repr(number) if not isinstance(number, str) else number).normalize()
    return "".join(map(str, shown.as_tuple().digits))


POWERS = {digits(2**n) for n in range(64)}


def written(text: str) -> Iterator[str]:
    """The digits of every number that is written in a text."""
    for match in NUMBER.finditer(text):
        token = match.group(1).replace("_", "").replace(",", "")
        if token.lower().startswith("0x"):
            yield digits(int(token, 16)) if len(token) > 2 else "0"
        else:
            yield digits(token)


def folded(node: ast.AST) -> int | float | None:
    """The value of an expression of constants, or None."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int | float) and not isinstance(node.value, bool) else None
    if isinstance(node, ast.BinOp) and type(node.op) in FOLDED:
        left, right = folded(node.left), folded(node.right)
        if left is None or right is None or (isinstance(node.op, ast.Pow) and abs(right) > 64):
            return None
        try:
            return FOLDED[type(node.op)](left, right)
        except (ArithmeticError, ValueError, TypeError):
            return None
    return None


def computed(text: str) -> Iterator[str]:
    """The digits of every sum, product or power of constants in Python source."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.BinOp) and (value := folded(node)) is not None:
            yield digits(value)


def numbers_of(name: str, text: str) -> set[str]:
    found = set(written(text))
    return found | set(computed(text)) if name.endswith(".py") else found


def published() -> set[str]:
    """The digits of all long numbers of the published tests and of the optima in docs/peer.md.

    Powers of two are sizes of ranks and memories as well; what an optimum has in common with them proves nothing.
    """
    found: set[str] = set()
    for path in sorted((ROOT / "tests" / "published").iterdir()):
        if path.suffix in {".py", ".yaml", ".json", ".csv"}:
            found |= numbers_of(path.name, path.read_text(encoding="utf-8"))
    for line in (ROOT / "docs" / "peer.md").read_text(encoding="utf-8").splitlines():
        cells = line.split("|")
        if len(cells) > 5:
            found |= set(written(" ".join(cells[3:5])))
    return {number for number in found if len(number) >= DIGITS} - POWERS


def same(a: str, b: str) -> bool:
    """True if one number is the other, rounded or cut to at least six digits."""
    if min(len(a), len(b)) < DIGITS:
        return False
    short, long = sorted((a, b), key=len)
    kept = long[: len(short)]
    return short == kept or int(short) == int(kept) + (long[len(short) : len(short) + 1] >= "5")


def leaks(name: str, text: str, known: set[str]) -> set[str]:
    """The published numbers that a file contains."""
    heads: dict[str, list[str]] = {}
    for number in known:
        for head in (number[: DIGITS - 1], str(int(number[: DIGITS - 1]) + 1)):  # rounding up may change the head
            heads.setdefault(head, []).append(number)
    mine = numbers_of(name, text) - POWERS
    return {other for number in mine for other in heads.get(number[: DIGITS - 1], ()) if same(number, other)}


def test_no_published_optimum_stands_in_the_sources() -> None:
    known = published()
    files = [
        path
        for path in sorted(PACKAGE.rglob("*"))
        if path.suffix in {".py", ".yaml", ".yml", ".json", ".txt"} and PAPERS not in path.parents
    ]
    assert len(files) > 50
    found = {str(path.relative_to(ROOT)): leaks(path.name, path.read_text(encoding="utf-8"), known) for path in files}
    assert not {path: numbers for path, numbers in found.items() if numbers}


def test_the_published_numbers_are_read() -> None:
    known = published()
    assert len(known) >= 40
    for optimum in (11862016, 22.154125, 1.0824780e-3, 0.15934879, 73976516706304, 4887672782848, 18466211889152):
        assert digits(optimum) in known


@pytest.mark.parametrize(
    "text",
    [
        "BEST = 11862016",
        "BEST = 11_862_016",
        "BEST = 0xB50000",
        "BEST = 1.1862016e7",
        "BEST = 181 * 65536",
        "BEST = 181 << 16",
        "BEST = {'edp': '22.154125'}",
        "BEST = 2215.41254149413",
        "BEST = 22.1541",
        "BEST = 2 * 11.0770625",
        "# about 159.34879 mJ",
        "BEST = 0.159349",
    ],
)
def test_the_scan_finds_an_optimum_in_any_notation(text: str) -> None:
    assert leaks("some.py", text, published())


@pytest.mark.parametrize(
    "text", ["SIZE = 134217728", "N = 4096 * 4096", "E = 0.00234", "T = 1.05e9", "X = 2**27", "N = 1 << 18"]
)
def test_the_scan_leaves_other_numbers_alone(text: str) -> None:
    assert not leaks("some.py", text, published())
