"""Our names of the tools of a server."""

import re

from engine.mcp_servers.looking import tool_ids_of
from toolagent.contracts.identifiers import TOOL_ID_PATTERN


def test_ids_begin_with_the_prefix_and_keep_what_they_may() -> None:
    assert tool_ids_of("fs", ["read_file", "get-sum"]) == {"read_file": "fs_read_file", "get-sum": "fs_get-sum"}
    assert tool_ids_of("", ["read_file"]) == {"read_file": "read_file"}


def test_what_is_no_id_is_made_one() -> None:
    ids = tool_ids_of("s", ["searchRepos", "Web Search!", "a.b/c", "9lives"])
    assert [*ids.values()] == ["s_search_repos", "s_web_search", "s_a_b_c", "s_9lives"]
    assert tool_ids_of("", ["9lives"]) == {"9lives": "t_9lives"}


def test_a_name_without_a_letter_is_told_by_its_digest() -> None:
    ids = tool_ids_of("s", ["天气", "搜索"])
    assert len({*ids.values()}) == 2
    assert all(re.fullmatch(r"s_tool_[0-9a-f]{8}", one) for one in ids.values())


def test_of_names_that_make_one_id_that_which_is_it_keeps_it_and_the_order_does_not_matter() -> None:
    ids = tool_ids_of("s", ["a.b", "a_b", "a b"])
    assert ids["a_b"] == "s_a_b"
    assert re.fullmatch(r"s_a_b_[0-9a-f]{8}", ids["a.b"])
    assert tool_ids_of("s", ["a b", "a_b", "a.b"]) == ids


def test_long_names_are_cut_and_stay_apart() -> None:
    ids = tool_ids_of("s", ["x" * 200, "x" * 201])
    assert len({*ids.values()}) == 2
    assert all(len(one) <= 128 and re.fullmatch(TOOL_ID_PATTERN, one) for one in ids.values())
