"""Prices of models, from a file."""

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolagent.core.json_paths import json_path
from toolagent_service.agents.model_cost import cost_of
from toolagent_service.contracts.model import ModelTurn, Price

_DATED = re.compile(r"[-@]\d{8}$")


class PriceFileError(ValueError):
    """The file is unusable; the message names it, the place in it and the cause."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Entry(_Strict):
    """A price, and the names of its models as shell patterns (`*`, `?`). The date at the end of a name is ignored."""

    models: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    price: Price


class _File(_Strict):
    currency: Annotated[str, Field(pattern="^USD$")]
    per_tokens: Annotated[int, Field(ge=1_000_000, le=1_000_000)]
    as_of: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    source: str = ""
    prices: tuple[_Entry, ...]


class Prices:
    """The first entry that matches a name counts. A model without a match has no price, and its turns no cost."""

    def __init__(self, entries: tuple[tuple[str, Price], ...] = ()) -> None:
        self._entries = entries

    @classmethod
    def read(cls, path: Path) -> "Prices":
        """Blocks. Raises PriceFileError."""
        try:
            file = _File.model_validate_json(path.read_bytes())
        except OSError as error:
            raise PriceFileError(f"The file of prices {path} cannot be read: {error.strerror}.") from error
        except ValidationError as error:
            first = error.errors()[0]
            raise PriceFileError(f"The file of prices {path} is wrong at {json_path(first['loc'])}: {first['msg']}.") from error
        return cls(tuple((pattern, entry.price) for entry in file.prices for pattern in entry.models))

    def of(self, model: str) -> Price | None:
        undated = _DATED.sub("", model)
        return next((price for pattern, price in self._entries if fnmatchcase(model, pattern) or fnmatchcase(undated, pattern)), None)

    def priced(self, turn: ModelTurn, asked: str) -> ModelTurn:
        """The turn with its cost. The name in the answer may differ from the one that was `asked` for, which counts first."""
        price = self.of(asked) or self.of(turn.model)
        return turn.model_copy(update={"cost_usd": cost_of(price, turn.usage) if price is not None else None})
