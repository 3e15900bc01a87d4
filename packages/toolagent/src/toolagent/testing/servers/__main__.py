"""Runs the servers for tests: `python -m toolagent.testing.servers`.

It is also installed without the extra `testing`, and then names that.
"""

import sys
from importlib import import_module

from toolagent.extras import remedy_of

_WRONG_USAGE = 2

try:
    app = import_module("toolagent.testing.servers.command_line").app
except ModuleNotFoundError as error:
    sys.stderr.write(f"The servers for tests need {error.name}. {remedy_of('testing')}\n")
    sys.exit(_WRONG_USAGE)
app(prog_name="python -m toolagent.testing.servers")
