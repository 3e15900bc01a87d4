"""Pydantic's payload converter, which turns an unreadable payload into a final failure.

A workflow may receive anything. A decoding error would fail its task, which Temporal retries forever; a failure ends the workflow.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic_core import PydanticSerializationError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
    SerializationContext,
)
from temporalio.exceptions import ApplicationError, FailureError

from toolagent.core.calls.json_size import MAX_STARTED_VALUES, excess_of
from toolagent.core.texts import json_bytes, well_formed_json

__all__ = ["DATA_CONVERTER", "UNREADABLE", "ReadingConverter", "UnreadableError"]

UNREADABLE = "unreadable_payload"
"""Error type of a payload that cannot be read as any type."""

_SLACK = 1_024
"""Values of an input besides its parameters."""


class UnreadableError(ApplicationError, ValueError):
    """The payload cannot be read; a retry cannot help."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"A payload cannot be read: {reason}", type=UNREADABLE, non_retryable=True)


class _WellFormedJson(PydanticJSONPlainPayloadConverter):
    """Replaces lone surrogates by U+FFFD, both ways: a refusal would be retried forever."""

    def to_payload(self, value: Any) -> Payload | None:
        try:
            return super().to_payload(value)
        except PydanticSerializationError:
            return Payload(metadata={"encoding": self.encoding.encode()}, data=json_bytes(value))

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        """Other converters send lone surrogates unchanged."""
        try:
            return super().from_payload(payload, type_hint)
        except ValueError:
            data = payload.data
            mended = well_formed_json(data)
            if mended is data:
                raise
            return super().from_payload(Payload(metadata=payload.metadata, data=mended), type_hint)


# The SDK makes several ReadingConverters for each workflow task. They hold no state, so all share one table.
_CONVERTERS: Mapping[bytes, EncodingPayloadConverter] = {
    one.encoding.encode(): _WellFormedJson() if isinstance(one, JSONPlainPayloadConverter) else one
    for one in DefaultPayloadConverter.default_encoding_payload_converters
}


class ReadingConverter(CompositePayloadConverter):
    """Raises UnreadableError for unreadable payloads, and for untyped ones that are too large."""

    def __init__(self) -> None:
        self.converters = _CONVERTERS

    def with_context(self, context: SerializationContext) -> Self:  # noqa: ARG002 - as in the SDK
        """No converter here looks at the context."""
        return self

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        if type_hints is None:
            self._require_size(payloads)
        try:
            return super().from_payloads(payloads, type_hints)
        except FailureError:
            raise
        except Exception:
            # A payload of another type may be readable for another version of the service.
            self._require_readable(payloads)
            raise

    def _require_size(self, payloads: Sequence[Payload]) -> None:
        for payload in payloads:
            if (excess := excess_of(payload.data, MAX_STARTED_VALUES + _SLACK)) is not None:
                raise UnreadableError(f"it {excess}.")

    def _require_readable(self, payloads: Sequence[Payload]) -> None:
        for payload in payloads:
            try:
                super().from_payloads([payload])
            except (ValueError, KeyError, RuntimeError) as error:
                raise UnreadableError(str(error)[:500]) from error


DATA_CONVERTER = DataConverter(payload_converter_class=ReadingConverter)
