"""Reads the pages: complete lists of a kind, and blocks that are run.

A table after `<!-- every: KIND -->` lists everything of that kind. A `bash`, `sh` or `python` block is run (tests/docs/test_blocks.py),
unless `<!-- not run: REASON -->` stands above it. A block whose info string ends with `answer` holds what the block above it prints;
`…` stands for anything.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["DOCS", "LINKED", "PAGES", "ROOT", "Block", "blocks", "listed", "place_of", "rows_of", "runnable"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "packages/toolagent/README.md", *sorted(DOCS.glob("*.md")))

LINKED = (
    *PAGES,
    *sorted(DOCS.glob("adr/*.md")),
    *sorted(DOCS.glob("examples/**/*.md")),
    ROOT / "bench/README.md",
    ROOT / "deploy/README.md",
)
"""Pages whose links are followed; the blocks of examples are run by tests/system/test_examples.py."""

_LIST = re.compile(r"<!-- every: ([\w -]+) -->\n((?:\|[^\n]*\n)+)")
_NAME = re.compile(r"^\[?`([^`]+)`")
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?^```(?P<language>\w+)(?P<more>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """One fenced block. `answer` is its expected output, if the page shows it; `reason` says why it is not run."""

    page: Path
    line: int
    language: str
    text: str
    reason: str | None
    answer: "Block | None" = None

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def listed() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """By kind, the rows of its complete table: the cells after the name, by name.

    Raises ValueError when a kind has two tables, or a row of one no name.
    """
    found: dict[str, dict[str, Sequence[str]]] = {}
    for page in PAGES:
        for kind, table in _LIST.findall(page.read_text("utf-8")):
            if kind in found:
                raise ValueError(f"{page.name}: there is a second table of every {kind}.")
            found[kind] = dict(rows_of(table, f"{page.name}, every {kind}"))
    return found


def place_of(kind: str) -> str:
    """Where the table of a kind is, in words."""
    page = next(page for page in PAGES if f"<!-- every: {kind} -->" in page.read_text("utf-8"))
    return f"{page.relative_to(ROOT)}, below `<!-- every: {kind} -->`"


def blocks(page: Path) -> Sequence[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    found: list[Block] = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        block = Block(page, line, match["language"], match["text"], match["reason"])
        if match["more"].strip() == "answer" and found:
            found[-1] = replace(found[-1], answer=block)
        else:
            found.append(block)
    return found


def runnable(page: Path) -> Sequence[Block]:
    """Blocks in a language that is run."""
    return [block for block in blocks(page) if block.language in {"bash", "sh", "python"}]


def rows_of(table: str, where: str) -> Iterator[tuple[str, Sequence[str]]]:
    """The name in each row of a table, and the cells after it. Raises ValueError, saying `where`, for a row without a name."""
    for row in table.splitlines()[2:]:
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        name = _NAME.match(cells[0])
        if name is None:
            raise ValueError(f"{where}: this row names nothing: {row}")
        yield name[1], cells[1:]
