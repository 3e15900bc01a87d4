"""The table of what became of the repositories, failures included."""

import re
from collections.abc import Sequence

from bench.repositories.outcomes import Outcome

_LONGEST = 300
_PLACE = re.compile(r"https?://\S+|(?<![\w.])/(?:tmp|root|home|work)/\S+")


def written(outcomes: Sequence[Outcome]) -> str:
    made = sum(one.status == "completed" for one in outcomes)
    starting = [one for one in outcomes if one.by_hand]
    of_them = sum(one.status == "completed" for one in starting)
    right = sum(one.called is True for one in starting)
    lines = [
        "# Public repositories, made into tools without a model",
        "",
        "`make repositories DIR=<folder of clones>`; drawn by the rule in `bench/repositories/drawn.yaml`. No model, no settings.",
        "",
        f"{of_them} of {len(starting)} that start by hand became tools; {right} calls right. Of all {len(outcomes)}, {made} became tools.",
        "",
        "| kind | repository | became | seconds | tools | left out | call | by hand | found, tried, cause |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_row(one) for one in outcomes]
    return "\n".join((*lines, ""))


def _row(one: Outcome) -> str:
    call = {None: "—", True: "right", False: f"wrong: {_flat(one.answer)}"}[one.called]
    ways = "; ".join(f"{_flat(way.found)}: {way.outcome}{f': {_flat(way.reason)}' if way.reason else ''}" for way in one.ways if way.found)
    cells = (
        f"{one.wanted.kind}/{one.wanted.of}", one.wanted.repository, one.status, f"{one.seconds:.1f}", str(len(one.tool_ids)),
        str(len(one.left_out)), call, _by_hand(one), ways or _flat(one.reason),
    )  # fmt: skip
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _by_hand(one: Outcome) -> str:
    starts = {None: "not tried", True: "yes", False: "no"}[one.by_hand]
    return f"{starts}: {_flat(one.why)}" if one.why else starts


def _flat(text: str) -> str:
    # Addresses and places of the machine that it was measured on are nobody's business.
    line = _PLACE.sub("…", " ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
