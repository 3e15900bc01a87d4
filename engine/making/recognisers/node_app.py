"""Recognises Node.js apps that listen on a port, by their dependencies and start scripts, without running them."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from engine.making.python_sources.projects import folder_text, json_of
from engine.making.repositories.asides import is_aside
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

_FRAMEWORKS = ("express", "@nestjs/core", "fastify", "koa", "@hapi/hapi", "restify", "polka")
_USUAL = ("server.js", "app.js", "index.js", "main.js", "src/server.js", "src/app.js", "src/index.js", "src/main.js", "bin/www")
_LISTENS = re.compile(r"\.listen\s*\(|createServer\s*\(|express\s*\(\s*\)")
_STARTED = re.compile(r"\bnode\b|\bnodemon\b|\bnest\b|\bpm2\b|\btsx?\b|\bts-node\b")
_MOST_PACKAGES = 200
_MOST = 5


def recognise_node_apps(tree: Tree) -> Iterator[Finding]:
    """The apps nearest to the top. `details`: `project`, `framework`, and `starts`, files of the project that may start it."""
    packages = [path for path in tree.files if path.name == "package.json" and not is_aside(path.as_posix())][:_MOST_PACKAGES]
    found = [finding for path in packages if (finding := _app(tree, path)) is not None]
    yield from sorted(found, key=lambda one: (one.path.count("/"), one.path))[:_MOST]


def _app(tree: Tree, path: PurePosixPath) -> Finding | None:
    package = json_of(tree.text(path))
    known = package.table("dependencies").values
    framework = next((name for name in _FRAMEWORKS if name in known), "")
    starts = [name for name in _USUAL if _LISTENS.search(tree.text(path.parent / name) or "")] if framework else []
    is_started = bool(_STARTED.search(package.table("scripts").text("start")))
    # A package that others install and call is no app, though it may contain one.
    is_installed = bool(package.values.get("bin")) and not is_started
    if not framework or is_installed or not (starts or is_started):
        return None
    return Finding(
        kind=FindingKind.NODE_APP,
        path=path.as_posix(),
        summary=f"An app of Node.js ({framework}).",
        details={"project": folder_text(path.parent), "framework": framework, "starts": [*starts]},
    )
