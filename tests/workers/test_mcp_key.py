"""The key of the state that MCP clients keep for the service."""

from pathlib import Path

import pytest

from workers.failures import CannotRun
from workers.state.mcp_key import state_key_of
from workers.state.secrets import SecretSource


def test_a_key_is_made_once(tmp_path: Path) -> None:
    made = state_key_of(SecretSource({}, tmp_path / "secrets"))
    assert (state_key_of(SecretSource({}, tmp_path / "secrets")), len(made)) == (made, 64)


def test_a_key_that_is_too_short_is_named_with_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"TOOL_AGENT_SECRET_MCP_STATE_KEY has 8 characters; it needs 32"):
        state_key_of(SecretSource({"TOOL_AGENT_SECRET_MCP_STATE_KEY": "shortkey"}, tmp_path / "secrets"))
