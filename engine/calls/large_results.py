"""Stores large outputs as files, after a check, and refers to them in the results."""

from dataclasses import dataclass

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from engine.calls.endings import Refused, misfit_of
from engine.store.content.incoming import pieces_of
from engine.store.files import FileStore
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.references import ResultReference
from toolagent.core.calls.json_size import Excess, excess_of
from toolagent.core.texts import well_formed_value

_PREVIEW_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class FittedOutput:
    """The output for the result, or a ResultReference to it."""

    output: JsonValue
    is_reference: bool = False


class LargeResults:
    """Sizes are in bytes of JSON. An output stays inline up to `inline_bytes`. It is refused above `max_bytes` or `max_values`, or if it is
    too deep.
    """

    def __init__(self, files: FileStore, *, inline_bytes: int, max_bytes: int, max_values: int = 250_000) -> None:
        self._files = files
        self._inline_bytes = min(inline_bytes, max_bytes)
        self._max_bytes, self._max_values = max_bytes, max_values

    async def fit(self, call_id: str, manifest: ToolManifest, output: JsonValue) -> FittedOutput:
        """Idempotent: the same output of the same call is stored as the same file.

        Raises Refused, ContentUnavailableError, StoreUnavailableError.
        """
        # Our JSON differs from the tool's: `1e15` grows fourfold, and `1e999` is no JSON number.
        try:
            encoded = to_json(output, inf_nan_mode="null")
        except PydanticSerializationError:  # it contains a lone surrogate
            output = well_formed_value(output)
            encoded = to_json(output, inf_nan_mode="null")
        excess = excess_of(encoded, self._max_values)
        if excess is not None:
            raise _too_much(excess)
        if len(encoded) <= self._inline_bytes:
            return FittedOutput(output)
        if len(encoded) > self._max_bytes:
            raise _too_large(len(encoded), self._max_bytes)
        if misfit := await misfit_of(manifest, output):
            raise misfit
        file = await self._files.put(pieces_of(encoded), f"{call_id}.json", "application/json", max_bytes=self._max_bytes)
        reference = ResultReference(
            file=f"/files/{file.file_id}",
            file_id=file.file_id,
            media_type=file.media_type,
            size=file.size,
            sha256=file.sha256,
            # The cut may split a character.
            preview=encoded[: 4 * _PREVIEW_CHARACTERS].decode("utf-8", "ignore")[:_PREVIEW_CHARACTERS],
        )
        return FittedOutput(reference.model_dump(mode="json"), is_reference=True)


def _too_large(size: int, limit: int) -> Refused:
    message = f"The tool's answer is {size} bytes of JSON; at most {limit} are taken (TOOL_AGENT_MAX_RESULT_BYTES)."
    return Refused(ErrorType.OUTPUT_VALIDATION_ERROR, message, {"size": size, "limit": limit, "outcome": "executed"})


def _too_much(excess: Excess) -> Refused:
    setting = " (TOOL_AGENT_MAX_RESULT_VALUES)" if excess.of == "values" else ""
    message = f"The tool's answer is not taken: it {excess}{setting}."
    return Refused(ErrorType.OUTPUT_VALIDATION_ERROR, message, {**excess.details, "outcome": "executed"})
