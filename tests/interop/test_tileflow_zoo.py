"""TileFlow's machines and shapes in the zoo against its files and tables."""

from __future__ import annotations

from math import prod

import pytest

from einloom.cost.evaluate import legality
from einloom.interop.tileflow import read
from einloom.zoo.index import listed
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload
from tileflow_files import FOLDER, case

ATTENTIONS = [entry.name for entry in listed("workloads") if "self-attention" in entry.description]


@pytest.mark.parametrize("name", ["edge", "cloud"])
def test_machines_as_coded_are_what_the_files_say(name: str) -> None:
    found = read([FOLDER / "domino" / f"{name}_small.yaml"], clock=1.2e9).machine
    assert found is not None
    assert load_machine(f"tileflow-{name}-code").levels == found.levels


def test_meshes_resolve_as_tileflow_prints_them() -> None:
    """Domino's one-dimensional meshes leave 256 of 1024 and 1024 of 65536 elements in X."""
    edge, cloud = load_machine("tileflow-edge-code"), load_machine("tileflow-cloud-code")
    assert [axis.size for axis in edge.axes.values()] == [4, 1, 256, 4]
    assert [axis.size for axis in cloud.axes.values()] == [4, 1, 16, 1, 1024, 64]


def test_printed_and_coded_bandwidths_agree_at_the_derived_clock() -> None:
    """60 GB/s is 25 words of 2 bytes per cycle at 1.2 GHz, and so on; L1 of Edge is half of what is printed."""
    for name, levels in (("edge", "DRAM L1"), ("cloud", "DRAM L2 L1")):
        printed, coded = load_machine(f"tileflow-{name}"), load_machine(f"tileflow-{name}-code")
        for memory, other in zip(levels.split(), coded.memories, strict=False):
            speed, own = printed.memory(memory).read_throughput, other.read_throughput
            assert speed is not None and own is not None and speed == pytest.approx(own, rel=0.011)
    sizes = [load_machine(f"tileflow-{name}").memory("L1").size for name in ("edge", "edge-code")]
    assert sizes == [32_000_000, 2000 * 1024 * 8]


def test_eleven_attentions() -> None:
    assert len(ATTENTIONS) == 11
    for name in ATTENTIONS:
        workload = load_workload(name)
        assert [e.function or e.reduction for e in workload.einsums] == "sum max sub exp sum div sum".split()
        m, n, h = (workload.extents[v] for v in "mnh")
        assert workload.extents["l"] == m and workload.extents["k"] == n
        assert workload.operations("A") == workload.operations("G") == prod((h, m, m, n))
    assert load_workload("tileflow-vit-16-h").extents == {"b": 1, "h": 16, "m": 196, "l": 196, "k": 80, "n": 80}


def test_the_attention_of_the_files_is_the_zoo_s() -> None:
    """Domino's Bert-S has the zoo's extents and operations; TileFlow's file names tensors otherwise."""
    found, entry = case("attention-edge").workload, load_workload("tileflow-bert-s")
    assert found is not None
    assert dict(found.extents) == dict(entry.extents)
    pairs = zip(found.einsums, entry.einsums, strict=True)
    assert all(found.operations(a.name) == entry.operations(b.name) for a, b in pairs)


def test_a_tileflow_mapping_runs_on_the_zoo_machine() -> None:
    found = case("domino_attention_edge_chimera_allseq_h4")
    assert found.workload is not None and found.mapping is not None
    assert legality(found.workload, load_machine("tileflow-edge-code"), found.mapping) == ()
