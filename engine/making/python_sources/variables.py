"""Finds the variables of a repository's app: from its examples, its settings classes and the task."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath

from engine.making.python_sources.settings_classes import required_variables
from engine.making.repositories.asides import is_aside
from engine.making.repositories.trees import Tree
from toolagent.contracts.identifiers import OWNED_VARIABLES
from toolagent.contracts.making import Candidate
from toolagent.contracts.sources import ToolSource

_EXAMPLES = (
    *(".env.example", ".env.sample", ".env.template", ".env.dist", "env.example", "example.env", ".env.local.example"),
    *(".env-example", ".env_example", ".env-sample", ".env_sample", "env.sample", "sample.env", "env.template"),
)
_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]{0,127})[ \t]*=(.*)")
_REFERENCE = "secret:"
"""Only a request may name secrets of this host, not a repository."""
_PLACEHOLDER = re.compile(r"your[-_ ]|<.*>|\bx{3,}|\.\.\.$|change[-_]?me|replace[-_]|\[.*\]|_here\b|\$\{", re.IGNORECASE)
_DATABASE = re.compile(r"(?:^|_)(?:DATABASE|DB)_(?:URL|URI|DSN)$|^SQLALCHEMY_DATABASE_UR[IL]$", re.IGNORECASE)
_SERVED = re.compile(r"(?:postgres(?:ql)?|mysql|mariadb|mssql|oracle|cockroachdb)(\+\w+)?://", re.IGNORECASE)
_ASKED = re.compile(r"(?:getenv|environ\.get)\(\s*[\"'](\w+)[\"']\s*,\s*[\"']([^\"']*)[\"']")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_TAKES_ANY = re.compile(
    r"^[ \t]*(?:from|import)[ \t]+"
    r"(?:advanced_alchemy|databases|dj_database_url|environ|flask_sqlalchemy|ormar|playhouse|sqlalchemy|sqlmodel|tortoise)\b",
    re.MULTILINE,
)
"""Packages that accept an address of SQLite as well as one of a server. Drivers of PostgreSQL do not."""
_ASYNC = re.compile(r"\+(?:asyncpg|aiomysql|asyncmy|psycopg_async)\b")
_TRANSPORT = re.compile(r"(?:^|_)TRANSPORT(?:_TYPE|_MODE)?=(?:https?|sse|streamable[-_]?http)$", re.IGNORECASE)
_OURS = ("TOOL_AGENT_", "LD_")
_MOST_READ = 2_000
_MOST = 100
_LONGEST = 2_000
_OFFERED = ": a database of its own is used (SQLite in its home folder); give another in `env`."
_USUAL, _SQLITE = "DATABASE_URL", "app.db"


@dataclass(frozen=True, slots=True)
class Variables:
    """`values` are what the app runs with. It does not start without `required` ones; `missing` ones are named and have no value.

    `notes` tell about chosen values.
    """

    values: Mapping[str, str] = field(default_factory=dict[str, str])
    required: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def variables_for(
    tree: Tree, folder: PurePosixPath, given: Mapping[str, str], *, beside: PurePosixPath | None = None, is_python: bool = True
) -> Variables:
    """`given` values win; then defaults of examples, first of the example `beside` the modules.

    A database variable gets an SQLite address of SQLAlchemy, if the Python code can use one. Blocks.
    """
    offers = is_python and any(_TAKES_ANY.search(text) for text in _texts(tree, folder))
    values: dict[str, str] = {}
    served: dict[str, str] = {}
    missing: list[str] = []
    notes: list[str] = []
    for name, value in _of_examples(tree, (beside or folder, folder, PurePosixPath())):
        if name in given or name in values:
            continue
        if _TRANSPORT.search(f"{name}={value}"):  # MCP servers are first tried on stdin and stdout
            notes.append(f"{name}: its default is taken, not {value!r} of the example; give another in `env`.")
        elif offers and _DATABASE.search(name) and (not value or _SERVED.match(value)):
            values[name] = _sqlite(name, value, served)
            notes.append(name + _OFFERED)
        elif value and _REFERENCE not in value.lower() and not _PLACEHOLDER.search(value):
            values[name] = value
        else:
            missing.append(name)
    known = {name.upper() for name in (*given, *values)}
    needed = [one.name for one in required_variables(lambda: _texts(tree, folder)) if not one.is_in(known)]
    asked = dict.fromkeys((name for name in needed if _DATABASE.search(name)), "") | _databases(tree, folder, {*given, *values})
    for name, default in asked.items() if offers else ():
        if not _is_ours(name) and _NAME.fullmatch(name):
            values[name] = _sqlite(name, default, served)
            notes.append(name + _OFFERED)
    required = tuple(name for name in needed if name not in values)
    left = tuple(name for name in dict.fromkeys(missing) if name not in required and name not in values)
    return Variables({**values, **given}, required, left, tuple(dict.fromkeys(notes)))


def with_environment(candidate: Candidate, values: Mapping[str, str]) -> Candidate:
    """The candidate with these variables in its sources; the sources' own values win."""
    entries = tuple(
        entry.model_copy(update={"sources": tuple(_given(source, values) for source in entry.sources)}) for entry in candidate.entries
    )
    return candidate.model_copy(update={"entries": entries}) if values else candidate


def _given(source: ToolSource, values: Mapping[str, str]) -> ToolSource:
    own: Mapping[str, str] | None = getattr(source, "environment", None)
    return source if own is None else source.model_copy(update={"environment": {**values, **own}})


def _of_examples(tree: Tree, places: Iterable[PurePosixPath]) -> Iterator[tuple[str, str]]:
    """Variables and values from one example file in each place."""
    for place in dict.fromkeys(places):
        found = next((place / name for name in _EXAMPLES if tree.has(place / name)), None)
        lines = (tree.text(found) or "").splitlines() if found is not None else []
        short = (line.strip() for line in lines if len(line) <= _LONGEST)
        pairs = (line for line in map(_LINE.fullmatch, short) if line is not None and not _is_ours(line[1]))
        for line in islice(pairs, _MOST):
            yield line[1], _plain(line[2])[:_LONGEST]


def _plain(text: str) -> str:
    text = text.strip()
    if text[:1] in ("'", '"') and text.endswith(text[0]) and len(text) > 1:
        return text[1:-1]
    return "" if text.startswith("#") else text.partition(" #")[0].partition("\t#")[0].strip()


def _is_ours(name: str) -> bool:
    return name.upper() in OWNED_VARIABLES or name.startswith(_OURS)


def _sqlite(name: str, asked: str, served: dict[str, str]) -> str:
    """An address with a file for each variable, because two variables may be two databases, even if an example gives both one address.

    But one address for an asynchronous and a synchronous driver is one database. `served` has files by driver and address that may
    still be joined.
    """
    is_async = _ASYNC.search(asked) is not None
    _, _, address = asked.partition("://")
    file = served.pop(f"{not is_async} {address}", "")
    if not file:
        file = _SQLITE if name == _USUAL else f"{name}.db"
        if address:
            served.setdefault(f"{is_async} {address}", file)
    return f"sqlite{'+aiosqlite' if is_async else ''}:////home/tool/{file}"


def _databases(tree: Tree, folder: PurePosixPath, known: Collection[str]) -> dict[str, str]:
    """Variables from which the code reads a database address, with a server's address as default."""
    asked = (pair for text in _texts(tree, folder) for pair in _ASKED.findall(text))
    return {name: default for name, default in asked if name not in known and _DATABASE.search(name) and _SERVED.match(default)}


def _texts(tree: Tree, folder: PurePosixPath) -> Iterator[str]:
    found = (path for path in tree.files if path.suffix == ".py" and path.is_relative_to(folder) and not is_aside(path.as_posix()))
    yield from (tree.text(path) or "" for path in islice(found, _MOST_READ))
