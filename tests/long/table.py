"""The results of the long tests as a table in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Row", "markdown"]


@dataclass(frozen=True, slots=True)
class Row:
    """A test, its duration with its fixtures, and its result."""

    test: str
    seconds: float
    outcome: str


def markdown(rows: Sequence[Row], about: Mapping[str, str]) -> str:
    held = sum(row.outcome == "passed" for row in rows)
    lines = ["# Long tests", "", *(f"- {name}: {value}" for name, value in about.items()), f"- held: {held} of {len(rows)}", ""]
    lines += ["| test | seconds | held |", "|---|---:|---|"]
    lines += [f"| `{row.test}` | {row.seconds:.0f} | {'yes' if row.outcome == 'passed' else f'**NO** ({row.outcome})'} |" for row in rows]
    return "\n".join(lines) + "\n"
