"""Calls one function of a script: `python python_entry.py SCRIPT FUNCTION`, parameters as JSON on stdin, its result as JSON on stdout.

Runs inside the sandbox, on the standard library alone. What the function prints goes to stderr.
"""

import asyncio
import importlib.util
import inspect
import json
import os
import sys
from typing import Any


def main() -> None:
    _, script, name = sys.argv
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    params = json.load(sys.stdin)
    found = _load(script)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        sys.exit(f"There is no function {name!r} in {os.path.basename(script)}.")  # noqa: PTH119 - pathlib costs 10 ms
    result = found(**params)
    if inspect.isawaitable(result):
        result = asyncio.run(_awaited(result))
    text = json.dumps(result, allow_nan=False)
    sys.stdout.flush()
    with answers:
        answers.write(text)


def _load(script: str) -> Any:
    sys.path[0] = os.path.dirname(script)  # noqa: PTH120 - as when the script itself is run
    sys.argv = [script]
    spec = importlib.util.spec_from_file_location("script", script)
    if spec is None or spec.loader is None:
        sys.exit(f"{script} is no Python module: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules["script"] = module
    spec.loader.exec_module(module)
    return module


async def _awaited(result: Any) -> Any:
    return await result


if __name__ == "__main__":
    main()
