"""What becomes of the lists of each form."""

from engine.external.entries import Table
from engine.external.forms import tool_agent
from toolagent.contracts.external_tables import LeftOutTool


def test_tools_that_another_tool_agent_has_from_a_table_are_left_out() -> None:
    listing = tool_agent.read(
        {"tools": [{"tool_id": "echo", "external_source": None}, {"tool_id": "far:echo", "external_source": "far"}]},
        Table("near", "https://a.example/tools"),
    )
    assert [entry.manifest.tool_id for entry in listing.entries] == ["near:echo"]
    assert listing.left_out == (LeftOutTool(entry="far:echo", reason="It is a tool of another table; register that one."),)
