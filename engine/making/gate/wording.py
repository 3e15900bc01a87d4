"""Texts for the maker of the candidate."""

import json

from pydantic import JsonValue

_QUOTED = 400
_DETAILS = 4000
_WORD = 200


def quoted(value: JsonValue) -> str:
    """As JSON, not too long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… ({len(text)} characters)"


def listed(said: list[str], most: int, total: int | None = None) -> str:
    """The first of them on lines of their own, and how many more there are."""
    count = len(said) if total is None else total
    more = f"\n… and {count - most} more" if count > most else ""
    return ("\n".join(f"- {one}" for one in said[:most]) + more)[:_DETAILS]


def in_one_line(message: str) -> str:
    """What a tool said, in a line and in quotes."""
    return json.dumps(" ".join(message.split())[:_WORD], ensure_ascii=False)
