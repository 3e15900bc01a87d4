"""An agent builds a tool, from the first use to a candidate."""

import asyncio
import io
import tarfile
from pathlib import Path

from pydantic import JsonValue

from activities.use_tool import shown
from engine.making.workbench.places import WORK
from engine.making.workbench.proposal import Proposal
from tests.activities.agent_tools.conftest import OWN, TASK, Agent
from toolagent.contracts.sources import LocalSource

MAIN = """\
import argparse
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

import idna


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({"status": "ok", "idna": bool(idna.__version__)})

    def answer(self, value):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    HTTPServer(("127.0.0.1", parser.parse_args().port), Handler).serve_forever()
"""
ABOUT = {
    "tool_id": OWN,
    "name": "Words",
    "description": "Counts words.",
    "runtime_type": "uv",
    "internal_port": 0,
    "host_dir": f"{WORK}/words",
}
SCHEMA: dict[str, JsonValue] = {"type": "object", "properties": {"text": {"$ref": "#/$defs/text"}}, "$defs": {"text": {"type": "string"}}}
PROBE = """\
import time
import urllib.request

for _ in range(50):
    try:
        print(urllib.request.urlopen("http://127.0.0.1:8123/health").read().decode())
        break
    except OSError:
        time.sleep(0.2)
"""
ASK = "python main.py --port 8123 & python ../probe.py; kill $!"


async def test_a_tool_is_made_and_submitted(agent: Agent) -> None:
    assert f"{WORK}/words" in await agent.told("create_uv_project", name="words")
    await agent.told("write_file", path="words/main.py", content=MAIN)
    await agent.told("uv_add_dependency", project_dir=f"{WORK}/words", package="idna")
    await agent.told("uv_add_dependency", project_dir=f"{WORK}/words", package="iniconfig", dev=True)
    await agent.told("write_file", path="probe.py", content=PROBE)
    said = await agent.told("run_in_uv", project_dir=f"{WORK}/words", command=ASK)
    assert '{"status": "ok", "idna": true}' in said
    assert "import argparse" in await agent.told("read_file", path=f"{WORK}/words/main.py")
    note = await agent.use("register_tool", **ABOUT, input_schema=SCHEMA, side_effect_scope="none")
    assert note.product is not None, (await agent.shown()).content
    candidate = await agent.candidates.load(note.product)
    (entry,) = candidate.entries
    (source,) = entry.sources
    assert isinstance(source, LocalSource)
    assert entry.manifest.input_schema["properties"] == {"text": {"type": "string"}}
    assert source.content is not None
    files = await archive_of(agent, source.content)
    assert sorted(files) == ["main.py", "pyproject.toml", "requirements.lock"]
    assert b"idna==" in files["requirements.lock"]
    assert b"--hash=" in files["requirements.lock"]
    assert b"iniconfig" not in files["requirements.lock"]
    again = await agent.use("register_tool", **ABOUT, input_schema=SCHEMA, side_effect_scope="none")
    assert again.product == note.product
    assert [line.kind.value for line in await agent.notes.after(TASK)][1:3] == ["TOOL_USE", "TOOL_RESULT"]


async def test_a_tool_without_dependencies_can_be_submitted(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    await agent.told("write_file", path="words/main.py", content="print()\n")
    assert (await agent.use("register_tool", **ABOUT)).product is not None


async def test_what_the_gate_refuses_is_not_installed_and_not_submitted(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    assert "requests" in await agent.refused("uv_add_dependency", project_dir="words", package="reqeusts")
    assert "address" in await agent.refused("uv_add_dependency", project_dir="words", package="x @ https://example.com/x.whl")
    await agent.told("write_file", path="words/main.py", content="print()\n")
    declared = '[project]\nname = "words"\nversion = "1"\ndependencies = ["{}"]\n'
    await agent.told("write_file", path="words/pyproject.toml", content=declared.format("reqeusts"))
    assert "uv_add_dependency" in await agent.refused("register_tool", **ABOUT)
    await agent.told("write_file", path="words/pyproject.toml", content='[project]\nname = "words"\nversion = "1"\n')
    await agent.told("write_file", path="words/requirements.lock", content="reqeusts==1 --hash=sha256:00\n")
    note = await agent.use("register_tool", **ABOUT)
    assert note.product is not None
    source = (await agent.candidates.load(note.product)).entries[0].sources[0]
    assert isinstance(source, LocalSource)
    assert "reqeusts" not in str(await archive_of(agent, source.content or ""))
    await agent.told("write_file", path="words/main.py", content='# /// script\n# dependencies = ["x"]\n# ///\n')
    assert "/// script" in await agent.refused("register_tool", **ABOUT)


async def test_nobody_elses_id_is_taken_and_nothing_unusable_is_submitted(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    assert "main.py" in await agent.refused("register_tool", **ABOUT)
    await agent.told("write_file", path="words/main.py", content="print()\n")
    assert OWN in await agent.refused("register_tool", **{**ABOUT, "tool_id": "echo"})
    assert f"register it as {OWN!r}" in await agent.refused("register_tool", **{**ABOUT, "tool_id": f"{OWN}_extra"})
    assert "input_schema" in await agent.refused("register_tool", **ABOUT, input_schema={"type": "nonsense"})
    assert "input_schema" in await agent.refused("register_tool", **ABOUT, input_schema={"$ref": "https://example.com/schema"})
    assert "outside" in await agent.refused("register_tool", **{**ABOUT, "host_dir": "/etc"})
    assert "host_dir" in await agent.refused("register_tool", **{**ABOUT, "host_dir": None})
    assert "no containers" in await agent.refused("create_docker_env", image="x")


async def test_a_project_that_became_a_link_is_not_packed(agent: Agent, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    await asyncio.to_thread(outside.mkdir)
    await asyncio.to_thread((outside / "main.py").write_text, "secret")
    await agent.told("create_uv_project", name="words")
    await agent.told("write_file", path="words/main.py", content="print()\n")
    await agent.told("run_in_uv", project_dir="words", command="sleep 600", is_background=True)
    running = [*(await agent.bench()).commands._running.values()]  # pyright: ignore[reportPrivateUsage]
    await agent.told("run_in_uv", project_dir="words", command=f"cd /work; mv words was; ln -s {outside} words")
    assert "link" in await agent.refused("register_tool", **ABOUT)
    assert "link" in await agent.refused("read_file", path="words/main.py")
    assert "link" in await agent.refused("run_in_uv", project_dir="words", command="true")
    await agent.told("create_uv_project", name="other")
    await agent.told("run_in_uv", project_dir="other", command="cd /work; rm words; mv was words; ln -s /etc/passwd words/passwd")
    note = await agent.use("register_tool", **ABOUT)
    assert note.product is not None
    source = (await agent.candidates.load(note.product)).entries[0].sources[0]
    assert isinstance(source, LocalSource)
    assert "passwd" not in await archive_of(agent, source.content or "")
    assert [process.has_ended for process in running] == [True]


async def test_a_tool_that_is_to_be_mended_keeps_its_id(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    await agent.told("write_file", path="words/main.py", content="print()\n")
    agent.taken.add(OWN)
    assert "already" in await agent.refused("register_tool", **ABOUT)
    proposals, bench = agent.role._proposals, await agent.bench()  # pyright: ignore[reportPrivateUsage]
    proposal = Proposal(
        OWN,
        is_docker=False,
        host_dir="words",
        container_id=None,
        internal_port=0,
        endpoint_path="/",
        http_method="POST",
        manifest={"name": "Words", "description": "Counts words."},
    )
    assert (await proposals.submit(bench, OWN, proposal, is_there=True)).file_id


async def test_what_is_interrupted_is_done_again_and_what_is_done_is_not(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    run = await agent.ask("run_in_uv", project_dir="words", command="echo x >> log; wc -l < log")
    first = await agent.do(run)
    assert await agent.do(run) == first
    assert (await agent.shown()).content == shown({"exit_code": 0, "stdout": "1\n", "stderr": ""})


async def archive_of(agent: Agent, content: str) -> dict[str, bytes]:
    files = agent.candidates._files  # pyright: ignore[reportPrivateUsage]
    file = await files.get(content)
    assert file is not None
    packed = b"".join([chunk async for chunk in files.read(file)])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return {member.name: read.read() for member in archive if (read := archive.extractfile(member)) is not None}
