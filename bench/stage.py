"""Everything that is measured in turns, started together: our service, the tool, the peers."""

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import psutil

from bench.environments import python_of
from bench.load import NEW_KEY, OWN
from bench.mcp.contextforge import ContextForge
from bench.mcp.requests import NOT_AN_ERROR, OLDER, SESSIONS, SINGLE, McpRequest, tool_call
from bench.mcp.upstream_tools import BY_HTTP, BY_MCP, tools_of_upstream
from bench.peers.model import HEADERS
from bench.postgres import Postgres, postgres_binaries
from bench.processes import Child, bare_environment, is_free
from bench.results import Single
from bench.rounds import Target
from bench.scripted import ANSWER, AT_ONCE, ScriptedModel, body_of_a_turn
from bench.service import (
    ACTING,
    CONTAINER,
    GROUP,
    HARMLESS,
    HTTP_FREE,
    LANE_WAY,
    LANES_ALL,
    ROOT,
    OurService,
    Tree,
    call_body,
    make_catalog,
    python_path,
    why_refused,
)
from engine.network.ports import free_port
from workers.temporal.dev_server import temporal_binary

OURS, THEN = "ours", "then"
"""What the names of rows begin with: of this tree, and of the other commit that it is measured against."""

ALL_LANES = "all"
"""Our service with `TOOL_AGENT_LANES=all`; the other one has the default, `harmless`."""

MODEL = "model"
"""Our service with a model that answers at once."""

MCP = "mcp"
"""Our service as MCP clients call it, and a tool of an MCP server."""

CONTEXTFORGE = "contextforge"
PEERS = (ALL_LANES, MODEL, "bare", "default", "fastmcp", "dbos", MCP, CONTEXTFORGE)
_SESSIONS = 64
_CHATS = tuple(f"bench {number}" for number in range(64))
_CHAT = json.dumps({"message": "list all tools", "chat_id": OWN})
_BODY = json.dumps({"message": "hello"})
Parts = Mapping[str, Iterable[psutil.Process]]


class Family:
    """A process and its children as they are when somebody looks."""

    def __init__(self, child: Child) -> None:
        self._child = child

    def __iter__(self) -> Iterator[psutil.Process]:
        return iter(self._child.tree())


class Stage:
    """Starts what is asked for when the block begins; all of it is gone when it ends. `other` is a tree that has the same rows as ours."""

    def __init__(self, folder: Path, peers: Sequence[str], other: Tree | None = None) -> None:
        self._folder, self._peers, self._other = folder, peers, other
        self._stack = ExitStack()
        self.targets: list[Target] = []
        self.remarks: list[str] = []
        self.all_lanes: OurService | None = None
        self._question: tuple[str, ...] = ()

    def __enter__(self) -> "Stage":
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        self._stack = stack
        upstream = free_port()
        self._data = make_catalog(self._folder / "data", tools=tools_of_upstream(upstream))
        command = [sys.executable, str(ROOT / "bench/mcp/upstream.py"), "--port", str(upstream)]
        self._upstream = self._child("upstream", command, upstream).tree()
        self.service = self._started(OurService(self._folder / "ours", self._data, HARMLESS))
        self._plain_tool()
        self._ceiling()
        self._ours(self.service, OURS)
        if self._other is not None:
            data = make_catalog(self._folder / "then-data", root=self._other.root)
            self._ours(self._started(OurService(self._folder / "then", data, HARMLESS, self._other)), THEN)
        started = {
            ALL_LANES: self._all_lanes,
            MODEL: self._model,
            "bare": self._bare,
            "default": self._default,
            "fastmcp": self._fastmcp,
            "dbos": self._dbos,
            MCP: self._mcp,
            CONTEXTFORGE: self._contextforge,
        }
        for peer, start in started.items():
            if peer in self._peers:
                start()

    def lane_shares(self) -> list[Single]:
        """How many of the calls that took a lane so far were not over in time, and got a workflow all the same."""
        labels = {
            self.service: "with the default of lanes",
            **({self.all_lanes: "with acting calls in lanes too"} if self.all_lanes else {}),
        }
        figures = [(label, service.lane_figures()) for service, label in labels.items()]
        return [
            Single(
                name="lane.moved", label=f"of {lane.calls:,} calls in a lane {label}, moved", value=100 * lane.moved / lane.calls, unit="%"
            )
            for label, lane in figures
            if lane.calls
        ]

    def _plain_tool(self) -> None:
        """For the peers, which reach no socket in a sandbox: the same program on the same Python, as a process on a port."""
        port, (*_, sandboxed) = free_port(), self.service.tool_processes(HTTP_FREE)
        child = self._child("tool", [sandboxed.cmdline()[0], str(ROOT / "bench/tool/main.py"), "--port", str(port)], port)
        self._tool_url, self._tool = f"http://127.0.0.1:{port}/say", child.tree()

    def _ceiling(self) -> None:
        self._add("plain", "the tool itself, plain HTTP", self._tool_url, {"tool": self._tool})

    def _all_lanes(self) -> None:
        self.all_lanes = service = self._started(OurService(self._folder / "all", self._data, LANES_ALL))
        parts = service.parts()
        used = {"our Python": parts["python"], "Temporal": parts["temporal"], "tool": service.tool_processes(ACTING)}
        body, url = call_body(ACTING), f"{service.url}/run_tool"
        self._add(
            "all.acting",
            "ours, acting calls in lanes too: HTTP tool with side effects",
            url,
            used,
            body=body,
            expect='"success"',
            notes=LANE_WAY,
        )

    def _started(self, service: OurService) -> OurService:
        self._stack.callback(service.stop)
        for tool in (ACTING, HTTP_FREE):
            service.start_tool(tool)
        return service

    def _ours(self, service: OurService, whose: str) -> None:
        parts = service.parts()
        url, ours = f"{service.url}/run_tool", {"our Python": parts["python"], "Temporal": parts["temporal"]}
        free, acting = service.tool_processes(HTTP_FREE), service.tool_processes(ACTING)
        for name, label, tool_id, more in (
            ("echo", "echo", "echo", {}),
            ("free", "HTTP tool without side effects", HTTP_FREE, {"tool": free}),
            ("acting", "HTTP tool with side effects, sent once", ACTING, {"tool": acting}),
        ):
            self._add(
                f"{whose}.{name}", f"{whose}: {label}", url, {**ours, **more}, body=call_body(tool_id), expect='"success"', notes=LANE_WAY
            )
        key = {"Idempotency-Key": NEW_KEY}
        self._add(
            f"{whose}.key",
            f"{whose}: echo, each with a key",
            url,
            ours,
            body=call_body("echo"),
            expect='"success"',
            notes=LANE_WAY,
            headers=key,
        )
        self._sessions(service, whose)
        if service.has_chats:
            self._chats(f"{whose}.chat", f"{whose}: a message of a chat, answered by rules", service, "rules")
        self._container(service, whose)

    def _chats(self, name: str, label: str, service: OurService, answers: str, more: Parts | None = None) -> None:
        """Each caller has its own."""
        parts = service.parts()
        used = {"our Python": parts["python"], "Temporal": parts["temporal"], **(more or {})}
        expect = f'"answered_by":"{answers}","error":""'
        self._add(name, label, f"{service.url}/chat", used, body=_CHAT, expect=expect, own=_CHATS)

    def _model(self) -> None:
        """The service that asks a model, and the model by itself, asked for what a chat asks it."""
        model = ScriptedModel(self._folder, AT_ONCE)
        self._stack.callback(model.child.stop)
        parts = {"model": model.child.tree()}
        question = self._folder / "question.json"
        question.write_text(body_of_a_turn("list all tools", (self._data / "prompts/service.md").read_text("utf-8")), "utf-8")
        self._question = (model.messages_url, str(question))
        label = "the model itself, asked for a turn of a chat"
        body = question.read_text("utf-8")
        self._add("model.alone", label, model.messages_url, parts, body=body, expect='"message_stop"', headers=HEADERS)
        service = OurService(self._folder / "model", self._data, {**HARMLESS, **model.settings})
        self._stack.callback(service.stop)
        self._chats("model.chat", "ours: a message of a chat, answered by a model", service, "model", parts)

    def _sessions(self, service: OurService, whose: str) -> None:
        """Each caller has its own. A service of before sessions has none."""
        if not service.has_sessions:
            return
        parts = service.parts()
        ours = {"our Python": parts["python"], "Temporal": parts["temporal"]}
        own = service.open_sessions(_SESSIONS)
        url, body = f"{service.url}/groups/{GROUP}/sessions/{OWN}/run", json.dumps({"params": {"expression": "1 + 1"}})
        self._add(f"{whose}.session", f"{whose}: calculator in a session", url, ours, body=body, expect='"success"', own=own)

    def _container(self, service: OurService, whose: str) -> None:
        """Where an engine answers. The container outlives the service, so it is taken down before."""
        try:
            service.start_tool(CONTAINER)
        except httpx.HTTPStatusError as error:
            self.remarks.append(f"No container was measured: {why_refused(error)}")
            return
        self._stack.callback(service.remove_tool, CONTAINER)
        parts = service.parts()
        url, ours = f"{service.url}/run_tool", {"our Python": parts["python"], "Temporal": parts["temporal"]}
        label = f"{whose}: the same in a serving container"
        self._add(f"{whose}.container", label, url, ours, body=call_body(CONTAINER), expect='"success"')

    def _bare(self) -> None:
        port = free_port()
        command = [sys.executable, "-m", "bench.peers.bare", str(port), self.service.temporal, self._tool_url, *self._question]
        url, python = f"http://127.0.0.1:{port}", self._child("bare", command, port).tree()
        parts = {"bare Python": python, "Temporal": self.service.parts()["temporal"]}
        self._add("bare.local", "bare: eager workflow, one local activity", f"{url}/local", parts)
        self._add("bare.http", "bare: workflow, regular activity, HTTP call", f"{url}/http", {**parts, "tool": self._tool})
        self._add("bare.update", "bare: update on a living workflow, local activity", f"{url}/update", parts)
        own, body = tuple(map(str, range(_SESSIONS))), json.dumps({"message": "hello", "own": OWN})
        self._add("bare.own", "the same, each caller with a workflow of its own", f"{url}/update", parts, body=body, own=own)
        if self._question:
            label = "the same with a regular activity that asks the model"
            self._add("bare.asked", label, f"{url}/ask", parts, body=body, expect=f'"{ANSWER}"', own=own)

    def _default(self) -> None:
        """Temporal as it comes: nothing set, nothing kept on disk, and a worker with the SDK's defaults."""
        port, ours = free_port(), free_port()
        command = [temporal_binary(), "server", "start-dev", "--ip", "127.0.0.1", "--port", str(port), "--headless", "--log-level", "warn"]
        server = self._child("temporal-default", command, port)
        worker = self._child("defaults", [sys.executable, "-m", "bench.peers.defaults", str(ours), f"127.0.0.1:{port}"], ours)
        parts = {"bare Python": worker.tree(), "Temporal": server.tree()}
        label = "bare: workflow, regular activity; the server's and the SDK's defaults"
        # More callers leave it a queue that it works off at twenty tasks a second, long into the measurements that follow.
        self._add("bare.default", label, f"http://127.0.0.1:{ours}/regular", parts, callers=(1,))

    def _fastmcp(self) -> None:
        url, parts = self._fastmcp_process("fastmcp")
        self._add_mcp("fastmcp.echo", "FastMCP: echo", url, parts, tool_call(OLDER, "echo"))
        parts = {**parts, "tool": self._tool}
        call = tool_call(OLDER, "call_http")
        self._add_mcp("fastmcp.http", "FastMCP: the same HTTP call", url, parts, call)
        url, parts = self._fastmcp_process("fastmcp-sessionless", "sessionless")
        parts = {**parts, "tool": self._tool}
        label = "FastMCP without sessions: the same HTTP call"
        self._add_mcp("fastmcp.sessionless", label, url, parts, replace(call, prelude=()))

    def _fastmcp_process(self, name: str, *form: str) -> tuple[str, Parts]:
        port = free_port()
        script = str(ROOT / "bench/peers/fastmcp_server.py")
        child = self._child(name, [str(python_of("fastmcp")), script, str(port), self._tool_url, *form], port)
        return f"http://127.0.0.1:{port}/mcp", {"FastMCP": child.tree()}

    def _mcp(self) -> None:
        """What `ours.echo` and `ours.free` do, as MCP clients ask for it; and a tool of an MCP server beside the same as a remote tool."""
        parts = self.service.parts()
        ours, url = {"our Python": parts["python"], "Temporal": parts["temporal"]}, f"{self.service.url}/mcp"
        free = {**ours, "tool": self.service.tool_processes(HTTP_FREE)}
        for name, revision in (("session", SESSIONS), ("single", SINGLE)):
            label = f"ours by MCP {revision}"
            self._add_mcp(f"mcp.{name}.echo", f"{label}: echo", url, ours, tool_call(revision, "echo"), (1, 16))
            self._add_mcp(
                f"mcp.{name}.free", f"{label}: HTTP tool without side effects", url, free, tool_call(revision, HTTP_FREE), (16, 64)
            )
        for tool, label in ((BY_MCP, "tool of an MCP server over HTTP"), (BY_HTTP, "the same of the same server as a remote tool")):
            parts = {**ours, "upstream": self._upstream}
            body, url = call_body(tool), f"{self.service.url}/run_tool"
            self._add(f"ours.{tool}", f"ours: {label}", url, parts, body=body, expect='"success"', notes=LANE_WAY, callers=(1,))

    def _contextforge(self) -> None:
        gateway = ContextForge(self._folder, self._tool_url)
        self._stack.callback(gateway.child.stop)
        parts = {"ContextForge": gateway.child.tree(), "tool": self._tool}
        self._add_mcp("contextforge.http", "ContextForge: the same HTTP call", gateway.url, parts, gateway.call, (16, 64))

    def _dbos(self) -> None:
        binaries = postgres_binaries()
        parts: dict[str, Iterable[psutil.Process]] = {}
        if binaries is None:
            database, url = "SQLite", f"sqlite:///{self._folder / 'dbos.db'}"
        else:
            postgres = Postgres(binaries, self._folder / "postgres")
            self._stack.callback(postgres.child.stop)
            database, url = "PostgreSQL", postgres.url("bench")
            parts["PostgreSQL"] = Family(postgres.child)
        port = free_port()
        child = self._child("dbos", [str(python_of("dbos")), str(ROOT / "bench/peers/dbos_server.py"), str(port), url], port)
        parts["DBOS"] = child.tree()
        self._add("dbos.echo", f"DBOS on {database}: workflow of one step", f"http://127.0.0.1:{port}/echo", parts)

    def _child(self, name: str, command: Sequence[str], port: int) -> Child:
        # What the peers keep in a home directory of theirs stays in our folder.
        more = {"PYTHONPATH": python_path(), "HOME": str(self._folder), "PATH": bare_environment().get("PATH", "/usr/bin:/bin")}
        child = Child(command, self._folder, name, more)
        self._stack.callback(child.stop)
        child.ready(lambda: not is_free(port))
        return child

    def _add_mcp(self, name: str, label: str, url: str, parts: Parts, request: McpRequest, callers: Collection[int] | None = None) -> None:
        self._add(
            name,
            label,
            url,
            parts,
            body=request.body,
            expect=NOT_AN_ERROR,
            headers=request.headers,
            prelude=request.prelude,
            callers=callers,
        )

    def _add(
        self,
        name: str,
        label: str,
        url: str,
        parts: Parts,
        *,
        body: str = _BODY,
        expect: str = '"message"',
        notes: str = "",
        headers: Mapping[str, str] | None = None,
        prelude: tuple[str, ...] = (),
        callers: Collection[int] | None = None,
        own: tuple[str, ...] = (),
    ) -> None:
        self.targets.append(Target(name, label, url, body, parts, expect, notes, headers or {}, prelude, callers, own=own))


def side_by_side(targets: Sequence[Target]) -> list[Target]:
    """The same rows of two trees next to each other, so that what else the machine does hits both alike."""
    ours = [target.name for target in targets]
    return sorted(targets, key=lambda target: ours.index(name if (name := target.name.replace(THEN, OURS, 1)) in ours else target.name))
