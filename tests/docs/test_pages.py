"""The pages say what there is, and their links lead somewhere."""

import re
from http import HTTPStatus
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from api.errors import STATUS
from api.problems import ProblemKind
from api.routes import ROUTERS
from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.options import BuiltinOptions

HERE = Path(__file__).parents[2]
DOCS = HERE / "docs"
PAGES = [HERE / "README.md", HERE / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors_of(page: Path) -> set[str]:
    """The headings, as a link names them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors_of(target))


def test_every_route_is_described() -> None:
    page = (DOCS / "http.md").read_text("utf-8")
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    served = [f"{method} {route.path}" for route in routes for method in sorted(route.methods or ())]
    assert [route for route in served if f"| [`{route}`](" not in page] == []


def test_no_route_is_described_that_is_not_there() -> None:
    described = set(re.findall(r"^\| \[`([A-Z]+ /[^`]*)`\]", (DOCS / "http.md").read_text("utf-8"), re.MULTILINE))
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    assert described - {f"{method} {route.path}" for route in routes for method in route.methods or ()} == set()


def test_every_kind_of_problem_is_described_with_its_status() -> None:
    page = (DOCS / "http.md").read_text("utf-8")
    missing = [kind.value for kind in ProblemKind if f"| `{kind.value}` | {HTTPStatus(STATUS[kind]).value} |" not in page]
    assert missing == []


def test_every_built_in_tool_is_described() -> None:
    page = (DOCS / "tools.md").read_text("utf-8")
    assert [tool_id for tool_id in builtin_tools(BuiltinOptions()) if f"- `{tool_id}`:" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    assert [link for link in links if not leads_somewhere(page, link)] == []
