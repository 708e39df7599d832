"""Large and long-winded files are read or refused with a message of bounded length; among the slow ones, in seconds."""

from __future__ import annotations

import json
import time

import pytest

from einloom.errors import SpecError
from einloom.machine.files import parse_machine
from einloom.reading.located import MAX_ERRORS
from einloom.reading.yamltree import MAX_YAML, parse_yaml
from einloom.workload.files import parse_workload

HEAD = "schema: workload/1\nname: x\nbits: 8\n"
MACHINE = "schema: machine/1\nname: x\nlevels:\n"


def ranks(names: str, used: str, many: int) -> str:
    listed = "".join(f"  {names}{i}: 4\n" for i in range(many))
    einsums = "".join(f"  - T{i}[{used}{i}] = exp(S{i}[{used}{i}])\n" for i in range(many // 4))
    return f"{HEAD}ranks:\n{listed}einsums:\n{einsums}"


NAMES = ("keys", "einsums", "ranks", "levels", "fields", "values", "names", "tag", "list")


def mistakes(many: int, share: float = 1.0) -> list[tuple[str, object]]:
    """Files with so many mistakes, or with a share of what a file may have at most."""
    return [
        (HEAD + "".join(f"key{i}: 1\n" for i in range(many)), parse_workload),
        (HEAD + "ranks: {m: 4}\neinsums:\n" + "- T[m = S[m]\n" * many, parse_workload),
        (ranks("rank", "size", many), parse_workload),
        (MACHINE + "- {memroy: A, sise: 3}\n" * many, parse_machine),
        (MACHINE + "- memory: A\n" + "".join(f"  sise{i}: 3\n" for i in range(many)), parse_machine),
        (MACHINE + "- {memory: A, size: 3 KB, ports: shred, must: 'a &'}\n" * (many // 2), parse_machine),
        (MACHINE + "- {memory: A}\n" * many, parse_machine),
        ("!" * (MAX_YAML - 10), parse_machine),
        ("- 1\n" * int(MAX_YAML * share / 4), parse_machine),
    ]


@pytest.mark.parametrize(("text", "read"), mistakes(1_000, 0.2), ids=NAMES)
def test_many_mistakes(text: str, read: object) -> None:
    assert callable(read)
    with pytest.raises(SpecError) as caught:
        read(text, "f.yaml")
    assert str(caught.value).count("\n") <= MAX_ERRORS
    assert len(str(caught.value)) < 100_000
    assert caught.value.file == "f.yaml"


@pytest.mark.slow
@pytest.mark.parametrize(("text", "read"), mistakes(5_000), ids=NAMES)
def test_many_mistakes_take_at_most_five_cpu_seconds(text: str, read: object) -> None:
    started = time.process_time()
    test_many_mistakes(text, read)
    assert time.process_time() - started < 5


def test_a_long_cascade_is_read() -> None:
    einsums = [f"T{i + 1}[m] = exp(T{i}[m])" for i in range(2000)]
    data = {"schema": "workload/1", "name": "long", "bits": 8, "ranks": {"m": 4}, "einsums": einsums}
    assert len(parse_workload(json.dumps(data)).einsums) == 2000
    assert parse_yaml(json.dumps(data), "f").kind == "mapping"
