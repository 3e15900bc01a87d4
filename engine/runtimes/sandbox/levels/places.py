"""Maps a program's paths to the machine's, for a sandbox without a file system of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.process.box import LevelUnavailable, Mount
from engine.runtimes.sandbox.identity import Identity

_TMP = Path("/tmp")  # noqa: S108 - of a sandbox that has one
_SEARCH = 0o001


@dataclass(frozen=True, slots=True)
class Places:
    """`real` maps the paths that programs see in other sandboxes to those of the machine."""

    real: Mapping[Path, Path]
    readable: tuple[Path, ...]
    writable: tuple[Path, ...]

    @classmethod
    def of(cls, mounts: Sequence[Mount], scratch: Path) -> "Places":
        """`scratch` replaces /tmp. Raises LevelUnavailable for mounts that need a file system of their own."""
        for mount in mounts:
            for outer in mounts:
                if outer is not mount and mount.target.is_relative_to(outer.target):
                    _require_within(mount, outer)
        real = {_TMP: scratch} | {mount.target: mount.source for mount in mounts}
        readable = tuple(mount.source for mount in mounts if not mount.writable)
        return cls(real, readable, (scratch, *(mount.source for mount in mounts if mount.writable)))

    def word(self, text: str) -> str:
        """An argument with its path replaced by the machine's, if it is one."""
        if not text.startswith("/"):
            return text
        path = Path(text)
        # The innermost mount decides.
        for target in sorted(self.real, key=lambda one: len(one.parts), reverse=True):
            if path.is_relative_to(target):
                return text if self.real[target] == target else str(self.real[target] / path.relative_to(target))
        return text

    def words(self, text: str) -> str:
        """Like `word`, for the value of a variable: paths separated by colons, or another text."""
        return ":".join(map(self.word, text.split(":")))


def require_reachable(identity: Identity, paths: Iterable[Path | str]) -> None:
    """Raises LevelUnavailable if this user cannot enter a folder on the way."""
    for path in map(Path, paths):
        for folder in reversed(path.resolve().parents):
            if not folder.stat().st_mode & _SEARCH and folder.stat().st_uid != identity.uid:
                raise LevelUnavailable(
                    f"{folder} is closed to the user {identity.uid}, as whom programs run, and {path} is in it: "
                    f"run the worker as an ordinary user, or open the folder (chmod o+x {folder})"
                )


def _require_within(mount: Mount, outer: Mount) -> None:
    if outer.source / mount.target.relative_to(outer.target) != mount.source:
        raise LevelUnavailable(f"{mount.source} would have to be seen as {mount.target}, which takes a file system of its own")
    if outer.writable and not mount.writable:
        raise LevelUnavailable(f"{mount.target} would have to be read-only in {outer.target}, which takes a file system of its own")
