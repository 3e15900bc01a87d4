"""What stopped each attempt in the last record: `python -m tests.sandbox.held [COLUMN…]` makes all of them and records it."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.sandbox.levels import confine
from tests.sandbox.abuse import Verdict
from tests.sandbox.attempts import ATTEMPTS, GROUPS
from tests.sandbox.columns import COLUMNS, CONTROL, verdicts

__all__ = ["Record", "record", "table"]

_FILE = Path(__file__).with_name("held.json")
_NONE = "none"
_USERS = {True: "root", False: "ordinary user"}


@dataclass(frozen=True, slots=True)
class Record:
    """Verdicts by column and attempt; `control` are those without a sandbox. `landlock` is the kernel's version of it."""

    landlock: int
    columns: Mapping[str, Mapping[str, Verdict]]

    @property
    def control(self) -> Mapping[str, Verdict]:
        return self.columns.get(_NONE, {})

    def tells(self, name: str) -> bool:
        """Whether only a sandbox stops the attempt; also true for harmful ones, which are not tried without one."""
        return name not in self.control or not self.control[name].held


def record() -> Record:
    if not _FILE.is_file():
        return Record(confine.abi(), {})
    said = json.loads(_FILE.read_text("utf-8"))
    columns: Mapping[str, Mapping[str, tuple[bool, str]]] = said["columns"]
    return Record(
        said["landlock"], {column: {name: Verdict(*verdict) for name, verdict in rows.items()} for column, rows in columns.items()}
    )


def table() -> str:
    """For docs/isolation.md: a row for each attempt that only a sandbox stops, a column for each level; the others are only named."""
    seen = record()
    levels = [str(level) for level in dict.fromkeys(column.level for column in COLUMNS.values())]
    succeed, harmful = sum(not verdict.held for verdict in seen.control.values()), len(ATTEMPTS) - len(seen.control)
    silent = {group: [attempt.name for attempt in attempts if not seen.tells(attempt.name)] for group, attempts in GROUPS.items()}
    lines = [
        f"Of {len(ATTEMPTS)} attempts {succeed} succeed without a sandbox. Another {harmful}, marked †, were not made without one, because",
        f"they would exhaust the machine or end its programs. The other {sum(map(len, silent.values()))} fail without a sandbox too:",
        "they say nothing about it and are only listed below the table.",
        "",
        f"| attempt | {' | '.join(levels)} |",
        f"|---|{'---|' * len(levels)}",
    ]
    for group, attempts in GROUPS.items():
        lines.append(f"| **{group}** |{' |' * len(levels)}")
        lines += [_row(seen, levels, attempt.name) for attempt in attempts if seen.tells(attempt.name)]
    counts = (_by_user(level, {column: _count(seen, column) for column in COLUMNS}) for level in levels)
    lines += [f"| **held** | {' | '.join(counts)} |", "", "These fail without a sandbox too, on this machine:", ""]
    lines += [f"- {group}: {'; '.join(names)}." for group, names in silent.items() if names]
    return "\n".join(lines)


def _row(seen: Record, levels: Sequence[str], name: str) -> str:
    cells = {column: _cell(seen.columns.get(column, {}).get(name)) for column in COLUMNS}
    title = name if name in seen.control else f"{name} †"
    return f"| {title} | {' | '.join(_by_user(level, cells) for level in levels)} |"


def _by_user(level: str, cells: Mapping[str, str]) -> str:
    """The columns of a level, merged if all are equal."""
    told = {_USERS[column.uid == 0]: cells[name] for name, column in COLUMNS.items() if column.level == level}
    first, *others = told.values()
    return first if {*others} <= {first} else "; ".join(f"{user}: {cell}" for user, cell in told.items())


def _count(seen: Record, column: str) -> str:
    telling = [verdict for name, verdict in seen.columns.get(column, {}).items() if seen.tells(name)]
    return f"{sum(verdict.held for verdict in telling)} of {len(telling)}"


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "not tried"
    text = verdict.by.replace("|", "/")
    return text if verdict.held else f"**not held**: {text}"


async def _recorded(columns: tuple[str, ...]) -> None:
    for name in columns or (*COLUMNS, _NONE):
        found = await verdicts(COLUMNS.get(name, CONTROL))
        held = sum(verdict.held for verdict in found.values())
        sys.stdout.write(f"{name}: {held} of {len(found)} held\n")
        sys.stdout.flush()
        _write(name, {attempt: found[attempt] for attempt in ATTEMPTS if attempt in found})


def _write(column: str, found: Mapping[str, Verdict]) -> None:
    seen = {**record().columns, column: found}
    said = {name: {attempt: _told(name, verdict) for attempt, verdict in seen[name].items()} for name in (*COLUMNS, _NONE) if name in seen}
    _FILE.write_text(json.dumps({"landlock": confine.abi(), "columns": said}, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _told(column: str, verdict: Verdict) -> tuple[bool, str]:
    # How something succeeds without a sandbox tells of this machine's paths and processes.
    return verdict.held, verdict.by if verdict.held or column != _NONE else "succeeds"


if __name__ == "__main__":
    asyncio.run(_recorded(tuple(sys.argv[1:])))
