"""Recognises MCP servers in Python and Node.js, and what may start them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from packaging.utils import canonicalize_name
from pydantic import JsonValue

from engine.making.python_sources.apps import position
from engine.making.python_sources.projects import PYPROJECT, dependencies_named, folder_text, json_of, project_folder, pyproject_of
from engine.making.recognisers.console_script import console_scripts_of, npm_programs_of
from engine.making.repositories.asides import is_aside
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

_PACKAGES = frozenset({"mcp", "fastmcp"})
_NODE_PACKAGES = ("@modelcontextprotocol/sdk", "@modelcontextprotocol/server", "fastmcp")
_CODE = re.compile(r"^[ \t]*(?:from|import)[ \t]+(?:mcp\.server|mcp\b(?=\s+import.*\b(?:FastMCP|Server)\b)|fastmcp)\b", re.MULTILINE)
_STARTS = re.compile(r"\.run\(|stdio_server\(|\.run_stdio_async\(|\.run_async\(")
_MAIN = re.compile(r"^if __name__ == [\"']__main__[\"']:", re.MULTILINE)
_MCP = re.compile(r"mcp", re.IGNORECASE)
_HTTP = re.compile(
    r"StreamableHTTP|\bSseServerTransport|\bSSEServerTransport|streamable_http_app\(|\bsse_app\(|\bhttp_app\(|createMcpExpressApp"
)
_STDIO = re.compile(r"stdio", re.IGNORECASE)
_NODE_SOURCES = frozenset({".ts", ".mts", ".js", ".mjs", ".cjs"})
_ARGUMENTS = re.compile(r'"args"\s*:\s*(\[[^\]]{0,2000}\])')
_NODE_FILE = re.compile(r"/[\w-]+\.[cm]?js$")
_PLACEHOLDER = re.compile(r"[<>{}$]|^/|your|path|https?:", re.IGNORECASE)
_MOST_ARGUMENTS = 6
_MOST = 400
_MOST_FOUND = 5
_MANIFESTS = ("mcp-server.json", "manifest.json", ".mcp.json", "mcp.json", "server.json", "gemini-extension.json", "smithery.yaml")
_WORD = re.compile(r"[\"']([\w./-]{1,200}\.py)[\"']")
_LONGEST = 100_000
_LIKELY = ("server.py", "main.py", "__main__.py", "app.py", "__init__.py")


def recognise_mcp_servers(tree: Tree) -> Iterator[Finding]:
    """`details`: `language`, `project` (the folder that declares dependencies), `programs` that may start it, its file `module`.

    `http`: `alone` if its code speaks HTTP and names no stdio, `too` if it has both.
    """
    found = [*_python(tree), *_node(tree)]
    found.sort(key=lambda one: (is_aside(one.path), str(one.details.get("project", "~")).count("/"), "project" not in one.details))
    yield from found[:_MOST_FOUND]


def _python(tree: Tree) -> Iterator[Finding]:
    sources = [path for path in tree.files if path.suffix == ".py" and not is_aside(path.as_posix())][:_MOST]
    serving = [path for path in sources if _CODE.search(tree.text(path) or "")]
    by_project: dict[PurePosixPath | None, list[PurePosixPath]] = {}
    for path in serving:
        by_project.setdefault(project_folder(tree, path), []).append(path)
    for path in tree.files:
        if path.name == PYPROJECT and path.parent not in by_project and _PACKAGES & dependencies_named(tree, path.parent):
            by_project[path.parent] = []
    for project, files in by_project.items():
        yield _of_python(tree, project, files)


def _of_python(tree: Tree, project: PurePosixPath | None, files: list[PurePosixPath]) -> Finding:
    named = _named_in_manifests(tree, project)
    best = min(files, key=lambda path: _rank(tree, path, named), default=None)
    where = best or (project or PurePosixPath()) / PYPROJECT
    details: dict[str, JsonValue] = {"language": "python"}
    if project is not None:
        _, scripts = console_scripts_of(tree, project)
        details["project"] = folder_text(project)
        details["programs"] = [*_mcp_first(scripts)]
        names = (*scripts, pyproject_of(tree, project).table("project").text("name"))
        details["arguments"] = [*_arguments(tree, project, names)]
    details.update(_http(tree, files))
    if best:
        details["module"] = best.as_posix()
    said = "" if project is not None else " No file says what it depends on."
    return Finding(kind=FindingKind.MCP_SERVER, path=where.as_posix(), summary=f"An MCP server.{said}", details=details)


def _http(tree: Tree, files: Iterable[PurePosixPath]) -> dict[str, JsonValue]:
    texts = [tree.text(path) or "" for path in files]
    if not any(_HTTP.search(text) for text in texts):
        return {}
    return {"http": "too" if any(_STDIO.search(text) for text in texts) else "alone"}


def _arguments(tree: Tree, project: PurePosixPath, names: Iterable[str]) -> Sequence[str]:
    """The arguments in the README's instructions for clients (`"args": [...]`), after the name of a program or package.

    In Node.js also after the path of a file.
    """
    own = {canonicalize_name(name) for name in names if name}
    readmes = [path for path in tree.files if path.name.lower() == "readme.md" and path.parent in (project, PurePosixPath())]
    for found in (found for path in readmes for found in _ARGUMENTS.findall(tree.text(path) or "")):
        words = json_of(f'{{"args":{found}}}').texts("args")
        places = [at for at, word in enumerate(words) if _unversioned(word) in own or _NODE_FILE.search(word)]
        rest = words[places[-1] + 1 :] if places else ()
        if rest and len(rest) <= _MOST_ARGUMENTS and not any(_PLACEHOLDER.search(word) for word in rest):
            return rest
    return ()


def _unversioned(word: str) -> str:
    """The normalised name, without the version of `@scope/name@1.2`."""
    return canonicalize_name(f"{word[:1]}{word[1:].partition('@')[0]}")


def _named_in_manifests(tree: Tree, project: PurePosixPath | None) -> frozenset[PurePosixPath]:
    """The files that a manifest for clients starts."""
    folder = project or PurePosixPath()
    texts = (tree.text(folder / name) for name in _MANIFESTS)
    words = (word for text in texts if text for word in _WORD.findall(text[:_LONGEST]))
    return frozenset(path for word in words if tree.has(path := folder / word.removeprefix("./")))


def _rank(tree: Tree, path: PurePosixPath, named: frozenset[PurePosixPath]) -> tuple[object, ...]:
    """Sorts files that start a server before files that only mention one."""
    text = tree.text(path) or ""
    return (
        path not in named,
        not _STARTS.search(text),
        not _MAIN.search(text),
        path.name.startswith("test_"),
        position(path.name, _LIKELY),
        len(path.parts),
        path.as_posix(),
    )


def _node(tree: Tree) -> Iterator[Finding]:
    for path in [path for path in tree.files if path.name == "package.json"][:_MOST]:
        package = json_of(tree.text(path))
        # A bundled package is only a development dependency; other projects may only test with it.
        bundled = ("devDependencies",) if _MCP.search(package.text("name")) else ()
        wanted = [package.table(kind).values for kind in ("dependencies", "peerDependencies", "optionalDependencies", *bundled)]
        if not any(name in known for known in wanted for name in _NODE_PACKAGES):
            continue
        programs = npm_programs_of(tree, path)
        inside = (one for one in tree.files if one.suffix in _NODE_SOURCES and one.is_relative_to(path.parent))
        details: dict[str, JsonValue] = {
            "language": "nodejs",
            "project": folder_text(path.parent),
            "programs": [*_mcp_first(dict.fromkeys(programs, ""))],
            "arguments": [*_arguments(tree, path.parent, (*programs, package.text("name")))],
            **_http(tree, [one for one in inside if not is_aside(one.as_posix())][:_MOST]),
        }
        if main := package.text("main"):
            details["module"] = (path.parent / main).as_posix()
        yield Finding(kind=FindingKind.MCP_SERVER, path=path.as_posix(), summary="An MCP server.", details=details)


def _mcp_first(programs: Mapping[str, str]) -> list[str]:
    return sorted(programs, key=lambda name: (not _MCP.search(f"{name} {programs[name]}"), name))
