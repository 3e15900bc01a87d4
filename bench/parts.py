"""What a stack of our service was busy with: the innermost of its frames that belongs to a part says so."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

RUST, SERVER = "Temporal's Rust threads", "Temporal's server, not in the sum"
_TEMPORALIO, _CONVERSION = "temporalio's Python", "payload conversion"
_STORE, _AIOSQLITE = "SQLAlchemy and our store", "aiosqlite and its thread hops"
_FRONT, _PYDANTIC = "uvicorn, FastAPI, our middlewares", "pydantic, jsonschema"
_RULES, _REST = "our rules", "event loop, futures, the rest"
_IN_ORDER: Sequence[str] = (_TEMPORALIO, _CONVERSION, _STORE, _AIOSQLITE, _FRONT, _PYDANTIC, _RULES, _REST)

_FOLDERS: Mapping[str, str] = {
    "temporalio/": _TEMPORALIO,
    "temporalio/converter": _CONVERSION,
    "temporalio/contrib/pydantic": _CONVERSION,
    "temporalio/bridge/_visitor": _CONVERSION,
    "google/protobuf/": _CONVERSION,
    "toolagent/client/converter": _CONVERSION,
    "sqlalchemy/": _STORE,
    "asyncpg/": _STORE,
    "engine/store/": _STORE,
    "aiosqlite/": _AIOSQLITE,
    "uvicorn/": _FRONT,
    "fastapi/": _FRONT,
    "starlette/": _FRONT,
    "api/": _FRONT,
    "api/client/": _RULES,
    "pydantic/": _PYDANTIC,
    "toolagent/core/schemas": _PYDANTIC,
    "activities/": _RULES,
    "engine/": _RULES,
    "toolagent/": _RULES,
    "toolagent_service/": _RULES,
    "workers/": _RULES,
    "workflows/": _RULES,
    "asyncio/": _REST,
    "concurrent/": _REST,
    "threading.py": _REST,
}
"""What is in none of them, as most of the standard library, works for whoever has called it."""

_LONGEST_FIRST = sorted(_FOLDERS, key=len, reverse=True)
_THREAD = re.compile(r"thread \((\d+)\)")
_FILE = re.compile(r"\((.+?)(?::\d+)?\)$")


def parts_of(lines: Iterable[str], seconds: Mapping[int, float]) -> dict[str, float]:
    """The seconds of each thread, shared out by how often its stacks were seen.

    A line is a stack as py-spy writes it: the thread, its frames from the outermost to the innermost, and how often.
    """
    seen: dict[int, Counter[str]] = defaultdict(Counter)
    for line in lines:
        stack, _, times = line.rpartition(" ")
        first, *frames = stack.split(";")
        if (thread := _THREAD.match(first)) and frames and times.isdigit():
            seen[int(thread[1])][part_of(frames)] += int(times)
    parts = dict.fromkeys(_IN_ORDER, 0.0)
    for thread, used in seconds.items():
        of_thread = seen.get(thread) or Counter({_REST: 1})
        for part, times in of_thread.items():
            parts[part] += used * times / of_thread.total()
    return parts


def part_of(frames: Sequence[str]) -> str:
    """From the outermost to the innermost, each `name (file:line)`."""
    known = [part for frame in reversed(frames) if (part := _part_of_file(frame)) is not None]
    if not known:
        return _REST
    # What converts a payload leaves the work to pydantic.
    callers = [part for part in known if part != _PYDANTIC]
    return _CONVERSION if known[0] == _PYDANTIC and callers[:1] == [_CONVERSION] else known[0]


def _part_of_file(frame: str) -> str | None:
    file = found[1] if (found := _FILE.search(frame)) else ""
    return next((_FOLDERS[folder] for folder in _LONGEST_FIRST if file.startswith(folder)), None)
