"""Small accelerators and layers in ZigZag's format, written for these tests."""

from __future__ import annotations

PORTS = """
      - {name: r_port_1, type: read, bandwidth_min: 8, bandwidth_max: %d, allocation: [%s]}
      - {name: w_port_1, type: write, bandwidth_min: 8, bandwidth_max: %d, allocation: [%s]}"""
WAYS = {"I1": (["tl"], ["fh"]), "I2": (["tl"], ["fh"]), "O": (["tl", "th"], ["fh", "fl"])}


def memory(name: str, size: int, costs: tuple[float, float], width: int, operands: str, served: str) -> str:
    """One entry of ``memories``, a read and a write port of `width` bits."""
    reads, writes = (
        ", ".join(f'"{operand}, {way}"' for operand in operands.split(", ") for way in WAYS[operand][side])
        for side in (0, 1)
    )
    return (
        f"  {name}:\n    size: {size}\n    r_cost: {costs[0]}\n    w_cost: {costs[1]}\n    area: 0\n    latency: 1\n"
        f"    operands: [{operands}]\n    served_dimensions: [{served}]\n"
        f"    ports:{PORTS % (width, reads, width, writes)}\n"
    )


ARRAY = """operational_array:
  unit_energy: 0.5 # pJ
  unit_area: 1
  dimensions: [D1, D2]
  sizes: [4, 2]
"""
ACCELERATOR = (
    "name: little\nmemories:\n"
    + memory("rf_W", 512, (0.1, 0.2), 8, "I2", "")
    + memory("rf_O", 64, (0.3, 0.4), 16, "O", "D2")
    + memory("sram", 262144, (5, 6), 64, "I1, O", "D1, D2")
    + memory("dram", 10_000_000_000, (70, 75), 32, "I1, I2, O", "D1, D2")
    + ARRAY
)
LAYERS = """
- id: 0
  name: conv
  operator_type: Conv
  equation: O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]
  dimension_relations: [ix=2*ox+1*fx, iy=2*oy+1*fy]
  loop_dims: [B, K, C, OY, OX, FY, FX]
  loop_sizes: [1, 8, 3, 8, 8, 3, 3]
  operand_precision: {W: 8, I: 8, O: 24, O_final: 8}
  operand_source: {W: 0, I: 0}
  pr_loop_dims: [IX, IY]
  pr_loop_sizes: [16, 16]
  padding: [[1, 1], [1, 1]]
- id: 1
  operator_type: Conv
  equation: O[b][k][oy][ox]+=W[k][c]*I[b][c][iy][ix]
  dimension_relations: [ix=1*ox+1*fx, iy=oy+fy]
  loop_dims: [B, K, C, OY, OX, FY, FX]
  loop_sizes: [1, 4, 8, 8, 8, 1, 1]
  operand_precision: {W: 8, I: 8, O: 8, O_final: 8}
  operand_source: {W: 1, I: 0}
- id: 2
  name: both
  operator_type: Add
  equation: O[b][g][oy][ox]=W[b][g][oy][ox]+I[b][g][oy][ox]
  dimension_relations: []
  loop_dims: [B, G, OY, OX]
  loop_sizes: [1, 4, 8, 8]
  operand_precision: {W: 8, I: 8, O: 8, O_final: 8}
  operand_source: {W: 2, I: 1}
"""
GEMM = """
- id: 0
  operator_type: Gemm
  equation: O[m][n]+=W[k][n]*I[m][k]
  loop_dims: [M, N, K]
  loop_sizes: [16, 8, 32]
  operand_precision: {W: 8, I: 8, O: 8, O_final: 8}
"""
SPREAD = """
- name: default
  spatial_mapping:
    D1: ["K, 4"]
    D2: ["C, 2", "OX, 2"]
  memory_operand_links: {O: O, W: I2, I: I1}
- name: Add
  spatial_mapping: {D1: ["G, 4"], D2: ["C, 1"]}
"""
