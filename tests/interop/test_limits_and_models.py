"""AccelForge's loop bounds become limits of a mapspace; component models are replaced by numbers in a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from einloom.cli import main
from einloom.errors import SpecError
from einloom.interop.accelforge.read import read_texts
from einloom.interop.bundle import Bundle
from einloom.mapspace.limits.data import AxisLimit, Numbers

ARCH = """\
arch:
  nodes:
  - !Memory
    name: MainMemory
    component_class: LPDDR4
    size: inf
    tensors: {keep: ~Intermediates, may_keep: All}
  - !Container
    name: PEs
    spatial:
    - name: X
      fanout: 4
      loop_bounds:
      - {expression: EXPRESSION, operator: OPERATOR, value: VALUE}
  - !Memory
    name: Accumulators
    component_class: SRAM
    size: 4096
    bits_per_value: {output: 3 * output.bits_per_value}
    tensors: {keep: output}
    actions:
    - {name: read, bits_per_action: 8}
    - {name: write, bits_per_action: 8, energy: 3}
  - !Compute
    name: MAC
    component_class: IntMAC
    total_latency: sum(a.n_calls for a in actions) / 200e6
"""
MODELS = """\
einloom:
  models:
    MainMemory: {read: 64 pJ, write: {energy: 65 pJ, throughput: 1 GHz}, leakage: 1 mW}
    Accumulators: {read: 2 pJ, write: 9 pJ, area: 0.1 mm2}
    MAC: {compute: 0.6 pJ}
"""
WORKLOAD = """\
workload:
  rank_sizes: {M: 4, K: 4, N: 4, L: 4}
  bits_per_value: {All: 8}
  einsums:
  - "T[m, n] = A[m, k] * B[k, n]"
  - "U[m, l] = T[m, n] * C[n, l]"
renames:
  einsums:
  - name: default
    tensor_accesses:
    - {name: input, source: (A | T) & Inputs, expected_count: 1}
    - {name: output, source: Outputs, expected_count: 1}
    - {name: weight, source: ~(input | output), expected_count: 1}
"""


def load(expression: str = "~m", operator: str = "==", value: object = 1, models: str = MODELS) -> Bundle:
    arch = ARCH.replace("EXPRESSION", expression).replace("OPERATOR", f'"{operator}"').replace("VALUE", str(value))
    return read_texts({"arch.yaml": arch, "workload.yaml": WORKLOAD, "energies.yaml": models})


def limits(**asked: object) -> tuple[AxisLimit, ...]:
    found = load(**asked).mapspace  # type: ignore[arg-type]
    assert found is not None
    return found.limits.axes


def test_a_set_names_other_rank_variables_in_every_einsum() -> None:
    one = Numbers(values=(1,))
    assert limits() == (AxisLimit("X", one, ("n", "k"), ("T",)), AxisLimit("X", one, ("l", "n"), ("U",)))
    assert limits(expression="m | n") == (AxisLimit("X", one, ("m", "n")),)
    assert limits(expression="k") == (AxisLimit("X", one, ("k",), ("T",)),)


@pytest.mark.parametrize(
    ("operator", "numbers"),
    [
        ("==", Numbers(values=(2,))),
        ("<=", Numbers(most=2)),
        ("<", Numbers(most=1)),
        (">=", Numbers(2)),
        (">", Numbers(3)),
    ],
)
def test_operators(operator: str, numbers: Numbers) -> None:
    assert limits(expression="m", operator=operator, value=2) == (AxisLimit("X", numbers, ("m",)),)
    assert limits(expression="All", operator=f"product{operator}", value=2) == (AxisLimit("X", numbers),)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"operator": "=<"}, r"arch\.yaml:14:.*unknown operator '=<'"),
        ({"operator": "product<="}, "some rank variables only"),
        ({"expression": "~mm"}, "'mm' in '~mm' is no rank variable.*did you mean 'm'"),
        ({"operator": "<"}, "fewer than one"),
        ({"value": 0}, "at least 1"),
        ({"models": "einloom: {models: {MAC: {compute: 3}}}"}, r"3 energies .*MainMemory .*: read, write; .*: read\."),
        ({"models": MODELS.replace("read: 64 pJ", "raed: 64 pJ")}, "did you mean 'read'"),
        ({"models": MODELS.replace("64 pJ", "64 bit")}, r"energies\.yaml:3:.*must be an energy"),
    ],
)
def test_refused(asked: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(**asked)  # type: ignore[arg-type]
    assert re.search(message, str(caught.value)), caught.value


def test_models_stand_in_for_what_is_not_written() -> None:
    found = load()
    assert found.machine is not None
    main_memory, accumulators = found.machine.memories
    assert (main_memory.read_energy, main_memory.write_energy) == (64e-12, 65e-12)
    assert (main_memory.read_throughput, main_memory.write_throughput, main_memory.leakage) == (None, 1e9, 1e-3)
    assert (accumulators.read_energy, accumulators.write_energy) == (2e-12, 3.0), "what the file writes itself counts"
    assert accumulators.bits_per_access == 8 and accumulators.widths[0][1] == 24
    assert accumulators.area == pytest.approx(1e-7)
    unit = found.machine.units[0]
    assert (unit.energy, unit.throughput) == (0.6e-12, 200e6)
    assert any("MainMemory: the throughput that LPDDR4 would give" in note for note in found.notes)


def test_loop_bounds_alone_ask_for_a_workload() -> None:
    with pytest.raises(SpecError, match="read this together with a workload"):
        read_texts({"arch.yaml": ARCH.replace("EXPRESSION", "~m").replace("OPERATOR", "==").replace("VALUE", "1")})


def test_the_verb_writes_a_mapspace_that_map_obeys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arch = ARCH.replace("EXPRESSION", "~m").replace("OPERATOR", "==").replace("VALUE", "1")
    for name, text in (("arch.yaml", arch), ("workload.yaml", WORKLOAD), ("energies.yaml", MODELS)):
        Path(name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(
        main, ["import", "accelforge", "arch.yaml", "workload.yaml", "energies.yaml", "-o", "here"]
    )
    assert done.exit_code == 0, done.output
    assert "mapspace.yaml" in done.output
    words = ["map", "here/workload.yaml", "here/machine.yaml", "--mapspace", "here/mapspace.yaml", "-o", "best.txt"]
    assert CliRunner().invoke(main, words).exit_code == 0
    axes = re.findall(r"par (\S+) in", Path("best.txt").read_text(encoding="utf-8"))
    assert set(axes) <= {"m"}
