"""Every optimum of the peer that can be rebuilt from its parameters comes out, to 1e-6 relative.

Source: AccelForge at commit 1c1929c, run on the machines and workloads of the zoo with default mapper settings; matmul
chains and MobileNet have 8 bits, GPT-3 16. One row differs by meaning, and both numbers stand here: the peer tests
capacities in 32-bit floats, and its optimum of the four-matmul chain needs 2**27 + 8 bits of a 2**27-bit buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from einloom.mapspace.space import Mapspace
from einloom.problem import Budget, Guarantee, Problem, objective
from einloom.result import Result
from einloom.search.exact import Exact
from einloom.search.method import Watcher
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Row:
    """A published optimum: energy (J), latency (s) or EDP (J s), whichever the objective is."""

    workload: str
    machine: str
    objective: str
    value: float
    max_fused_loops: int | None = None


def chain(n: int, m: int, kn: int) -> str:
    return f"matmuls:n={n},m={m},kn={kn},bits=8"


def simple(dram: int, bits: int, throughput: int | None = None) -> str:
    extra = "" if throughput is None else f",glb_throughput={throughput}"
    return f"simple:dram_energy={dram},glb_bits={bits}{extra}"


SEVENTH = (73976516706304, 92416421920768, 115499186782208, 230998373564416)
QUICK = (
    Row(chain(1, 64, 64), simple(10, 4096), "energy", 11862016),
    Row(chain(2, 64, 64), simple(10, 16384), "energy", 20480000),
    Row(chain(1, 64, 64), simple(10, 4096, 2), "edp", 21973052686336),
    Row(chain(1, 64, 64), simple(10, 4096, 2), "latency", 262144),
    *(Row(chain(1, 8, 8), simple(10, bits), "energy", value) for bits, value in ((32, 81408), (64, 67072))),
    *(
        Row(chain(2, 8, 8), simple(10, bits), "energy", value)
        for bits, value in ((128, 105984), (256, 83456), (512, 66560), (1024, 55296), (2048, 55296))
    ),
    *(
        Row(f"matmuls-ffm75:n={n},bits=8", simple(100, 134217728), "energy", value)
        for n, value in zip((1, 2, 4, 8), SEVENTH, strict=True)
    ),
    *(Row(chain(n, 8192, 4096), simple(100, 8388608), "energy", 4887672782848 * n) for n in (1, 2, 4, 8, 16)),
    Row(chain(2, 64, 64), "two-level", "energy", 131072),
    Row("gpt3-6.7b:batch=1,tokens=256", "two-level", "energy", 3254779904),
    Row(chain(2, 64, 64), "nvdla", "energy", 1.0705960976e-6),
    Row(chain(2, 64, 64), "tpu-v4i", "energy", 1.8229493922e-6),
    Row(chain(1, 2048, 4096), "tpu-v4i", "energy", 7.213665638e-3),
    Row(chain(1, 2048, 4096), "tpu-v4i", "latency", 4.993219e-4),
    Row(chain(1, 2048, 4096), "tpu-v4i", "edp", 3.601941e-6),
    Row(chain(1, 131072, 16384), "tpu-v4i", "energy", 6.224778175),
    Row(chain(1, 131072, 16384), "tpu-v4i", "latency", 0.51130563),
    Row(chain(1, 131072, 16384), "tpu-v4i", "edp", 3.182764),
    Row(chain(1, 256, 16384), "tpu-v4i", "energy", 0.025109183),
    Row(chain(1, 256, 16384), "tpu-v4i", "latency", 9.98643809e-4),
    Row(chain(2, 8192, 4096), "tpu-v4i", "energy", 0.0495233908),
    Row(chain(4, 131072, 4096), "tpu-v4i", "energy", 1.4661505222),
    Row(chain(4, 131072, 4096), "tpu-v4i", "edp", 0.1874127537),
    Row("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "energy", 0.15934879, 1),
    Row("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "edp", 1.0824780e-3),
)
SLOW = (
    Row("mobilenet-block", "two-level", "energy", 476160),
    Row("gpt3-6.7b:batch=64,tokens=4096", "tpu-v4i", "edp", 22.154125),
    Row("gpt3-175b:batch=1,tokens=2048", "tpu-v4i", "edp", 1.17513003 * 56.3305914e-3, 1),
)


def solve(row: Row) -> Result:
    workload, machine = load_workload(row.workload), load_machine(row.machine)
    space = Mapspace("ffm", row.max_fused_loops)
    problem = Problem(workload, machine, space, objective(row.objective, machine))
    return Exact().search(problem, Budget(), Watcher())


def check(row: Row) -> None:
    result = solve(row)
    assert result.certificate is not None
    assert result.certificate.guarantee is Guarantee.OPTIMAL
    assert result.value == pytest.approx(row.value, rel=TOLERANCE, abs=0)


@pytest.mark.parametrize("row", QUICK, ids=lambda row: f"{row.workload}-{row.machine}-{row.objective}")
def test_published_optimum(row: Row) -> None:
    check(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", SLOW, ids=lambda row: f"{row.workload}-{row.machine}-{row.objective}")
def test_published_optimum_of_a_large_problem(row: Row) -> None:
    check(row)


def test_an_optimum_of_the_peer_that_overflows_its_buffer() -> None:
    """Strict integers against 32-bit floats: 18466211889152 against the peer's 18411987927040, 0.29 % apart."""
    theirs = 18411987927040
    strict = solve(Row(chain(4, 8192, 4096), simple(100, 134217728), "energy", 0))
    assert strict.value == 18466211889152
    roomier = solve(Row(chain(4, 8192, 4096), simple(100, 134217728 + 8), "energy", 0))
    assert roomier.value == theirs


def test_the_gpt3_optimum_part_by_part() -> None:
    """Einsum by Einsum inside the EDP optimum, and a global buffer that is full to the last bit."""
    result = solve(Row("gpt3-6.7b:batch=1,tokens=2048", "tpu-v4i", "edp", 0))
    energy = {name: joules for (name,), joules in result.cost.energy_by("einsum").items()}
    latency = dict(result.cost.einsum_latency)
    assert energy["I"] == pytest.approx(1.26030447e-3, rel=TOLERANCE)
    for name in ("V", "K", "Q"):
        assert energy[name] == pytest.approx(1.08206336e-2, rel=TOLERANCE)
        assert latency[name] == pytest.approx(4.9932190e-4, rel=TOLERANCE)
    assert energy["QK_softmax"] == pytest.approx(1.14332029e-2, rel=TOLERANCE)
    assert latency["QK"] == pytest.approx(2.6214399e-4, rel=TOLERANCE)
    assert result.cost.occupancy_of("GLB") == 128 * 2**20 * 8
