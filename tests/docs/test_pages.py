"""The pages list exactly what exists, and their links resolve."""

import re
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.generated import GENERATED, renewed
from tests.docs.pages import LINKED, PAGES, ROOT
from tests.docs.registered import REGISTERED

LINK = re.compile(r"\]\(([^)\s]+)\)")
HABIT = re.compile(r"`make ([a-z-]+)`")
NAMED_PATH = re.compile(r"`((?:api|activities|bench|data|deploy|docs|engine|packages|tests|workers|workflows)/[\w./<>-]*)`")


def anchors_of(page: Path) -> set[str]:
    """The headings, as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors_of(target))


@pytest.mark.parametrize("kind", REGISTERED)
def test_everything_that_is_registered_is_described_and_nothing_else(kind: str) -> None:
    described = pages.listed().get(kind)
    assert described is not None, f"No page has a table below <!-- every: {kind} -->."
    registered = REGISTERED[kind]()
    assert registered, "Nothing is registered: the test looks at nothing."
    assert sorted(registered.keys() - described.keys()) == [], f"Each needs a row: {pages.place_of(kind)}."
    assert sorted(described.keys() - registered.keys()) == [], f"These rows describe nothing: {pages.place_of(kind)}."
    wrong = {name: described[name][0] for name, expected in registered.items() if expected and described[name][0].split()[0] != expected}
    assert wrong == {}, {name: registered[name] for name in wrong}


def test_no_list_is_promised_whole_that_nobody_compares() -> None:
    assert pages.listed().keys() - REGISTERED.keys() == set()


def test_every_row_says_something() -> None:
    silent = [(kind, name) for kind, rows in pages.listed().items() for name, cells in rows.items() if not any(cells)]
    assert silent == []


@pytest.mark.parametrize("name", GENERATED)
def test_what_is_generated_is_up_to_date(name: str) -> None:
    page, _ = GENERATED[name]
    assert page.read_text("utf-8") == renewed(name), "Run `python -m tests.docs.generated`."


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    assert [link for link in links if not leads_somewhere(page, link)] == []


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_is_fenced(page: Path) -> None:
    """An indented block would neither be run nor explain why not."""
    unfenced = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^\n {4}\S.*", unfenced, re.MULTILINE) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_of_ours_that_is_named_is_there(page: Path) -> None:
    """`<name>` stands for something new: then its folder exists."""
    paths = [path.partition("<")[0] for path in NAMED_PATH.findall(page.read_text("utf-8"))]
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_habit_that_is_named_is_one(page: Path) -> None:
    named = {f"make {name}" for name in HABIT.findall(page.read_text("utf-8"))}
    assert named - REGISTERED["make target"]().keys() == set()


def test_every_page_is_found_from_the_first() -> None:
    first = (ROOT / "docs/README.md").read_text("utf-8")
    assert [
        page.name for page in PAGES if page.parent == ROOT / "docs" and page.name != "README.md" and f"]({page.name})" not in first
    ] == []


def test_every_decision_has_its_number_once() -> None:
    numbers = [path.name[:4] for path in (ROOT / "docs/adr").glob("*.md")]
    assert sorted(numbers) == sorted(set(numbers))


def test_the_words_of_the_glossary_are_those_of_the_code() -> None:
    rows = (ROOT / "docs/architecture.md").read_text("utf-8").partition("## Glossary")[2].splitlines()[4:]
    words = [word for row in rows for word in re.findall(r"`(\w+)`", row.rpartition(" | ")[2])]
    folders = ("api", "activities", "engine", "packages", "workers", "workflows")
    sources = "\n".join(path.read_text("utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py"))
    assert len(words) >= len(rows) > 10
    assert [word for word in words if not re.search(rf"^(class )?\s*{word}\b *[(:=]", sources, re.MULTILINE)] == []


@pytest.mark.parametrize(("before", "after"), [("| `a` | 1 |", {"a": ["1"]}), ("| [`POST /a`](#b) | x \\| y |", {"POST /a": ["x | y"]})])
def test_a_row_is_read_by_its_name(before: str, after: dict[str, list[str]]) -> None:
    assert dict(pages.rows_of(f"| | |\n|---|---|\n{before}", "here")) == after


def test_a_row_without_a_name_is_caught() -> None:
    with pytest.raises(ValueError, match="names nothing"):
        list(pages.rows_of("| | |\n|---|---|\n| words | 1 |", "here"))
