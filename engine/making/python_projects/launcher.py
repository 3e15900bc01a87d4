"""Writes the program that serves a repository's app like our own tools: `main.py --port N`."""

import ast
from collections.abc import Mapping
from pathlib import PurePosixPath

from toolagent_service.contracts.plans import AsgiBuild

REPOSITORY = "repository"
"""The folder beside the launcher that holds the repository: its own `main.py` has its place there."""

SITE = "site"
"""The folder beside it with the repository's own package, where it has one that can be built."""

_SERVER = "uvicorn>=0.15"
SERVERS: Mapping[str, tuple[str, ...]] = {"asgi": (_SERVER,), "wsgi": (_SERVER, "a2wsgi"), "gradio": (_SERVER,)}
"""Packages that serve an app. The bound excludes versions that do not declare their own dependencies."""

_TEXT = '''\
"""Serves the app of the repository beside this file: `python main.py --port N`. Written by Tool Agent."""

import argparse
import os
import sys
from pathlib import Path

from tool_agent_serving.starting import serve
from working_folder import laid_out

BROUGHT = Path(__file__).resolve().parent / {repository!r}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    port = parser.parse_args().port
    REPOSITORY = Path(laid_out(str(BROUGHT)))
    os.chdir(REPOSITORY / {plan.project!r})
    # Instead of the folder of this file, whose `main` is none of the repository's.
    sys.path[0:1] = [str(REPOSITORY / {plan.root!r}), str(REPOSITORY / {plan.project!r})]
    # What the package says of itself; its modules are those of the repository.
    sys.path.append(str(BROUGHT.with_name({site!r})))
    serve({plan.interface!r}, {plan.module!r}, {plan.attribute!r}, {plan.is_factory!r}, port)
'''


def launcher_of(plan: AsgiBuild) -> str:
    """Raises ValueError for a plan with invalid Python names or folders outside the repository."""
    names = (*plan.module.split("."), plan.attribute)
    if not all(name.isidentifier() for name in names):
        raise ValueError(f"{plan.module}:{plan.attribute} names no application.")
    for folder in (plan.root, plan.project):
        if folder.startswith("/") or ".." in PurePosixPath(folder).parts:
            raise ValueError(f"{folder!r} is no folder of the repository.")
    text = _TEXT.format(repository=REPOSITORY, site=SITE, plan=plan)
    ast.parse(text)
    return text
