"""Reads the operator's policies, YAML or JSON files that settings name."""

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from workers.failures import CannotRun

T = TypeVar("T", bound=BaseModel)


def said_in(setting: str, path: Path) -> object:
    """The content of the file; an empty object for an empty file. Raises CannotRun."""
    try:
        said: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CannotRun(f"{setting}: the policy {path} cannot be read: {error}") from error
    return {} if said is None else said


def understood(setting: str, path: Path, kind: type[T], said: object, page: str, at: tuple[str, ...] = ()) -> T:
    """The content as a model of the policy, or of its part `at` a place. `page` is the docs page of the policy. Raises CannotRun."""
    try:
        return kind.model_validate(said)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join((*at, *map(str, one['loc']))) or 'the file'}: {one['msg']}"
            for one in error.errors(include_url=False, include_input=False)
        )
        raise CannotRun(f"{setting}: the policy {path} is not valid: {told}. What may be in it: {page}.") from error
