"""`python -m tool_agent`: everything in one process, as `python -m workers up`; what follows is passed on."""

import sys

from workers.__main__ import main

__all__ = ["started_by_name"]


def started_by_name(arguments: list[str]) -> int:
    """Returns the exit code."""
    return main(arguments or ["up"])


if __name__ == "__main__":
    sys.exit(started_by_name(sys.argv[1:]))
