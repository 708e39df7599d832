"""The test kit of an importer: what is wrong with it, in sentences.

The importer is given files that it should read, and the same files damaged. What it returns is held against einloom's
own files: whatever is read must be written and read back the same.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Table
from pathlib import Path
from random import Random

from ..cost.evaluate import legality
from ..errors import SpecError
from ..interop.bundle import Bundle
from ..interop.registry import OWN, Importer
from ..machine.files import parse_machine
from ..machine.write import machine_text
from ..mapping.normal import normal_form
from ..mapping.text import parse_mapping, print_mapping
from ..reading import writing
from ..reading.plugins import FAILURES
from ..workload.files import parse_workload, workload_text

DAMAGED = 40


def importer_faults(
    make: Callable[[], Importer],
    files: Sequence[str | Path],
    parameters: Table[str, str] | None = None,
    damaged: int = DAMAGED,
) -> tuple[str, ...]:
    """What is wrong with an importer; empty if nothing is.

    make: makes it. files: what it should read in one call, with `parameters`. damaged: how many damaged copies of the
    files it is given, each of which it must read or refuse with a SpecError.
    """
    given = dict(parameters or {})
    try:
        reader = make()
        bundle = reader.read(files, given)
        again = make().read(files, given)
    except FAILURES as error:
        return (f"it raises {type(error).__name__} on its own files: {error}",)
    if not isinstance(bundle, Bundle):
        return (f"it returns {type(bundle).__name__}, not a Bundle",)  # type: ignore[unreachable]
    faults = [] if bundle == again else ["two readings of the same files differ"]
    faults += _about(reader, bundle)
    faults += _round_trip(reader, bundle, given)
    faults += _damaged(make, files, given, damaged)
    faults += _refused(make, given)
    return tuple(dict.fromkeys(faults))


def _about(reader: Importer, bundle: Bundle) -> Iterator[str]:
    """What is wrong with the importer's fields and the objects that it returned."""
    for suffix in reader.suffixes:
        if not suffix.startswith(".") or suffix != suffix.lower():
            yield f"suffix {suffix!r} is not a dot and small letters"
        elif suffix in OWN:
            yield f"suffix {suffix!r} is einloom's own"
    workload, machine, tree = bundle.workload, bundle.machine, bundle.mapping
    if workload is None and machine is None and bundle.mapspace is None:
        yield "it finds neither a workload nor a machine nor a mapspace"
    if workload is not None:
        again = parse_workload(workload_text(workload))
        if again != workload or workload_text(again) != workload_text(workload):
            yield "its workload, written and read back, is another one"
    if machine is not None and parse_machine(machine_text(machine)) != machine:
        yield "its machine, written and read back, is another one"
    if tree is not None and (workload is None or machine is None):
        yield "its mapping has no workload or no machine"
    elif tree is not None and workload is not None and machine is not None:
        for reason in legality(workload, machine, tree):
            yield f"its mapping is illegal: {reason}"
        back = parse_mapping(print_mapping(tree, workload), workload, machine)
        if normal_form(back, workload) != normal_form(tree, workload):
            yield "its mapping, written and read back, is another one"


def _round_trip(reader: Importer, bundle: Bundle, parameters: Table[str, str]) -> Iterator[str]:
    """What does not come back when the importer reads what it wrote."""
    write = getattr(reader, "write", None)
    if write is None:
        return
    try:
        texts: Table[str, str] = write(bundle)
    except SpecError:
        return  # not everything that it reads has to be written
    with tempfile.TemporaryDirectory() as folder:
        back = reader.read(_written(Path(folder), {name: text.encode() for name, text in texts.items()}), parameters)
    if back.workload != bundle.workload:
        yield "its workload does not come back from the files that it writes"


def _damaged(
    make: Callable[[], Importer], files: Sequence[str | Path], parameters: Table[str, str], number: int
) -> Iterator[str]:
    """Everything but a SpecError that damaged files bring about."""
    rng = Random(number)
    whole = {Path(file).name: Path(file).read_bytes() for file in files}
    for _ in range(number):
        victim = rng.choice(sorted(whole))
        with tempfile.TemporaryDirectory() as folder:
            paths = _written(Path(folder), whole | {victim: _edited(whole[victim], rng)})
            try:
                make().read(paths, parameters)
            except SpecError:
                continue
            except FAILURES as error:
                yield f"a damaged {victim} makes it raise {type(error).__name__}: {error}"


def _edited(data: bytes, rng: Random) -> bytes:
    """The bytes with a piece taken out, doubled, or replaced."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((1, 2, 8, 40)))
    piece = rng.choice((b"", data[start:end] * 2, bytes(rng.randrange(256) for _ in range(3)), b"-1", b"9" * 30))
    return data[:start] + piece + data[end:]


def _written(folder: Path, contents: Table[str, bytes]) -> list[Path]:
    for name, content in contents.items():
        writing.write(content, folder / name)
    return [folder / name for name in contents]


def _refused(make: Callable[[], Importer], parameters: Table[str, str]) -> Iterator[str]:
    """Everything but a SpecError that files that are not there, or not of the kind, bring about."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty"
        writing.write(b"", empty)
        for what, files in (
            ("no file", []),
            ("a missing file", [Path(folder) / "missing"]),
            ("an empty file", [empty]),
        ):
            try:
                make().read(files, parameters)
            except SpecError:
                continue
            except FAILURES as error:
                yield f"given {what}, it raises {type(error).__name__}: {error}"
            else:
                yield f"given {what}, it refuses nothing"
