"""One plugin carries our converter and sandbox rules to clients, workers, replayers and tests."""

from dataclasses import replace
from typing import Any

from pydantic_core import PydanticSerializationError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticJSONPlainPayloadConverter, pydantic_data_converter
from temporalio.converter import CompositePayloadConverter, DefaultPayloadConverter, JSONPlainPayloadConverter
from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from toolagent.client.child import STUBS
from toolagent.core.texts import json_bytes, well_formed_json

__all__ = ["DATA_CONVERTER", "ToolAgentPlugin", "sandboxed_runner"]

PASSED_THROUGH = ("pydantic", "pydantic_core", "annotated_types", "toolagent.contracts", "toolagent.client")


def sandboxed_runner() -> SandboxedWorkflowRunner:
    """The workflow sandbox with only pydantic and the wire let through, so that it keeps watching `toolagent.core`."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))


class _WellFormedJson(PydanticJSONPlainPayloadConverter):
    """What holds half a character is sent and read with U+FFFD in its place: refused, it would be tried again and again."""

    def to_payload(self, value: Any) -> Payload | None:
        try:
            return super().to_payload(value)
        except PydanticSerializationError:
            return Payload(metadata={"encoding": self.encoding.encode()}, data=json_bytes(value))

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:
        """Others send it too: other converters write such a text as it is."""
        try:
            return super().from_payload(payload, type_hint)
        except ValueError:
            data = payload.data
            mended = well_formed_json(data)
            if mended is data:
                raise
            return super().from_payload(Payload(metadata=payload.metadata, data=mended), type_hint)


class _PayloadConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        others = DefaultPayloadConverter.default_encoding_payload_converters
        super().__init__(*(_WellFormedJson() if isinstance(one, JSONPlainPayloadConverter) else one for one in others))


DATA_CONVERTER = replace(pydantic_data_converter, payload_converter_class=_PayloadConverter)


class ToolAgentPlugin(SimplePlugin):
    """Give it to `Client.connect`; workers and replayers made from that client have it too."""

    def __init__(self, workflow_runner: WorkflowRunner | None = None) -> None:
        super().__init__(
            "toolagent",
            data_converter=DATA_CONVERTER,
            workflow_runner=workflow_runner or sandboxed_runner(),
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Raises ValueError for a worker that registers one of our stubs, which have no body."""
        if registered := [stub.__name__ for stub in config.get("workflows", ()) if stub in STUBS]:
            raise ValueError(
                f"{', '.join(registered)} of toolagent.client.child has no body: register your own workflows only. "
                "A child workflow runs on Tool Agent's workers."
            )
        return super().configure_worker(config)
