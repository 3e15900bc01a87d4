"""Which packages of a repository belong together: the workspace of a project, and those of it that the project depends on."""

import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from engine.making.failures import NotWanted
from engine.making.node_projects.manifests import DEPENDENCIES, MANIFEST, bundled, is_name, manifest_at, named
from engine.making.node_projects.plain_files import text_of
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
"""What PyYAML raises besides for values that are not what their tags say."""


class _Plain(yaml.SafeLoader):
    """Without aliases: those of a few hundred bytes may stand for any number of values."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


@dataclass(frozen=True, slots=True)
class Package:
    """`folder` is in the repository; what its manifest depends on can be read by npm."""

    folder: PurePosixPath
    manifest: Table

    @property
    def name(self) -> str:
        return self.manifest.text("name")

    @property
    def archive(self) -> str:
        """What `npm pack` calls it."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.manifest.text('version')}.tgz"


@dataclass(frozen=True, slots=True)
class Layout:
    """`root` is the folder in which npm installs for the project. `siblings`: what it depends on of the repository, each before its users.

    `installed` are those of them that are there when it runs.
    """

    root: PurePosixPath
    project: Package
    siblings: tuple[Package, ...] = ()
    installed: tuple[Package, ...] = ()


def laid_out(source: Path, folder: PurePosixPath) -> Layout:
    """Reads a copy of a repository, and writes its manifests anew, so that npm can do with what pnpm and yarn understand.

    Raises NotWanted, OSError. Blocks.
    """
    own = Package(folder, bundled(named(manifest_at(source / folder / MANIFEST), folder), source / folder))
    root, patterns, catalogs = _workspace(source, folder)
    members = _members(source, root, patterns) if patterns else ()
    linked = _linked(own, {one.folder: one for one in _all(source)}) if _has_links(own.manifest) else ()
    known = {one.name: one for one in (*members, *linked) if one.folder != folder}
    siblings = _needed(own, known, DEPENDENCIES)
    at_run = {one.name for one in _needed(own, known, DEPENDENCIES[:3])}
    packages = [_readable(one, catalogs, source) for one in (*siblings, own)]
    for package in packages:
        _write(source / package.folder / MANIFEST, package.manifest)
    # Those alone that are needed: what else is in the workspace may need what is not to be had here.
    needed = [one.folder.relative_to(root).as_posix() for one in packages if one.folder != root and one.folder.is_relative_to(root)]
    if patterns and root != folder:
        above = _manifest_or_none(source / root / MANIFEST) or Table()
        whole = Table({**named(above, root).values, "workspaces": needed})
        _write(source / root / MANIFEST, _readable(Package(root, whole), catalogs, source).manifest)
    elif patterns:
        # Its own scripts may build all of them.
        every = [_readable(one, catalogs, source) for one in members if one.name not in {package.name for package in packages}]
        for package in every:
            _write(source / package.folder / MANIFEST, package.manifest)
        project = packages[-1]
        told = {"workspaces": [one.folder.relative_to(root).as_posix() for one in members]}
        packages[-1] = Package(project.folder, Table({**project.manifest.values, **told}))
        _write(source / folder / MANIFEST, packages[-1].manifest)
    *first, last = packages
    return Layout(root if patterns else folder, last, tuple(first), tuple(one for one in first if one.name in at_run))


def _workspace(source: Path, folder: PurePosixPath) -> tuple[PurePosixPath, Sequence[str], Table]:
    """The nearest folder above whose workspace the project is in, its patterns, and the versions that pnpm keeps there."""
    for at in (folder, *folder.parents):
        pnpm = _pnpm(source / at / _PNPM)
        found = _patterns(_manifest_or_none(source / at / MANIFEST) or Table()) or pnpm.texts("packages")
        patterns = [one.removeprefix("./").rstrip("/") for one in found[:_MOST_PATTERNS] if len(one) <= _LONGEST]
        if patterns and (at == folder or _is_member(folder.relative_to(at), patterns)):
            catalogs = {
                "": pnpm.table("catalog").values,
                **{name: pnpm.table("catalogs").table(name).values for name in pnpm.table("catalogs").values},
            }
            return at, patterns, Table.of(catalogs)
    return folder, (), Table()


def _patterns(manifest: Table) -> tuple[str, ...]:
    return manifest.texts("workspaces") or manifest.table("workspaces").texts("packages")


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
    """Each part by itself, but that `**` stands for any number of them."""
    parts, wanted = folder.parts, PurePosixPath(pattern).parts
    if "**" in wanted:
        before = wanted[: wanted.index("**")]
        return len(parts) > len(before) and all(map(fnmatch.fnmatchcase, parts, before))
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def _members(source: Path, root: PurePosixPath, patterns: Sequence[str]) -> tuple[Package, ...]:
    inside = [one for one in _all(source) if one.folder != root and one.folder.is_relative_to(root)]
    return tuple(one for one in inside if _is_member(one.folder.relative_to(root), patterns))


def _all(source: Path) -> Iterator[Package]:
    """Of the repository. So many are read, and no more."""
    found = (Path(entry.path) for entry in entries(source) if entry.name == MANIFEST and entry.is_file(follow_symlinks=False))
    for _, path in zip(range(_MOST_PACKAGES), found, strict=False):
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
    """What it names by a folder, by the name that it has there."""
    for name, spec in _specs(package.manifest, DEPENDENCIES):
        if spec.startswith(_LINKS) and is_name(name):
            target = by_folder.get(_joined(package.folder, spec.partition(":")[2]))
            if target is not None:
                yield Package(target.folder, Table({**target.manifest.values, "name": name}))


def _joined(folder: PurePosixPath, relative: str) -> PurePosixPath:
    parts = [*folder.parts]
    for part in PurePosixPath(relative).parts:
        if part == "..":
            parts = parts[:-1]
        else:
            parts.append(part)
    return PurePosixPath(*parts)


def _needed(package: Package, known: Mapping[str, Package], kinds: Sequence[str]) -> list[Package]:
    """What it depends on of these, each after what itself depends on."""
    order: list[Package] = []
    seen: set[str] = {package.name}
    waiting: list[tuple[Package, Iterator[str]]] = [(package, iter([name for name, _ in _specs(package.manifest, kinds)]))]
    while waiting:
        current, names = waiting[-1]
        name = next((one for one in names if one in known and one not in seen), None)
        if name is not None and len(seen) <= _MOST_SIBLINGS:
            seen.add(name)
            found = known[name]
            waiting.append((found, iter([one for one, _ in _specs(found.manifest, kinds)])))
            continue
        waiting.pop()
        if current is not package:
            order.append(current)
    return order


def _specs(manifest: Table, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    for kind in kinds:
        for name, spec in manifest.table(kind).values.items():
            if isinstance(spec, str):
                yield name, spec


def _readable(package: Package, catalogs: Table, source: Path) -> Package:
    """What only pnpm and yarn understand, as npm does; and what is built is packed, also where git ignores it."""
    values = dict(package.manifest.values)
    if "files" not in values and not (source / package.folder / ".npmignore").is_file():
        values["files"] = ["*"]
    for kind in DEPENDENCIES:
        if specs := package.manifest.table(kind).values:
            values[kind] = {name: _spec(name, spec, catalogs) for name, spec in specs.items()}
    return Package(package.folder, Table(values))


def _spec(name: str, spec: object, catalogs: Table) -> object:
    if not isinstance(spec, str):
        return spec
    if spec.startswith(_PROTOCOL):
        return "*"
    if spec.startswith(_CATALOG):
        return catalogs.table(spec.removeprefix(_CATALOG).replace("default", "")).text(name) or "*"
    return f"file:{spec.partition(':')[2]}" if spec.startswith(_LINKS) else spec


def _write(path: Path, manifest: Table) -> None:
    """In the copy, before anything has run there: none of its folders is a link."""
    path.unlink(missing_ok=True)
    path.write_text(json.dumps(manifest.values))
    path.chmod(0o666)
