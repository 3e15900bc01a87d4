"""The docstring below a field of a contract describes it in schemas."""

import runpy
from pathlib import Path
from typing import Annotated

from pydantic import Field

from toolagent.contracts.contract import Contract


class Described(Contract):
    one: int
    """Of the first."""
    other: Annotated[str, Field(alias="anOther")] = ""
    """Under its
    other name."""
    said: Annotated[int, Field(description="Said itself.")] = 0
    """Not read."""
    silent: int = 0


class Heir(Described):
    one: int
    other: Annotated[str, Field(alias="anOther")] = ""
    """Declared anew."""
    inner: Described
    """Of a model."""


def test_what_stands_below_a_field_is_its_description() -> None:
    described = {name: about.get("description") for name, about in Described.model_json_schema()["properties"].items()}
    assert described == {"one": "Of the first.", "anOther": "Under its\nother name.", "said": "Said itself.", "silent": None}
    inherited = {name: about.get("description") for name, about in Heir.model_json_schema()["properties"].items()}
    assert inherited == {"one": None, "anOther": "Declared anew.", "said": "Said itself.", "silent": None, "inner": "Of a model."}
    assert Heir.model_json_schema(by_alias=False)["properties"]["other"]["description"] == "Declared anew."


def test_a_module_that_python_does_not_keep_has_no_descriptions(tmp_path: Path) -> None:
    """Such as scripts run by `runpy`, and plug-ins loaded from a file."""
    text = 'from toolagent.contracts.contract import Contract\nclass Loaded(Contract):\n    one: int\n    """Not read."""\n'
    (tmp_path / "loaded.py").write_text(text)
    loaded = runpy.run_path(str(tmp_path / "loaded.py"), run_name="loaded_and_gone")["Loaded"]
    assert loaded.model_json_schema()["properties"] == {"one": {"title": "One", "type": "integer"}}
