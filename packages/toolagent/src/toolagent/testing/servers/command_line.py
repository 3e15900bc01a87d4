"""Runs one server until a signal ends it.

The line `ready http://127.0.0.1:PORT` on stdout says that it answers.
"""

import json
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import httpx
import typer

from toolagent.testing.servers.documents import DocumentError
from toolagent.testing.servers.im_faults import IM_FAULTS, ImFault
from toolagent.testing.servers.im_server import ImServer
from toolagent.testing.servers.index_packages import packages_schema
from toolagent.testing.servers.index_server import IndexServer
from toolagent.testing.servers.knowhub_server import FAULTS as KNOWHUB_FAULTS
from toolagent.testing.servers.knowhub_server import KnowHubFault, KnowHubServer
from toolagent.testing.servers.model_server import ModelServer, UnexpectedRequestError
from toolagent.testing.servers.recorder import Recorder
from toolagent.testing.servers.runcomfy_ledger import FAULTS, Fault
from toolagent.testing.servers.runcomfy_server import Account, RunComfyServer
from toolagent.testing.servers.scenario import scenario_schema
from toolagent.testing.servers.serving import NotServing, ServerThread
from toolagent.testing.servers.told_faults import ToldFault

__all__ = ["app"]

_STOPS = {signal.SIGINT, signal.SIGTERM}
_FAILED, _USAGE = 1, 2

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Test servers for other services, on 127.0.0.1. Ctrl-C or SIGTERM ends them.",
)

F = TypeVar("F", bound=ToldFault)
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]


@app.command()
def model(scenario: Annotated[Path, typer.Option(metavar="FILE", show_default=False)], port: Port = 0) -> None:
    """A model that answers by a scenario, over Anthropic's Messages API.

    Exit code 1 if the scenario did not expect some requests; they are on stderr.
    """
    _serve(lambda: ModelServer(scenario, port))


@app.command()
def record(
    to: Annotated[str, typer.Option(metavar="URL", show_default=False, help="The base URL of the real endpoint.")],
    scenario: Annotated[Path, typer.Option(metavar="FILE", show_default=False, help="Replaced after each turn.")],
    port: Port = 0,
    keep_pace: Annotated[bool, typer.Option("--keep-pace", help="The scenario takes as long as the real answers did.")] = False,
) -> None:
    """Pass requests on to a real endpoint, and write a scenario from the answers. Keys are never written."""

    def recorder() -> Recorder:
        if not scenario.absolute().parent.is_dir():
            raise DocumentError(f"{scenario}: there is no folder to write it in. Make it first.")
        if httpx.URL(to).scheme not in {"http", "https"}:
            raise DocumentError(f"--to {to!r} is no base URL; it begins with https:// or http://.")
        return Recorder(to, scenario, port, keep_pace=keep_pace)

    _serve(recorder)


@app.command()
def index(packages: Annotated[Path, typer.Option(metavar="FILE", show_default=False)], port: Port = 0) -> None:
    """An index of the Python packages that a file describes. Its index URL is the server's address with `/simple/`."""
    _serve(lambda: IndexServer(packages, port))


@app.command()
def runcomfy(
    port: Port = 0,
    user: Annotated[str, typer.Option(help="The known user id.")] = "tester",
    key: Annotated[str, typer.Option(help="The accepted key.")] = "stand-in-key",
    start: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long a server is `Starting`.")] = 1.0,
    node: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How long each node of a workflow takes.")] = 0.2,
    fault: Annotated[list[str] | None, typer.Option(metavar="KIND", help=f"For the next matching request: {', '.join(FAULTS)}.")] = None,
) -> None:
    """RunComfy with a ComfyUI for each server; its API is at `/prod/api`. LoadImage and SaveImage are real, models are not.

    `GET /control/ledger` lists launches and stops. `POST /control/faults` takes `{"kind": …, "at": …, "times": …}`.
    """
    faults = _faults(Fault, fault, FAULTS)
    _serve(lambda: RunComfyServer(port, Account(user, key), start_s=start, node_s=node, faults=faults))


@app.command()
def im(
    port: Port = 0,
    token: Annotated[str | None, typer.Option(help="The bearer token that contacts send; unset: no token is needed.")] = None,
    fault: Annotated[list[str] | None, typer.Option(metavar="KIND", help=f"For the next occasion: {', '.join(IM_FAULTS)}.")] = None,
) -> None:
    """An IM server: contacts connect to `ws://127.0.0.1:PORT/?contact_id=NAME`. It keeps messages until they are acknowledged.

    `GET /control/state` has contacts and messages. `POST /control/messages` sends one, `POST /control/faults` takes `{"kind": …}`.
    """
    faults = _faults(ImFault, fault, IM_FAULTS)
    _serve(lambda: ImServer(port, token=token, faults=faults))


@app.command()
def knowhub(
    port: Port = 0,
    key: Annotated[str, typer.Option(help="The accepted key; empty: no key is needed.")] = "",
    untagged: Annotated[bool, typer.Option("--untagged", help="Its resources have no ETag.")] = False,
    fault: Annotated[list[str] | None, typer.Option(metavar="KIND", help=f"For the next request: {', '.join(KNOWHUB_FAULTS)}.")] = None,
) -> None:
    """KnowHub with four resources, three of them about tools; they are at `/api/resource`.

    `POST /control/faults` takes `{"kind": …, "method": …, "times": …}`.
    """
    faults = _faults(KnowHubFault, fault, KNOWHUB_FAULTS)
    _serve(lambda: KnowHubServer(port, key=key, tagged=not untagged, faults=faults))


@app.command()
def schema(of: Annotated[str, typer.Argument(metavar="scenario|packages", show_default=False)]) -> None:
    """The JSON Schema of the files that the servers read."""
    schemas = {"scenario": scenario_schema, "packages": packages_schema}
    if of not in schemas:
        raise typer.BadParameter(f"There is no schema {of!r}; there are {' and '.join(schemas)}.")
    typer.echo(json.dumps(schemas[of](), indent=2, ensure_ascii=False))


def _faults(model: type[F], kinds: Iterable[str] | None, known: Iterable[str]) -> list[F]:
    try:
        return [model.model_validate({"kind": kind}) for kind in kinds or ()]
    except ValueError as error:
        raise typer.BadParameter(f"--fault is one of {', '.join(known)}.") from error


def _serve(made: Callable[[], ServerThread]) -> None:
    try:
        server = made()
        # Block the signals before the server's thread starts: it inherits the mask.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        with server:
            typer.echo(f"ready {server.url}")
            signal.sigwait(_STOPS)
    except (DocumentError, NotServing, UnexpectedRequestError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(_FAILED if isinstance(error, UnexpectedRequestError) else _USAGE) from error
