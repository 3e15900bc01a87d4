"""Recognises ASGI applications of Python projects by reading their modules, without importing them."""

import re
from collections.abc import Iterator
from functools import partial

from engine.making.python_sources.apps import app_findings, modules_like
from engine.making.python_sources.asgi_apps import FRAMEWORKS, apps_in
from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding, FindingKind

_LIKELY = re.compile(r"\b(?:FastAPI|Starlette|Litestar|Quart|Application|AsyncApp|get_asgi_application|falcon)\b")


def recognise_asgi(tree: Tree) -> Iterator[Finding]:
    """See `app_findings` for the details."""
    yield from app_findings(tree, FindingKind.ASGI, modules_like(tree, _LIKELY), partial(apps_in, frameworks=FRAMEWORKS), first="fastapi")
