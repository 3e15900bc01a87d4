"""Which files of the machine every sandboxed program sees: programs and libraries, certificates, and an /etc that says nothing of us."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.sandbox.box import Mount

__all__ = ["SystemFiles"]

_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = (
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "ssl",
)
_WRITTEN = {
    "passwd": "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\ntool:x:{uid}:{gid}:tool:/home/tool:/usr/sbin/nologin\n",
    "group": "root:x:0:\ntool:x:{gid}:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "resolv.conf": "",
}


@dataclass(frozen=True, slots=True)
class SystemFiles:
    """`mounts` are read-only; `links` are symbolic links of the root, from their name to where they lead."""

    mounts: tuple[Mount, ...]
    links: tuple[tuple[str, str], ...]

    @classmethod
    def write(cls, folder: Path, uid: int, gid: int, more: Iterable[Path] = ()) -> "SystemFiles":
        """Writes its own small /etc below `folder`. `more` are folders of the machine to be seen too. Raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _WRITTEN.items():
            (folder / name).write_text(text.format(uid=uid, gid=gid))
            (folder / name).chmod(0o644)
        etc = [Mount(Path("/etc", name), Path("/etc", name)) for name in _ETC if Path("/etc", name).exists()]
        written = [Mount(folder / name, Path("/etc", name)) for name in _WRITTEN]
        roots = [Path("/", name) for name in _LINKED]
        links = tuple((str(root), str(root.readlink())) for root in roots if root.is_symlink())
        folders = [Path("/usr"), *(root for root in roots if root.is_dir() and not root.is_symlink())]
        python = Path(sys.base_prefix)
        more = [path for path in (python, *more) if path.exists() and not path.is_relative_to("/usr")]
        return cls((*(Mount(path, path) for path in (*folders, *more)), *etc, *written), links)
