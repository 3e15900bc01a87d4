"""Recognises the programs that a project installs: Python's console scripts, and the `bin` of npm packages."""

import configparser
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath

from pydantic import JsonValue

from engine.making.python_sources.projects import PYPROJECT, Table, json_of, pyproject_of, readable_ini
from engine.making.repositories.asides import is_aside, is_example
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

_MOST = 10
_MOST_NAMED = 50
_MOST_READ = 2_000
_LONGEST = 200
_SETUP = ("setup.cfg", "setup.py")
_OF_OTHERS = (
    "package.json",
    "Cargo.toml",
    "go.mod",
    "CMakeLists.txt",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "build.sbt",
    "composer.json",
    "Gemfile",
    "mix.exs",
    "Package.swift",
    "pubspec.yaml",
)
"""Files of projects in other languages, where Python scripts are only helpers."""
_SAYS = re.compile(r"[\"']\s*([A-Za-z0-9][\w.-]*)\s*=\s*([\w.]+\s*:\s*[\w.]++)[^\"']*[\"']")
_GROUP = re.compile(r"console_scripts[^\]]*")
_FILES = re.compile(r"\bscripts\s*=\s*\[([^\]]*)")
_FILE = re.compile(r"[\"']((?:[\w.-]+/)*([A-Za-z0-9][\w.-]*))[\"']")
_PARSES = re.compile(r"^[ \t]*(?:import|from)[ \t]+(?:argparse|click|typer|docopt|optparse)\b", re.MULTILINE)
_RUNS = re.compile(r"^(?:if __name__ ==|\w.*\.parse_args\()", re.MULTILINE)


def recognise_console_scripts(tree: Tree) -> Iterator[Finding]:
    """The nearest programs first. `details`: `language`, and `scripts`, each program (`module:function`, or a file) by its name.

    `are_files`: nothing installs them, they are files in the folder of `path`.
    """
    folders = dict.fromkeys(path.parent for path in tree.files if path.name in (PYPROJECT, *_SETUP))
    for folder in sorted(list(folders)[:_MOST], key=lambda folder: is_aside(f"{folder}/x")):
        where, scripts = console_scripts_of(tree, folder)
        if scripts:
            yield _finding(where, "python", scripts)
    packages = [path for path in tree.files if path.name == "package.json"][:_MOST]
    for path in sorted(packages, key=lambda path: is_aside(path.as_posix())):
        if programs := npm_programs_of(tree, path):
            yield _finding(path, "nodejs", programs)
    if not any(tree.has(name) for name in (PYPROJECT, *_SETUP, *_OF_OTHERS)):
        yield from _loose(tree)


def console_scripts_of(tree: Tree, folder: PurePosixPath) -> tuple[PurePosixPath, Mapping[str, str]]:
    """The file that names a Python project's console scripts, and the scripts. Blocks."""
    project = pyproject_of(tree, folder)
    said = project.table("project")
    # Setuptools also accepts them as entry points.
    tables = (
        said.table("scripts"),
        said.table("entry-points").table("console_scripts"),
        project.table("tool").table("poetry").table("scripts"),
    )
    listed = _files(project.table("tool").table("setuptools").texts("script-files"))
    if found := dict(islice((*listed.items(), *(pair for table in tables for pair in _texts(table))), _MOST_NAMED)):
        return folder / PYPROJECT, found
    if configured := _of_setup_cfg(tree.text(folder / "setup.cfg") or ""):
        return folder / "setup.cfg", configured
    setup = tree.text(folder / "setup.py") or ""
    files = {name: file for found in _FILES.findall(setup) for file, name in _FILE.findall(found)}
    group = _GROUP.search(setup)
    pairs = [*files.items(), *(_SAYS.findall(group[0]) if group else ())]
    return folder / "setup.py", dict(pairs[:_MOST_NAMED])


def _loose(tree: Tree) -> Iterator[Finding]:
    """Scripts with a parser in a repository that is no package, by folder, the folder with the most first."""
    by_folder: dict[PurePosixPath, list[str]] = {}
    scripts = (path for path in tree.files if path.suffix == ".py" and not is_example(path.as_posix()))
    for path in [path for path in scripts if not path.name.startswith("test_")][:_MOST_READ]:
        text = tree.text(path) or ""
        if _PARSES.search(text) and _RUNS.search(text):
            by_folder.setdefault(path.parent, []).append(path.stem)
    for folder, names in sorted(by_folder.items(), key=lambda one: -len(one[1]))[:_MOST]:
        found = _finding(folder / f"{names[0]}.py", "python", {name: f"{name}.py" for name in names[:_MOST_NAMED]})
        yield found.model_copy(update={"details": {**found.details, "are_files": True}})


def npm_programs_of(tree: Tree, path: PurePosixPath) -> Mapping[str, str]:
    """The programs of a `package.json`. Blocks."""
    package = json_of(tree.text(path))
    name = package.text("name").rpartition("/")[2]
    file = package.text("bin")
    return {name: file} if file and name else dict(_texts(package.table("bin")))


def _files(paths: Iterable[str]) -> Mapping[str, str]:
    """Programs that are files of the project, by name."""
    return {found[2]: found[1] for path in paths if (found := _FILE.fullmatch(f"'{path[:_LONGEST]}'"))}


def _texts(table: Table) -> Iterator[tuple[str, str]]:
    found = ((name[:_LONGEST], value[:_LONGEST]) for name, value in table.values.items() if isinstance(value, str))
    yield from islice(found, _MOST_NAMED)


def _of_setup_cfg(text: str) -> Mapping[str, str]:
    read = configparser.RawConfigParser(strict=False)
    try:
        read.read_string(readable_ini(text))
        lines = read.get("options.entry_points", "console_scripts", fallback="").splitlines()
    except configparser.Error:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name.strip()[:_LONGEST]: target.strip()[:_LONGEST] for name, _, target in pairs}


def _finding(path: PurePosixPath, language: str, scripts: Mapping[str, str]) -> Finding:
    summary = f"Installs the programs {', '.join(sorted(scripts))}."
    details: dict[str, JsonValue] = {"scripts": dict(scripts), "language": language}
    return Finding(kind=FindingKind.CONSOLE_SCRIPT, path=path.as_posix(), summary=summary, details=details)
