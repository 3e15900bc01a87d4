"""The versions that a lock of pnpm or yarn names, as npm takes them."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from engine.making.python_sources.projects import Table

_MOST_CHARACTERS = 4 * 1024 * 1024
_LONGEST_LINE = 1_000
_NAMED = re.compile(r"(?P<name>(?:@[A-Za-z\d~-][\w.~-]{0,100}/)?[A-Za-z\d][\w.~-]{0,100})@(?P<rest>.*)")
_VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(?:[+-][\w.+-]{1,100})?")
_PLAIN = re.compile(r"[\^~<>=|\s\w.*+-]{0,300}")
_ELSEWHERE = re.compile(r"(?:link|file|workspace|git|github|portal|npm):|[\w+.-]{1,20}://|/?(?:@[\w.~-]{1,100}/)?[A-Za-z][\w.~-]{0,100}@")
"""Begins the place of a package that is not in the index, or the package that an alias stands for."""
_LISTED = ("packages:", "snapshots:")
_PLACE_KEYS = ("version", "specifier")
_INDEX, _PATCH = "npm:", "patch:"
_KINDS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")

_Found = tuple[str, str]
"""A package and its version. No version: what has the name is not, or not certainly, a package of the index."""


def pins_of(name: str, text: str) -> Mapping[str, str]:
    """The version of each package of which the lock has one. `name` is that of the lock's file. A very large lock gives none.

    Lines are read one by one, with bounds: one regular expression over a whole file that strangers wrote can stop the process, because
    `re` holds the interpreter's lock.
    """
    if len(text) > _MOST_CHARACTERS:
        return {}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for package, version in LOCKS[name](text.splitlines()):
        found[package].add(version)
    return {package: version for package, (version, *more) in found.items() if version and not more}


def pinned(manifest: Table, pins: Mapping[str, str]) -> dict[str, object]:
    """The manifest with these versions. What it depends on itself must have the same version there as in `overrides`, or npm refuses."""
    own, overrides = {kind: manifest.table(kind).values for kind in _KINDS}, manifest.table("overrides").values
    kept = {name for specs in own.values() for name, spec in specs.items() if not _PLAIN.fullmatch(str(spec))}
    # A key may name a range too: `ms@^2`.
    kept |= {f"{key[:1]}{key[1:].partition('@')[0]}" for key in overrides}
    pins = {name: version for name, version in pins.items() if name not in kept}
    told: dict[str, object] = {kind: {name: pins.get(name, spec) for name, spec in specs.items()} for kind, specs in own.items() if specs}
    return {**manifest.values, **told, "overrides": {**pins, **overrides}}


def _of_pnpm(lines: Iterable[str]) -> Iterator[_Found]:
    section, parent = "", ""
    for line in lines:
        if line.strip() and not line.startswith(" "):
            section = line.rstrip()
        key, _, value = line[:_LONGEST_LINE].strip().partition(": ")
        if section in _LISTED and line.startswith("  ") and not line.startswith("   "):
            yield from _entry_of_pnpm(line)
        elif not value:
            parent = _bare(key.removesuffix(":"))
        elif key == "name":  # only what is not of the index has a name besides its key
            yield _bare(value), ""
        elif _ELSEWHERE.match(_bare(value)):
            yield parent if key in _PLACE_KEYS else _bare(key), ""


def _entry_of_pnpm(line: str) -> Iterator[_Found]:
    """Of `  '@a/b@1.2.3(zod@3.24.3)':`; pnpm 6 to 8 begin the name with `/`."""
    named = _NAMED.fullmatch(_bare(line[:_LONGEST_LINE].strip().removesuffix("{}").rstrip().removesuffix(":")).removeprefix("/"))
    if named:
        version = named["rest"].partition("(")[0]
        yield named["name"], version if len(line) <= _LONGEST_LINE and _VERSION.fullmatch(version) else ""


def _of_yarn(lines: Iterable[str]) -> Iterator[_Found]:
    names: tuple[str, ...] = ()
    for line in lines:
        if line.startswith(("  version ", "  version:")):
            version = line[:_LONGEST_LINE].removeprefix("  version").removeprefix(":").strip().strip('"')
            yield from ((name, version if _VERSION.fullmatch(version) else "") for name in names)
        elif line and not line.startswith((" ", "#", ":")):
            names, unsure = _names_of_yarn(line)
            yield from ((name, "") for name in unsure)


def _names_of_yarn(line: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of an entry that are taken, and those that are not, of `"@a/b@npm:^1.0.0, @a/b@npm:^1.1.0":`, quoted as a whole or each.

    An entry with a descriptor that is no plain range is not taken. A patched package has the version of the package.
    """
    described = [_NAMED.fullmatch(one.strip().strip('"')) for one in line[:_LONGEST_LINE].removeprefix("? ").rstrip(": ").split(",")]
    named = [(one["name"], one["rest"].removeprefix(_INDEX)) for one in described if one]
    names = tuple(dict.fromkeys(name for name, _ in named))
    if all(rest.startswith(f"{_PATCH}{name}@") for name, rest in named):
        return (), ()
    is_taken = len(names) == 1 and len(line) <= _LONGEST_LINE and all(_PLAIN.fullmatch(rest) for _, rest in named)
    return (names, ()) if is_taken and len(described) == len(named) else ((), names)


def _bare(text: str) -> str:
    return text.strip("'\"")


LOCKS: Mapping[str, Callable[[Iterable[str]], Iterator[_Found]]] = {"pnpm-lock.yaml": _of_pnpm, "yarn.lock": _of_yarn}
"""How to read the locks, by the name of the file."""
