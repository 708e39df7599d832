"""The RTL against NumPy and the cycle model: a few jobs in Amaranth's simulator, some dozen under Verilator.

`python -m bench.rtl` runs more than a thousand.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("amaranth", reason="the extra rtl (amaranth) is not installed")

from einloom.fabric import tools
from einloom.fabric.describe import NAMES, Fabric, fabric
from einloom.fabric.simulate import Compiled, Ran, by_amaranth, warnings
from einloom.fabric.streams import Job
from einloom.fabric.trials import random_job

RTL = "einloom.fabric.rtl"
MISTAKES = (
    ("element", "Mux(self.own, psum, self.left_psum)", "self.left_psum"),
    ("element", "psum.eq((addend + act * weight)", "psum.eq((addend + act * self.top)"),
    ("element", "with m.If(self.shift):", "with m.If(1):"),
    ("element", "self.right_psum.eq(psum)", "self.right_psum.eq(self.left_psum)"),
    ("edge", "shifted.eq(self.sum >> self.shift)", "shifted.eq(self.sum)"),
    ("edge", "Mux(fits, shifted[:bits], Mux(shifted[-1], least, most))", "shifted[:bits]"),
    ("fabric", "sums.word_select(r, element.sum_bits)", "sums.word_select(0, element.sum_bits)"),
    ("fabric", 'if source.kind == "sums" and', 'if source.kind == "none" and'),
    ("sequencer", 'enter("turn", columns)', 'enter("turn", columns - 1)'),
    ("sequencer", "running = steps + rows + columns", "running = steps + rows + columns - 1"),
)
"""Part, what stands there, and the mistake: among them four of the defects of published hardware."""


def jobs(one: Fabric, seed: int, number: int) -> list[Job]:
    rng = Random(seed)
    return [random_job(one, rng) for _ in range(number)]


def wrong(ran: list[Ran]) -> list[str]:
    return [f"{r.job.operation} {r.job.configuration.name}" for r in ran if not (r.right and r.on_time)]


@pytest.mark.parametrize("name", [n for n in NAMES if n != "planaria-like"])
def test_in_amaranths_simulator(name: str) -> None:
    assert not wrong(by_amaranth(jobs(fabric(name).with_arrays(2, 3), 5, 8)))


def every_operation(one: Fabric) -> list[Job]:
    """One job of each operation in the configurations where arrays are joined, and one alone."""
    found: dict[tuple[str, str], Job] = {}
    rng = Random(2)
    wanted = {
        ("hold", "separate"),
        ("os", "square"),
        ("tile", "wide"),
        ("tile", "separate"),
        ("column", "square-column"),
    }
    while set(found) != wanted:
        job = random_job(one, rng)
        if (key := (job.operation, job.configuration.name)) in wanted:
            found[key] = replace(job, shift=4)  # small enough for sums to be cut
    return list(found.values())


@pytest.fixture
def restored() -> Iterator[None]:
    yield
    for name in ("element", "array", "edge", "sequencer", "fabric", "inside"):
        sys.modules.pop(f"{RTL}.{name}", None)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(("part", "right", "mistake"), MISTAKES)
def test_planted_mistakes_are_caught(part: str, right: str, mistake: str) -> None:
    for name in ("element", "array", "edge", "sequencer", "fabric", "inside"):
        sys.modules.pop(f"{RTL}.{name}", None)
    module = importlib.import_module(f"{RTL}.{part}")
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert source.count(right) == 1
    exec(compile(source.replace(right, mistake), module.__file__, "exec"), module.__dict__)
    assert wrong(by_amaranth(every_operation(fabric("fusecu").with_arrays(2, 2))))


@pytest.mark.skipif(
    bool(tools.missing("verilator", "yosys", "g++", "make")), reason=str(tools.missing("verilator", "yosys"))
)
def test_under_verilator(tmp_path: Path) -> None:
    """Compiled once, then sixty operations of every kind in every configuration."""
    one = fabric("fusecu").with_arrays(3, 2)
    assert not wrong(Compiled(one, tmp_path).run(jobs(one, 1, 60)))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n == "planaria-like" else ()) for n in NAMES]
)
def test_verilator_has_nothing_to_warn_of(name: str, tmp_path: Path) -> None:
    absent = tools.missing("verilator", "yosys")
    if absent:
        pytest.skip(absent)
    from einloom.fabric.rtl.write import verilog

    written = verilog(fabric(name).with_arrays(2, 3), tmp_path)
    assert warnings(written) == 0
    head, end, rest = written.read_text().partition(");\n")
    written.write_text(f"{head}{end}  wire lonely;\n{rest}")
    assert warnings(written) > 0
