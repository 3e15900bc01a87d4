"""Which files a script sees: turns the patterns of its grant (docs/security.md) into mounts.

Patterns are relative to the script's folder: `self` is the script, `./*` the folder with all below it. The script's folder itself is
never writable: `.cache/**` for writing mounts the tool's own folder in the state directory as `.cache`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from engine.runtimes.environments.dependencies import Script
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.process.box import Mount
from toolagent.contracts.sandbox import Difference, SandboxGrant

_WHOLE = frozenset((".", "./", "*", "./*", "**", "./**", "**/*", "./**/*"))
_SELF = "self"
_MOST = 1000
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Access:
    """`differences` are the patterns that cannot be granted, and why."""

    mounts: tuple[Mount, ...]
    differences: tuple[Difference, ...] = ()


def access_of(script: Script, grant: SandboxGrant, own: Path, over: Iterable[Mount] = ()) -> Access:
    """`own` is the tool's writable folder in the state directory, which is created; `over` is mounted over the script's folder.

    Without patterns for reading, a script sees its folder, read-only. Raises ScriptFailure, OSError.
    """
    writable, differences = _writable(script.folder, grant.write, own)
    placed = (*over, *writable)
    covered = {mount.target.name for mount in placed if mount.target.parent == script.folder}
    return Access((*_readable(script, grant.read, covered), *placed), tuple(differences))


def _readable(script: Script, patterns: tuple[str, ...], covered: set[str]) -> Iterator[Mount]:
    relative = [pattern for pattern in patterns if not pattern.startswith("/")]
    if not relative or _WHOLE.intersection(relative):
        yield from _whole(script.folder, covered)
    else:
        yield from map(_seen, _matching(script, relative, covered))
    for pattern in patterns:
        if pattern.startswith("/") and (path := Path(pattern.removesuffix("**").removesuffix("*"))).exists():
            yield Mount(path, path, is_machines=True)


def _whole(folder: Path, covered: set[str]) -> Iterator[Mount]:
    """The whole folder; piece by piece if something is mounted in it that the folder itself lacks."""
    if all((folder / name).is_dir() and not (folder / name).is_symlink() for name in covered):
        yield _seen(folder)
        return
    # No links: a mount would follow them, also out of the folder.
    entries = [path for path in islice(folder.iterdir(), _MOST + 1) if not path.is_symlink() and path.name not in covered]
    if len(entries) > _MOST:
        message = f"The script's folder has more than {_MOST} entries. Put the script into a folder of its own."
        raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, message)
    yield from map(_seen, sorted(path for path in entries if path.is_file() or path.is_dir()))


def _matching(script: Script, patterns: list[str], covered: set[str]) -> list[Path]:
    """The script and all that the patterns match, without what is below another match."""
    found = {script.file}
    root = script.folder
    for pattern in patterns:
        for path in () if pattern == _SELF else islice(_glob(root, pattern), _MOST):
            inside = path.resolve().is_relative_to(root) and not path.is_symlink()
            if inside and path.relative_to(root).parts[0] not in covered:
                found.add(path)
    return [path for path in sorted(found) if not found.intersection(path.parents)]


def _glob(root: Path, pattern: str) -> Iterator[Path]:
    pure = PurePosixPath(pattern)
    if pure.name in ("*", "**") and not _WILD.intersection(str(pure.parent)):
        if (root / pure.parent).is_dir():
            yield root / pure.parent
    elif pure.parts and ".." not in pure.parts:
        yield from (path for path in root.glob(str(pure)) if path != root)


def _writable(folder: Path, patterns: tuple[str, ...], own: Path) -> tuple[list[Mount], list[Difference]]:
    mounts: dict[Path, Mount] = {}
    differences: list[Difference] = []
    for pattern in patterns:
        if pattern.startswith("/"):
            path = Path(pattern.removesuffix("**").removesuffix("*"))
            mounts[path] = Mount(path, path, writable=True, is_machines=True)
        elif name := _folder_name(pattern):
            (own / name).mkdir(parents=True, exist_ok=True)
            mounts[folder / name] = Mount(own / name, folder / name, writable=True)
        else:
            reason = "A script's own files cannot be written. Ask for a folder of its own below it: `.cache/**`."
            differences.append(Difference(item="write", requested=pattern, enforced=None, reason=reason))
    return list(mounts.values()), differences


def _folder_name(pattern: str) -> str | None:
    """The writable folder, right below the script's, that the pattern names."""
    name, slash, _ = pattern.removeprefix("./").partition("/")
    is_name = name not in ("", "..", ".", _SELF, "node_modules") and not _WILD.intersection(name)
    return name if slash and is_name else None


def _seen(path: Path) -> Mount:
    return Mount(path, path)
