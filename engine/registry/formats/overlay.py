"""Writes entries back as in their files, except for later changes."""

from collections.abc import Collection

from pydantic import BaseModel, JsonValue


def overlaid(raw: dict[str, JsonValue], before: BaseModel, now: BaseModel, without: Collection[str] = ()) -> dict[str, JsonValue]:
    """`raw` with the fields in which `now` differs from `before`, the model that `raw` was read as."""
    result = dict(raw)
    values: dict[str, JsonValue] = now.model_dump(mode="json")
    for name, field in type(now).model_fields.items():
        if name not in without and getattr(now, name) != getattr(before, name):
            key = field.alias or name
            result.pop(name, None)
            result[key] = values[key]
    return result


def written(now: BaseModel, always: Collection[str], without: Collection[str] = ()) -> dict[str, JsonValue]:
    """An entry for a model without a file: the fields in `always`, and those that differ from their defaults."""
    values: dict[str, JsonValue] = now.model_dump(mode="json")
    said: dict[str, JsonValue] = now.model_dump(mode="json", exclude_defaults=True)
    return {key: value for key, value in values.items() if key not in without and (key in said or key in always)}
