"""What stopped each attempt when it was last recorded: `python -m tests.sandbox.held [COLUMN…]` makes them all and writes it anew."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.sandbox.abuse import Verdict
from tests.sandbox.attempts import ATTEMPTS, GROUPS
from tests.sandbox.columns import COLUMNS, verdicts

__all__ = ["record", "table"]

_FILE = Path(__file__).with_name("held.json")


def record() -> Mapping[str, Mapping[str, Verdict]]:
    """By column and name of the attempt."""
    if not _FILE.is_file():
        return {}
    said: Mapping[str, Mapping[str, tuple[bool, str]]] = json.loads(_FILE.read_text("utf-8"))
    return {column: {name: Verdict(*verdict) for name, verdict in rows.items()} for column, rows in said.items()}


def table() -> str:
    """What the page about security says."""
    seen = record()
    lines = [
        f"| attempt | {' | '.join(column.title for column in COLUMNS.values())} |",
        f"|---|{'---|' * len(COLUMNS)}",
    ]
    for group, attempts in GROUPS.items():
        lines.append(f"| **{group}** |{' |' * len(COLUMNS)}")
        for attempt in attempts:
            cells = (_cell(seen.get(column, {}).get(attempt.name)) for column in COLUMNS)
            lines.append(f"| {attempt.name} | {' | '.join(cells)} |")
    counts = (f"{sum(verdict.held for verdict in seen.get(column, {}).values())} of {len(seen.get(column, {}))}" for column in COLUMNS)
    lines.append(f"| **held** | {' | '.join(counts)} |")
    return "\n".join(lines)


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "not tried"
    text = verdict.by.replace("|", "/")
    return text if verdict.held else f"**not held**: {text}"


async def _recorded(columns: tuple[str, ...]) -> None:
    seen = dict(record())
    for name in columns or tuple(COLUMNS):
        found = await verdicts(COLUMNS[name])
        seen[name] = {attempt: found[attempt] for attempt in ATTEMPTS}
        held = sum(verdict.held for verdict in found.values())
        sys.stdout.write(f"{name}: {held} of {len(found)} held\n")
    said = {
        column: {attempt: [verdict.held, verdict.by] for attempt, verdict in seen[column].items()} for column in COLUMNS if column in seen
    }
    _FILE.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    asyncio.run(_recorded(tuple(sys.argv[1:])))
