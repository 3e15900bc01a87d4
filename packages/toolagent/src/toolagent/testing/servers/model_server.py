"""A test server for a model that follows a scenario: the Messages API over real HTTP on 127.0.0.1."""

from pathlib import Path
from types import TracebackType

from toolagent.testing.servers.model_app import model_app
from toolagent.testing.servers.scenario import Scenario, load_scenario
from toolagent.testing.servers.script import Script
from toolagent.testing.servers.serving import ServerThread

__all__ = ["ModelServer", "UnexpectedRequestError"]


class UnexpectedRequestError(AssertionError):
    """The scenario did not expect some requests. The message lists them."""


class ModelServer(ServerThread):
    """`async with ModelServer(scenario) as server:` (or `with`). `server.url` is a base URL for the anthropic client.

    If `strict`, the end of the block raises UnexpectedRequestError for requests that the scenario did not expect.
    """

    def __init__(self, scenario: Scenario | Path, port: int = 0, *, strict: bool = True) -> None:
        """Raises DocumentError for a file that is not a scenario."""
        self.script = Script(load_scenario(scenario) if isinstance(scenario, Path) else scenario)
        self.turns, self.unmet = self.script.turns, self.script.unmet
        self._strict = strict
        super().__init__(model_app(self.script), port)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        if self._strict and error is None and (faults := self.unmet()):
            raise UnexpectedRequestError("\n".join(faults))
