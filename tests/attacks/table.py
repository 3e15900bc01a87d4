"""The results as a table in Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.attacks.verdict import HEALTH_S, MEMORY_MIB, QUICK_RATIO, QUICK_S, Row

__all__ = ["markdown", "write"]

_COLUMNS = ("attack", "answer", "health max s", "quick p50", "quick max s", "MiB max", "left", "stopped in s", "held")
_LONGEST = 80


def write(rows: Sequence[Row], about: Mapping[str, str], folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(markdown(rows, about), "utf-8")
    return path


def markdown(rows: Sequence[Row], about: Mapping[str, str]) -> str:
    return "\n".join(_lines(rows, about)) + "\n"


def _lines(rows: Sequence[Row], about: Mapping[str, str]) -> Iterator[str]:
    held = sum(not row.faults for row in rows)
    yield "# Attacks"
    yield ""
    yield from (f"- {name}: {value}" for name, value in about.items())
    yield f"- held: {held} of {len(rows)}"
    yield ""
    yield (
        f"Asked for: `/health` within {HEALTH_S:g} s throughout; a quick caller beside the attack with a median of at most {QUICK_RATIO:g}×"
        f" that before it, and no answer over {QUICK_S:g} s where the attack names no other bound;"
        f" the service's Python process at most {MEMORY_MIB:g} MiB; nothing left in the"
        " state directory, no process; SIGTERM in the middle of it stops the service within its grace and 5 s, which"
        " is tried of what takes over 1 s and of the first of each kind. The median"
        " of a quick caller is not judged beside what keeps the machine busy by right, and not of fewer than five calls."
    )
    for kind in dict.fromkeys(row.kind for row in rows):
        yield ""
        yield f"## {kind}"
        yield ""
        yield f"| {' | '.join(_COLUMNS)} |"
        yield f"|{'---|' * 2}{'---:|' * 4}---|---:|---|"
        yield from (f"| {' | '.join(_cells(row))} |" for row in rows if row.kind == kind)
    if held < len(rows):
        yield ""
        yield "## Not held"
        yield ""
        yield from (f"- `{row.kind}.{row.name}`: {_plain(fault, 300)}" for row in rows for fault in row.faults)


def _cells(row: Row) -> Iterator[str]:
    seen = row.figures
    yield f"`{row.name}`: {row.what}".replace("|", "\\|")
    yield _plain(row.answer, _LONGEST)
    yield _number(seen and seen.health_s, 2)
    yield _number(seen and seen.quick_ratio, 2, "×")
    yield _number(seen and seen.quick_s, 2)
    yield _number(seen and seen.memory_mib, 0)
    yield _plain(row.left, _LONGEST)
    yield _number(row.stopped_s, 1)
    yield "**NO**" if row.faults else "yes"


def _number(value: float | None, digits: int, unit: str = "") -> str:
    return "–" if value is None else f"{value:,.{digits}f}{unit}"


def _plain(text: str, longest: int) -> str:
    """The text on one line, without characters that break a table."""
    line = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    line = line.encode("utf-8", "backslashreplace").decode()
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
