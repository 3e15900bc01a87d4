"""The machine's files that every sandboxed program sees: programs, libraries, certificates, and a neutral /etc."""

import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.process.box import Mount
from engine.runtimes.sandbox.identity import GROUP, OURS

_ROOTS = [Path("/", name) for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32")]
_ETC = ("alternatives", "ld.so.cache", "localtime", "mime.types", "ssl/certs", "ssl/openssl.cnf")
"""Not all of ssl: the worker may be in a group that can read its private keys."""
_WHOLE = "whole"
_WRITTEN = {
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "resolv.conf": "",
    "group": "root:x:0:\ntool:x:{gid}:\n",
}
_ROOT = "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
_USER = "tool:x:{uid}:{gid}:tool:/home/tool:/usr/sbin/nologin\n"
"""One line per user of programs; each sees itself as `tool`."""


@dataclass(frozen=True, slots=True)
class SystemFiles:
    """`mounts` are read-only; `links` are symbolic links of the root: name and target.

    `few` shows the same as `mounts` with fewer mounts, by copies of /etc's small files: for levels where each mount takes time.
    """

    mounts: tuple[Mount, ...]
    links: tuple[tuple[str, str], ...]
    few: tuple[Mount, ...]

    @classmethod
    def write(cls, folder: Path, uids: Iterable[int], more: Iterable[Path] = ()) -> "SystemFiles":
        """Write a small /etc below `folder`. `uids` are the users of programs, `more` further visible folders of the machine.

        Raises OSError.
        """
        folder.mkdir(parents=True, exist_ok=True)
        gid = GROUP if OURS.uid == 0 else OURS.gid
        passwd = _ROOT + "".join(_USER.format(uid=uid, gid=gid) for uid in uids)
        texts = _WRITTEN | {"group": _WRITTEN["group"].format(gid=gid), "passwd": passwd}
        for name, text in texts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o644)
        etc = [Mount(Path("/etc", name), Path("/etc", name)) for name in _ETC if Path("/etc", name).exists()]
        written = [Mount(folder / name, Path("/etc", name)) for name in texts]
        links = tuple((str(root), str(root.readlink())) for root in _ROOTS if root.is_symlink())
        more = [path for path in more if path.exists() and not path.is_relative_to("/usr")]
        seen = [Mount(path, path) for path in (*_folders(), *more)]
        whole = _in_one(folder / _WHOLE, (*etc, *written))
        return cls((*seen, *etc, *written), links, (*seen, *whole))


def shown_to_all(path: Path) -> Path | None:
    """The folder around this path that every sandboxed program sees; None if there is none."""
    return next((folder for folder in _folders() if path.resolve().is_relative_to(folder.resolve())), None)


def _folders() -> list[Path]:
    python = Path(sys.base_prefix)
    more = [] if python.is_relative_to("/usr") else [python]
    return [Path("/usr"), *(root for root in _ROOTS if root.is_dir() and not root.is_symlink()), *more]


def _in_one(folder: Path, mounts: Iterable[Mount]) -> list[Mount]:
    """A folder that replaces /etc, and the mounts in it. Overwritten in place, as running programs may see it. Raises OSError."""
    folder.mkdir(exist_ok=True)
    found = [Mount(folder, Path("/etc"))]
    for mount in mounts:
        inside = folder / mount.target.relative_to("/etc")
        inside.parent.mkdir(exist_ok=True)
        inside.parent.chmod(0o755)
        if mount.source.is_dir():
            inside.mkdir(exist_ok=True)
            found.append(mount)
        elif mount.source.is_symlink():
            inside.unlink(missing_ok=True)
            inside.symlink_to(mount.source.readlink())
        elif not inside.is_file() or inside.read_bytes() != mount.source.read_bytes():
            shutil.copyfile(mount.source, inside)
            inside.chmod(0o644)
    return found
