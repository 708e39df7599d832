"""Damaged input files against every reader: ``python -m bench.fuzz --files 10000``.

Each file must be read, or refused with an error of einloom's own that names the file, within five CPU seconds and
within a bound on memory; nothing else may be opened, started or executed on the way. What was read is written again and
must read back equal. Exits with 1 if any file breaks a rule, after naming all of them.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

from bench.mutate import CANARY, mutated
from bench.onnx_damage import PLANTED, damaged
from einloom import api as verbs
from einloom import questions
from einloom.errors import EinloomError, SpecError, SpecErrors
from einloom.interop.accelforge import export
from einloom.interop.accelforge.read import read as read_accelforge
from einloom.interop.onnx import from_onnx
from einloom.interop.tileflow import export as export_tileflow
from einloom.interop.tileflow.read import read as read_tileflow
from einloom.machine.files import parse_machine, read_machine
from einloom.machine.write import machine_text
from einloom.mapping.legality.structure import problems
from einloom.mapping.text import print_mapping
from einloom.mapspace.files import mapspace_text, parse_mapspace, read_mapspace
from einloom.result import Result
from einloom.workload.files import parse_workload, read_workload, workload_text
from einloom.zoo.machine_by_name import load_machine
from einloom.zoo.workload_by_name import load_workload

SECONDS = 5.0
MEGABYTES = 800
WATCHED = ("open", "exec", "os.", "subprocess.", "socket.", "shutil.", "pickle.", "ctypes.", "import", "marshal.")
MAPPING = """\
store DRAM: T0 W0 W1 T2
for m in 4
store GLB: T1
split sequential:
  - for n0 in 8
    for n1 in 8 tile 1
    compute E0 @ MAC
  - store GLB: W1
    for n1 in 8
    for n2 in 8
    compute E1 @ MAC
"""
WORKLOAD = """\
schema: workload/1
name: all keys
parameters: {tokens: 8, wide: 2 * tokens}
source: a table
kind: printed
ranks: {m: tokens, k: 4, n: {value: wide, source: measured, kind: derived}, r: 3}
bits: {default: 16, W: 8}
einsums:
  - T[m,n] = X[m,k] * W[k,n]
  - {name: S, einsum: "Y[m] = T[m,n]", reduction: max}
  - {name: P, einsum: "m,m->m", inputs: [Y, V], output: Q}
  - C[m] = Q[m+r-1] * F[r]
shapes: {Q: [8]}
outputs: [C]
persistent: [W]
repeat: 2 * 16
"""
SPACE = """\
schema: mapspace/1
name: mine
space: ffm
max_fused_loops: 2
memories: {GLB: {keep: T1, bypass: W0}}
fusion: {fused: T1}
loops:
  - {tensors: T1, variables: [m], trips: [1, 2, 4]}
tiles:
  - {memory: GLB, tensors: T1, variables: [m], sizes: {most: 2}}
"""


MODEL = """\
<ir_version: 9, opset_import: ["" : 18, "own": 1]>
small (float[batch, 4, 8] x, int64[batch, 4] ids) => (float[batch, 4, 8] y, float[batch, 2, 2, 4] c)
<int64[4] heads = {0, 0, 2, 4}, int64[3] parts = {8, 8, 8}, int64[3] flat = {0, 0, 8},
 float[8] one = {1, 1, 1, 1, 1, 1, 1, 1}, float[2, 1, 3, 3] k = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9},
 int64[2] size = {8, 24}, int64[4] plane = {0, 1, 4, 8}, float two = {2}, int64[1] last = {2}>
{
  w = ConstantOfShape <value = float[1] {0.5}> (size)
  n = LayerNormalization(x, one, one)
  s = MatMul(n, w)
  a, b, v = Split <axis = 2> (s, parts)
  ah = Reshape(a, heads)
  bh = Reshape(b, heads)
  vh = Reshape(v, heads)
  at = Transpose <perm = [0, 2, 1, 3]> (ah)
  bt = Transpose <perm = [0, 2, 3, 1]> (bh)
  vt = Transpose <perm = [0, 2, 1, 3]> (vh)
  q = MatMul(at, bt)
  d = Div(q, two)
  m = Softmax(d)
  z = MatMul(m, vt)
  zt = Transpose <perm = [0, 2, 1, 3]> (z)
  r = Reshape(zt, flat)
  f = Cast <to = 1> (ids)
  one_more = Unsqueeze(f, last)
  masked = Mul(r, one_more)
  g = own.half(masked)
  y = Add(g, x)
  image = Reshape(x, plane)
  conv = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (image, k)
  p = MaxPool <kernel_shape = [2, 2], strides = [1, 1], pads = [0, 0, 1, 1]> (conv)
  c = Relu(p)
}
<opset_import: ["" : 18], domain: "own">
half (h) => (o)
{
  two = Constant <value = float {2.0}> ()
  o = Div(h, two)
}
"""
"""In the notation of `onnx.parser`."""


@dataclass(slots=True)
class Guard:
    """What a reader may do: open the one file that it was given. Python's audit events tell of everything else."""

    allowed: str = ""
    armed: bool = False
    broken: list[str] = field(default_factory=list)

    def heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.armed or not event.startswith(WATCHED) or event in ("os.listdir", "os.scandir"):
            return
        if event == "open" and arguments[0] == self.allowed and arguments[1] in ("r", "rb"):
            return
        if event == "exec" and sys._getframe(1).f_globals.get("__name__") == "einloom.dataclass":
            return  # methods of a class, written from its fields and compiled when they are first called
        self.broken.append(f"{event} {arguments!r:.200}")


@dataclass(slots=True)
class Outcome:
    """What became of all files: how many were read, the errors of the others by first words, and the rules broken."""

    read: int = 0
    refused: int = 0
    without_line: collections.Counter[str] = field(default_factory=collections.Counter)
    slowest: tuple[float, str] = (0.0, "")
    broken: list[str] = field(default_factory=list)


class Kernel:
    """Whether a file was opened, whoever did it: Python's audit events do not tell of libraries in C++."""

    OPENED = 0x20  # IN_OPEN of inotify(7)

    def __init__(self, path: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = libc.inotify_init1(os.O_NONBLOCK) if hasattr(libc, "inotify_init1") else -1
        if self._events >= 0:
            libc.inotify_add_watch(self._events, os.fsencode(path), self.OPENED)

    def opened(self) -> bool:
        """Has it been, since this was last asked?"""
        try:
            return self._events >= 0 and bool(os.read(self._events, 4096))
        except BlockingIOError:
            return False


class TooSlowError(BaseException):
    """Raised inside a reader by the alarm."""


Subject = tuple[bytes, Callable[[Path], None]]


def one_model(path: Path) -> None:
    """Read a network, and its workload back."""
    found = from_onnx(path, {"batch": 2} if path.read_bytes().count(b"batch") else {}).workload
    assert parse_workload(workload_text(found)) == found, "does not read back"


def networks() -> dict[str, Subject]:
    """Whole networks, which only those damage who ask for them: reading one takes 0.1 s and more."""
    import onnx

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    names = ("squeezenet", "bvlc_alexnet", "shufflenet")
    return {f"onnx-{name}": ((light / f"light_{name}.onnx").read_bytes(), one_model) for name in names}


def subjects() -> dict[str, Subject]:
    """Each kind of file: an intact one, and a function that reads it, looks at it and reads it back."""
    workload, machine = load_workload("matmuls:n=2,m=4,kn=8"), load_machine("simple")
    made = verbs.evaluate(workload, machine, MAPPING)
    foreign = export(workload, load_machine("tpu-v4i"))

    def one_workload(path: Path) -> None:
        found = read_workload(path)
        assert parse_workload(workload_text(found)) == found, "does not read back"

    def one_machine(path: Path) -> None:
        found = read_machine(path)
        assert parse_machine(machine_text(found)) == found, "does not read back"

    def one_mapping(path: Path) -> None:
        asked, located = questions.given(workload, machine, str(path))
        found = located.mapping
        problems(asked.workload, asked.machine, found)
        assert "store" in print_mapping(found, asked.workload)

    def one_mapspace(path: Path) -> None:
        found = read_mapspace(path, machine)
        assert parse_mapspace(mapspace_text(found), machine) == found, "does not read back"

    def one_result(path: Path) -> None:
        found = Result.read(str(path))
        verbs.verify(found, quick=True)
        assert Result.from_json(found.to_json()).cost == found.cost, "does not read back"

    other = export_tileflow(workload, machine, questions.given(workload, machine, MAPPING)[1].mapping)

    def one_foreign(path: Path) -> None:
        read_accelforge([path])

    def one_tiled(path: Path) -> None:
        read_tileflow([path])

    made_of = {
        "workload": (WORKLOAD.encode(), one_workload),
        "machine": (machine_text(load_machine("tpu-v4i")).encode(), one_machine),
        "mapping": (MAPPING.encode(), one_mapping),
        "mapspace": (SPACE.encode(), one_mapspace),
        "result": (made.to_json().encode(), one_result),
        "tileflow": ("".join(other.files.values()).encode(), one_tiled),
        "accelforge": ("".join(foreign.files.values()).encode(), one_foreign),
    }
    if find_spec("onnx") is not None:
        import onnx.parser

        made_of["onnx"] = (onnx.parser.parse_model(MODEL).SerializeToString(), one_model)
    return made_of


@contextmanager
def limits(guard: Guard) -> Iterator[None]:
    """Five CPU seconds, counted by a timer of this process, and the guard armed."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    guard.armed = True
    try:
        yield
    finally:
        guard.armed = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(files: int, seed: int, folder: Path, kinds: Sequence[str] = (), first: int = 0) -> Outcome:
    """Read `files` damaged files from number `first` on, the kinds in turns; the same for the same seed."""
    known = subjects() | (networks() if any("-" in kind for kind in kinds) else {})
    chosen = {name: subject for name, subject in known.items() if (name in kinds if kinds else True)}
    guard, outcome = Guard(), Outcome()
    (folder / PLANTED).write_bytes(bytes(2**20))
    kernel = Kernel(folder / PLANTED)
    sys.addaudithook(guard.heard)
    unicodedata.normalize("NFKC", "x")  # the interpreter's own parser imports it for names beyond ASCII
    for name, (original, read) in chosen.items():  # everything that is imported at first use is imported here
        path = folder / _file_name(name)
        path.write_bytes(original)
        read(path)
    names = list(chosen)
    for i in range(first, first + files):
        name = names[i % len(names)]
        label = f"{seed}/{name}/{i}"
        path = folder / _file_name(name)
        path.write_bytes(_damaged(name, chosen[name][0], label))
        guard.allowed, guard.broken = str(path), []
        _one(chosen[name][1], path, label, guard, outcome)
        if kernel.opened():
            outcome.broken.append(f"{label}: {PLANTED} was opened")
    if any(folder.glob(f"**/{CANARY}*")) or Path(CANARY).exists():
        outcome.broken.append("something planted was executed")
    return outcome


def _damaged(kind: str, original: bytes, label: str) -> bytes:
    return damaged(original, label) if kind.startswith("onnx") else mutated(original, label)


def _file_name(kind: str) -> str:
    kind = kind.partition("-")[0]
    return {"mapping": "mapping.txt", "result": "result.json", "onnx": "model.onnx"}.get(kind, f"{kind}.yaml")


def _one(read: Callable[[Path], None], path: Path, label: str, guard: Guard, outcome: Outcome) -> None:
    started = time.process_time()
    try:
        with limits(guard):
            read(path)
        outcome.read += 1
    except SpecError as error:
        outcome.refused += 1
        for each in error.problems if isinstance(error, SpecErrors) else (error,):
            if each.file is None or path.name not in each.file:
                outcome.broken.append(f"{label}: an error without its file: {each}")
            elif each.line is None and path.suffix != ".onnx":  # a binary file has no lines
                outcome.without_line[each.message[:60]] += 1
    except EinloomError:
        outcome.refused += 1
    except TooSlowError:
        outcome.broken.append(f"{label}: more than {SECONDS} CPU seconds")
    except MemoryError:
        outcome.broken.append(f"{label}: out of memory")
    except Exception:  # noqa: BLE001 (to find what is not an EinloomError is what this is for)
        outcome.broken.append(f"{label}: {traceback.format_exc(limit=-3)}")
    outcome.slowest = max(outcome.slowest, (time.process_time() - started, label))
    outcome.broken += [f"{label}: {what}" for what in guard.broken]


def peak_megabytes() -> float:
    """The largest memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(words: Sequence[str] | None = None) -> int:
    """Run, print what became of the files, and exit with 1 if a rule was broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=10_000, help="how many (default 10,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", default=[], help="only this kind of file; may be repeated")
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--json", action="store_true", help="say it as one line of JSON, for bench.damage")
    parser.add_argument("--show", metavar="LABEL", help="print the damaged file with this label")
    options = parser.parse_args(words)
    if options.show:
        kind = options.show.split("/")[1]
        known = networks() if "-" in kind else subjects()
        sys.stdout.buffer.write(_damaged(kind, known[kind][0], options.show))
        return 0
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)
        try:
            outcome = run(options.files, options.seed, Path(folder), options.kind, options.first)
        finally:
            os.chdir(before)
    if (peak := peak_megabytes()) > MEGABYTES:
        outcome.broken.append(f"{peak:.0f} MB of memory; {MEGABYTES} MB are allowed")
    seconds, label = outcome.slowest
    if options.json:
        said = {"read": outcome.read, "refused": outcome.refused, "broken": outcome.broken, "slowest": seconds}
        print(json.dumps(said))
        return 1 if outcome.broken else 0
    print(f"{options.files} files: {outcome.read} read, {outcome.refused} refused")
    print(f"slowest {seconds:.2f} CPU s ({label}), all {time.process_time() - started:.0f} CPU s, peak {peak:.0f} MB")
    print(f"errors without a line: {outcome.without_line.total()}")
    for message, count in outcome.without_line.most_common(20):
        print(f"  {count:5} {message}")
    for what in outcome.broken:
        print(f"broken: {what}")
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    return 1 if outcome.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
