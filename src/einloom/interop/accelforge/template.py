"""Templates in AccelForge's files: ``{% for %}``, ``{% if %}``, ``{% set %}`` and ``{{ ... }}``, safely expanded.

Text and a table of values come in; plain YAML goes out, with the line of the template that each of its lines comes
from. Expressions are those of `expressions`, and what a template may print is bounded. ``include_text``,
``add_to_path`` and ``find_path`` ask a `Library` of files; without one they are refused.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import field

from ...dataclass import dataclass
from ...errors import SpecError, unknown
from .expressions import MAX_ITEMS, Value, evaluate, shown, truth
from .includes import IncludedLine, Library

MAX_OUTPUT = 5_000_000
MAX_NESTING = 20
_PIECE = re.compile(  # a piece ends before another of its kind opens, or unclosed ones would cost quadratic time
    r"\{\{(?P<print>(?:(?!\{\{).)*?)\}\}|\{%-?(?P<block>(?:(?!\{%).)*?)-?%\}|\{#(?:(?!\{#).)*?#\}", re.DOTALL
)
_SET = re.compile(r"set\s+([A-Za-z_]\w*)\s*=(?!=)\s*(.+)\Z", re.DOTALL)
_FOR = re.compile(r"for\s+([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s+in\s+(.+)\Z", re.DOTALL)
_WORDS = ("set", "for", "endfor", "if", "elif", "else", "endif")
_FROM_FILES = ("include_text", "add_to_path", "find_path")
_ELSEWHERE = (*_FROM_FILES, "include", "include_all", "find_paths", "path_exists", "cwd", "setenv")
_ASKED = re.compile(r"(\w+)\s*\((.*)\)\s*\Z", re.DOTALL)
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Expanded:
    """Plain text, and for each of its lines (from 0) the line of the template (from 1) that it comes from."""

    text: str
    lines: tuple[int, ...]


@dataclass(slots=True)
class _Part:
    """Literal text, or a block: its word, its argument, its line, and what it encloses."""

    word: str
    text: str
    line: int
    inside: list[_Part] = field(default_factory=list)


def expand(text: str, file: str, values: Mapping[str, Value] | None = None, library: Library | None = None) -> Expanded:
    """The text with every template piece replaced by what it stands for; `library` finds the files that it includes.

    >>> expand("{% set n = n | default(2) %}{% for i in range(n) %}- T{{i + 1}}\\n{% endfor %}", "x").text
    '- T1\\n- T2\\n'

    Raises SpecError with file and line for unknown names and blocks, and for files that may not be read. Lines of
    included files are `IncludedLine`.
    """
    parts = _parts(text, file)
    expander = _Expander(file, dict(values or {}), library)
    expander.run(parts)
    return Expanded("".join(expander.out), _line_origins(expander.out, expander.lines))


def _line_origins(pieces: list[str], lines: list[int]) -> tuple[int, ...]:
    """For each printed line, where the first piece that put something into it stands."""
    found: list[int] = []
    fresh = True
    for piece, line in zip(pieces, lines, strict=True):
        parts = piece.split("\n")
        for i, part in enumerate(parts):
            last = i == len(parts) - 1
            if fresh and (part or not last):
                found.append(line + i)
            fresh = not last or (fresh and not part)
    return tuple(found) or (1,)


def _parts(text: str, file: str) -> list[_Part]:
    """The text cut into literal parts and nested blocks."""
    root = _Part("", "", 1)
    stack = [root]
    at = 0
    newlines = [match.start() for match in re.finditer("\n", text)]
    uncommented = _without_comments(text)
    for match in _PIECE.finditer(uncommented):
        line = bisect_left(newlines, match.start()) + 1
        _literal(stack[-1], text[at : match.start()], bisect_left(newlines, at) + 1)
        at = match.end()
        if match["print"] is not None:
            stack[-1].inside.append(_Part("print", match["print"].strip(), line))
        elif match["block"] is not None:
            _block(match["block"].strip(), line, stack, file)
            if len(stack) > 2 * MAX_NESTING:
                raise SpecError(f"blocks are nested deeper than {MAX_NESTING}", file=file, line=line)
    _literal(stack[-1], text[at:], bisect_left(newlines, at) + 1)
    if len(stack) > 1:
        open_ = stack[1]
        raise SpecError(f"the block {{% {open_.word} %}} is never closed", file=file, line=open_.line)
    return root.inside


def _without_comments(text: str) -> str:
    """The text with YAML comments that stand alone on a line blanked, so that braces in prose mean nothing."""
    return re.sub(r"^[ \t]*#.*$", lambda m: " " * len(m.group()), text, flags=re.MULTILINE)


def _literal(parent: _Part, text: str, line: int) -> None:
    if text:
        parent.inside.append(_Part("text", text, line))


def _block(content: str, line: int, stack: list[_Part], file: str) -> None:
    word = content.split(None, 1)[0] if content else ""
    if word not in _WORDS:
        if word in _ELSEWHERE:
            raise SpecError(
                f"{word!r} is not read as a block; write {{{{include_text('FILE')}}}}", file=file, line=line
            )
        raise unknown("block", word, _WORDS).at(file, line)
    top = stack[-1]
    if word == "set":
        top.inside.append(_Part("set", content, line))
    elif word in ("for", "if"):
        part = _Part(word, content, line)
        top.inside.append(part)
        stack.append(part)
        if word == "if":
            _branch(part, content[2:].strip(), line, stack)
    elif word in ("elif", "else"):
        if top.word != "branch" or stack[-2].word != "if":
            raise SpecError(f"{word!r} stands outside an 'if'", file=file, line=line)
        stack.pop()
        _branch(stack[-1], content[4:].strip() if word == "elif" else "true", line, stack)
    else:
        wanted = "for" if word == "endfor" else "branch"
        if top.word != wanted:
            raise SpecError(f"{word!r} closes nothing", file=file, line=line)
        stack.pop()
        if wanted == "branch":
            stack.pop()


def _branch(parent: _Part, condition: str, line: int, stack: list[_Part]) -> None:
    part = _Part("branch", condition, line)
    parent.inside.append(part)
    stack.append(part)


class _Expander:
    """Prints parts; `out` and `lines` hold the printed pieces and where each begins."""

    def __init__(self, file: str, values: dict[str, Value], library: Library | None) -> None:
        self.file, self.values, self.library = file, values, library
        self.out: list[str] = []
        self.lines: list[int] = []
        self.size = 0
        self.steps = 0

    def run(self, parts: list[_Part]) -> None:
        for part in parts:
            self.steps += 1
            if self.steps > 20 * MAX_ITEMS:
                raise SpecError("the template takes too many steps", file=self.file, line=part.line)
            match part.word:
                case "text":
                    self.emit(part.text, part.line)
                case "print":
                    asked = _ASKED.match(part.text)
                    if asked and asked[1] in _ELSEWHERE:
                        self.elsewhere(asked[1], asked[2], part)
                    else:
                        self.emit(self.printed(part), part.line)
                case "set":
                    self.set(part)
                case "for":
                    self.loop(part)
                case "if":
                    for branch in part.inside:
                        if truth(self.value(branch.text, branch)):
                            self.run(branch.inside)
                            break

    def emit(self, text: str, line: int) -> None:
        self.size += len(text)
        if self.size > MAX_OUTPUT:
            raise SpecError("the template prints too much", file=self.file, line=line)
        self.out.append(text)
        self.lines.append(line)

    def elsewhere(self, function: str, argument: str, part: _Part) -> None:
        """Print an included text, add a folder to those searched, or print the name of a file that is there."""
        if function not in _FROM_FILES:
            message = f"{function!r} is not read; of other files only {', '.join(_FROM_FILES)} speak here"
            raise SpecError(message, file=self.file, line=part.line)
        if self.library is None:
            message = f"{function!r} needs files on disk; this text has no folder"
            raise SpecError(message, file=self.file, line=part.line)
        name = self.value(argument, part)
        try:
            if function == "add_to_path":
                self.library.add(name)
            elif function == "find_path":
                self.library.found(name)
                self.emit(str(name), part.line)
            else:
                text, library = self.library.included(name)
        except SpecError as error:
            if error.file is not None:
                raise
            raise SpecError(error.message, file=self.file, line=part.line, suggestion=error.suggestion) from None
        if function == "include_text":
            found = expand(text, library.file, self.values, library)
            for piece, line in zip(_LINES.findall(found.text), found.lines, strict=False):
                self.emit(piece, line if isinstance(line, IncludedLine) else IncludedLine(line, library.file))

    def printed(self, part: _Part) -> str:
        found = self.value(part.text, part)
        try:
            return shown(found)
        except SpecError as error:
            raise SpecError(error.message, file=self.file, line=part.line) from None

    def value(self, text: str, part: _Part) -> Value:
        try:
            return evaluate(text, self.values)
        except SpecError as error:
            raise SpecError(error.message, file=self.file, line=part.line, suggestion=error.suggestion) from None

    def set(self, part: _Part) -> None:
        match = _SET.match(part.text)
        if match is None:
            raise SpecError("expected {% set NAME = VALUE %}", file=self.file, line=part.line)
        self.values[match[1]] = self.value(match[2], part)

    def loop(self, part: _Part) -> None:
        match = _FOR.match(part.text)
        if match is None:
            raise SpecError("expected {% for NAME in VALUES %}", file=self.file, line=part.line)
        names = [name.strip() for name in match[1].split(",")]
        items = self.value(match[2], part)
        items = list(items) if isinstance(items, dict) else items
        if not isinstance(items, list):
            raise SpecError(f"{match[2]!r:.60} is no list to go through", file=self.file, line=part.line)
        before = dict(self.values)
        for item in items:
            values = [item] if len(names) == 1 else item
            if not isinstance(values, list) or len(values) != len(names):
                raise SpecError(f"{len(names)} names for one element", file=self.file, line=part.line)
            self.values.update(zip(names, values, strict=True))
            self.run(part.inside)
        self.values = before
