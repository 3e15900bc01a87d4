"""The plugin of `toolagent` for the workers of the service.

Its workflow sandbox passes the steps too.
"""

from importlib.metadata import version

from temporalio.worker import WorkerConfig, WorkflowRunner

from toolagent.client.plugin import ToolAgentPlugin, sandboxed_runner

_PASSED_THROUGH = ("toolagent_service.contracts", "toolagent_service.step_names", "toolagent_service.stubs")


def service_plugin(workflow_runner: WorkflowRunner | None = None) -> ToolAgentPlugin:
    """Give it to `Client.connect`. Workers and replayers of that client use it too."""
    return _ServicePlugin(workflow_runner or sandboxed_runner(*_PASSED_THROUGH))


class _ServicePlugin(ToolAgentPlugin):
    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        # By default, Temporal hashes the code of all modules, which takes tenths of a second at each start.
        config["build_id"] = f"toolagent-service {version('toolagent-service')}"
        return super().configure_worker(config)
