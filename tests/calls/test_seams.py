"""The checks and effects of calls are lists of files: each file has its line, and each line its row in the docs."""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from engine.calls import checks, effects
from engine.calls.checks import CHECKS
from engine.calls.effects import EFFECTS
from toolagent_service.calls.ways import REASONS

DOCS = (Path(__file__).parents[2] / "docs" / "calls.md").read_text()


@pytest.mark.parametrize(
    ("package", "name", "shared", "listed"),
    [(checks, "CHECK", "asked", [check.name for check in CHECKS]), (effects, "EFFECT", "ended", [effect.name for effect in EFFECTS])],
)
def test_each_file_has_its_line_in_the_list(package: object, name: str, shared: str, listed: list[str]) -> None:
    path, module = getattr(package, "__path__"), getattr(package, "__name__")  # noqa: B009 - of a module
    files = {found.name for found in iter_modules(path)} - {shared}
    assert {getattr(import_module(f"{module}.{file}"), name).name for file in files} == set(listed)
    assert files == set(listed)


def test_the_tables_of_the_docs_say_the_order_and_what_each_may_answer() -> None:
    rows = [f"| `{check.name}` | {check.reads} | {', '.join(f'`{kind.value}`' for kind in check.refuses_with)} |" for check in CHECKS]
    rows_of_effects = [f"| `{effect.name}` | {effect.does} |" for effect in EFFECTS]
    assert [row for row in (*rows, *rows_of_effects) if row not in DOCS] == [], "Rows that docs/calls.md has not."
    for table in (rows, rows_of_effects):
        assert "\n".join(table) in DOCS, "The rows of docs/calls.md are not in the order of the list."


def test_the_table_of_the_docs_says_which_calls_take_no_lane() -> None:
    assert "\n".join(f"| `{reason.name}` | {reason.says} |" for reason in REASONS) in DOCS
