"""`python -m tests.docs.generated` renews the generated parts of the pages: settings, command line, results of attacks on the sandbox."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from pydantic_core import PydanticUndefined, to_json
from pydantic_settings import BaseSettings

from tests.docs.pages import DOCS, ROOT
from tests.sandbox.held import table
from toolagent.contracts.contract import said_below
from workers.settings.whole import PARTS

__all__ = ["GENERATED", "renewed"]


_DESCRIBED = """
import typer, typer.cli, typer.main
from toolagent.cli.app import app
group = typer.main.get_command(app)
group.commands = {name: outline.loaded() for name, outline in group.commands.items()}
print(typer.cli.get_docs_for_click(obj=group, ctx=typer.Context(group), name="toolagent"))
"""

_COMMON = re.compile(r"^\* `--(url|api-key|help)\b.*(\n|\Z)", re.MULTILINE)
"""Options of nearly every command; the page says them once."""
_NO_OPTIONS = re.compile(r"\*\*Options\*\*:\n\n(?!\*)")


def settings() -> str:
    return "\n\n".join(map(_part, PARTS))


def _part(part: type[BaseSettings]) -> str:
    rows = [
        f"| `TOOL_AGENT_{name.upper()}` | {_default(field.default)} | {said_below(part, name)} |"
        for name, field in part.model_fields.items()
    ]
    title = (part.__doc__ or "").rstrip(".")
    return "\n".join([f"## {title}", "", "| setting | default | what it does |", "|---|---|---|", *rows])


def command_line() -> str:
    """The description by typer, one heading level lower."""
    command = [sys.executable, "-c", _DESCRIBED]
    said = subprocess.run(command, check=True, capture_output=True, text=True, env={"COLUMNS": "120", "PYTHONPATH": str(ROOT)}).stdout
    # A summary that was cut short says nothing that is not said below.
    texts = re.sub(r"\*\*Commands\*\*:\n\n(\* [^\n]*\n)+\n", "", said).replace("```console\n$ ", "```text\n")
    general, *commands = texts.split("\n", 2)[2].strip().split("\n## ")
    return "\n## ".join([general, *(_NO_OPTIONS.sub("", _COMMON.sub("", command)) for command in commands)]).strip()


def _default(value: object) -> str:
    match value:
        case None:
            return "unset"
        case "" | ():
            return "empty"
        case tuple():
            return f"`{', '.join(map(str, cast('tuple[object, ...]', value)))}`"
        case dict():
            return f"`{to_json(value).decode()}`"
        case bool():
            return f"`{str(value).lower()}`"
        case _ if value is PydanticUndefined:
            raise ValueError("A setting has no default.")
        case _:
            return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


GENERATED: Mapping[str, tuple[Path, Callable[[], str]]] = {
    "settings": (DOCS / "settings.md", settings),
    "command line": (DOCS / "cli.md", command_line),
    "attempts": (DOCS / "isolation.md", table),
}
"""What stands between `<!-- generated: NAME -->` and `<!-- end -->`."""


def renewed(name: str) -> str:
    """The page as it should be. Raises ValueError when it has no place for it."""
    page, make = GENERATED[name]
    before, mark, rest = page.read_text("utf-8").partition(f"<!-- generated: {name} -->\n")
    _, end, after = rest.partition("\n<!-- end -->")
    if not mark or not end:
        raise ValueError(f"{page.name} has no <!-- generated: {name} --> … <!-- end -->.")
    return f"{before}{mark}\n{make()}\n{end}{after}"


if __name__ == "__main__":
    for name, (page, _) in GENERATED.items():
        page.write_text(renewed(name), "utf-8")
        sys.stdout.write(f"Written: {page.relative_to(ROOT)}\n")
