"""What is written as AccelForge's YAML reads back as the same workload and the same machine."""

from __future__ import annotations

from itertools import product

import pytest

from einloom.errors import SpecError
from einloom.interop.accelforge import export
from einloom.interop.accelforge.read import read_texts
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.mapspace.space import Mapspace
from einloom.problem import objective
from einloom.workload.build import build_workload
from einloom.workload.selectors import selector
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

WORKLOADS = (
    "matmul:m=4,n=4,k=4",
    "matmuls:n=3",
    "gpt3-6.7b:batch=1,tokens=256",
    "gpt3-6.7b:batch=1,tokens=1,cached=2047,decode=true",
    "mobilenet-block",
    "conv-chain",
    "residual-diamond",
)
MACHINES = (
    "simple",
    "simple:dram_energy=10,glb_bits=4096,glb_throughput=2",
    "two-level",
    "nvdla",
    "tpu-v4i",
    "tpu-v4i-free",
    "ffm-edge",
)


@pytest.mark.parametrize(("workload", "machine"), list(product(WORKLOADS, MACHINES)))
def test_zoo_pairs(workload: str, machine: str) -> None:
    cascade, hardware = load_workload(workload), load_machine(machine)
    found = read_texts(export(cascade, hardware).files)
    assert found.workload == cascade
    assert found.machine == hardware


@pytest.mark.parametrize(("goal", "limit", "again"), [("energy", None, 1), ("latency", 0, 1), ("edp", 2, 2)])
def test_search_settings(goal: str, limit: int | None, again: int) -> None:
    hardware = load_machine("simple")
    asked = objective(goal, hardware)
    space = Mapspace("ffm", limit, max_fused_loops_per_rank_variable=again)
    found = read_texts(export(load_workload("matmul"), hardware, asked, space).files)
    assert (found.objective, found.mapspace) == (goal, space)


def test_everything_that_a_machine_can_say() -> None:
    hardware = Machine(
        "all-of-it",
        (
            Memory(
                "DRAM",
                read_energy=2.5,
                write_energy=3.5,
                read_throughput=8.0,
                write_throughput=4.0,
                bits_per_access=4,
                must=selector("~intermediate | persistent"),
                leakage=0.5,
                area=1.5,
            ),
            Fanout(
                "chip",
                (
                    Axis("x-dim", 4, multicast=selector("input"), reduce=selector("output")),
                    Axis("y", 2, multicast=selector("weight"), reduce=selector("nothing"), use="full"),
                ),
            ),
            Memory(
                "SRAM-1",
                size=4096,
                ports="separate",
                widths=((selector("output"), 32), (selector("all"), 16)),
                must=selector("cascade_input | (output & ~copy)"),
                may=selector("A | unheld"),
                double_buffer=True,
            ),
            ComputeUnit("MAC", throughput=2.0, energy=0.25, kinds=("multiply",), operands=(2, 3), leakage=0.125),
            ComputeUnit("VEC", kinds=("map",)),
        ),
    )
    cascade = build_workload(
        "two",
        ["T[M,n] = A[M,k] * B[k,n]", "U[M,n] = exp(T[M,n])"],
        {"M": 4, "n": 4, "k": 4},
        bits={"default": 8, "B": 4},
        persistent=["B"],
        repeat=3,
    )
    made = export(cascade, hardware)
    found = read_texts(made.files)
    assert found.workload == cascade
    assert found.machine is not None
    assert [level.name for level in found.machine.levels] == ["DRAM", "chip", "SRAM-1", "MAC", "VEC"]
    before, after = hardware.levels, found.machine.levels
    assert after[0] == before[0]
    assert after[1] == before[1]
    assert after[3:] == before[3:]
    assert any("double buffering" in note for note in made.notes)


def test_offsets_and_functions_come_back() -> None:
    cascade = build_workload(
        "odd",
        ["O[p] = I[2*p+r-1] * W[r]", "S[p] = max(O[p], E[p])", "R[] = max[p] S[p]"],
        {"p": 8, "r": 3},
        bits=8,
        shapes={"I": [16]},
    )
    made = export(cascade, load_machine("simple"))
    assert read_texts(made.files).workload == cascade
    assert any("O.I" in note for note in made.notes)


@pytest.mark.parametrize(
    ("einsums", "options", "message"),
    [
        (["A2[m] = online_softmax[n] A[m,n]"], {}, "online softmax"),
        (["T[m] = mul(A[m], A[m])"], {}, "at most once"),
        (["Above[m] = A[m]"], {}, "tensor Above cannot be called so"),
        (["m[m] = A[m]"], {}, "tensor m cannot be called so"),
        (["lambda[m] = A[m]"], {}, "tensor lambda cannot be called so"),
        (["T[m] = A[m]", "U[m] = T[m]"], {"outputs": ["T", "U"]}, "T cannot be said"),
    ],
)
def test_what_cannot_be_said_is_named(einsums: list[str], options: dict[str, list[str]], message: str) -> None:
    ranks = {"m": 4, "n": 4} if "n" in einsums[0] else {"m": 4}
    cascade = build_workload("odd", einsums, ranks, bits=8, outputs=options.get("outputs"))
    with pytest.raises(SpecError, match=message):
        export(cascade, load_machine("simple"))


def test_objectives_and_accounting_that_cannot_be_said() -> None:
    cascade, hardware = load_workload("matmul"), load_machine("simple")
    with pytest.raises(SpecError, match="no objective"):
        export(cascade, hardware, objective("traffic:DRAM", hardware))
    with pytest.raises(SpecError, match="read-back"):
        export(cascade, Machine("once", hardware.levels, "once"))


def test_written_files_hold_no_einloom_word_for_the_other_tool() -> None:
    made = export(load_workload("matmul"), load_machine("tpu-v4i"))
    assert "- !Memory\n" in made.files["arch.yaml"]
    assert not any("einloom" in made.files[name] for name in ("arch.yaml", "workload.yaml", "mapper.yaml"))
