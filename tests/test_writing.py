"""What is written stands there whole or not at all, and what is no regular file stays what it is."""

from __future__ import annotations

import ast
import os
import pickle
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import einloom as el
from einloom.defects import saved
from einloom.errors import Defect, SpecError
from einloom.questions import problem
from einloom.reading import writing
from einloom.search.exact.branch_and_bound import Run
from einloom.search.exact.incumbent import Incumbent

SOURCE = Path(__file__).resolve().parents[1] / "src" / "einloom"
NULL, FULL = os.makedev(1, 3), os.makedev(1, 7)


def node(path: Path, number: int) -> Path:
    """A character device of the test's own."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, number)
        path.open("wb").close()
    except OSError as error:
        pytest.skip(f"no devices can be made here: {error.strerror}")
    return path


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A ``with`` block in which no file grows beyond so many bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def kind(path: Path) -> int:
    return stat.S_IFMT(path.lstat().st_mode)


def test_devices_are_written_into(tmp_path: Path) -> None:
    null = node(tmp_path / "null", NULL)
    writing.refuse(null)
    writing.write("text", null)
    assert kind(null) == stat.S_IFCHR and null.stat().st_rdev == NULL
    full = node(tmp_path / "full", FULL)
    with pytest.raises(SpecError, match="full: cannot write the file: No space left on device"):
        writing.write("text", full)
    assert kind(full) == stat.S_IFCHR and sorted(p.name for p in tmp_path.iterdir()) == ["full", "null"]


def test_the_open_file_behind_a_name_goes_on_where_it_is(tmp_path: Path) -> None:
    """As with ``--json /dev/stdout > out``: nothing that was printed before or after is lost."""
    with (tmp_path / "out").open("wb", buffering=0) as out:
        out.write(b"before\n")
        link = tmp_path / "stdout"
        link.symlink_to(f"/proc/self/fd/{out.fileno()}")
        writing.refuse(link)
        writing.write("middle\n", link)
        out.write(b"after\n")
    assert (tmp_path / "out").read_bytes() == b"before\nmiddle\nafter\n"
    assert link.is_symlink()


def test_fifos_are_written_into(tmp_path: Path) -> None:
    fifo, heard = tmp_path / "fifo", []
    os.mkfifo(fifo)
    writing.refuse(fifo)
    reader = threading.Thread(target=lambda: heard.append(fifo.read_text(encoding="utf-8")))
    waited: list[bool] = []

    def begin() -> None:
        waited.append(True)
        reader.start()

    writing.write("text" * 100_000, fifo, begin)
    reader.join(30)
    assert waited == [True] and heard == ["text" * 100_000] and kind(fifo) == stat.S_IFIFO
    ready = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        writing.write("more", fifo, begin)
        assert waited == [True] and os.read(ready, 100) == b"more"
    finally:
        os.close(ready)


def test_links_stay_and_what_they_lead_to_is_replaced(tmp_path: Path) -> None:
    target, link, further = tmp_path / "target", tmp_path / "link", tmp_path / "folder" / "further"
    further.parent.mkdir()
    link.symlink_to("target")
    further.symlink_to("../link")
    for path, content in ((link, "first"), (further, "second")):  # the first leads to nothing yet
        writing.refuse(path)
        writing.write(content, path)
        assert link.is_symlink() and further.is_symlink() and not target.is_symlink()
        assert target.read_text(encoding="utf-8") == content
    ring = tmp_path / "ring"
    ring.symlink_to("ring")
    with pytest.raises(SpecError, match="ring: cannot write the file"):
        writing.write("text", ring)
    assert ring.is_symlink()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_mode_stays(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    path.chmod(mode)
    owner = path.stat().st_uid, path.stat().st_gid
    writing.write("new", path)
    assert stat.S_IMODE(path.stat().st_mode) == mode and path.read_text(encoding="utf-8") == "new"
    assert (path.stat().st_uid, path.stat().st_gid) == owner


def test_new_files_have_the_usual_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        writing.write("text", tmp_path / "file")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    os.chown(path, 12345, 54321)
    writing.write("new", path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_read_only_files_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != path)  # root may do everything
    for write in (lambda: writing.refuse(path), lambda: writing.write("new", path)):
        with pytest.raises(SpecError, match="file: cannot write the file: it is read-only"):
            write()
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize("old", [None, "old"])
def test_a_full_disk_leaves_what_was_there(old: str | None, tmp_path: Path) -> None:
    path = tmp_path / "file"
    if old is not None:
        path.write_text(old, encoding="utf-8")
    with files_of_at_most(1000), pytest.raises(SpecError, match="file: cannot write the file: File too large"):
        writing.write("x" * 1001, path)
    assert [p.name for p in tmp_path.iterdir()] == ([] if old is None else ["file"])
    assert old is None or path.read_text(encoding="utf-8") == old


def test_a_small_disk_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        writing.write("old", place / "file")
        with pytest.raises(SpecError, match="No space left on device"):
            writing.write("x" * 100_000, place / "file")
        with pytest.raises(SpecError, match="No space left on device"):
            writing.write("x" * 100_000, place / "other")
        assert [p.name for p in place.iterdir()] == ["file"]
        assert (place / "file").read_text(encoding="utf-8") == "old"
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("folder", "it is a folder"),
        ("none/file", "there is no folder 'none'"),
        ("file\0", "embedded null"),
        ("x" * 300, "File name too long"),
    ],
)
def test_places_that_cannot_be_written_to(path: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(SpecError, match=words):
        writing.write("text", f"{tmp_path}/{path}")
    if len(path) < 255:
        with pytest.raises(SpecError, match=words):
            writing.refuse(f"{tmp_path}/{path}")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_half_a_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"'\\ud800' is a lone surrogate"):
        writing.write("a\ud800", tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_working_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for write in (lambda: writing.refuse("file"), lambda: writing.write("text", "file"), lambda: writing.folder("a")):
        with pytest.raises(SpecError, match="the working folder is gone"):
            write()
    writing.write("text", tmp_path / "file")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "text"


def test_long_names_leave_room_for_the_file_beside(tmp_path: Path) -> None:
    writing.write("text", tmp_path / ("x" * 255))
    assert [p.name for p in tmp_path.iterdir()] == ["x" * 255]


WRITES = {"write_text", "write_bytes", "replace", "rename", "mkdir", "makedirs", "savefig", "NamedTemporaryFile"}


def _writes(call: ast.Call) -> bool:
    """True for a call that changes a folder or opens a file for writing."""
    function = call.func
    name = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    if name == "open":
        modes = [one.value for one in (*call.args, *(k.value for k in call.keywords)) if isinstance(one, ast.Constant)]
        return any(isinstance(mode, str) and mode in ("w", "wb", "a", "ab", "x", "xb", "r+") for mode in modes)
    owner = function.value if isinstance(function, ast.Attribute) else None
    if name in ("replace", "rename"):
        return isinstance(owner, ast.Name) and owner.id == "os"
    if name == "savefig":
        return not (call.args and isinstance(call.args[0], ast.Name) and call.args[0].id == "drawn")
    return name in WRITES


def test_nothing_else_writes_files() -> None:
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        lines = [call.lineno for call in ast.walk(tree) if isinstance(call, ast.Call) and _writes(call)]
        if lines:
            found[file.relative_to(SOURCE).as_posix()] = len(lines)
    assert found.pop("reading/writing.py") == 3  # os.replace and two of mkdir
    assert found == {"cli/output.py": 1}, "`writing` is the door for that; here, /dev/null in place of a closed stream"


def test_a_stop_waits_for_the_file(tmp_path: Path) -> None:
    """A signal that comes while a file is written is heard after it."""
    code = (
        "import os, signal, sys; from einloom import stops; from einloom.reading import writing\n"
        "pour = writing._pour\n"
        "def slow(data, descriptor):\n"
        "    os.kill(os.getpid(), signal.SIGTERM); pour(data, descriptor); os.kill(os.getpid(), signal.SIGINT)\n"
        "writing._pour = slow\n"
        "try:\n"
        "    with stops.listening(): writing.write('text', sys.argv[1])\n"
        "except stops.Interrupted as stop: print(stop.number == signal.SIGTERM)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "file"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "True\n", done.stderr
    assert (tmp_path / "file").read_text(encoding="utf-8") == "text" and len(list(tmp_path.iterdir())) == 1


def test_a_defect_is_told_where_its_problem_cannot_be_written(tmp_path: Path) -> None:
    asked = problem("matmul:m=2,n=2,k=2", "simple")
    odd = replace(asked, workload=replace(asked.workload, name=object()))  # type: ignore[arg-type]
    defect = Defect("one part says 1 and the other 2")
    defect.problem = odd
    told = str(saved(defect, tmp_path))
    assert "one part says 1 and the other 2 (its problem could not be saved: " in told
    assert list(tmp_path.iterdir()) == [], "no empty folder is left"
    defect.problem = asked
    assert saved(defect, tmp_path).saved == str(tmp_path / "einloom-defect")
    assert el.load_workload(str(tmp_path / "einloom-defect" / "workload.yaml")) == asked.workload


def test_a_search_that_contradicts_itself_keeps_its_best_mapping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("matmul:m=2,n=2,k=2", "simple")
    value = el.map(*asked).value

    def wrong(incumbent: Incumbent, bound: float) -> None:
        incumbent.bound = 2 * value

    monkeypatch.setattr(Incumbent, "prove", wrong)
    words = f"best mapping found (best-mapping.txt: energy {value:.8g} J, legal by evaluate), please report it"
    with pytest.raises(Defect, match="is above the value") as caught:
        el.map(*asked)
    assert words in str(caught.value) and words in str(pickle.loads(pickle.dumps(caught.value)))
    kept = tmp_path / "einloom-defect"
    assert el.evaluate(kept / "workload.yaml", kept / "machine.yaml", kept / "best-mapping.txt").value == value


def test_a_search_that_breaks_keeps_the_mapping_that_it_knew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("matmul:m=2,n=2,k=2", "simple")
    known = el.evaluate(*asked, "store DRAM: A B Z\nfor m in 2\nfor n in 2\nfor k in 2\ncompute Z @ MAC")

    def broken(run: Run) -> None:
        raise AssertionError("a mistake")

    monkeypatch.setattr(Run, "solve", broken)
    with pytest.raises(Defect, match=f"exact ended with .*a mistake.*energy {known.value:.8g} J, legal by evaluate"):
        el.map(*asked, start=known)
    with pytest.raises(Defect, match=r"a mistake; the problem is saved in .*einloom-defect-2, please report it$"):
        el.map(*asked)
    assert not (tmp_path / "einloom-defect-2" / "best-mapping.txt").exists()


def test_only_a_legal_mapping_is_said_to_be_kept(tmp_path: Path) -> None:
    defect = Defect("one part says 1 and the other 2")
    defect.problem, defect.known = problem("matmul:m=2,n=2,k=2", "simple"), "compute Z @ MAC"
    assert "best" not in str(saved(defect, tmp_path))
    assert "best-mapping.txt" not in {one.name for one in (tmp_path / "einloom-defect").iterdir()}
