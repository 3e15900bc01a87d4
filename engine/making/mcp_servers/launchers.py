"""The programs that start a repository's MCP server on stdin and stdout: `main.py`."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from engine.making.launcher import REPOSITORY, SITE

__all__ = ["Start", "launcher_of_server", "starts_of"]

_TEXT = '''\
"""Starts the MCP server of the repository beside this file, on stdin and stdout. Written by Tool Agent."""

import os
import runpy
import sys
from pathlib import Path

from working_folder import laid_out

HERE = Path(__file__).resolve().parent
KIND, NAME, TARGET, ARGUMENTS = {kind!r}, {name!r}, {target!r}, {arguments!r}

SERVERS = (("mcp.server.fastmcp", "FastMCP"), ("fastmcp", "FastMCP"), ("mcp.server", "MCPServer"))
OVER_HTTP = ("run_sse_async", "run_streamable_http_async", "run_http_async")


async def over_stdio(server, *arguments, **options):
    """Instead of listening: who starts it here speaks on its stdin and stdout."""
    await server.run_stdio_async()


def listen_no_more():
    for module, name in SERVERS:
        try:
            kind = getattr(__import__(module, fromlist=[name]), name)
        except (ImportError, AttributeError):
            continue
        for way in OVER_HTTP:
            if hasattr(kind, way):
                setattr(kind, way, over_stdio)


if __name__ == "__main__":
    repository = Path(laid_out(str(HERE / {repository!r})))
    os.chdir(repository / {project!r})
    # Instead of the folder of this file, whose `main` is none of the repository's.
    sys.path[0:1] = [str(HERE / {site!r})]
    sys.argv = [NAME, *ARGUMENTS]
    listen_no_more()
    if KIND == "script":
        module, _, attribute = TARGET.partition(":")
        __import__(module)
        found = sys.modules[module]
        for part in attribute.split("."):
            found = getattr(found, part)
        sys.exit(found())
    path = repository / TARGET
    roots = [str(path.parent), str(repository / {project!r}), str(repository / {project!r} / "src")]
    sys.path[0:0] = roots
    if KIND == "file":
        sys.argv = [str(path), *ARGUMENTS]
        runpy.run_path(str(path), run_name="__main__")
    else:
        space = runpy.run_path(str(path), run_name="server")
        servers = [one for one in space.values() if type(one).__name__ in ("FastMCP", "MCPServer")]
        if not servers:
            sys.exit("There is no FastMCP server in " + str(TARGET))
        servers[0].run()
'''


@dataclass(frozen=True, slots=True)
class Start:
    """`kind`: a console `script` (`target` is `module:function`), a `file` that is run, or a FastMCP `object` in a file."""

    kind: str
    name: str
    target: str
    arguments: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        what = {"script": f"console script {self.name}", "file": f"python {self.target}"}.get(self.kind, f"the server in {self.target}")
        return " ".join((what, *self.arguments))


def starts_of(programs: Sequence[str], scripts: Mapping[str, str], module: str, arguments: tuple[str, ...] = ()) -> tuple[Start, ...]:
    """What may start it, the likeliest first: those that name MCP, the file itself, then whatever else is installed.

    `arguments` are those that its README gives to it: they are tried before none.
    """
    names = [name for name in dict.fromkeys(programs) if name in scripts]
    with_them = [Start("script", name, scripts[name], arguments) for name in names if arguments]
    named = [*with_them, *(Start("script", name, scripts[name]) for name in names)]
    likely = [one for one in named if "mcp" in f"{one.name} {one.target}".lower()]
    own = [Start("file", PurePosixPath(module).name, module), Start("object", PurePosixPath(module).name, module)] if module else []
    return (*likely, *own, *(one for one in named if one not in likely))


def launcher_of_server(start: Start, project: str) -> str:
    """Raises ValueError for what leads out of the repository."""
    for path in (project, start.target if start.kind != "script" else ""):
        if path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise ValueError(f"{path!r} is nothing in the repository.")
    text = _TEXT.format(
        kind=start.kind,
        name=start.name,
        target=start.target,
        arguments=[*start.arguments],
        repository=REPOSITORY,
        project=project,
        site=SITE,
    )
    ast.parse(text)
    return text
