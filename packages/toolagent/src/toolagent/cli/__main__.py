"""The console script, which is also installed without the extra `cli`."""

import os
import sys
from importlib import import_module
from io import TextIOWrapper

__all__ = ["main"]

_WRONG_USAGE = 2


def main() -> None:
    # Python has no stream where the caller closed it (`>&-`), and the next file or connection would take its number.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
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
    try:
        app(prog_name="toolagent")
    except SystemExit as end:
        # A reader that left (`| head`) is no failure, unless one was being told; typer exits with 1.
        if not isinstance(end.__context__, BrokenPipeError) or end.__context__.__context__ is not None:
            raise


if __name__ == "__main__":
    main()
