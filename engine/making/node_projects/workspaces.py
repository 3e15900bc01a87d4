"""Finds the workspace of a project, and the packages of the repository that the project depends on."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from posixpath import normpath

import yaml

from engine.making.failures import NotWanted
from engine.making.node_projects.manifests import DEPENDENCIES, MANIFEST, bundled, is_name, manifest_at, named
from engine.making.node_projects.plain_files import text_of, write_json
from engine.making.python_sources.projects import Table
from engine.runtimes.folders import entries

_PNPM = "pnpm-workspace.yaml"
_MOST_PACKAGES = 500
_MOST_PATTERNS = 50
_LONGEST = 200
_MOST_YAML = 64 * 1024
_MOST_SIBLINGS = 20
_PROTOCOL, _CATALOG = "workspace:", "catalog:"
_LINKS = ("file:", "link:", "portal:")


_ODD = (ValueError, LookupError, AttributeError, TypeError, RecursionError)
"""Other errors of PyYAML for values that do not match their tags."""


class _Plain(yaml.SafeLoader):
    """Refuses aliases, because a few hundred bytes of them can stand for any number of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


@dataclass(frozen=True, slots=True)
class Package:
    """`folder` is in the repository."""

    folder: PurePosixPath
    manifest: Table

    @property
    def name(self) -> str:
        return self.manifest.text("name")

    @property
    def archive(self) -> str:
        """The file name that `npm pack` gives."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.manifest.text('version')}.tgz"


@dataclass(frozen=True, slots=True)
class Layout:
    """`root` is the folder in which npm installs for the project. `siblings` are packages of the repository that it depends on, in order.

    `installed` are those of them that it needs at run time.
    """

    root: PurePosixPath
    project: Package
    siblings: tuple[Package, ...] = ()
    installed: tuple[Package, ...] = ()


def laid_out(source: Path, folder: PurePosixPath) -> Layout:
    """Rewrites the manifests in a copy of the repository, so that npm understands what was written for pnpm and yarn.

    Raises NotWanted, OSError. Blocks.
    """
    own = Package(folder, bundled(named(manifest_at(source / folder / MANIFEST), folder), source / folder))
    root, patterns, catalogs = _workspace(source, folder)
    members = _members(source, root, patterns) if patterns else ()
    linked = _linked(own, {one.folder: one for one in _all(source)}) if _has_links(own.manifest) else ()
    known = {one.name: one for one in (*members, *linked) if one.folder != folder}
    siblings = _needed(own, known, DEPENDENCIES)
    at_run = {one.name for one in _needed(own, known, DEPENDENCIES[:3])}
    packages = [_written(one, catalogs, source) for one in (*siblings, own)]
    # Only the needed packages, because others may need something that is not available here.
    needed = [one.folder.relative_to(root).as_posix() for one in packages if one.folder != root and one.folder.is_relative_to(root)]
    if patterns and root != folder:
        above = _manifest_or_none(source / root / MANIFEST) or Table()
        _written(Package(root, Table({**named(above, root).values, "workspaces": needed})), catalogs, source)
    elif patterns:
        # The project's own scripts may build all members.
        names = {package.name for package in packages}
        for one in members:
            if one.name not in names:
                _written(one, catalogs, source)
        # npm runs a script of all members in the order of the manifest, pnpm each member after what it depends on.
        everything = Package(root, Table({DEPENDENCIES[0]: {one.name: "*" for one in members}}))
        ordered = _needed(everything, {one.name: one for one in members}, DEPENDENCIES, _MOST_PACKAGES)
        told = {"workspaces": [one.folder.relative_to(root).as_posix() for one in ordered]}
        packages[-1] = Package(folder, Table({**packages[-1].manifest.values, **told}))
        write_json(source / folder / MANIFEST, packages[-1].manifest.values)
    *first, last = packages
    return Layout(root if patterns else folder, last, tuple(first), tuple(one for one in first if one.name in at_run))


def _workspace(source: Path, folder: PurePosixPath) -> tuple[PurePosixPath, Sequence[str], Table]:
    """The root of the project's workspace, its patterns, and the versions of pnpm's catalogs by name."""
    for at in (folder, *folder.parents):
        pnpm, manifest = _pnpm(source / at / _PNPM), _manifest_or_none(source / at / MANIFEST) or Table()
        found = manifest.texts("workspaces") or manifest.table("workspaces").texts("packages") or pnpm.texts("packages")
        patterns = [one.removeprefix("./").rstrip("/") for one in found[:_MOST_PATTERNS] if len(one) <= _LONGEST]
        if patterns and (at == folder or _is_member(folder.relative_to(at), patterns)):
            return at, patterns, Table({**pnpm.table("catalogs").values, "": pnpm.table("catalog").values})
    return folder, (), Table()


def _pnpm(path: Path) -> Table:
    try:
        text = text_of(path)
        read: object = yaml.load(text, _Plain) if len(text) <= _MOST_YAML else None  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, *_ODD):
        return Table()
    return Table.of(read)


def _is_member(folder: PurePosixPath, patterns: Sequence[str]) -> bool:
    wanted = any(_matches(folder, one) for one in patterns if not one.startswith("!"))
    return wanted and not any(_matches(folder, one[1:].removeprefix("./")) for one in patterns if one.startswith("!"))


def _matches(folder: PurePosixPath, pattern: str) -> bool:
    """Compares part by part; `**` matches any number of parts."""
    parts, wanted = folder.parts, PurePosixPath(pattern).parts
    if "**" in wanted:
        before = wanted[: wanted.index("**")]
        return len(parts) > len(before) and all(map(fnmatch.fnmatchcase, parts, before))
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def _members(source: Path, root: PurePosixPath, patterns: Sequence[str]) -> tuple[Package, ...]:
    inside = [one for one in _all(source) if one.folder != root and one.folder.is_relative_to(root)]
    return tuple(one for one in inside if _is_member(one.folder.relative_to(root), patterns))


def _all(source: Path) -> Iterator[Package]:
    """The packages of the repository, up to a limit."""
    found = (Path(entry.path) for entry in entries(source) if entry.name == MANIFEST and entry.is_file(follow_symlinks=False))
    for path in islice(found, _MOST_PACKAGES):
        folder = PurePosixPath(path.parent.relative_to(source).as_posix())
        if (manifest := _manifest_or_none(path)) is not None:
            yield Package(folder, named(manifest, folder))


def _manifest_or_none(path: Path) -> Table | None:
    try:
        return manifest_at(path)
    except NotWanted:
        return None


def _has_links(manifest: Table) -> bool:
    return any(spec.startswith(_LINKS) for _, spec in _specs(manifest, DEPENDENCIES))


def _linked(package: Package, by_folder: Mapping[PurePosixPath, Package]) -> Iterator[Package]:
    """Packages that it names by their folders, under its own names for them."""
    for name, spec in _specs(package.manifest, DEPENDENCIES):
        linked = spec.partition(":")[2]
        if spec.startswith(_LINKS) and is_name(name) and not linked.startswith("/"):
            # A path that leads out of the repository begins at its top.
            path = normpath(f"/{package.folder / linked}").lstrip("/")
            if target := by_folder.get(PurePosixPath(path)):
                yield Package(target.folder, Table({**target.manifest.values, "name": name}))


def _needed(package: Package, known: Mapping[str, Package], kinds: Sequence[str], most: int = _MOST_SIBLINGS) -> list[Package]:
    """The known packages that it depends on, each after its own dependencies."""
    order: list[Package] = []
    seen: set[str] = {package.name}
    waiting = [(package, _specs(package.manifest, kinds))]
    while waiting:
        current, specs = waiting[-1]
        name = next((one for one, _ in specs if one in known and one not in seen), None)
        if name is not None and len(seen) <= most:
            seen.add(name)
            waiting.append((known[name], _specs(known[name].manifest, kinds)))
        else:
            order.append(current)
            waiting.pop()
    return order[:-1]


def _specs(manifest: Table, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    for kind in kinds:
        for name, spec in manifest.table(kind).values.items():
            if isinstance(spec, str):
                yield name, spec


def _written(package: Package, catalogs: Table, source: Path) -> Package:
    """Rewrites the manifest for npm. Built files are packed, also if git ignores them. Call it before anything runs in the copy."""
    values = dict(package.manifest.values)
    if "files" not in values and not (source / package.folder / ".npmignore").is_file():
        values["files"] = ["*"]
    for kind in DEPENDENCIES:
        if specs := package.manifest.table(kind).values:
            values[kind] = {name: _spec(name, spec, catalogs) for name, spec in specs.items()}
    write_json(source / package.folder / MANIFEST, values)
    return Package(package.folder, Table(values))


def _spec(name: str, spec: object, catalogs: Table) -> object:
    if not isinstance(spec, str):
        return spec
    if spec.startswith(_PROTOCOL):
        return "*"
    if spec.startswith(_CATALOG):
        return catalogs.table(spec.removeprefix(_CATALOG).replace("default", "")).text(name) or "*"
    return f"file:{spec.partition(':')[2]}" if spec.startswith(_LINKS) else spec
