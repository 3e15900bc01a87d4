"""The plugin of `toolagent`, for the workers of the service: its workflow sandbox knows the steps too."""

from importlib.metadata import version

from temporalio.worker import WorkerConfig, WorkflowRunner

from toolagent.client.plugin import ToolAgentPlugin, sandboxed_runner

_PASSED_THROUGH = ("toolagent_service.contracts", "toolagent_service.step_names", "toolagent_service.stubs")


def service_plugin(workflow_runner: WorkflowRunner | None = None) -> ToolAgentPlugin:
    """Give it to `Client.connect`; workers and replayers made from that client have it too."""
    return _ServicePlugin(workflow_runner or sandboxed_runner(*_PASSED_THROUGH))


class _ServicePlugin(ToolAgentPlugin):
    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        # Without one, Temporal makes it of the code of all modules: it reads them a second time, for tenths of a second at each start.
        config["build_id"] = f"toolagent-service {version('toolagent-service')}"
        return super().configure_worker(config)
