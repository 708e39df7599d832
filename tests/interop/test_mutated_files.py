"""Damaged AccelForge files are read or refused with a SpecError; nothing else comes out of the reader."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from einloom.errors import SpecError
from einloom.interop.accelforge import export
from einloom.interop.accelforge.read import read_texts
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

WORDS = (
    "{{ n }} {% if 1 %} {% for i in range(9) %} {% endfor %} !Memory !X *a &a << inf -1 0 1e400 ~All | & ( ) [ ] { } "
    ": , null true Nothing len(All) input weight 9**99 a.b.c 'x' \"\n\n \t - ? # 0x1 [1,2] {a: 1} Above "
    "weight.bits_per_value"
).split(" ")
MAPPING = """
mapping:
  nodes:
  - !Storage {component: DRAM, tensors: [T0]}
  - !Temporal {rank_variable: m, tile_shape: 1}
  - !Sequential
    nodes:
    - !Compute {einsum: T1, component: MAC}
"""


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 8))])
def test_damage(seed: int) -> None:
    chance = random.Random(seed)
    files = dict(export(load_workload("matmuls:n=2"), load_machine("tpu-v4i")).files)
    files["mapping.yaml"] = MAPPING
    for _ in range(40):
        damaged = dict(files)
        name = chance.choice(sorted(files))
        text = damaged[name]
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(text))
            stop = min(len(text), start + chance.choice((0, 0, 1, 3, 12)))
            text = text[:start] + chance.choice(WORDS) + text[stop:]
        damaged[name] = text
        with suppress(SpecError):
            read_texts(damaged)
