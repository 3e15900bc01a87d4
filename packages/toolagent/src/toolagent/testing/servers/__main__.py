"""`python -m toolagent.testing.servers`."""

from toolagent.testing.servers.command_line import app

app(prog_name="python -m toolagent.testing.servers")
