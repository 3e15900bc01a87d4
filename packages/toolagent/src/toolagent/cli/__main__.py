"""The console script, which is also installed without the extra `cli`."""

import sys
from importlib import import_module
from io import TextIOWrapper

__all__ = ["main"]

_WRONG_USAGE = 2


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character still shows the rest.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app = import_module("toolagent.cli.app").app
    except ModuleNotFoundError as error:
        remedy = import_module("toolagent.extras").remedy_of("cli")
        sys.stderr.write(f"The command toolagent needs {error.name}. {remedy}\n")
        sys.exit(_WRONG_USAGE)
    app(prog_name="toolagent")


if __name__ == "__main__":
    main()
