"""Seals: a mark on our containers and images that cannot be written without our key.

Names and labels can be forged: a build step carries the labels of its image, and an image those of its author.
"""

import contextlib
import fcntl
import functools
import hashlib
import hmac
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path

from engine.runtimes.docker_engine.engine import Document
from engine.runtimes.docker_engine.labels import SEAL, Kind, Marks, Origin

_FILE = "seal"
_KEY = re.compile("[0-9a-f]{32,}")
_CONTAINER, _IMAGE = "container", "image"


@dataclass(frozen=True, slots=True)
class Seals:
    """`key` is that of this state directory. Seals by a key of `known` are trusted: `key`, and the key of new services of this user.

    With the second key, containers of a state directory that is gone are still recognised as ours.
    """

    key: str = field(repr=False)
    known: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, state: Path) -> "Seals":
        """The seals of this state directory; makes the key if missing. Raises OSError."""
        return _of(state.absolute())

    def on_container(self, origin: Origin, marks: Marks) -> dict[str, str]:
        """All labels of a container of ours."""
        return {**origin.labels, **marks.labels, SEAL: _sealed(self.key, _CONTAINER, *astuple(origin), *astuple(marks))}

    def on_image(self, origin: Origin) -> dict[str, str]:
        """All labels of an image of ours. A container that inherits them does not count as ours."""
        return {**origin.labels, SEAL: _sealed(self.key, _IMAGE, *astuple(origin))}

    def container(self, labels: Mapping[str, str] | None) -> tuple[Origin, Marks] | None:
        """The owner and marks of a container with these labels; None if it is not ours."""
        labels = labels or {}
        origin, marks = Origin.read(labels), Marks.read(labels)
        if origin is None or marks is None:
            return None
        return (origin, marks) if self._holds(labels, _CONTAINER, *astuple(origin), *astuple(marks)) else None

    def ours(self, listed: Iterable[Document], *kinds: Kind) -> list[tuple[str, Marks, bool]]:
        """Our containers of these kinds among those listed: ids, marks, and whether they run."""
        read = [(one, whose[1]) for one in listed if (whose := self.container(one.get("Labels"))) is not None]
        return [(str(one["Id"]), marks, one.get("State") == "running") for one, marks in read if marks.kind in kinds]

    def image(self, labels: Mapping[str, str] | None) -> Origin | None:
        """The owner of an image with these labels; None if it is not ours."""
        origin = Origin.read(labels or {})
        return origin if origin is not None and self._holds(labels or {}, _IMAGE, *astuple(origin)) else None

    def digest(self, *parts: str) -> str:
        """An identifier that does not reveal its parts."""
        return _sealed(self.key, *parts)

    def _holds(self, labels: Mapping[str, str], *parts: str) -> bool:
        said = labels.get(SEAL, "").encode()
        return any(hmac.compare_digest(_sealed(key, *parts).encode(), said) for key in self.known)


def _sealed(key: str, *parts: str) -> str:
    return hmac.new(key.encode(), "\0".join(parts).encode(), hashlib.sha256).hexdigest()[:40]


@functools.cache
def _of(state: Path) -> Seals:
    users = ""
    with contextlib.suppress(OSError, RuntimeError):  # there is no home folder, or it is read-only
        users = _kept(_states_of_the_user() / "tool-agent" / _FILE, secrets.token_hex(32))
    own = _kept(state / _FILE, users or secrets.token_hex(32))
    return Seals(own, tuple(dict.fromkeys(key for key in (own, users) if key)))


def _states_of_the_user() -> Path:
    """The state folder of the XDG Base Directory Specification. Raises RuntimeError without a home folder."""
    said = Path(os.getenv("XDG_STATE_HOME", ""))
    return said if said.is_absolute() else Path.home() / ".local/state"


def _kept(file: Path, new: str) -> str:
    """The key in the file; `new` is written if there is none. Raises OSError, also if others may have read or written the file."""
    if (key := _read(file)) is not None:
        return key
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Of several processes that start at once, the first writes the key and the others read it.
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if (key := _read(file)) is None:
            _write(file, new)
        return key or new
    finally:
        os.close(folder)


def _read(file: Path) -> str | None:
    """None if the file is missing, or holds only what a crash or a full disk left: an empty key would be no secret."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OSError(f"{file} is not ours alone. Remove it, and the containers and images with labels of ours.")
    key = file.read_text(encoding="ascii", errors="replace")
    return key if _KEY.fullmatch(key) else None


def _write(file: Path, key: str) -> None:
    descriptor, part = tempfile.mkstemp(dir=file.parent, prefix=".seal-")  # a new file of mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as target:
            target.write(key)
            target.flush()
            os.fsync(descriptor)
        Path(part).replace(file)
    finally:
        Path(part).unlink(missing_ok=True)
