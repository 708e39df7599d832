"""Small files in Timeloop's format, written for these tests, and counts that Timeloop printed for the same problems.

PRINTED: from the reference outputs (stats.txt) of timeloop-accelergy-exercises at commit 2d55108: five tutorial
exercises on one-dimensional convolutions, and four designs with its default problem. Values over all
instances. The outputs of exercise 4 belong to an architecture whose array stands above the global buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

COUNTS = tuple[int, int, int]
"""Scalar reads, fills and updates."""


def component(name: str, kind: str = "regfile", pad: str = "  ", keep: str = "", **attributes: object) -> str:
    """A ``!Component`` with its attributes."""
    listed = ", ".join(f"{key}: {value}" for key, value in {"datawidth": 8, "width": 8, **attributes}.items())
    limits = f"\n{pad}  constraints: {{dataspace: {{{keep}}}}}" if keep else ""
    return f"{pad}- !Component\n{pad}  name: {name}\n{pad}  class: {kind}\n{pad}  attributes: {{{listed}}}{limits}\n"


def array(name: str, mesh: str) -> str:
    """A ``!Container`` with a mesh."""
    return f"  - !Container\n    name: {name}\n    spatial: {{{mesh}}}\n"


def architecture(*nodes: str) -> str:
    """The section; a cycle is one nanosecond."""
    first = "  - !Container\n    name: System\n    attributes: {technology: 40nm, global_cycle_seconds: 1e-9}\n"
    return "architecture:\n  version: 0.4\n  nodes:\n" + first + "".join(nodes)


def problem(sizes: dict[str, int], spaces: dict[str, str], factors: dict[str, int] | None = None) -> str:
    """The section; the last data space is written. spaces: projections in YAML's flow style."""
    lines = ["problem:", "  version: 0.4", "  shape:", "    name: layer", f"    dimensions: [{', '.join(sizes)}]"]
    if factors:
        lines += ["    coefficients:", *(f"    - {{name: {name}, default: 1}}" for name in factors)]
    lines.append("    data_spaces:")
    for name, projection in spaces.items():
        lines += [f"    - name: {name}", f"      projection: {projection}"]
    lines += ["      read_write: True", "  instance:", *(f"    {name}: {size}" for name, size in sizes.items())]
    return "\n".join([*lines, *(f"    {name}: {size}" for name, size in (factors or {}).items())]) + "\n"


def mapping(*entries: tuple[str, ...]) -> str:
    """Entries: (target, factors, permutation), with ``spatial`` and a split for an array, or (target, kept, bypassed)
    with ``dataspace``."""
    lines = ["mapping:"]
    for target, kind, first, second, *split in entries:
        keys = ("keep", "bypass") if kind == "dataspace" else ("factors", "permutation")
        lines += [f"  - target: {target}", f"    type: {kind}", f"    {keys[0]}: {first}", f"    {keys[1]}: {second}"]
        lines += [f"    split: {number}" for number in split]
    return "\n".join(lines) + "\n"


def ert(energies: dict[str, dict[str, float]]) -> str:
    """The section ``ERT``: pJ per action."""
    lines = ["ERT:", "  version: 0.4", "  tables:"]
    for name, actions in energies.items():
        lines += [f"  - name: system.{name}[1..1]", "    actions:"]
        lines += [f"    - {{name: {action}, arguments: {{}}, energy: {pj}}}" for action, pj in actions.items()]
    return "\n".join(lines) + "\n"


MAC = component("MACC", "intmac")
DRAM = component("MainMemory", "DRAM", width=256)
GLOBAL = component("GlobalBuffer", "SRAM", depth=32768, width=64)
REGISTERS = component("RegisterFile", depth=64)
BUFFER = component("Buffer", depth=64)
CONV1D = problem({"R": 3, "P": 16}, {"Weights": "[[[R]]]", "Inputs": "[[[R], [P]]]", "Outputs": "[[[P]]]"})
OUT = problem(
    {"K": 32, "R": 3, "P": 16},
    {"Weights": "[[[K]], [[R]]]", "Inputs": "[[[R], [P]]]", "Outputs": "[[[K]], [[P]]]"},
)
IN_OUT = problem(
    {"C": 32, "K": 32, "R": 3, "P": 16},
    {"Weights": "[[[C]], [[K]], [[R]]]", "Inputs": "[[[C]], [[R], [P]]]", "Outputs": "[[[K]], [[P]]]"},
)
CONV2D = problem(
    {"C": 3, "M": 32, "R": 3, "S": 3, "N": 1, "P": 112, "Q": 112},
    {
        "Weights": "[[[C]], [[M]], [[R]], [[S]]]",
        "Inputs": "[[[N]], [[C]], [[R, Wdilation], [P, Wstride]], [[S, Hdilation], [Q, Hstride]]]",
        "Outputs": "[[[N]], [[M]], [[Q]], [[P]]]",
    },
    {"Wdilation": 1, "Wstride": 2, "Hdilation": 1, "Hstride": 2},
)
SPACES = ("Weights", "Inputs", "Outputs")


def side_by_side(*nodes: str) -> str:
    return "  - !Parallel\n    nodes:\n" + "".join(nodes)


def kept(names: Sequence[str]) -> tuple[str, str]:
    return f"[{', '.join(names)}]", f"[{', '.join(name for name in SPACES if name not in names)}]"


EYERISS = architecture(
    component("DRAM", "DRAM", width=64),
    component("glb", "SRAM", depth=16384, width=64, keep="keep: [Inputs, Outputs], bypass: [Weights]"),
    array("PE_column", "meshX: 14"),
    array("PE", "meshY: 12"),
    side_by_side(
        component("ifmap", "RF", "    ", "keep: [Inputs]", depth=12, width=16),
        component("weights", "RF", "    ", "keep: [Weights]", depth=192, width=16),
        component("psum", "RF", "    ", "keep: [Outputs]", depth=16, width=16, datawidth=16),
    ),
    MAC,
)
STATIONARY = architecture(
    component("DRAM", "DRAM", width=64, datawidth=16),
    component("glb", "SRAM", depth=16384, width=64, datawidth=16),
    array("PE", "meshX: 16, meshY: 16"),
    component("spad", "SRAM", depth=192, width=16, datawidth=16, keep="bypass: [Inputs, Outputs], keep: [Weights]"),
    side_by_side(
        component("wreg", "reg", "    ", "keep: [Weights]", depth=1, width=16, datawidth=16),
        component("ireg", "reg", "    ", "keep: [Inputs]", depth=1, width=16, datawidth=16),
        "    - !Nothing {constraints: {dataspace: {keep: []}}}\n",
        component("oreg", "reg", "    ", "keep: [Outputs]", depth=1, width=16, datawidth=16),
    ),
    MAC,
)
OUTPUTS = architecture(
    component("DRAM", "DRAM", width=64, datawidth=16),
    component("glb", "SRAM", depth=16384, width=64, datawidth=16),
    array("PE", "meshX: 16, meshY: 16"),
    component("spad", "SRAM", depth=192, width=16, datawidth=16, keep="bypass: [Inputs, Weights], keep: [Outputs]"),
    side_by_side(
        component("wreg", "reg", "    ", "keep: [Weights]", depth=1, width=16, datawidth=16),
        component("ireg", "reg", "    ", "keep: [Inputs]", depth=1, width=16, datawidth=16),
        component("oreg", "reg", "    ", "keep: [Outputs]", depth=1, width=16, datawidth=16),
    ),
    MAC,
)
SIMBA = architecture(
    component("DRAM", "DRAM", width=64),
    component("glb", "SRAM", depth=2048, width=256, keep="keep: [Inputs, Outputs], bypass: [Weights]"),
    array("PE", "meshX: 16"),
    component("ibuf", "RF", depth=8192, width=64, keep="keep: [Inputs], bypass: [Weights, Outputs]"),
    array("buffers", "meshY: 4"),
    side_by_side(
        component("wbuf", "RF", "    ", "keep: [Weights]", depth=4096, width=64),
        component("accu", "RF", "    ", "keep: [Outputs]", depth=128, width=24, datawidth=24),
        "    - !Nothing {constraints: {dataspace: {keep: [Inputs]}}}\n",
    ),
    array("reg_mac", "meshY: 4"),
    component("wreg", "RF", depth=1, width=512, cluster_size=64, keep="keep: [Weights], bypass: [Inputs, Outputs]"),
    MAC,
)
SPREAD = architecture(DRAM, array("PE", "meshX: 16"), GLOBAL, REGISTERS, MAC)
TWO, THREE = architecture(DRAM, BUFFER, MAC), architecture(DRAM, GLOBAL, REGISTERS, MAC)
TILES = (("GlobalBuffer", "temporal", "R=1 P=16 K=16", "PRK"), ("RegisterFile", "temporal", "R=3 P=1 K=2", "RPK"))

CASES = {
    "one level": (architecture(BUFFER, MAC), CONV1D, mapping(("Buffer", "temporal", "R=3 P=16", "RP"))),
    "weight stationary": (
        TWO,
        CONV1D,
        mapping(("MainMemory", "temporal", "R=3 P=1", "RP"), ("Buffer", "temporal", "R=1,P=16", "P R")),
    ),
    "output stationary": (
        TWO,
        CONV1D,
        mapping(("MainMemory", "temporal", "R=1 P=16", "PR"), ("Buffer", "temporal", "[R=3, P=1]", "[R, P]")),
    ),
    "tiled": (
        TWO,
        OUT,
        mapping(("MainMemory", "temporal", "R=1 P=16 K=16", "PRK"), ("Buffer", "temporal", "R=3 P=1 K=2", "RPK")),
    ),
    "untiled": (
        TWO,
        OUT,
        mapping(("MainMemory", "temporal", "R=1 P=16 K=32", "PRK"), ("Buffer", "temporal", "R=3 P=1 K=1", "RPK")),
    ),
    "three levels": (THREE, OUT, mapping(*TILES)),
    "bypassed": (
        THREE,
        OUT,
        mapping(
            *TILES,
            ("GlobalBuffer", "dataspace", *kept(["Weights", "Inputs"])),
            ("RegisterFile", "dataspace", *kept(["Outputs"])),
        ),
    ),
    "spread over inputs": (
        SPREAD,
        IN_OUT,
        mapping(
            ("PE", "spatial", "R=1 P=1 K=1 C=16", "PRKC"),
            ("GlobalBuffer", "temporal", "R=3 P=1 K=32 C=2", "PRKC"),
            ("RegisterFile", "temporal", "P=16", "P"),
        ),
    ),
    "spread over outputs": (
        SPREAD,
        IN_OUT,
        mapping(
            ("inter_PE_spatial", "spatial", "K16", "PRKC"),
            ("inter_PE_spatial", "temporal", "K1", "PRKC"),
            ("GlobalBuffer", "temporal", "R=3 P=1 K=2 C=32", "PRKC"),
            ("RegisterFile", "temporal", "P=16", "P"),
        ),
    ),
    "eyeriss": (
        EYERISS,
        CONV2D,
        mapping(
            ("psum", "temporal", "M8", "MCRSNPQ"),
            ("weights", "temporal", "R3", "RCMSNPQ"),
            ("PE", "spatial", "C3 S3", "SCMRNPQ", "0"),
            ("PE_column", "spatial", "Q14", "QCMRSNP", "1"),
            ("glb", "temporal", "P14 Q4", "QPCMRSN"),
            ("DRAM", "temporal", "M4 P8 Q2", "MQPCRSN"),
        ),
    ),
    "weight registers": (
        STATIONARY,
        CONV2D,
        mapping(
            ("wreg", "temporal", "P28 Q4", "QPCMRSN"),
            ("spad", "temporal", "R3 P2 Q2", "PQRCMSN"),
            ("PE", "spatial", "C3 M4", "CMRSNPQ", "0"),
            ("glb", "temporal", "M8 S3 P2", "MPSCRNQ"),
            ("DRAM", "temporal", "Q14", "QCMRSNP"),
        ),
    ),
    "outputs in place": (
        OUTPUTS,
        CONV2D,
        mapping(
            ("glb", "dataspace", *kept(["Weights", "Inputs"])),
            ("wreg", "temporal", "P14", "PCMRSNQ"),
            ("spad", "temporal", "C3 S3 P4", "SPCMRNQ"),
            ("PE", "spatial", "M16", "MCRSNPQ", "0"),
            ("glb", "temporal", "R3 Q14", "RQCMSNP"),
            ("DRAM", "temporal", "M2 P2 Q8", "MQPCRSN"),
        ),
    ),
    "simba": (
        SIMBA,
        CONV2D,
        mapping(
            ("accu", "temporal", "M2 P7", "PMCRSNQ"),
            ("wbuf", "temporal", "R3 S3 P4", "SPRCMNQ"),
            ("buffers", "spatial", "M4", "MCRSNPQ", "0"),
            ("ibuf", "temporal", "Q4", "QCMRSNP"),
            ("PE", "spatial", "C3 M4", "MCRSNPQ", "2"),
            ("glb", "temporal", "P4", "PCMRSNQ"),
            ("DRAM", "temporal", "Q28", "QCMRSNP"),
        ),
    ),
}
CONV = {
    "Buffer Weights": (48, 3, 0),
    "Buffer Inputs": (48, 18, 0),
    "Buffer Outputs": (32, 0, 48),
    "MainMemory Weights": (3, 0, 0),
    "MainMemory Inputs": (18, 0, 0),
    "MainMemory Outputs": (0, 0, 16),
}
PRINTED: dict[str, dict[str, COUNTS]] = {
    "one level": {"Buffer Weights": (48, 0, 0), "Buffer Inputs": (48, 0, 0), "Buffer Outputs": (32, 0, 48)},
    "weight stationary": CONV,
    "output stationary": CONV,
    "tiled": {
        "Buffer Weights": (1536, 96, 0),
        "Buffer Inputs": (1536, 288, 0),
        "Buffer Outputs": (1024, 0, 1536),
        "MainMemory Weights": (96, 0, 0),
        "MainMemory Inputs": (288, 0, 0),
        "MainMemory Outputs": (0, 0, 512),
    },
    "untiled": {
        "Buffer Weights": (1536, 96, 0),
        "Buffer Inputs": (1536, 576, 0),
        "Buffer Outputs": (1024, 0, 1536),
        "MainMemory Weights": (96, 0, 0),
        "MainMemory Inputs": (576, 0, 0),
        "MainMemory Outputs": (0, 0, 512),
    },
    "three levels": {
        "RegisterFile Weights": (1536, 96, 0),
        "RegisterFile Inputs": (1536, 288, 0),
        "RegisterFile Outputs": (1024, 0, 1536),
        "GlobalBuffer Weights": (96, 96, 0),
        "GlobalBuffer Inputs": (288, 18, 0),
        "GlobalBuffer Outputs": (0, 0, 512),
        "MainMemory Weights": (96, 0, 0),
        "MainMemory Inputs": (18, 0, 0),
        "MainMemory Outputs": (0, 0, 512),
    },
    "bypassed": {
        "RegisterFile Outputs": (1024, 0, 1536),
        "GlobalBuffer Weights": (1536, 96, 0),
        "GlobalBuffer Inputs": (1536, 18, 0),
        "MainMemory Weights": (96, 0, 0),
        "MainMemory Inputs": (18, 0, 0),
        "MainMemory Outputs": (0, 0, 512),
    },
    "spread over inputs": {
        "RegisterFile Weights": (49152, 3072, 0),
        "RegisterFile Inputs": (49152, 18432, 0),
        "RegisterFile Outputs": (40960, 8192, 49152),
        "GlobalBuffer Weights": (3072, 3072, 0),
        "GlobalBuffer Inputs": (18432, 576, 0),
        "GlobalBuffer Outputs": (8192, 0, 16384),
        "MainMemory Weights": (3072, 0, 0),
        "MainMemory Inputs": (576, 0, 0),
        "MainMemory Outputs": (0, 0, 512),
    },
    "spread over outputs": {
        "RegisterFile Weights": (49152, 3072, 0),
        "RegisterFile Inputs": (49152, 18432, 0),
        "RegisterFile Outputs": (48640, 15872, 49152),
        "GlobalBuffer Weights": (3072, 3072, 0),
        "GlobalBuffer Inputs": (18432, 9216, 0),
        "GlobalBuffer Outputs": (15872, 0, 16384),
        "MainMemory Weights": (3072, 0, 0),
        "MainMemory Inputs": (576, 0, 0),
        "MainMemory Outputs": (0, 0, 512),
    },
    "eyeriss": {
        "psum Outputs": (7225344, 0, 10838016),
        "weights Weights": (10838016, 193536, 0),
        "ifmap Inputs": (10838016, 1354752, 0),
        "glb Inputs": (1354752, 157296, 0),
        "glb Outputs": (0, 0, 401408),
        "DRAM Weights": (13824, 0, 0),
        "DRAM Inputs": (157296, 0, 0),
        "DRAM Outputs": (0, 0, 401408),
    },
    "weight registers": {
        "oreg Outputs": (9633792, 9633792, 10838016),
        "ireg Inputs": (10838016, 10838016, 0),
        "wreg Weights": (10838016, 24192, 0),
        "spad Weights": (24192, 24192, 0),
        "glb Weights": (24192, 864, 0),
        "glb Inputs": (2709504, 151875, 0),
        "glb Outputs": (3211264, 0, 3612672),
        "DRAM Weights": (864, 0, 0),
        "DRAM Inputs": (151875, 0, 0),
        "DRAM Outputs": (0, 0, 401408),
    },
    "outputs in place": {
        "oreg Outputs": (10436608, 10436608, 10838016),
        "ireg Inputs": (10838016, 10838016, 0),
        "wreg Weights": (10838016, 774144, 0),
        "spad Outputs": (10436608, 0, 10838016),
        "glb Weights": (774144, 13824, 0),
        "glb Inputs": (677376, 157296, 0),
        "DRAM Weights": (13824, 0, 0),
        "DRAM Inputs": (157296, 0, 0),
        "DRAM Outputs": (0, 0, 401408),
    },
    "simba": {
        "wreg Weights": (10838016, 1548288, 0),
        "accu Outputs": (9633792, 2408448, 10838016),
        "wbuf Weights": (1548288, 864, 0),
        "ibuf Inputs": (2709504, 680400, 0),
        "glb Inputs": (170100, 151875, 0),
        "glb Outputs": (802816, 0, 1204224),
        "DRAM Weights": (864, 0, 0),
        "DRAM Inputs": (151875, 0, 0),
        "DRAM Outputs": (0, 0, 401408),
    },
}
ENERGIES = ert(
    {
        "MainMemory": {"read": 512, "write": 512, "update": 512, "leak": 0},
        "GlobalBuffer": {"read": 40, "write": 30, "update": 30, "leak": 0.5},
        "RegisterFile": {"read": 0.4, "write": 0.3, "update": 0.3, "leak": 0},
        "MACC": {"compute": 0.8, "leak": 0},
    }
)
