"""Pages of docs/ as data: their fenced blocks, the files they show, the commands and sessions that they promise."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from compilers import COMPILER
from einloom.cli import main

DOCS = Path(__file__).resolve().parents[1] / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\S+\.(?:yaml|txt|py))\n")
_EXIT = re.compile(r"#\s*exit ([0-9]+)\s*\Z")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(text: str) -> list[tuple[str, str]]:
    """(language, content) of each fenced block, in order."""
    return _BLOCK.findall(text)


def write_file(content: str, folder: Path) -> bool:
    """Write the block as the file that its first line names; False if it names none. YAML and Python keep that line, so
    lines in errors are those of the page."""
    match = _FILE.match(content)
    if match is None:
        return False
    (folder / match[1]).write_text(
        content if match[1].endswith((".py", ".yaml")) else content.removeprefix(match[0]), "utf-8"
    )
    return True


def run(command: str) -> tuple[int, str]:
    """Exit code and output of a command line that begins with `einloom`; ``> FILE`` at its end is obeyed."""
    line, _, target = command.partition(" > ")
    words = shlex.split(line, comments=True)
    assert words[0] == "einloom", command
    done = CliRunner().invoke(main, words[1:])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(f"{command} ended in a traceback") from done.exception
    if target:
        Path(target.strip()).write_text(done.output, encoding="utf-8")
        return done.exit_code, ""
    return done.exit_code, done.output


def promised_exit(command: str) -> int:
    """The exit code that a command of a page has: 0 unless it ends with a comment such as ``# exit 1``."""
    said = _EXIT.search(command)
    return 0 if said is None else int(said[1])


def play(text: str, folder: Path) -> int:
    """Do what a page says, in `folder`, which is the working directory: write its files, run its commands and sessions.

    A command must end with exit code 0, or with the one that the page says (``$ command  # exit 1``), and print what
    stands below it (``...`` stands for anything). Returns the number of commands and sessions; AssertionError for the
    first difference.
    """
    played, names = 0, dict[str, object]()
    for language, content in blocks(text):
        if write_file(content, folder):
            continue
        if language == "console":
            for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
                command, _, wanted = part.partition("\n")
                if command.startswith("einloom run ") and not COMPILER:
                    continue
                code, printed = run(command)
                assert code == promised_exit(command), f"{command} ended with exit code {code}:\n{printed}"
                if wanted.strip():
                    same = doctest.OutputChecker().check_output(wanted, printed, FLAGS)
                    assert same, f"{command} printed\n{printed}\nand the page says\n{wanted}"
                played += 1
        elif language == "python" and ">>>" in content:
            test = doctest.DocTestParser().get_doctest(content, names, "page", None, None)
            report: list[str] = []
            doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=report.append, clear_globs=False)
            names.update(test.globs)
            assert not report, "".join(report)
            played += 1
    return played
