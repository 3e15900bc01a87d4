"""Turns a function that asks the service into a command: adds the common options, connects, and reports failures."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from toolagent.cli.failures import reported
from toolagent.cli.options import ApiKey, AsJson, Url, connected
from toolagent.cli.render import show_contract
from toolagent.client.http import DEFAULT_URL, ToolAgentHttp
from toolagent.contracts.contract import Contract

__all__ = ["Asked", "asking"]

C = TypeVar("C", bound=Contract)
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Asked:
    """The service, and whether to print its answers as JSON."""

    service: ToolAgentHttp
    json_output: bool

    def show(self, answer: C, show: Callable[[C], None]) -> None:
        if self.json_output:
            show_contract(answer)
        else:
            show(answer)


def asking(function: Callable[Concatenate[Asked, P], None]) -> Callable[..., None]:
    """The command of a function that asks the service. `--json`, `--url` and `--api-key` follow its own options."""

    def command(json_output: AsJson = False, url: Url = DEFAULT_URL, api_key: ApiKey = None, **given: object) -> None:
        with reported(), connected(url, api_key) as service:
            function(Asked(service, json_output), **given)  # pyright: ignore[reportCallIssue]  # typer passes the parameters below

    (_, *own), (*shared, _) = (inspect.signature(one).parameters.values() for one in (function, command))
    parameters = (*own, *shared)
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]  # `inspect.signature` reads it
    return command
