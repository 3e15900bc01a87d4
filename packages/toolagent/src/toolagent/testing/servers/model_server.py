"""A model that keeps to a scenario, for tests: the Messages API over real HTTP on 127.0.0.1."""

from pathlib import Path
from types import TracebackType

from toolagent.testing.servers.model_app import model_app
from toolagent.testing.servers.scenario import Scenario, load_scenario
from toolagent.testing.servers.script import Script, TurnCount
from toolagent.testing.servers.serving import ServerThread

__all__ = ["ModelServer", "UnexpectedRequestError"]


class UnexpectedRequestError(AssertionError):
    """The scenario did not expect a request that came; the message has all of them."""


class ModelServer(ServerThread):
    """`async with ModelServer(scenario) as server:` and `server.url` is a base URL for the anthropic client; `with` does as well.

    At the end of the block it raises UnexpectedRequestError if a request was not what the scenario expects, unless `strict` is false.
    """

    def __init__(self, scenario: Scenario | Path, port: int = 0, *, strict: bool = True) -> None:
        """Raises DocumentError for a file that is no scenario."""
        self.script = Script(load_scenario(scenario) if isinstance(scenario, Path) else scenario)
        self._strict = strict
        super().__init__(model_app(self.script), port)

    def turns(self) -> tuple[TurnCount, ...]:
        """How often each turn was asked for and served to its end."""
        return self.script.turns()

    def unmet(self) -> tuple[str, ...]:
        """Each request that was not as the scenario expects."""
        return self.script.unmet()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        super().__exit__(kind, error, trace)
        if self._strict and error is None and (faults := self.unmet()):
            raise UnexpectedRequestError("\n".join(faults))
