"""The console script, which is installed without the extra too."""

import sys
from importlib import import_module
from io import TextIOWrapper

__all__ = ["main"]


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character still shows the rest.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        import_module("toolagent.cli.app").app(prog_name="toolagent")
    except ModuleNotFoundError as error:
        sys.exit(f"The command toolagent needs {error.name}. Install toolagent[cli].")


if __name__ == "__main__":
    main()
