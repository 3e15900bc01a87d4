"""How a login at an MCP server ended, for the person at the browser."""

from toolagent.contracts.contract import Contract


class LoginEnd(Contract):
    """`said` is plain text."""

    is_done: bool
    said: str
