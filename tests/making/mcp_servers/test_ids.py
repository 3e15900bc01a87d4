"""Ids of the tools of an MCP server, whatever their names are."""

from hypothesis import given
from hypothesis import strategies as st

from engine.making.mcp_servers.building import words_of


def test_names_that_read_the_same_get_numbers_that_no_other_has() -> None:
    assert words_of(["a_2", "a", "A", "a!", "", "?"]) == ["a_2", "a", "a_3", "a_4", "tool", "tool_2"]


@given(st.lists(st.text(alphabet="aA_2 !", max_size=6), max_size=30))
def test_ids_are_as_many_as_names_and_each_is_there_once(names: list[str]) -> None:
    found = words_of(names)
    assert len(found) == len(names) == len(set(found))
