"""Mappings as C programs: on random trees of every kind they compute what NumPy computes and move what the price says,
and a mistake in what they are made of is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import einloom as el
from cases import FIVE_STEP_ATTENTION
from compilers import needs_compiler
from concurrent_trees import concurrent_case, linked_case
from einloom.codegen import run as running
from einloom.codegen.expected import computed, drawn
from einloom.codegen.functions import STAND_INS
from einloom.codegen.run import MappingRun
from einloom.codegen.source import CProgram
from einloom.cost.evaluate import evaluate, legality
from einloom.dataflows.rewrites import rewrite
from einloom.errors import EinloomError, SpecError
from einloom.machine.levels import ComputeUnit, Machine, Memory
from einloom.mapping.text import parse_mapping
from einloom.mapping.tree import Mapping
from einloom.testing.problems.claims import ProblemTrees
from einloom.testing.problems.drawing import draw
from einloom.testing.trees import TreeGrower
from einloom.workload.build import build_workload
from einloom.workload.einsum import Workload
from einloom.workload.notation import FUNCTIONS, parse_einsum
from test_tolls import tolled
from trees import Case, random_case
from wide_trees import wide_case, wide_concurrent_case

pytestmark = needs_compiler


def tolled_case(seed: int) -> Case:
    case = random_case(seed)
    return replace(case, machine=tolled(case.machine, Random(-seed - 1)))


KINDS: dict[str, Callable[[int], Case]] = {
    "random": random_case,
    "wide": wide_case,
    "concurrent": concurrent_case,
    "wide and concurrent": wide_concurrent_case,
    "links": linked_case,
    "tolls": tolled_case,
}


@pytest.fixture(autouse=True)
def compiled_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs are small: what the compiler takes counts."""
    monkeypatch.setattr(running, "FLAGS", ("-std=c99", "-O0"))


def wrong(workload: Workload, machine: Machine, mapping: Mapping) -> tuple[str, ...]:
    """Where a mapping's program differs from NumPy and from the price."""
    cost = evaluate(workload, machine, mapping)
    done = running.run(workload, machine, mapping, cost)
    priced = {
        (a.einsum, a.component, a.tensor, str(a.action)): a.count
        for a in cost.actions
        if a.tensor is not None and a.count
    }
    found = [
        f"{k}: {done.counts.get(k)} not {priced.get(k)}"
        for k in priced | done.counts
        if priced.get(k) != done.counts.get(k)
    ]  # type: ignore[call-overload]
    computed = {a.einsum: a.count for a in cost.actions if a.action == "compute"}
    found += [f"{e}: {done.operations[e]} operations, not {n}" for e, n in computed.items() if done.operations[e] != n]
    return (*found, *([] if done.correct else [f"results: {done.errors} {done.reasons}"]))


def legal(kind: str, seeds: Iterable[int]) -> Iterator[tuple[int, Case]]:
    for seed in seeds:
        case = KINDS[kind](seed)
        if not legality(case.workload, case.machine, case.mapping):
            yield seed, case


FEW = pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 200), marks=pytest.mark.slow)], ids=["few", "more"]
)


@FEW
@pytest.mark.parametrize("kind", KINDS)
def test_programs_compute_and_move_what_they_should(kind: str, seeds: range) -> None:
    cases = list(legal(kind, seeds))
    assert len(cases) > 0.7 * len(seeds)
    assert {seed: said for seed, case in cases if (said := wrong(case.workload, case.machine, case.mapping))} == {}


def problem_trees(seed: int) -> Iterator[tuple[Workload, Machine, Mapping]]:
    """Trees of a drawn problem, which has any feature that files can express: of its space, and grown."""
    subject = ProblemTrees(*draw(seed).files.read, seed)
    if subject.large:
        return
    trees = [tree for tree, _ in Random(seed).sample(subject.trees, min(2, len(subject.trees)))]
    trees += [TreeGrower(Random(f"{seed} {n}"), subject.workload, subject.machine).mapping() for n in range(2)]
    for tree in trees:
        if not legality(subject.workload, subject.machine, tree):
            yield subject.workload, subject.machine, tree


@FEW
def test_programs_of_drawn_problems(seeds: range) -> None:
    said = {seed: found for seed in seeds for one in problem_trees(seed) if (found := wrong(*one))}
    assert said == {}


# -- planted mistakes ------------------------------------------------------------------------------------------

MISTAKES = {  # what is wrong -> text of the program, and what stands there instead
    "the first result of a sum is read": ("if (!complete && !before) return;", ""),
    "a sliding store forgets nothing": ("int known = h->outer == outer,", "int known = 1,"),
    "a sliding store keeps nothing": ("int known = h->outer == outer,", "int known = 0,"),
    "what several instances read counts for each": ("if (s->read_first[lane]) ", ""),
    "what several instances add counts for each": ("if (s->write_first[lane]) ", ""),
    "clean values are written up": ("if (flags & CHANGED || done != needed(s, at)) hand_up", "hand_up"),
    "read-backs count, whatever the machine says": ("if (complete || !ONCE) {", "{"),
    "maxima are added": ("s->maximum ? fmax(a, b) : a + b", "a + b"),
    "partial sums stay above, too": ("if (!complete) {", "if (0) {"),
    "a partial sum is not read before the next is added": ("if (again && back) ++*back;", ""),
    "tolls are free on the way in": ("s->down[k].first[lane]", "0"),
    "tolls are free on the way out": ("s->up[k].first[lane]", "0"),
    "padding counts as read": (
        "if (padding(s->ranks, s->shape, at)) return 0;",
        "if (padding(s->ranks, s->shape, at)) { if (counted) ++*counted; return 0; }",
    ),
    "tiles are cut short": ("high = least(box[r][1], s->shape[r])", "high = least(box[r][1] - (r > 0), s->shape[r])"),
    "the hull is the last box": ("tile.some ? most(tile.high[r], high) : high", "high"),
    "an uneven tile is full": ("return a < b ? a : b;", "return a;"),
    "gaps are filled": ("wanted &= !tile.marks[r]", "wanted &= 1"),
    "stores are never emptied": (
        "static void close_store(int number, long lane) {",
        "static void close_store(int number, long lane) { return;",
    ),
    "who writes to a link is charged there": ("COUNTERS, first", "0, first"),
}
SHOWN_BY: dict[str, tuple[str, Iterable[int]]] = {  # the trees that show it; all the others random ones do
    "tolls are free on the way in": ("tolls", range(20)),
    "tolls are free on the way out": ("tolls", range(20)),
    "who writes to a link is charged there": ("links", range(20)),
    "clean values are written up": ("random", (110, 137, 152)),
    "gaps are filled": ("gaps", ()),
    "the hull is the last box": ("wide", range(60)),
}


MACHINE_OF_TWO = Machine("two", (Memory("DRAM"), Memory("GLB"), ComputeUnit("MAC", 1.0, 1.0)))
GAPS = build_workload(  # two Einsums write every second element each
    "gaps",
    [
        parse_einsum("T[2*v] = relu(A[v])", "even"),
        parse_einsum("T[2*w+1] = neg(A[w])", "odd"),
        parse_einsum("Z[x] = exp(T[x])"),
    ],
    {"v": 4, "w": 4, "x": 8},
    bits=8,
)
BETWEEN = """
store DRAM: A T Z
split sequential:
  - store GLB: T
    for v in 4
    compute even @ MAC
  - store GLB: T
    for w in 4
    compute odd @ MAC
  - for x in 8
    compute Z @ MAC
"""


def trees_of(kind: str, seeds: Iterable[int]) -> Iterator[tuple[Workload, Machine, Mapping]]:
    if kind == "gaps":
        yield GAPS, MACHINE_OF_TWO, parse_mapping(BETWEEN, GAPS, MACHINE_OF_TWO)
    else:
        yield from ((c.workload, c.machine, c.mapping) for _, c in legal(kind, seeds))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, instead = MISTAKES[mistake]
    honest = running.program
    changed = []

    def planted(workload: Workload, machine: Machine, mapping: Mapping) -> CProgram:
        made = honest(workload, machine, mapping)
        changed.append(right in made.text)
        return replace(made, text=made.text.replace(right, instead))

    monkeypatch.setattr(running, "program", planted)
    for one in trees_of(*SHOWN_BY.get(mistake, ("random", range(60)))):
        try:
            noticed = bool(wrong(*one))
        except EinloomError:  # it does not end well: noticed, too
            noticed = True
        if noticed:
            assert changed[-1], "the program does not have what is to be replaced"
            monkeypatch.setattr(running, "program", honest)
            assert wrong(*one) == ()
            return
    pytest.fail("nobody notices")


# -- functions, refusals, files --------------------------------------------------------------------------------

MACHINE = Machine("one", (Memory("DRAM"), ComputeUnit("MAC", 1.0, 1.0)))


def executed(text: str, tree: str, sizes: dict[str, int], machine: Machine = MACHINE) -> MappingRun:
    workload = build_workload("w", [parse_einsum(text)], sizes, bits=8)
    mapping = parse_mapping(tree, workload, machine)
    return running.run(workload, machine, mapping, evaluate(workload, machine, mapping))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_c_and_numpy_mean_the_same_by_a_function(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From -10 to 10, so that bounds are met; of what has no value below 0 some have none, here as in NumPy."""
    monkeypatch.setattr(running, "drawn", lambda workload, seed: {n: 10 * x for n, x in drawn(workload, seed).items()})
    operands = ["A[m]", "B[m]", "C[m]"][: FUNCTIONS[function] or 3]
    tensors = "Z " + " ".join(operand[0] for operand in operands)
    done = executed(
        f"Z[m] = {function}({', '.join(operands)})", f"store DRAM: {tensors}\nfor m in 40\ncompute Z @ MAC", {"m": 40}
    )
    assert done.correct, done
    some = function in ("log", "sqrt", "rsqrt")
    assert 0 < done.infinite["Z"] < 30 if some else not done.infinite
    assert done.stand_ins == ((function,) if function in STAND_INS else ())


def matmul(size: int = 4) -> tuple[Workload, Mapping]:
    workload = build_workload(
        "w", [parse_einsum("Z[m,n] = A[m,k] * B[k,n]")], {"m": size, "n": size, "k": size}, bits=8
    )
    tree = "store DRAM: A B Z\n" + "".join(f"for {v} in {size}\n" for v in "mnk") + "compute Z @ MAC"
    return workload, parse_mapping(tree, workload, MACHINE)


def refused(kind: type[EinloomError], said: str) -> None:
    workload, mapping = matmul()
    with pytest.raises(kind, match=said):
        running.run(workload, MACHINE, mapping, evaluate(workload, MACHINE, mapping))


def test_no_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "COMPILERS", ("no-such-compiler",))
    refused(SpecError, "no C compiler is installed: none of no-such-compiler is found; `simulate` needs none")


def test_a_compiler_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "FLAGS", ("--no-such-flag",))
    refused(EinloomError, "fails: .*no-such-flag")


def test_what_is_too_large_is_refused_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LIMIT", 100)
    refused(SpecError, "the mapping of w takes 304 operations and moves, and 100 are run at most")
    monkeypatch.setattr(running, "LIMIT", 10**9)
    monkeypatch.setattr(running, "MEMORY", 10)
    refused(SpecError, "the program would take 0 MiB")


def test_a_seed_below_zero_is_refused() -> None:
    workload, mapping = matmul()
    with pytest.raises(SpecError, match="seed: at least 0, not -1"):
        running.run(workload, MACHINE, mapping, evaluate(workload, MACHINE, mapping), seed=-1)


def test_online_softmax_is_refused() -> None:
    workload = build_workload(
        "w", [parse_einsum("Z[m] = A[m,k]", reduction="online_softmax")], {"m": 2, "k": 2}, bits=8
    )
    mapping = parse_mapping("store DRAM: A Z\nfor m in 2\nfor k in 2\ncompute Z @ MAC", workload, MACHINE)
    with pytest.raises(SpecError, match="no program for this mapping: not simulated: online softmax in Z"):
        running.program(workload, MACHINE, mapping)


TURNED = (  # keys first, values for all heads, results by column
    "A[l,m,h] = K[k,l] * Q[m,h,k]",
    "B[h,m] = max[l] A[l,m,h]",
    "C[l,m,h] = sub(A[l,m,h], B[h,m])",
    "D[l,m,h] = exp(C[l,m,h])",
    "E[m,h] = D[l,m,h]",
    "F[l,m,h] = div(D[l,m,h], E[m,h])",
    "G[n,m,h] = F[l,m,h] * V[l,n]",
)
STEPS = {  # Einsums below a tile of keys -> the loops of each
    "A": "h m l_s k",
    "B_local": "h m l_s",
    "B": "h m",
    "B_running": "h m",
    "C": "h m l_s",
    "D": "h m l_s",
    "E_part": "h m l_s",
    "B_change": "h m",
    "E_factor": "h m",
    "E": "h m",
    "G_product": "h m n l_s",
    "G_sums": "h m n",
}


def branch(einsum: str, loops: str, pad: str) -> str:
    unit = "" if einsum == "B_running" else " @ MAC"
    lines = [*(f"for {v} in 2" for v in loops.split()), f"compute {einsum}{unit}"]
    return "\n".join(f"{pad}{'- ' if n == 0 else '  '}{line}" for n, line in enumerate(lines))


FUSED = f"""
store DRAM: Q K V B G
store GLB: B E G_sums
split sequential:
  - for l_t in 4
    store GLB: Q K V A B_local B_running C D E_part B_change E_factor G_product
    split sequential:
{chr(10).join(branch(einsum, loops, "      ") for einsum, loops in STEPS.items())}
{branch("G", "h m n", "  ")}
"""


@pytest.mark.parametrize("einsums", [FIVE_STEP_ATTENTION, TURNED], ids=["usual", "turned"])
def test_online_softmax_computes_attention(einsums: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of keys, one after the other: maximum and sum are carried on, results rescaled. Without that it shows."""
    sizes = {"h": 2, "m": 2, "l": 8, "k": 2, "n": 2}
    plain = build_workload("attention", [parse_einsum(text) for text in einsums], sizes, bits=8)
    tiled = rewrite(plain, "online_softmax", tiles=4)
    tree = parse_mapping(FUSED, tiled, MACHINE_OF_TWO)
    cost = evaluate(tiled, MACHINE_OF_TWO, tree)
    done = running.run(tiled, MACHINE_OF_TWO, tree, cost)
    assert done.correct and done.online and set(done.errors) == {"B", "G"}
    assert wrong(tiled, MACHINE_OF_TWO, tree) == ()
    honest = running.program
    for right, instead in (
        ("scale * h->value[n]", "h->value[n]"),
        ("const double last = ", "const double last = 0; //"),
        ("last - v1", "v0 - v1"),
    ):
        made = honest(tiled, MACHINE_OF_TWO, tree)
        assert right in made.text
        planted = replace(made, text=made.text.replace(right, instead))
        monkeypatch.setattr(running, "program", lambda *_, planted=planted: planted)
        assert not running.run(tiled, MACHINE_OF_TWO, tree, cost).correct


def test_a_kept_program_runs_by_itself(tmp_path: Path) -> None:
    workload, mapping = matmul()
    done = running.run(workload, MACHINE, mapping, evaluate(workload, MACHINE, mapping), keep=tmp_path / "kept")
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert kept == sorted(running.files_of(running.program(workload, MACHINE, mapping)))
    before = (tmp_path / "kept" / "results.bin").read_bytes()
    (tmp_path / "kept" / "results.bin").unlink()
    running._told([done.compiler, *running.FLAGS, "mapping.c", "-lm"], tmp_path / "kept", "compiling")
    printed = running._told(["./a.out"], tmp_path / "kept", "running")
    assert "Z\tDRAM\tA\tread\t64" in printed
    assert (tmp_path / "kept" / "results.bin").read_bytes() == before


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old", encoding="utf-8")
    workload, mapping = matmul()
    with pytest.raises(SpecError, match="file"):
        running.run(workload, MACHINE, mapping, evaluate(workload, MACHINE, mapping), keep=tmp_path / "file")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "old"


def test_names_from_a_file_stay_words() -> None:
    """Whatever tensors, Einsums and memories are called, the program has it in comments and strings alone."""
    machine = Machine('D"; */ exit(1); /* ??/', (Memory('D"; */ exit(1); /* ??/ \\'), ComputeUnit("MAC", 1.0, 1.0)))
    workload, mapping = matmul()
    name = machine.memories[0].name
    moved = Mapping(tuple(replace(n, memory=name) if hasattr(n, "memory") else n for n in mapping.nest))
    done = running.run(workload, machine, moved, evaluate(workload, machine, moved))
    assert done.correct
    assert done.counts["Z", name, "A", "read"] == 64


@pytest.mark.parametrize("stored", [2, 3, 4])
def test_a_product_may_read_a_part_of_a_tensor(stored: int) -> None:
    """I has another size than the rank m: what is outside counts as zero."""
    named = ("T[] = I[m] * J[m]", "U[p] = exp(I[p+r])")
    workload = build_workload(
        "part",
        [parse_einsum(text) for text in named],
        {"m": 2, "p": 2, "r": 2},
        bits=dict.fromkeys("IJTU", 8),
        shapes={"I": (stored,), "J": (2,), "T": (), "U": (2,)},
        outputs=("T", "U"),
    )
    given = drawn(workload, 3)
    found, padded = computed(workload, given), np.append(given["I"], np.zeros(4))
    np.testing.assert_allclose(found["T"], padded[:2] @ given["J"])
    np.testing.assert_allclose(found["U"], sum(np.exp(padded[r : r + 2]) for r in range(2)))


def test_seventy_einsums_with_uneven_tiles() -> None:
    """More Einsums than a word has bits, in the last iteration of whose loop some of a tile is missing."""
    count, machine = 70, Machine("one", (Memory("DRAM"), Memory("GLB"), ComputeUnit("MAC", 1.0, 1.0)))
    einsums = [parse_einsum(f"T{i + 1}[m] = relu(T{i}[m])") for i in range(count)]
    workload = build_workload("long", einsums, {"m": 5}, bits=8)
    kept = " ".join(f"T{i}" for i in range(1, count))
    branches = "\n".join(f"  - for m in 3\n    compute T{i + 1} @ MAC" for i in range(count))
    tree = f"store DRAM: T0 T{count}\nfor m in 2 tile 3\nstore GLB: {kept}\nsplit sequential:\n{branches}"
    assert wrong(workload, machine, parse_mapping(tree, workload, machine)) == ()


def test_operations_that_were_not_done_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    workload, mapping = matmul()
    done = el.run(workload, MACHINE, mapping)
    assert done.ok and done and "equal to NumPy" in str(done)
    honest = running.program

    def planted(*asked: Any) -> CProgram:
        made = honest(*asked)
        return replace(made, text=made.text.replace("operations[0]++;", ""))

    monkeypatch.setattr(running, "program", planted)
    done = el.run(workload, MACHINE, mapping)
    assert done.differences == ("operations of Z: executed 0, priced 64",)
    assert not done and "operations of Z: executed 0, priced 64" in str(done)


def test_a_large_mapping_says_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "A_SECOND", 100)
    workload, mapping = matmul()
    heard: list[str] = []
    running.run(workload, MACHINE, mapping, evaluate(workload, MACHINE, mapping), said=heard.append)
    assert [text.split()[0] for text in heard] == ["compiling", "running", "comparing"]
    assert heard[1] == "running 304 operations and moves, about 3 s"
