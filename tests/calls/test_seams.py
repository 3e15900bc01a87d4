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
    files = sorted({found.name for found in iter_modules(path)} - {shared})
    names = {file: getattr(import_module(f"{module}.{file}"), name).name for file in files}
    assert {file: called for file, called in names.items() if called != file} == {}, f"The name of a {name} is that of its file."
    assert [file for file in files if file not in listed] == [], f"Each needs a line in {module.replace('.', '/')}/__init__.py."
    assert sorted(listed) == files


def test_the_tables_of_the_docs_say_the_order_and_what_each_may_answer() -> None:
    rows = [f"| `{check.name}` | {check.reads} | {', '.join(f'`{kind.value}`' for kind in check.refuses_with)} |" for check in CHECKS]
    rows_of_effects = [f"| `{effect.name}` | {effect.does} |" for effect in EFFECTS]
    for head, listed in (("| check | looks at | refuses with |\n|---|---|---|\n", rows), ("| effect | |\n|---|---|\n", rows_of_effects)):
        shown = DOCS.partition(head)[2].partition("\n\n")[0].splitlines()
        assert shown == listed, "The rows of the table of docs/calls.md are those on the right, in their order."


def test_the_table_of_the_docs_says_which_calls_take_no_lane() -> None:
    assert "\n".join(f"| `{reason.name}` | {reason.says} |" for reason in REASONS) in DOCS
