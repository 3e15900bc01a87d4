"""A RunComfy test server, and the tools as they are called."""

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy import listing, stop
from engine.runtimes.builtin.runcomfy.execute import Arguments as ToExecute
from engine.runtimes.builtin.runcomfy.execute import Execute
from engine.runtimes.builtin.runcomfy.execute import Result as Executed
from engine.runtimes.builtin.runcomfy.launch import Arguments as ToLaunch
from engine.runtimes.builtin.runcomfy.launch import Launch
from engine.runtimes.builtin.runcomfy.launch import Result as Launched
from engine.runtimes.builtin.runcomfy.listing import Arguments as ToList
from engine.runtimes.builtin.runcomfy.listing import Result as Listed
from engine.runtimes.builtin.runcomfy.service import RunComfy
from engine.runtimes.builtin.runcomfy.stop import Arguments as ToStop
from engine.runtimes.builtin.runcomfy.stop import Result as Stopped
from engine.runtimes.builtin.tool import ToolContext
from engine.runtimes.failures import CallFailed
from toolagent.contracts.calls import Caller
from toolagent.contracts.manifest import ToolManifest
from toolagent.testing.servers.runcomfy_server import RunComfyServer

__all__ = ["PICTURE", "SAVED", "Tools", "failure_of", "tools_of"]

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
SAVED: dict[str, JsonValue] = {
    "nodes": [
        {"id": 1, "type": "LoadImage", "inputs": {"image": "input.png"}},
        {"id": 2, "type": "SaveImage", "inputs": {"images": ["1", 0]}},
    ]
}


@dataclass
class Tools:
    """The tools as they are called, with short pauses."""

    server: RunComfyServer
    folder: Path
    service: RunComfy
    told: list[str] = field(default_factory=list[str])
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def launch(self, timeout_s: float = 20.0, call_id: str = "call-launch", **params: JsonValue) -> Launched:
        arguments = ToLaunch.model_validate(params)
        return await Launch(self.service).run(arguments, self.context(call_id, timeout_s))

    async def execute(self, server_id: str, workflow: dict[str, JsonValue] = SAVED, **params: JsonValue) -> Executed:
        arguments = ToExecute.model_validate({"server_id": server_id, "workflow": workflow, **params})
        return await self.executing(arguments, "call-execute", self.folder)

    async def executing(self, arguments: ToExecute, call_id: str, folder: Path) -> Executed:
        context = replace(self.context(call_id), files=folder)
        return await Execute(self.service).run(arguments, context)

    async def stop(self, server_id: str) -> Stopped:
        return await stop.run(self.service, ToStop(server_id=server_id), self.context("call-stop"))

    async def listed(self) -> Listed:
        return await listing.run(self.service, ToList(), self.context("call-list"))

    async def heard(self, beginning: str) -> str:
        """The first progress that begins with this text."""
        async with asyncio.timeout(60):
            while not (found := [said for said in self.told if said.startswith(beginning)]):
                self._news.clear()
                await self._news.wait()
        return found[0]

    def content(self, result: Executed) -> dict[str, bytes]:
        """The content of the files that it made, by node."""
        return {one.node: Path(one.file).read_bytes() for one in result.files}

    def _tell(self, said: str) -> None:
        self.told.append(said)
        self._news.set()

    def context(self, call_id: str, timeout_s: float = 20.0) -> ToolContext:
        tool = ToolManifest(tool_id="tried", name="Tried")
        return ToolContext(tool, call_id, Caller(), {}, timeout_s, self._tell, self.folder)

    def running(self) -> list[str]:
        found = self.count("running")
        return [str(one) for one in found] if isinstance(found, list) else []

    def count(self, name: str) -> JsonValue:
        """A number of the ledger: `launched`, `stopped`, `vanished`; `running` is a list."""
        return self.server.ledger()[name]


def options_of(server: RunComfyServer, **secrets: str) -> BuiltinOptions:
    known = {"RUNCOMFY_USER_ID": server.account.user_id, "RUNCOMFY_API_KEY": server.account.key, **secrets}
    return BuiltinOptions(runcomfy_url=server.api_url, secrets=known.get, max_file_bytes=100_000)


def tools_of(server: RunComfyServer, folder: Path, **secrets: str) -> Tools:
    return Tools(server, folder, RunComfy(options_of(server, **secrets), (0.02, 0.05)))


@pytest.fixture
def server() -> Iterator[RunComfyServer]:
    with RunComfyServer(start_s=0.05, node_s=0.03) as found:
        yield found


@pytest.fixture
def tools(server: RunComfyServer, tmp_path: Path) -> Tools:
    return tools_of(server, tmp_path)


async def failure_of(call: Awaitable[object]) -> CallFailed:
    with pytest.raises(CallFailed) as failure:
        await call
    return failure.value
