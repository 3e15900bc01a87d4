"""Texts for the candidate's maker."""

import json

from pydantic import JsonValue

_QUOTED = 400
_DETAILS = 4000
_WORD = 200


def quoted(value: JsonValue) -> str:
    """The value as JSON, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… ({len(text)} characters)"


def listed(said: list[str], most: int) -> str:
    """A line for each of the first entries, then how many more there are."""
    more = f"\n… and {len(said) - most} more" if len(said) > most else ""
    return ("\n".join(f"- {one}" for one in said[:most]) + more)[:_DETAILS]


def in_one_line(message: str) -> str:
    """A tool's message in one line and in quotes."""
    return json.dumps(" ".join(message.split())[:_WORD], ensure_ascii=False)
