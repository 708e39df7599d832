"""The fabric as files: Verilog by way of yosys, and the C++ testbench for Verilator.

Amaranth writes RTLIL, module by module; Debian's yosys reads it and writes Verilog. The element, the row and the array
are each one module, so a fabric of 65,536 elements is a file of the same size as one of four.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain
from amaranth.lib.wiring import Component

from ...reading import writing
from ..describe import Fabric
from ..tools import tool
from .array import ARRAY, ELEMENT, ROW, ElementRow, Rectangle
from .element import ProcessingElement
from .fabric import FabricTop

TOP = "fabric"
NUMBERED = re.compile(r"\b_\d+_\b")
"""A wire that yosys named: declared, driven and read, so it stands there three times or more unless nobody reads it."""
HEAD = """// Generated. All modules stand in one file; operands of unequal widths are extended as Verilog does; the
// selects of a casez are one-hot by construction, so its patterns never meet.
/* verilator lint_off DECLFILENAME */
/* verilator lint_off WIDTH */
/* verilator lint_off CASEOVERLAP */
"""
TESTBENCH = Path(__file__).parent / "testbench.cpp"


def rtlil_files(fabric: Fabric, folder: Path) -> list[Path]:
    """RTLIL of every module of the fabric, in `folder`."""
    element = fabric.element
    parts: dict[str, Component] = {
        ELEMENT: ProcessingElement(element),
        ROW: ElementRow(element, fabric.columns, instances=True),
        ARRAY: Rectangle(element, fabric.rows, fabric.columns, instances=True),
        TOP: FabricTop(fabric, instances=True),
    }
    written = []
    for name, part in parts.items():
        path = folder / f"{name}.il"
        writing.write(rtlil_text(part, name, reset=name == TOP), path)
        written.append(path)
    return written


def rtlil_text(part: Component, name: str, reset: bool = False) -> str:
    """RTLIL of one component; its clock is called clk, its reset, if it has one, rst."""
    part._MustUse__silence = True  # elaborated here, as the root of its own design
    module: Any = part.elaborate(None)
    domain = ClockDomain("sync", reset_less=not reset)
    module.domains += domain
    ports = [domain.clk, *([domain.rst] if reset else []), *(getattr(part, n) for n in part.signature.members)]
    return str(rtlil.convert(module, name=name, ports=ports, emit_src=False))


def verilog(fabric: Fabric, folder: Path) -> Path:
    """Write ``fabric.v`` into the folder. Raises SpecError where yosys is missing."""
    yosys = tool("yosys")
    sources = rtlil_files(fabric, folder)
    target = folder / f"{TOP}.v"
    script = "; ".join(
        (
            *(f"read_rtlil {path.name}" for path in sources),
            f"hierarchy -check -top {TOP}",
            "setattr -set keep 1 w:spare_unused",
            "proc",
            *["wreduce", "opt_clean -purge"] * 3,  # narrower results leave narrower operands behind
            "splitnets -driver",
            "opt_clean -purge",
            f"write_verilog -noattr {target.name}",
        )
    )
    subprocess.run([yosys, "-q", "-p", script], cwd=folder, check=True, capture_output=True, text=True)
    for path in sources:
        path.unlink()
    text = target.read_text(encoding="utf-8").partition("\n")[2].lstrip()  # without the line that names yosys
    writing.write(HEAD + _open_outputs_named(text), target)
    return target


def _open_outputs_named(text: str) -> str:
    """The Verilog with outputs that nobody reads called so, as linters expect; yosys gives them numbers."""
    modules = []
    for module in text.split("endmodule"):
        used = Counter(NUMBERED.findall(module))
        for name in [name for name, count in used.items() if count == 2]:
            module = re.sub(rf"\b{name}\b", f"{name}unused", module)
        modules.append(module)
    return "endmodule".join(modules)


def testbench(fabric: Fabric, folder: Path) -> Path:
    """Write ``testbench.cpp`` into the folder: the words of every port are the only thing that differs."""
    element = fabric.element
    bits = {
        "LEFT": element.operand_bits * fabric.rows * fabric.count,
        "PSUM": element.sum_bits * fabric.rows * fabric.count,
        "TOP": element.operand_bits * fabric.columns * fabric.count,
    }
    heads = [f"#define {name}_WORDS {-(-size // 32)}" for name, size in bits.items()]
    heads.append(f"#define FLUSH {fabric.count * (fabric.rows + fabric.columns) + 4}")
    target = folder / "testbench.cpp"
    writing.write("\n".join(heads) + "\n" + TESTBENCH.read_text(encoding="utf-8"), target)
    return target
