"""The lists of each form, as entries of the catalog."""

import pytest
from pydantic import JsonValue

from engine.external.entries import MOST_TOOLS, Table
from engine.external.forms import FORMS, tool_agent
from toolagent.contracts.external_tables import LeftOutTool, TableForm
from toolagent.core.failures import TableRefusedError


def test_tools_that_another_tool_agent_has_from_a_table_are_left_out() -> None:
    listing = tool_agent.read(
        {"tools": [{"tool_id": "echo", "external_source": None}, {"tool_id": "far:echo", "external_source": "far"}]},
        Table("near", "https://a.example/tools", "https://a.example/tools"),
    )
    assert [entry.manifest.tool_id for entry in listing.entries] == ["near:echo"]
    assert listing.left_out == (LeftOutTool(entry="far:echo", reason="It is a tool of another table; register that one."),)


def test_entries_that_do_not_say_which_tool_they_are_are_told_also_where_schemas_come_from_elsewhere() -> None:
    document = tool_agent.merged({"tools": [{"name": "Nameless"}, {"tool_id": "echo"}, "echo", {"tool_id": ""}]}, {"tools": []})
    listing = tool_agent.read(document, Table("near", "https://a.example/tools", "https://a.example/tools"))
    assert [entry.manifest.tool_id for entry in listing.entries] == ["near:echo"]
    assert listing.left_out == tuple(LeftOutTool(entry=f"tools[{at}]", reason="It has no `tool_id`.") for at in (0, 2, 3))


@pytest.mark.parametrize(
    ("form", "document"),
    [
        (TableForm.KNOWHUB, [{"id": "tools/a/same"}] * (MOST_TOOLS + 1)),
        (TableForm.TOOL_AGENT, {"tools": [{"tool_id": "same"}] * (MOST_TOOLS + 1)}),
    ],
)
def test_a_list_that_is_too_long_is_refused_before_anything_is_made_of_it(form: TableForm, document: JsonValue) -> None:
    with pytest.raises(TableRefusedError, match="2001 tools; at most 2000"):
        FORMS[form][1](document, Table("x", "https://a.example", "https://a.example"))
