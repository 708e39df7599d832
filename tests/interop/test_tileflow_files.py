"""Bad TileFlow files are refused with file and line; damaged ones are read or refused, and nothing else happens."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from einloom.errors import IllegalMapping, SpecError
from einloom.interop.tileflow import compare, export, read_texts
from tileflow_files import case, statistics, texts

WORDS = (
    "M=4 L=2 K=0 M=-1 M=4,2 M=? permutation: spatial temporal Sequential Pipeline Sharing target: RegFile Cache "
    "MainMemory Op GEMM1 [C] {a: 1} *a &a ! : , - null true False 0 1e400 9**99 2**70 name: subtree: [[M]] [[M,2]] "
    "node-type: Scope Tile bypass: multicast: profile: meshX: sizeKB: depth: [0..3] [0..99999999] \n\n \t #"
).split(" ")
NAME = "fuseMM_Sequential_LM_LMK_mctrue__bwInf"
FILES = texts(NAME)
MAP = next(name for name in FILES if name.startswith("map"))
PROB = next(name for name in FILES if name.startswith("prob"))
ARCH = next(name for name in FILES if name.startswith("arch"))

MISTAKES = [
    (MAP, "factors: M=4 L=4", "factors: M=8 L=4", "GEMM1: the factors of M multiply to 128, its size is 64"),
    (MAP, "factors: M=4 L=4", "factors: M=X L=4", "M=X: a free factor"),
    (MAP, "factors: M=4 L=4", "factors: M=4,2 L=4", "ragged"),
    (MAP, "factors: M=4 L=4", "factors: M=4 Q=4", "unknown dimension 'Q'"),
    (MAP, "factors: M=4 L=4", "factors: M=4 M=4", "two factors"),
    (MAP, "factors: M=4 L=4", "factors: four", "cannot read the factors"),
    (MAP, "permutation: LM\n", "permutation: LK\n", "does not list the factors"),
    (MAP, "  permutation: LM\n", "", "hash table"),
    (MAP, "type: temporal", "kind: temporal", "unknown key 'kind'"),
    (MAP, "type: temporal", "type: spatially", "outermost tile"),
    (MAP, "type: Sequential", "type: Both", "unknown scope 'both'"),
    (MAP, "node-type: Scope", "node-type: Split", "unknown node 'split'"),
    (MAP, "target: RegFile", "target: RegFil", "did you mean 'RegFile'"),
    (MAP, "target: Cache", "target: MainMemory", "level below it"),
    (MAP, "name: GEMM2", "name: GEMM1", "the factors of K multiply to 1"),
    (MAP, "name: GEMM2", "name: GEMM3", "no operator 'GEMM3'"),
    (MAP, "node-type: Op", "node-type: Tile", "is missing"),
    (PROB, "outs: E", "outs: F", "F"),
    (PROB, "ins: A, B, D", "ins: A, B", "D"),
    (PROB, "M: 64", "M: 0", "at least 1"),
    (PROB, "M: 64", "M: 60", "its size is 60"),
    (PROB, "- [[M]]", "- [[Q]]", "unknown dimension 'Q'"),
    (PROB, "ins: C, D", "ins: C, G", "no data space"),
    (PROB, "ins: C, D", "ins: E, D", "reads E, which it writes"),
    (PROB, "out: C", "out: E", "'E' is no data space"),
    (PROB, "read-write: True", "read-only: True", "unknown key 'read-only'"),
    (ARCH, "class: SRAM", "class: SRAMM", "did you mean 'SRAM'"),
    (ARCH, "meshX: 2", "meshX: 3", "does not divide"),
    (ARCH, "depth: 1024", "dept: 1024", "unknown key 'dept'"),
    (ARCH, "version: 0.2", "version: 0.4", "version 0.2"),
    (ARCH, "depth: 1024", "depth: 1024 * KiB", "unknown name 'KiB'"),
    (ARCH, "architecture:", "architectur:", "did you mean 'architecture'"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), MISTAKES, ids=[f"{f}-{n!r}" for f, _, n, _ in MISTAKES])
def test_a_mistake_is_named_with_its_place(file: str, old: str, new: str, message: str) -> None:
    assert old in FILES[file]
    with pytest.raises(SpecError, match=message) as caught:
        read_texts({**FILES, file: FILES[file].replace(old, new, 1)})
    assert caught.value.file in FILES and caught.value.line is not None


def test_nests_that_run_in_a_circle() -> None:
    """An alias of a node inside itself, and operators that wait for each other."""
    circle = FILES[MAP].replace("mapping:\n", "mapping: &top\n", 1).replace("- node-type: Scope", "- *top", 1)
    with pytest.raises(SpecError, match="alias") as caught:
        read_texts({**FILES, MAP: circle})
    assert caught.value.line is not None
    waiting = FILES[PROB].replace("ins: A, B\n", "ins: A, E\n", 1).replace("- name: B\n", "- name: E\n", 1)
    with pytest.raises(SpecError) as caught:
        read_texts({**FILES, PROB: waiting.replace("[[K]]\n        - [[L]]", "[[M]]\n        - [[N]]", 1)})
    assert caught.value.file == PROB and caught.value.line is not None


def test_macros_are_numbers_or_arithmetic() -> None:
    files = {**FILES, MAP: FILES[MAP].replace("factors: M=4 L=4", "factors: M=MO L=LO", 1)}
    with pytest.raises(SpecError, match="M=MO: a free factor"):
        read_texts(files)
    files["macro.yaml"] = "macro: {LO: 2 * 2, MO: LO}\n"
    assert read_texts(files).mapping == case(NAME).mapping
    del files["macro.yaml"]
    assert read_texts(files, {"MO": "4", "LO": "8 / 2"}).mapping == case(NAME).mapping
    files["macro.yaml"] = "macro: {LO: __import__('os'), MO: 4}\n"
    with pytest.raises(SpecError, match="arithmetic"):
        read_texts(files)


def test_sections_stand_once_and_together() -> None:
    with pytest.raises(SpecError, match="stands in"):
        read_texts({**FILES, "again.yaml": FILES[MAP]})
    with pytest.raises(SpecError, match="read together"):
        read_texts({MAP: FILES[MAP]})
    with pytest.raises(SpecError, match="none of architecture"):
        read_texts({"config.yaml": "verbose: 1\n"})
    alone = read_texts({ARCH: FILES[ARCH]})
    assert alone.machine is not None and alone.workload is None


@pytest.mark.parametrize("seed", range(6))
def test_damage(seed: int) -> None:
    """What can still be read can be compared or is refused by name, and what can be written reads again."""
    chance = random.Random(seed)
    for _ in range(30):
        damaged = dict(FILES)
        name = chance.choice(sorted(damaged))
        lines = damaged[name].split("\n")
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(lines))
            deed = chance.randrange(4)
            if deed == 0:
                lines.insert(at, lines[chance.randrange(len(lines))])
            elif deed == 1 and len(lines) > 2:
                del lines[at]
            else:
                start = chance.randrange(len(lines[at]) + 1)
                stop = min(len(lines[at]), start + chance.choice((0, 1, 3, 9)))
                lines[at] = lines[at][:start] + chance.choice(WORDS) + lines[at][stop:]
        damaged[name] = "\n".join(lines)
        with suppress(SpecError, IllegalMapping):
            found = read_texts(damaged)
            if found.workload is not None and found.machine is not None:
                export(found.workload, found.machine, found.mapping)
            if found.mapping is not None:
                compare(found, statistics(NAME) or {})
