"""Which tests execute a line: recorded by `recording`, looked up for a mutant.

A map is a list of layers, each a recording of some test files with the sources that they ran on. Test files that are
new or changed add a layer. Lines of a later state of a source are found in an earlier one by comparing the two texts,
so a map serves until much has changed. What is compiled to machine code executes no lines: there the tests count that
execute the calls of it from another file.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from bench.mutants.changes import Change, functions

Lines = dict[int, list[str]]


@dataclass(frozen=True, slots=True)
class Test:
    """A test that reaches a mutant. seconds: of CPU time. breadth: lines of `src/` that it executes in all."""

    name: str
    seconds: float
    breadth: int

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]

    @property
    def price(self) -> float:
        """What running it costs, in seconds; a test that executes half of the project tells little of one line."""
        return self.seconds + self.breadth / 20_000


@dataclass(frozen=True)
class Layer:
    """One recording: a folder with ``src`` (as it was), ``coverage``, ``tests.json``, and ``files.json`` (digests)."""

    folder: Path

    @cached_property
    def tests(self) -> dict[str, tuple[float, str]]:
        return {name: (s, o) for name, (s, o) in json.loads((self.folder / "tests.json").read_text("utf-8")).items()}

    @cached_property
    def files(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.folder / "files.json").read_text("utf-8"))
        return found

    @cached_property
    def _data(self) -> Any:
        from coverage import CoverageData

        data = CoverageData(str(self.folder / "coverage"))
        data.read()
        return data

    @cached_property
    def _measured(self) -> dict[str, str]:
        """Files as the recording calls them, by their path from the root."""
        return {"src/" + name.rpartition("/src/")[2]: name for name in self._data.measured_files()}

    @cached_property
    def breadth(self) -> dict[str, int]:
        """How many lines each test executes."""
        kept = self.folder / "breadth.json"
        if not kept.exists():
            counts: dict[str, int] = {}
            for file in self._measured:
                for names in self.lines(file).values():
                    for name in names:
                        counts[name] = counts.get(name, 0) + 1
            kept.write_text(json.dumps(counts), encoding="utf-8")
        found: dict[str, int] = json.loads(kept.read_text("utf-8"))
        return found

    def lines(self, file: str) -> Lines:
        """The tests that execute each line of a source."""
        name = self._measured.get(file)
        return {} if name is None else self._data.contexts_by_lineno(name)

    def source(self, file: str) -> str:
        path = self.folder / file
        return path.read_text(encoding="utf-8") if path.is_file() else ""


class Reach:
    """A map: the layers of a folder, the newest first."""

    def __init__(self, folder: Path) -> None:
        self.layers = [Layer(path) for path in sorted(folder.glob("layer-*"), reverse=True)]

    def outdated(self, root: Path) -> list[str]:
        """Test files that no layer has in their present state."""
        known = {(file, found) for layer in self.layers for file, found in layer.files.items()}
        return [file for file, found in digests(root).items() if (file, found) not in known]

    def tests(self, change: Change, source: str) -> list[Test]:
        """The tests that execute the statement that is changed, or else its function, or else its file; best first."""
        for names in _asked(change, source):
            found: dict[str, Test] = {}
            seen: set[str] = set()
            for layer in self.layers:
                for name in names(layer):
                    seconds, outcome = layer.tests.get(name, (0.0, "gone"))
                    if outcome == "passed" and name.partition("::")[0] not in seen:
                        found[name] = Test(name, seconds, layer.breadth.get(name, 0))
                seen |= set(layer.files)
            if found:
                return sorted(found.values(), key=lambda test: (test.price, test.name))
        return []


def _asked(change: Change, source: str) -> Iterator[Callable[[Layer], set[str]]]:
    """Questions for the tests of a layer, the narrowest first."""
    chosen = (f for name, f in functions(ast.parse(source)) if name == change.function)
    if any("njit" in ast.unparse(one) for function in chosen for one in function.decorator_list):
        yield partial(_callers, file=change.file)
    for lines in _places(change, source):
        yield partial(_names, file=change.file, lines=lines, source=source)


def _callers(layer: Layer, file: str) -> set[str]:
    """The tests that execute ``kernel.anneal(…)`` in the folder of `kernel.py`."""
    path = Path(file)
    found: set[str] = set()
    for other in (path.parent / one.name for one in (layer.folder / path.parent).glob("*.py")):
        by_line = layer.lines(other.as_posix())
        for number, line in enumerate(layer.source(other.as_posix()).splitlines(), 1):
            if re.search(rf"\b{path.stem}\.\w+\(", line):
                found |= {name for name in by_line.get(number, ()) if name}
    return found


def _names(layer: Layer, file: str, lines: range, source: str) -> set[str]:
    old, by_line = layer.source(file), layer.lines(file)
    same = range(len(source.splitlines()) + 2) if old == source else _old_lines(old, source)
    wanted = {same[line] for line in lines if line < len(same)}
    return {name for line in wanted for name in by_line.get(line, ()) if name}


def _old_lines(old: str, new: str) -> list[int]:
    """For each line of the new text, from 1, the line of the old one that it was; 0 for none."""
    found = [0] * (len(new.splitlines()) + 1)
    matcher = SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    for block in matcher.get_matching_blocks():
        for i in range(block.size):
            found[block.b + i + 1] = block.a + i + 1
    return found


def _places(change: Change, source: str) -> Iterator[range]:
    """Lines from the changed statement outwards: it, its function, the functions around, the file."""
    tree = ast.parse(source)
    statements = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n.lineno <= change.line <= _end(n)]
    if statements:
        inner = max(statements, key=lambda n: (n.lineno, -_end(n)))
        body = getattr(inner, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) and body else _end(inner)
        yield range(inner.lineno, max(last, inner.lineno) + 1)
    around = [f for name, f in functions(tree) if f"{change.function}.".startswith(f"{name}.")]
    for function in sorted(around, key=lambda f: -f.lineno):
        yield range(function.body[0].lineno, _end(function) + 1)
    yield range(1, len(source.splitlines()) + 1)


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def digests(root: Path) -> dict[str, str]:
    """A digest of each test file."""
    files = sorted((root / "tests").rglob("test_*.py"))
    return {f.relative_to(root).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest()[:16] for f in files}


def keep(folder: Path, recorded: Path, root: Path, files: list[str]) -> Layer:
    """Add a recording of `files`, made in a copy of `root`, to the map as its newest layer."""
    target = folder / f"layer-{len(list(folder.glob('layer-*'))):03}"
    target.mkdir(parents=True)
    shutil.copytree(root / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("coverage", "tests.json"):
        shutil.copy2(recorded / name, target / name)
    now = digests(root)
    (target / "files.json").write_text(json.dumps({file: now[file] for file in files}), encoding="utf-8")
    return Layer(target)
