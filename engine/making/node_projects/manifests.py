"""Reads the package.json of a Node.js project."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import cast

from engine.making.failures import LeftOut, NotWanted
from engine.making.node_projects.plain_files import text_of
from engine.making.python_sources.projects import Table

MANIFEST = "package.json"
DEPENDENCIES = ("dependencies", "optionalDependencies", "peerDependencies", "devDependencies")
_KEPT = ("name", "version", "type", "dependencies", "optionalDependencies", "peerDependencies", "overrides")
_LOCKED_TOO = ("devDependencies", "bundleDependencies", "bundledDependencies")
"""Keys that a lock mentions, though they are not installed."""
_BUILDS = ("build", "compile", "prepack", "prepare", "tsc")
_MADE = frozenset({"dist", "build", "lib", "out"})
_NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]{0,99}/)?[a-z0-9~-][a-z0-9._~-]{0,99}")
_VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(?:[-+][0-9A-Za-z.+-]{1,100})?")
_TYPESCRIPT = re.compile(r"^[\w@./-]+\.m?ts$")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_STARTS = ("start", "start:prod", "start:production", "serve", "server", "start:dev", "dev")
_BUN = re.compile(r"(?:^|[\s;&|(])bunx?(?:\s|$)")
_TYPED = re.compile(r"(?:^|[\s;&/])(?:bun|tsx|ts-node|ts-node-esm)(?:\s+(?:run|watch|-[^\s]+))*\s+([\w@./-]+\.m?ts)(?=\s|$)")
_RUNS = re.compile(r"(?:^|[\s;&/])(?:node|nodemon|pm2 start|supervisor)(?:\s+-[^\s]+)*\s+([\w@./-]+)")
_MOST_PROGRAMS = 20
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of a project: its `files` by name, and programs that are left out."""

    files: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out: tuple[LeftOut, ...] = ()


def manifest_at(path: Path) -> Table:
    """Raises NotWanted. Blocks."""
    try:
        read: object = json.loads(text_of(path))
    except (ValueError, RecursionError) as error:
        raise NotWanted(f"{path.name} cannot be read: {error}") from error
    if not isinstance(read, dict):
        raise NotWanted(f"{path.name} is no object.")
    return Table(cast("dict[str, object]", read))


def named(manifest: Table, folder: PurePosixPath) -> Table:
    """The manifest with a name and a version that npm accepts, so that it can be packed; without a required version of npm."""
    name, version = manifest.text("name"), manifest.text("version")
    own = re.sub(r"[^a-z0-9-]+", "-", folder.name.lower()).strip("-")[:80] or "project"
    told = {"name": name if is_name(name) else own, "version": version if _VERSION.fullmatch(version) else "0.0.0"}
    return Table({name: value for name, value in manifest.values.items() if name != "devEngines"} | told)


def is_name(name: str) -> bool:
    """Whether npm accepts it as the name of a package."""
    return _NAME.fullmatch(name) is not None


def programs_of(manifest: Table) -> Programs:
    """The valid programs of `bin`, up to a limit."""
    files: dict[str, str] = {}
    left_out: list[LeftOut] = []
    for name, file in _bins(manifest):
        if fault := _fault(name, file):
            left_out.append(LeftOut(name[:_LONGEST], fault))
        elif len(files) == _MOST_PROGRAMS:
            left_out.append(LeftOut(name, f"The package installs more than {_MOST_PROGRAMS} programs."))
        else:
            files[name] = PurePosixPath(file).as_posix()
        if len(left_out) > _MOST_PROGRAMS:
            break
    return Programs(files, tuple(left_out))


def bundled(manifest: Table, folder: Path) -> Table:
    """The manifest with a build script of Bun, if it starts files of TypeScript directly and has no build script.

    If Node.js can run a file of `folder` that starts it, only `start` and the programs are checked for TypeScript. Blocks.
    """
    scripts, bins = manifest.table("scripts"), dict(_bins(manifest))
    if any(name in scripts.values for name in _BUILDS if name != "prepare"):
        return manifest
    is_started = any(_is_there(folder, file) for file in started_of(manifest) if not _TYPESCRIPT.search(file))
    names, mains = (_STARTS[:1], ()) if is_started else (_STARTS, (manifest.text("main"), manifest.text("module")))
    started = [found[1] for name in names for found in _TYPED.finditer(scripts.text(name)[:_LONGEST])]
    main = next((file for file in (*started, *mains) if _TYPESCRIPT.search(file)), "")
    files = dict.fromkeys(file for file in (main, *bins.values()) if _TYPESCRIPT.search(file) and not _fault("start", file))
    if not files:
        return manifest
    made = {file: f"dist/{PurePosixPath(file).with_suffix('.mjs')}" for file in files}
    build = " && ".join(f"bun build {file} --target=node --packages=external --outfile={target}" for file, target in made.items())
    told = {"scripts": {**scripts.values, "build": build}, "bin": {name: made.get(file, file) for name, file in bins.items()}}
    return Table({**manifest.values, **told, **({"main": made[main]} if main in made else {})})


def build_script(manifest: Table, source: Path) -> str:
    """The script that makes the project's files; empty if they are there. Blocks."""
    scripts = manifest.table("scripts").values
    files = _files(manifest)
    if "build" in scripts and (not files or any(_MADE & set(PurePosixPath(file).parts[:1]) for file in files)):
        return "build"
    return "" if is_made(manifest, source) else next((name for name in _BUILDS if name in scripts), "")


def uses_bun(manifest: Table, script: str) -> bool:
    """Whether Bun runs the script, its `pre` and `post` scripts, or one that it runs."""
    scripts = manifest.table("scripts")
    told, own = scripts.text(script), (script, f"pre{script}", f"post{script}")
    names = (name for name in scripts.values if name in own or re.search(rf"\brun {re.escape(name)}\b", told))
    return any(_BUN.search(scripts.text(name)) for name in names)


def is_made(manifest: Table, source: Path) -> bool:
    """Whether the files that it names are there. Blocks."""
    return all(_is_there(source, file) for file in _files(manifest))


def started_of(manifest: Table) -> tuple[str, ...]:
    """The files that start it, the likeliest first."""
    scripts = manifest.table("scripts")
    told = [found[1] for name in _STARTS for found in _RUNS.finditer(scripts.text(name)[:_LONGEST])]
    files = [*told, *filter(None, [manifest.text("main")]), *_exported(manifest)]
    return tuple(dict.fromkeys(PurePosixPath(file).as_posix() for file in files if not _fault("start", file)))


def kept_of(manifest: Table, *, with_lock: bool) -> dict[str, object]:
    """The parts of the manifest that a tool keeps, without scripts."""
    names = (*_KEPT, *_LOCKED_TOO) if with_lock else _KEPT
    return {name: manifest.values[name] for name in names if name in manifest.values}


def _files(manifest: Table) -> list[str]:
    return [*programs_of(manifest).files.values(), *started_of(manifest)]


def _exported(manifest: Table) -> Iterator[str]:
    """The file that an import of the package loads, if `exports` names it plainly."""
    found = manifest.values.get("exports")
    for _ in range(4):
        if isinstance(found, str):
            yield found.removeprefix("./")
            return
        table = Table.of(found)
        found = next((table.values[name] for name in (".", "import", "require", "node", "default") if name in table.values), None)


def _is_there(source: Path, file: str) -> bool:
    if ".." in PurePosixPath(file).parts or file.startswith("/"):
        return True
    return any((source / name).is_file() for name in (file, f"{file}.js", f"{file}/index.js"))


def _bins(manifest: Table) -> Iterator[tuple[str, str]]:
    own = manifest.text("name").rpartition("/")[2]
    if file := manifest.text("bin"):
        yield from [(own, file)] if own else []
    for program, file in manifest.table("bin").values.items():
        if isinstance(file, str):
            yield program, file


def _fault(name: str, file: str) -> str:
    if not _PROGRAM.fullmatch(name):
        return "Its name is none that a program can have: letters, digits, `.`, `_` and `-`, 80 at most."
    if not file.isprintable() or len(file) > _LONGEST or file.startswith("/") or ".." in PurePosixPath(file).parts:
        return "Its file is none of the package."
    return ""
