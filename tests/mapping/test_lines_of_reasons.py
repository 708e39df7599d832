"""Reasons against a mapping name the line that they are about: the one that ends with ``# here`` in each text."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import einloom as el
from cases import cascade, machine, simple
from commands import run
from einloom.cost.evaluate import legality
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Link, Machine, Memory
from einloom.mapping.legality.reason import Reason, lines_of
from einloom.mapping.text import parse_located
from einloom.mapping.tree import Store
from einloom.workload.einsum import Workload

MATMUL = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 4, "n": 4, "k": 4})
TWO = cascade("E0: T[m,n] = A[m,k] * B[k,n]\nE1: Z[m,q] = T[m,n] * C[n,q]", {"m": 4, "n": 4, "k": 4, "q": 4})
SPREAD = machine(
    Memory("DRAM"), Memory("GLB", size=30), Fanout("F", (Axis("X", 4),)), Memory("Reg"), ComputeUnit("MAC")
)
LINKED = machine(Memory("DRAM"), Fanout("F", (Axis("X", 4),)), Link("NoC", axis="X"), Memory("Reg"), ComputeUnit("MAC"))
ALONE = "for m in 4\nfor n in 4\nfor k in 4\n"
FIRST = "  - for m in 4\n    for n in 4\n    for k in 4\n    compute E0 @ MAC\n"
SECOND = "  - for m in 4\n    for n in 4\n    for q in 4\n    compute E1 @ MAC\n"


@pytest.mark.parametrize(
    ("workload", "on", "text", "reason"),
    [
        (MATMUL, simple(), f"store DRAM: A B Z\n{ALONE}compute E # here", "names no compute unit"),
        (MATMUL, simple(), f"store DRAM: A Z\n\n{ALONE}compute E @ MAC # here", "B has no store on its path"),
        (MATMUL, simple(), f"store DRAM: A B B Z # here\n{ALONE}compute E @ MAC", "names B 2 times"),
        (MATMUL, simple(), f"store DRAM: A B Z\n# two\nstore DRAM: A # here\n{ALONE}compute E @ MAC", "stored twice"),
        (MATMUL, SPREAD, f"store DRAM: A B Z\nstore Reg: A\nstore GLB: A # here\n{ALONE}compute E @ MAC", "further in"),
        (MATMUL, simple(), f"store GLB: A # here\nstore DRAM: B Z\n{ALONE}compute E @ MAC", "must be backed by DRAM"),
        (
            MATMUL,
            simple(),
            "store DRAM: A B Z\nfor m in 4\nfor m in 9 # here\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            "more trips than",
        ),
        (
            MATMUL,
            simple(),
            "store DRAM: A B Z\nfor m in 2\nfor n in 4\nfor m in 1 # here\nfor k in 4\ncompute E @ MAC",
            "m still has extent 2",
        ),
        (MATMUL, simple(), "store DRAM: A B Z\nfor m in 4\nfor n in 4\ncompute E @ MAC # here", "k still has extent 4"),
        (
            MATMUL,
            simple(),
            "store DRAM: A B Z\nfor m in 4 # first\nfor n in 3 tile 2 # here\nfor n in 2\nfor k in 4\ncompute E @ MAC",
            "tiles of 2 need 2 trips",
        ),
        (
            MATMUL,
            simple(),
            "for k in 4 # here\nfor m in 4\nstore DRAM: A B Z\nfor n in 4\ncompute E @ MAC",
            "unfinished reduction",
        ),
        (
            MATMUL,
            SPREAD,
            "store DRAM: A B Z\npar m in 2 @ X\npar m in 2 @ X\npar n in 2 @ X # here\nfor n in 2\nfor k in 4\n"
            "compute E @ MAC",
            "uses 8 instances along X, which has 4",
        ),
        (
            MATMUL,
            SPREAD,
            "store DRAM: A B Z\nstore Reg: A # here\npar m in 4 @ X\nfor n in 4\nfor k in 4\ncompute E @ MAC",
            "store Reg stands above 'par m in 4 @ X'",
        ),
        (
            MATMUL,
            SPREAD,
            "store DRAM: A B Z\nfor m in 2\nstore GLB: A Z\nstore GLB: B # here\nfor m in 2\nfor n in 4\nfor k in 4\n"
            "compute E @ MAC",
            "capacity: GLB holds 30 bits, needs 32 (A 8, Z 8, B 16)",
        ),
        (TWO, simple(), f"store DRAM: A B C Z\nstore GLB: T\nsplit sequential: # here\n{FIRST}", "E1 has 0 leaves"),
        (
            TWO,
            simple(),
            f"store DRAM: A B C Z\nstore GLB: T\nsplit sequential:\n{FIRST}{SECOND}{FIRST}".rstrip() + " # here",
            "E0 has 2 leaves",
        ),
        (
            TWO,
            simple(),
            f"store DRAM: A B C Z T\nsplit sequential:\n{SECOND}".rstrip() + f" # here\n{FIRST}",
            "E1 reads T but stands before its producer E0",
        ),
        (
            TWO,
            simple(),
            "store DRAM: A B C Z\nsplit sequential:\n"
            + FIRST.replace("  - ", "  - store GLB: T\n    ")
            + SECOND.replace("  - ", "  - store GLB: T # here\n    "),
            "T has no common backing store",
        ),
        (
            TWO,
            simple(),
            "store DRAM: A B C Z T\nsplit sequential:\n"
            + FIRST.replace("  - ", "  - store GLB: C # here\n    ")
            + SECOND,
            "store GLB holds C, which no Einsum below it accesses",
        ),
        (
            TWO,
            simple(),
            f"store DRAM: A B C Z T\n\n\nsplit parallel shared: # here\n{FIRST}{SECOND}",
            "E1 reads T, which E0 in another branch writes",
        ),
        (
            TWO,
            SPREAD,
            f"store DRAM: A B C Z T\nstore Reg: C # here\nsplit pipelined @ X:\n{FIRST}{SECOND}",
            "store Reg stands above 'split pipelined @ X'",
        ),
        (
            TWO,
            LINKED,
            f"store DRAM: A B C Z\n\nstore NoC: T # here\nsplit pipelined @ X:\n{FIRST}{SECOND}",
            "has no store in the stage of E0",
        ),
        (
            TWO,
            LINKED,
            f"store DRAM: A B C Z\nstore DRAM: T\nstore NoC: T # here\nsplit sequential:\n{FIRST}{SECOND}",
            "must stand directly above a 'split pipelined @ X'",
        ),
    ],
)
def test_a_reason_has_its_line(workload: Workload, on: Machine, text: str, reason: str) -> None:
    located = parse_located(text, workload, on)
    found = legality(workload, on, located.mapping)
    here = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith("# here")]
    mine = [line for one, line in zip(found, lines_of(located, found), strict=True) if reason in one]
    assert mine[:1] == here, found


def test_parsed_trees_are_as_before_and_their_lines_beside_them() -> None:
    text = f"# mine\nstore DRAM: A B C Z T\n\nsplit sequential:\n{FIRST}{SECOND}"
    located = parse_located(text, TWO, simple(), "m.txt")
    assert located.file == "m.txt" and located.lines == (2, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    again = parse_located(text.replace("# mine\n", ""), TWO, simple())
    assert again.mapping == located.mapping and hash(again.mapping) == hash(located.mapping)
    assert again.lines != located.lines


def test_a_node_that_looks_like_another_has_its_own_line() -> None:
    text = "store DRAM: A B Z\nfor m in 2\nfor m in 2\nfor m in 2\nfor n in 4\nfor k in 4\ncompute E @ MAC\n"
    located = parse_located(text, MATMUL, simple())
    found = legality(MATMUL, simple(), located.mapping)
    assert [*zip(lines_of(located, found), found, strict=True)] == [
        (4, "E: 'for m in 2': m has extent 1 here, so tiles of 1 need 1 trips, not 2")
    ]


def test_a_reason_is_a_text() -> None:
    reason = Reason("it is full", Store("GLB", ("A",)))
    for one in (reason, copy.deepcopy(reason), pickle.loads(pickle.dumps(reason))):
        assert one == "it is full" and {one: 1}["it is full"] and one.node == reason.node
    error = pickle.loads(pickle.dumps(el.IllegalMapping([reason], "m.txt", [3])))
    assert str(error) == "m.txt:3: it is full" and error.reasons == ("it is full",) and error.lines == (3,)


TINY, MACHINE = "matmul:m=2,n=2,k=2", "simple:glb_bits=16,dram_energy=10"
BAD = "# by hand\nstore DRAM: A B Z\nfor m in 4\nfor n in 2\nfor k in 1\ncompute Z @ MAC\n"


def written_to(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("verb", ["evaluate", "simulate", "run"])
def test_verbs_print_file_and_line(tmp_path: Path, verb: str) -> None:
    path = written_to(tmp_path / "bad.txt", BAD.replace("m in 4", "m in 1"))
    assert run(verb, TINY, MACHINE, path) == (
        1,
        f"einloom: {path}: the mapping is illegal:\n"
        f"  {path}:3: Z: m still has extent 2 at the leaf; loops must bring it to 1\n"
        f"  {path}:5: Z: k still has extent 2 at the leaf; loops must bring it to 1\n",
    )


def test_a_start_has_its_line(tmp_path: Path) -> None:
    path = written_to(tmp_path / "bad.txt", BAD)
    code, output = run("map", TINY, MACHINE, "--start", path)
    said = "a search cannot start from this mapping: it is illegal: 'for m in 4' has more trips than"
    assert code == 2 and f"einloom: {path}:3: {said}" in output


def test_the_first_reasons_are_printed_and_all_are_kept(tmp_path: Path) -> None:
    loops = "".join(f"for m in {trips}\n" for trips in range(3, 16))
    path = written_to(tmp_path / "many.txt", f"store DRAM: A B Z\n{loops}for n in 2\nfor k in 2\ncompute Z @ MAC\n")
    with pytest.raises(el.IllegalMapping) as caught:
        el.evaluate(TINY, MACHINE, path)
    assert caught.value.lines == tuple(range(2, 15)) and len(caught.value.reasons) == 13
    code, output = run("evaluate", TINY, MACHINE, path)
    assert code == 1 and output.splitlines() == [
        f"einloom: {path}: the mapping is illegal:",
        *(f"  {reason}" for reason in caught.value.placed[:10]),
        "  ... and 3 more",
    ]


def test_a_text_has_lines_and_a_tree_has_none() -> None:
    with pytest.raises(el.IllegalMapping, match=r"^line 3: 'for m in 4' has more trips") as caught:
        el.evaluate(TINY, MACHINE, BAD)
    assert caught.value.reasons[0].startswith("'for m in 4'") and caught.value.lines == (3,)
    asked = el.map(TINY, MACHINE)
    tree = parse_located(BAD, asked.workload, asked.machine).mapping
    with pytest.raises(el.IllegalMapping, match=r"^'for m in 4' has more trips"):
        el.evaluate(TINY, MACHINE, tree)


def test_a_saved_result_is_named_without_a_line(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    assert run("map", TINY, "simple", "--json", path)[0] == 0
    text = path.read_text(encoding="utf-8")
    assert text.count("for m in 2") >= 1
    path.write_text(text.replace("for m in 2", "for m in 4"), encoding="utf-8")
    for arguments in ((path,), (TINY, "simple", path)):
        code, output = run("evaluate", *arguments)
        assert code == 1 and f"einloom: {path}: the mapping is illegal:\n  {path}: 'for m in 4' has more" in output
