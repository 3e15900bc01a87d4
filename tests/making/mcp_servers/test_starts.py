"""Which commands may start the MCP server of a repository."""

from engine.making.mcp_servers.launchers import Start, starts_of


def test_a_script_that_is_a_file_names_no_module_to_start() -> None:
    scripts = {"a-mcp": "bin/a-mcp", "serve": "notes.cli:main"}
    assert starts_of((*scripts,), scripts, ()) == (Start("script", "serve", "notes.cli:main"),)
