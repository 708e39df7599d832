"""What the shell offers for arguments, asked as a shell asks: by the words typed so far."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from einloom.cli import main


def offered(words: str) -> list[str]:
    """What is offered for the last of these words, as (kind, name) in the lines that bash reads."""
    typed = {"_EINLOOM_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = CliRunner().invoke(main, [], prog_name="einloom", env=typed)
    assert done.exit_code == 0, done.output
    return done.output.split()


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("einloom map gpt3", ["plain,gpt3-6.7b", "plain,gpt3-175b"]),
        ("einloom map matmul two", ["plain,two-level"]),
        ("einloom simulate matmul nv", ["plain,nvdla"]),
        ("einloom map matmul simple --method ex", ["plain,exact", "plain,exhaustive"]),
        ("einloom compare matmul simple --methods exact,ann", ["plain,exact,anneal"]),
        ("einloom map matmul simple --objective e", ["plain,energy", "plain,edp"]),
        ("einloom map matmul simple --objective tr", ["plain,traffic:DRAM", "plain,traffic:GLB"]),
        ("einloom map matmul nothing --objective tr", ["file,tr"]),
        ("einloom map matmul simple --dataflow chi", ["plain,chimera", "plain,chimera-online"]),
        ("einloom map matmul simple --space r", ["plain,ragged"]),
        ("einloom map matmul simple --order f", ["plain,free"]),
        ("einloom export zigzag matmul eye", ["plain,eyeriss"]),
        ("einloom zoo flat-", ["plain,flat-m", "plain,flat-b", "plain,flat-h", "plain,flat-r"]),
        ("einloom rewrite resnet18 s", ["plain,stored_padding"]),
        ("einloom map ./w", ["file,./w"]),
        ("einloom evaluate r.js", ["file,r.js"]),
        ("einloom sim", ["plain,simulate"]),
    ],
)
def test_names_are_offered_where_they_belong(words: str, names: list[str]) -> None:
    assert offered(words) == names
