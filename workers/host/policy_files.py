"""Policies of the operator: files (YAML or JSON) that settings name."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from workers.failures import CannotRun

T = TypeVar("T", bound=BaseModel)


def said_in(setting: str, path: Path) -> object:
    """What the file says; an empty one says nothing. Raises CannotRun."""
    try:
        said: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotRun(f"{setting}: the policy {path} cannot be read: {error}") from error
    return {} if said is None else said


def understood(setting: str, path: Path, kind: type[T], said: object, page: str, at: tuple[str, ...] = ()) -> T:
    """As the model of a policy, or of the part of it that is `at` this place; `page` says what may be in it. Raises CannotRun."""
    try:
        return kind.model_validate(said)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join((*at, *map(str, one['loc']))) or 'the file'}: {one['msg']}"
            for one in error.errors(include_url=False, include_input=False)
        )
        raise CannotRun(f"{setting}: the policy {path} is not valid: {told}. What may be in it: {page}.") from error
