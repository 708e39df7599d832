"""docs/inputs.md: its tables are those that the readers use, and its bad inputs print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from einloom.machine.files import AXIS, COMPUTE, FANOUT, LINK, MACHINE, MEMORY, TOLL, parse_machine
from einloom.reading.keys import Choice, Each, Either, Key, Later, Number, Record, Shape, Table, Written
from einloom.reading.keys import Plain as PlainShape
from einloom.workload.build import build_workload
from einloom.workload.files import EINSUM, WORKLOAD
from einloom.workload.selectors import KEYWORDS, select, selector
from pages import DOCS, blocks, play, promised_exit, run, write_file

PAGE = DOCS / "inputs.md"
RECORDS = (WORKLOAD, EINSUM, MACHINE, MEMORY, TOLL, LINK, FANOUT, AXIS, COMPUTE)


def words(shape: Shape) -> str:
    """What a value of this shape is, for people."""
    match shape:
        case Number(quantity=quantity):
            return {"count": "whole number", "any": "number"}.get(quantity, quantity)
        case Choice(options=options):
            return " or ".join(f"`{option}`" for option in options)
        case PlainShape(kind=kind):
            return {"boolean": "true or false"}.get(kind, kind)
        case Written(what=what) | Later(what=what):
            return what.split(" such as")[0].removeprefix("a ").removeprefix("an ")
        case Each(item=item):
            return f"list of {words(item)}"
        case Table(value=value):
            return f"mapping to {words(value)}"
        case Record(title=title):
            return title.removeprefix("a ").removeprefix("an ")
        case Either(shapes=shapes):
            return " or ".join(dict.fromkeys(words(inner) for inner in shapes))


def said(key: Key) -> str:
    """The default of a key as a file says it."""
    return str(key.default).lower() if isinstance(key.default, bool) else str(key.default)


def meaning(key: Key) -> str:
    if key.default is None:
        return key.meaning
    return f"{key.meaning}{' By' if key.meaning.endswith('?') else '; by'} default `{said(key)}`"


def key_table(record: Record) -> str:
    """The table of a record's keys as the page shows it; keys in bold must be there."""
    rows = [
        f"| {f'**`{key.name}`**' if key.required else f'`{key.name}`'} | {words(key.shape)} | {meaning(key)} |"
        for key in record.keys
    ]
    return "\n".join(["| key | value | meaning |", "|---|---|---|", *rows])


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.title)
def test_the_tables_of_the_page(record: Record) -> None:
    assert key_table(record) in PAGE.read_text(encoding="utf-8"), key_table(record)


MACHINE_FILE = """
schema: machine/1
name: small{machine}
levels:
  - {{memory: DRAM}}
  - {{memory: SRAM{memory}}}
  - {{toll: bus{toll}}}
  - {{link: ring, axis: rows{link}}}
  - fanout: array
    axes: [{{axis: rows, size: 4{axis}}}]
  - {{compute: MAC, kinds: [multiply]{compute}}}
"""
NOTHING_SAID = dict.fromkeys(("machine", "memory", "toll", "link", "axis", "compute"), "")
DEFAULTS = [
    (name, key.name, said(key))
    for name, record in (
        *(("machine", MACHINE), ("memory", MEMORY), ("toll", TOLL)),
        *(("link", LINK), ("axis", AXIS), ("compute", COMPUTE)),
    )
    for key in record.keys
    if key.default is not None
]


@pytest.mark.parametrize(("level", "key", "value"), DEFAULTS)
def test_what_a_default_says_is_what_its_absence_means(level: str, key: str, value: str) -> None:
    separator = f"\n{key}: " if level == "machine" else f", {key}: "
    said = parse_machine(MACHINE_FILE.format(**{**NOTHING_SAID, level: f"{separator}{value}"}))
    assert said == parse_machine(MACHINE_FILE.format(**NOTHING_SAID))


def test_every_key_of_a_level_that_may_be_absent_has_its_default_in_words_or_as_a_value() -> None:
    aside = {"source", "kind", "component", "widths", "description", "parameters"}
    for record in (MEMORY, TOLL, LINK, FANOUT, AXIS, COMPUTE, MACHINE):
        for key in record.keys:
            assert key.required or key.name in aside or "by default" in meaning(key).lower(), (record.title, key.name)


def sections() -> dict[str, str]:
    """Everything below ``## Mistakes, and what they print``, by heading; the section's own text stands under ''."""
    text = PAGE.read_text(encoding="utf-8").split("\n## Mistakes, and what they print\n")[1].split("\n## ")[0]
    parts = re.split(r"^### (.*)$", text, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


MISTAKES = [title for title in sections() if title]


def write_files(section: str, folder: Path) -> None:
    for _, content in blocks(section):
        write_file(content, folder)


@pytest.mark.parametrize("title", MISTAKES)
def test_mistakes_print_what_the_page_says(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parts = sections()
    write_files(parts[""], tmp_path)
    write_files(parts[title], tmp_path)
    consoles = [content for language, content in blocks(parts[title]) if language == "console"]
    assert len(consoles) == 1
    command, _, printed = consoles[0].partition("\n")
    code, output = run(command.removeprefix("$ "))
    assert code == promised_exit(command) and code in (1, 2), output
    assert output == printed


def test_there_are_ten_and_the_files_they_start_from_are_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(MISTAKES) >= 10
    monkeypatch.chdir(tmp_path)
    write_files(sections()[""], tmp_path)
    code, output = run("einloom map workload.yaml machine.yaml")
    assert code == 0, output


def rows(heading: str) -> list[list[str]]:
    """The cells of the table of the page whose first line is `heading`, without backquotes."""
    lines = PAGE.read_text(encoding="utf-8").partition(heading)[2].splitlines()[2:]
    table = lines[: next(i for i, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in table]


def test_every_word_of_set_expressions_is_defined() -> None:
    told = [word for cells in rows("| word | tensors of the Einsum at hand |") for word in cells[0].split(", ")]
    assert sorted(told) == sorted(KEYWORDS)


def test_the_roles_of_the_page() -> None:
    """The cascade of the table, in which every tensor has the role of its column."""
    table = rows("| Einsum | `input` | `weight` | `output` |")
    cascade = build_workload("page", [cells[0] for cells in table], dict.fromkeys("mepdf", 4), bits=8)
    assert len(table) == 6
    for (_, *tensors), einsum in zip(table, cascade.einsums, strict=True):
        for role, tensor in zip(("input", "weight", "output"), tensors, strict=True):
            assert select(selector(role), cascade, einsum.name) == ({tensor} if tensor else set())


def test_warnings_are_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(sections()[""], tmp_path)
    assert play(PAGE.read_text(encoding="utf-8").split("\n## Warnings\n")[1], tmp_path) == 1
