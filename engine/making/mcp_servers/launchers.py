"""Writes `main.py`, the program that starts a repository's MCP server on stdin and stdout."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from engine.making.python_projects.launcher import REPOSITORY, SITE
from toolagent_service.contracts.plans import Over

_TEXT = '''\
"""Starts the MCP server of the repository beside this file, on stdin and stdout. Written by Tool Agent."""

import os
import runpy
import sys
from pathlib import Path

from mcp_bridge import bridge
from working_folder import laid_out

HERE = Path(__file__).resolve().parent
KIND, NAME, TARGET, ARGUMENTS, OVER = {start.kind!r}, {start.name!r}, {start.target!r}, {arguments!r}, {start.over!r}

SERVERS = (("mcp.server.fastmcp", "FastMCP"), ("fastmcp", "FastMCP"), ("mcp.server", "MCPServer"))
OVER_HTTP = ("run_sse_async", "run_streamable_http_async", "run_http_async")
APPS = ("app", "application", "asgi", "asgi_app", "starlette_app", "create_app", "get_app", "make_app", "build_app")


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


def ran(path, name):
    """What a file makes. As a module of its package where it imports from there."""
    parts, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        parts, folder = [folder.name, *parts], folder.parent
    if len(parts) > 1 and "from ." in path.read_text(errors="replace"):
        sys.path.insert(0, str(folder))
        return runpy.run_module(".".join(parts), run_name=name, alter_sys=True)
    return runpy.run_path(str(path), run_name=name)


def served(space):
    import uvicorn

    found = next((space[name] for name in APPS if callable(space.get(name))), None)
    if found is None:
        sys.exit("There is no ASGI app in " + str(TARGET))
    is_factory = not hasattr(found, "router") and type(found).__name__ == "function"
    uvicorn.run(found() if is_factory else found, host="127.0.0.1", port=int(os.environ["PORT"]))


if __name__ == "__main__":
    repository = Path(laid_out(str(HERE / {repository!r})))
    os.chdir(repository / {project!r})
    # Instead of the folder of this file, whose `main` is none of the repository's.
    sys.path[0:1] = [laid_out(str(HERE / {site!r}), {site!r})]
    sys.argv = [NAME, *ARGUMENTS]
    if OVER == "http":
        text = repository / {module!r}
        bridge(text.read_text(errors="replace") if text.is_file() else "")
    else:
        listen_no_more()
    if KIND == "script":
        module, _, attribute = TARGET.partition(":")
        __import__(module)
        found = sys.modules[module]
        for part in attribute.split("."):
            found = getattr(found, part)
        sys.exit(found())
    path = repository / TARGET
    sys.path[0:0] = [str(path.parent), str(repository / {project!r}), str(repository / {project!r} / "src")]
    if KIND == "file":
        sys.argv = [str(path), *ARGUMENTS]
        ran(path, "__main__")
    elif KIND == "app":
        served(ran(path, "server"))
    else:
        servers = [one for one in ran(path, "server").values() if type(one).__name__ in ("FastMCP", "MCPServer")]
        if not servers:
            sys.exit("There is no FastMCP server in " + str(TARGET))
        servers[0].run()
'''


@dataclass(frozen=True, slots=True)
class Start:
    """A way to start a server: a console `script` (`target` is `module:function`), a `file`, or a FastMCP `object` or ASGI `app` in a file.

    `over`: the server speaks on stdin and stdout itself, or over HTTP to our bridge.
    """

    kind: str
    name: str
    target: str
    arguments: tuple[str, ...] = ()
    over: Over = "stdio"

    @property
    def said(self) -> str:
        known = {"script": f"console script {self.name}", "file": f"python {self.target}", "app": f"the app in {self.target}"}
        what = known.get(self.kind, f"the server in {self.target}")
        return " ".join((what, *self.arguments, *(("over HTTP",) if self.over == "http" else ())))


def starts_of(
    programs: Sequence[str], scripts: Mapping[str, str], modules: Sequence[str], arguments: tuple[str, ...] = (), over: Over = "stdio"
) -> tuple[Start, ...]:
    """Ways to start the server, the likeliest first: scripts that name MCP, the files, then other scripts.

    `arguments` are from the README; starts with them come before starts without. Scripts that are files are left out.
    """
    inside = "object" if over == "stdio" else "app"
    names = [name for name in dict.fromkeys(programs) if ":" in scripts.get(name, "")]
    with_them = [Start("script", name, scripts[name], arguments) for name in names if arguments]
    named = [*with_them, *(Start("script", name, scripts[name]) for name in names)]
    likely = [one for one in named if "mcp" in f"{one.name} {one.target}".lower()]
    own = [Start(kind, PurePosixPath(module).name, module) for kind in ("file", inside) for module in modules]
    found = (*likely, *own, *(one for one in named if one not in likely))
    return tuple(replace(one, over=over) for one in dict.fromkeys(found))


def launcher_of_server(start: Start, project: str, module: str) -> str:
    """`module` is the file that makes the server, which may name its HTTP path. Raises ValueError for paths outside the repository."""
    for path in (project, module, start.target if start.kind != "script" else ""):
        if path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise ValueError(f"{path!r} is nothing in the repository.")
    text = _TEXT.format(start=start, arguments=[*start.arguments], module=module, repository=REPOSITORY, project=project, site=SITE)
    ast.parse(text)
    return text
