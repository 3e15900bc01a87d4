"""The plugin of `toolagent`, for the workers of the service: its workflow sandbox knows the steps too."""

from temporalio.worker import WorkflowRunner

from toolagent.client.plugin import ToolAgentPlugin, sandboxed_runner

_PASSED_THROUGH = ("toolagent_service.contracts", "toolagent_service.step_names", "toolagent_service.stubs")


def service_plugin(workflow_runner: WorkflowRunner | None = None) -> ToolAgentPlugin:
    """Give it to `Client.connect`; workers and replayers made from that client have it too."""
    return ToolAgentPlugin(workflow_runner or sandboxed_runner(*_PASSED_THROUGH))
