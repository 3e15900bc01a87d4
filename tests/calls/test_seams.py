"""What surrounds a call is a list: what has no line in it would never be asked, and what the docs do not name nobody knows."""

from collections.abc import Callable
from inspect import iscoroutinefunction, signature
from pathlib import Path
from types import ModuleType

import pytest

from engine.calls import checks, effects
from engine.calls.checks import CHECKS, Check
from engine.calls.effects import EFFECTS, Effect

DOCS = (Path(__file__).parents[2] / "docs" / "calls.md").read_text()


@pytest.mark.parametrize(("module", "listed"), [(checks, CHECKS), (effects, EFFECTS)])
def test_each_check_and_each_effect_has_its_line(module: ModuleType, listed: tuple[Check | Effect, ...]) -> None:
    """A function of this form that no line names would never be called."""
    alike = {
        name
        for name, found in vars(module).items()
        if name[0] == "_" and iscoroutinefunction(found) and _form(found) == _form(listed[0].run)
    }
    assert alike == {one.run.__name__ for one in listed}
    assert [one.run.__name__.lstrip("_") for one in CHECKS] == [one.name for one in CHECKS]


def _form(function: Callable[..., object]) -> list[object]:
    return [parameter.annotation for parameter in signature(function).parameters.values()]


def test_the_tables_of_the_docs_say_the_order_and_what_each_may_answer() -> None:
    rows = [f"| `{check.name}` | {check.reads} | {', '.join(f'`{kind.value}`' for kind in check.refuses_with)} |" for check in CHECKS]
    assert "\n".join(rows) in DOCS
    assert "\n".join(f"| `{effect.name}` | {effect.does} |" for effect in EFFECTS) in DOCS
