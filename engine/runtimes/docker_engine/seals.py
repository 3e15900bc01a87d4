"""What is ours: a mark on containers and images that cannot be written without our key.

Names and labels can be forged: a step of a build has the labels of its image, and an image those that its author wrote.
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
    """`key` is this state directory's. Those of `known` are believed: it, and the one that services of our user on this machine begin with.

    Thanks to the second what belonged to a state directory is still known to be ours when that is gone, and its key with it.
    """

    key: str = field(repr=False)
    known: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, state: Path) -> "Seals":
        """That of this state directory, made if need be. Raises OSError."""
        return _of(state.absolute())

    def on_container(self, origin: Origin, marks: Marks) -> dict[str, str]:
        """All labels of a container of ours."""
        return {**origin.labels, **marks.labels, SEAL: _sealed(self.key, _CONTAINER, *astuple(origin), *astuple(marks))}

    def on_image(self, origin: Origin) -> dict[str, str]:
        """All labels of an image of ours. They do not make a container of the image ours."""
        return {**origin.labels, SEAL: _sealed(self.key, _IMAGE, *astuple(origin))}

    def container(self, labels: Mapping[str, str] | None) -> tuple[Origin, Marks] | None:
        """Whose a container with these labels is; None when it is none of ours."""
        labels = labels or {}
        origin, marks = Origin.read(labels), Marks.read(labels)
        if origin is None or marks is None:
            return None
        return (origin, marks) if self._holds(labels, _CONTAINER, *astuple(origin), *astuple(marks)) else None

    def ours(self, listed: Iterable[Document], *kinds: Kind) -> list[tuple[str, Marks, bool]]:
        """Of the containers that the engine listed those of ours of these kinds: their ids, and whether they run."""
        read = [(one, whose[1]) for one in listed if (whose := self.container(one.get("Labels"))) is not None]
        return [(str(one["Id"]), marks, one.get("State") == "running") for one, marks in read if marks.kind in kinds]

    def image(self, labels: Mapping[str, str] | None) -> Origin | None:
        """Whose an image with these labels is; None when it is none of ours."""
        origin = Origin.read(labels or {})
        return origin if origin is not None and self._holds(labels or {}, _IMAGE, *astuple(origin)) else None

    def digest(self, *parts: str) -> str:
        """An identifier that reveals nothing of its parts."""
        return _sealed(self.key, *parts)

    def _holds(self, labels: Mapping[str, str], *parts: str) -> bool:
        said = labels.get(SEAL, "").encode()
        return any(hmac.compare_digest(_sealed(key, *parts).encode(), said) for key in self.known)


def _sealed(key: str, *parts: str) -> str:
    return hmac.new(key.encode(), "\0".join(parts).encode(), hashlib.sha256).hexdigest()[:40]


@functools.cache
def _of(state: Path) -> Seals:
    users = ""
    with contextlib.suppress(OSError, RuntimeError):  # there is no home, or none that can be written to
        users = _kept(_states_of_the_user() / "tool-agent" / _FILE, secrets.token_hex(32))
    own = _kept(state / _FILE, users or secrets.token_hex(32))
    return Seals(own, tuple(dict.fromkeys(key for key in (own, users) if key)))


def _states_of_the_user() -> Path:
    """As the XDG Base Directory Specification has it. Raises RuntimeError when there is no home."""
    said = Path(os.getenv("XDG_STATE_HOME", ""))
    return said if said.is_absolute() else Path.home() / ".local/state"


def _kept(file: Path, new: str) -> str:
    """What the file says; `new` if that is no key, or it is not there. Raises OSError, also when others may have read or written it."""
    if (key := _read(file)) is not None:
        return key
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Of several that begin at once one is first, and the others have its key.
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if (key := _read(file)) is None:
            _write(file, new)
        return key or new
    finally:
        os.close(folder)


def _read(file: Path) -> str | None:
    """None where there is none, or only what a crash or a full disk left: an empty key would be known to all."""
    try:
        status = file.lstat()
    except FileNotFoundError:
        return None
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OSError(f"{file} is not ours alone. Remove it, and the containers and images with labels of ours.")
    key = file.read_text(encoding="ascii", errors="replace")
    return key if _KEY.fullmatch(key) else None


def _write(file: Path, key: str) -> None:
    descriptor, part = tempfile.mkstemp(dir=file.parent, prefix=".seal-")  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as target:
            target.write(key)
            target.flush()
            os.fsync(descriptor)
        Path(part).replace(file)
    finally:
        Path(part).unlink(missing_ok=True)
