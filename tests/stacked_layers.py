"""Stacks of equal layers on one buffer: small cascades with segments that are alike."""

from __future__ import annotations

from einloom.mapspace.space import Mapspace
from einloom.problem import Objective, Problem
from einloom.workload.build import build_workload
from einloom.zoo.machine_by_name import load_machine

LAYERS = {
    "feed forward": (
        "A{i}[m,n] = {x}[m,d] * U{i}[d,n]",
        "B{i}[m,d] = A{i}[m,n] * V{i}[n,d]",
        "{y}[m,d] = add(B{i}[m,d], {x}[m,d])",
    ),
    "residual": ("A{i}[m] = relu({x}[m])", "{y}[m] = add(A{i}[m], {x}[m])"),
    "tied weights": ("{y}[m,d] = {x}[m,d] * W[d]",),
    "masked": ("A{i}[m,d] = {x}[m,d] * W{i}[d]", "{y}[m,d] = add(A{i}[m,d], M[m,d])"),
    "norm": ("S{i}[m] = {x}[m,d]", "{y}[m,d] = div({x}[m,d], S{i}[m])"),
}


def stacked(layer: str, count: int, bits: int, objective: str = "energy", size: int = 2, more: str = "") -> Problem:
    """So many equal layers on one buffer of so many bits. more: parameters of the machine."""
    texts = LAYERS[layer]
    einsums = [text.format(i=i, x=f"Y{i - 1}" if i else "X", y=f"Y{i}") for i in range(count) for text in texts]
    ranks = {v for text in texts for v in "mnd" if v in text.replace("add", "").replace("div", "")}
    workload = build_workload(layer, einsums, dict.fromkeys(sorted(ranks), size), bits=8)
    machine = load_machine(f"simple:dram_energy=50,glb_bits={bits}{more}")
    return Problem(workload, machine, Mapspace("ffm"), Objective(objective, "DRAM" if objective == "traffic" else None))
