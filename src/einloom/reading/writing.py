"""The one door for everything that einloom writes: a file is replaced whole or stays as it was.

A symlink stays, and what it leads to is replaced; the new file has the mode and the owner of the old one. What is no
regular file (a terminal, a pipe, /dev/null) is written into as it stands. Trouble is a SpecError that names the file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from ..errors import SpecError
from ..stops import held

MAX_LINKS = 40


def write(content: str | bytes, path: str | Path, waiting: Callable[[], None] = lambda: None) -> None:
    """Put the content, text as UTF-8, into the file at `path`.

    waiting: called where nobody reads from a FIFO yet; then this waits. Raises SpecError; then the file is what it was,
    and nothing lies beside it.
    """
    refuse(path)
    with _worded(path):
        data = content if isinstance(content, bytes) else content.encode()
        opened = _open_already(path)
        if opened is not None:
            _pour(data, opened)
            return
        target = Path(path).resolve()
        if _is_file(target):
            _replace(data, target)
            return
        descriptor = _opened(target, waiting)
        try:
            _pour(data, descriptor)
        finally:
            os.close(descriptor)


def refuse(path: str | Path) -> None:
    """Raise SpecError if it can be told already that `write` will not succeed: before a long search, not after it."""
    with _worded(path):
        if _open_already(path) is not None:
            return
        target = Path(path).resolve()
        if target.is_dir():
            raise SpecError("cannot write the file: it is a folder", file=str(path))
        above = target.parent
        if not above.is_dir():
            raise SpecError(f"cannot write the file: there is no folder {above.name!r}", file=str(path))
        if target.exists() and not os.access(target, os.W_OK):  # replacing it would get round that
            raise SpecError("cannot write the file: it is read-only", file=str(path))
        if _is_file(target) and not os.access(above, os.W_OK):
            raise SpecError("cannot write the file: its folder is read-only", file=str(path))


def folder(path: str | Path) -> Path:
    """The folder at `path`, made if it is not there. Raises SpecError."""
    with _worded(path, "make the folder"):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


def fresh_folder(parent: Path, name: str) -> Path:
    """A new folder of `parent`: `name`, or the first of `name-2`, `name-3`, … that is not there. Raises SpecError."""
    with _worded(parent / name, "make the folder"):
        for number in count(1):
            place = parent / (name if number == 1 else f"{name}-{number}")
            try:
                place.mkdir()
            except FileExistsError:
                continue
            break
    return place


@contextmanager
def _worded(path: str | Path, what: str = "write the file") -> Iterator[None]:
    """A ``with`` block whose trouble becomes a SpecError about the file."""
    try:
        yield
    except UnicodeEncodeError as error:
        bad = ascii(error.object[error.start : error.start + 1])
        raise SpecError(f"cannot {what}: {bad} is a lone surrogate, no character", file=str(path)) from None
    except FileNotFoundError as error:
        reason = error.strerror if _here() else "the working folder is gone"
        raise SpecError(f"cannot {what}: {reason}", file=str(path)) from None
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a ring of symlinks; ValueError: a null byte
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SpecError(f"cannot {what}: {reason}", file=str(path)) from None


def _here() -> bool:
    """True if there is a working folder."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _is_file(target: Path) -> bool:
    """True for a regular file and for a place where there is none yet."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return True
    if stat.S_ISBLK(mode):
        raise PermissionError(errno.EPERM, "it is a disk")
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _open_already(path: str | Path) -> int | None:
    """The number of the open file of this process that `path` stands for, as /dev/stdout does; None for all others.

    Opened a second time it would have a place of its own in the file, and what is printed later would overwrite it.
    """
    mine = f"/proc/{os.getpid()}/fd"
    place = os.fspath(path)
    for _ in range(MAX_LINKS):
        above, name = os.path.split(place)
        if name.isdigit() and os.path.realpath(above or ".") == mine:
            return int(name)
        if not os.path.islink(place):
            return None
        place = os.path.join(above, os.readlink(place))
    return None


def _opened(target: Path, waiting: Callable[[], None]) -> int:
    """What is no regular file, opened for writing."""
    flags = os.O_WRONLY | getattr(os, "O_NOCTTY", 0)
    try:
        descriptor = os.open(target, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno != errno.ENXIO or not target.is_fifo():
            raise
        waiting()
        return os.open(target, flags)
    os.set_blocking(descriptor, True)
    return descriptor


def _replace(data: bytes, target: Path) -> None:
    """Write beside the target and rename: a reader sees the whole file or the old one."""
    old = target.stat() if target.exists() else None
    beside = target.with_name(f".{target.name[:40]}.{os.urandom(4).hex()}.tmp")
    with held():
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
            try:
                _pour(data, descriptor)
                if old is not None:
                    _like(old, descriptor, beside)
                os.fsync(descriptor)  # some file systems tell only now that there is no room
            finally:
                os.close(descriptor)
            os.replace(beside, target)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def _like(old: os.stat_result, descriptor: int, path: Path) -> None:
    """Give the open file at `path` the mode of an old one, and its owner as far as that is allowed."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    path.chmod(stat.S_IMODE(old.st_mode))


def _pour(data: bytes, descriptor: int) -> None:
    """All of the data into an open file."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
