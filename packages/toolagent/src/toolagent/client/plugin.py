"""The plugin with the data converter and sandbox rules, for clients, workers, replayers and tests."""

from temporalio.plugin import SimplePlugin
from temporalio.worker import WorkerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from toolagent.client.child import STUBS
from toolagent.client.converter import DATA_CONVERTER

__all__ = ["ToolAgentPlugin", "sandboxed_runner"]

PASSED_THROUGH = ("pydantic", "pydantic_core", "annotated_types", "toolagent.contracts", "toolagent.client")


def sandboxed_runner(*more: str) -> SandboxedWorkflowRunner:
    """The workflow sandbox. Only pydantic, the contracts and `more` pass through, so it still checks `toolagent.core`."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH, *more))


class ToolAgentPlugin(SimplePlugin):
    """Give it to `Client.connect`. Workers and replayers of that client use it too."""

    def __init__(self, workflow_runner: WorkflowRunner | None = None) -> None:
        super().__init__(
            "toolagent",
            data_converter=DATA_CONVERTER,
            workflow_runner=workflow_runner or sandboxed_runner(),
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Raises ValueError for a worker that registers a stub, which has no body."""
        if registered := [stub.__name__ for stub in config.get("workflows", ()) if stub in STUBS]:
            raise ValueError(
                f"{', '.join(registered)} of toolagent.client.child has no body: register your own workflows only. "
                "A child workflow runs on Tool Agent's workers."
            )
        return super().configure_worker(config)
