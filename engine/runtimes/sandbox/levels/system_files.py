"""Which files of the machine every sandboxed program sees: programs and libraries, certificates, and an /etc that says nothing of us."""

import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.process.box import Mount
from engine.runtimes.sandbox.identity import GROUP, OURS

_ROOTS = [Path("/", name) for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32")]
_ETC = ("alternatives", "ld.so.cache", "localtime", "mime.types", "ssl/certs", "ssl/openssl.cnf")
"""Not all of ssl: its private keys are open to groups that the worker may be in."""
_WHOLE = "whole"
_WRITTEN = {
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "resolv.conf": "",
    "group": "root:x:0:\ntool:x:{gid}:\n",
}
_ROOT = "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"
_USER = "tool:x:{uid}:{gid}:tool:/home/tool:/usr/sbin/nologin\n"
"""For each user that a program may be: to itself it is `tool`, whichever that is."""


@dataclass(frozen=True, slots=True)
class SystemFiles:
    """`mounts` are read-only; `links` are symbolic links of the root, from their name to where they lead.

    `few` shows the same as `mounts`, for those whose every mount takes time: small files of /etc as they were when this was written.
    """

    mounts: tuple[Mount, ...]
    links: tuple[tuple[str, str], ...]
    few: tuple[Mount, ...]

    @classmethod
    def write(cls, folder: Path, uids: Iterable[int], more: Iterable[Path] = ()) -> "SystemFiles":
        """Writes its own small /etc below `folder`. `uids` are users that programs may be, `more` folders of the machine to be seen too.

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
    """The folder of the machine that every program in a sandbox sees, and in which this path lies."""
    return next((folder for folder in _folders() if path.resolve().is_relative_to(folder.resolve())), None)


def _folders() -> list[Path]:
    python = Path(sys.base_prefix)
    more = [] if python.is_relative_to("/usr") else [python]
    return [Path("/usr"), *(root for root in _ROOTS if root.is_dir() and not root.is_symlink()), *more]


def _in_one(folder: Path, mounts: Iterable[Mount]) -> list[Mount]:
    """One folder that stands for /etc, and what is to be seen in it. Written over, as programs may see it now. Raises OSError."""
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
