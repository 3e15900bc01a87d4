"""The worker's Python with its loader and libraries, bound into a container: it runs in any image of this architecture."""

import asyncio
import hashlib
import shutil
import subprocess
import sys
import sysconfig
import threading
from dataclasses import dataclass
from pathlib import Path

from engine.disk.removal import remove

INSIDE = "/.tool-agent"
"""Where a container sees it."""

_MODULES = ("_socket", "resource", "select", "array", "errno", "fcntl", "time", "math", "_struct")
"""Extension modules that `inside.py` may need. The libraries they are linked with come along."""


_turn = threading.Lock()
_known: "dict[Path, Carried]" = {}
_COMMAND = Path(__file__).with_name("command_child.py")


@dataclass(frozen=True, slots=True)
class Carried:
    """Bind `folder` read-only to `INSIDE` and `library` to `library_inside`; `command` then starts the interpreter."""

    folder: Path
    library: Path
    command: tuple[str, ...]

    @property
    def library_inside(self) -> str:
        return f"{INSIDE}/lib/{self.library.name}"

    def argv(self, verb: str, *more: str) -> list[str]:
        """The command line of `command_child.py` with these arguments."""
        return [*self.command, "-I", "-S", f"{INSIDE}/{_COMMAND.name}", verb, *more]

    @classmethod
    async def put_together(cls, folder: Path) -> "Carried":
        """Copy the files into a subfolder of `folder`, once. Raises OSError."""
        return await asyncio.to_thread(_put_together_once, folder)


def _put_together_once(folder: Path) -> Carried:
    with _turn:
        known = _known.get(folder)
        if known is None or not known.folder.is_dir():
            known = _known[folder] = _put_together(folder)
        return known


def _put_together(parent: Path) -> Carried:
    library = Path(sysconfig.get_path("stdlib"))
    program = Path(sys.executable).resolve()
    files = {program.name: program, **_libraries(program, library)}
    loader = next((name for name in files if name.startswith(("ld-", "ld64"))), None)
    if loader is None:
        raise OSError(f"{program} is not linked with shared libraries in a way that is known here")
    folder = parent / _mark(files)
    if not folder.is_dir():
        part = parent / f"{folder.name}.part"
        remove(part)
        (part / "bin").mkdir(parents=True)
        (part / "lib" / library.name).mkdir(parents=True)
        for name, path in files.items():
            shutil.copy(path, part / ("bin/python" if path == program else f"lib/{name}"))
        shutil.copy(_COMMAND, part / _COMMAND.name)
        for path in (part, *part.rglob("*")):
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" or path.name == loader else 0o644)
        part.rename(folder)
    return Carried(folder, library, (f"{INSIDE}/lib/{loader}", "--library-path", f"{INSIDE}/lib", f"{INSIDE}/bin/python"))


def _libraries(program: Path, library: Path) -> dict[str, Path]:
    """Shared libraries by the name that the loader looks for. Without `ldd` there are none."""
    modules = [path for name in _MODULES for path in library.glob(f"lib-dynload/{name}.*.so")]
    found: dict[str, Path] = {}
    ldd = shutil.which("ldd") or "/usr/bin/ldd"
    for line in subprocess.run([ldd, str(program), *map(str, modules)], capture_output=True, text=True, check=False).stdout.splitlines():
        name, _, rest = line.strip().partition(" => ")
        path = Path((rest or name).partition(" (")[0])
        if line.startswith(("\t", " ")) and path.is_absolute() and path.is_file():
            found[Path(name.partition(" (")[0]).name] = path
    return found


def _mark(files: dict[str, Path]) -> str:
    said = hashlib.sha256(_COMMAND.read_bytes())
    for name, path in sorted(files.items()):
        said.update(f"{name} {path} {path.stat().st_mtime_ns}\n".encode())
    return said.hexdigest()[:16]
