"""A candidate on trial is separate from the version in use, and leaves nothing behind."""

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from engine.making.gate.checks import starts, stays_within
from engine.making.gate.judging import judge
from engine.making.gate.subject import Came, Subject
from engine.making.gate.trial import TrialLimits, apart, on_trial, sweep_trials
from engine.making.uv.outages import Outage
from engine.runtimes import RUNTIMES
from engine.runtimes.auditing.audit import NoAudit
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.volumes import calls_of, volume_mounts
from engine.runtimes.environments.execution import Executor
from engine.runtimes.projects import Projects
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.scripts.service import ScriptService
from tests.making.gate.conftest import GIVEN, INPUT, Court, DerivedOnce, entry_of, failed_checks, leftovers
from tests.runtimes.conftest import Routes, eventually, silent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import SandboxPolicy
from toolagent.contracts.sources import DockerSource, LocalSource, McpSource, RemoteSource, ScriptLanguage, ScriptSource
from toolagent.core.failures import ContentUnavailableError
from toolagent_service.calls.shared_processes import place_of_volumes

Spoilt = Callable[..., ToolEntry]
SUM = GIVEN[0].input
_ASKS = """\
import urllib.error, urllib.request
try: urllib.request.urlopen("http://example.com/", timeout=10)
except urllib.error.URLError: print('"refused"')
"""


@pytest.mark.promise("repaired-beside")
async def test_the_version_in_use_is_not_touched(court: Court, spoilt: Spoilt) -> None:
    entry, routes = spoilt(), Routes()
    supervisor = Supervisor({"local": RUNTIMES["local"](court.parts)}, routes, "here")
    active = await supervisor.start(entry, silent)
    told = len(routes.saved)
    async with court.subject(entry) as subject:
        judgement = await judge(subject)
    assert failed_checks(judgement) == []
    assert active.pid is not None
    assert psutil.Process(active.pid).is_running()
    assert supervisor.is_running("reckoner", "1.0.0")
    assert len(routes.saved) == told
    await supervisor.close()


@pytest.mark.promise("nothing-left-of-a-failure")
async def test_a_judgement_that_is_cancelled_leaves_nothing(court: Court, spoilt: Spoilt) -> None:
    asked = asyncio.Event()

    def tell(message: str) -> None:
        if message.startswith("given examples"):
            asked.set()

    async def judged() -> None:
        async with court.subject(spoilt()) as subject:
            await judge(subject, tell)

    judging = asyncio.create_task(judged())
    async with asyncio.timeout(60):
        await asked.wait()
    assert leftovers(court.state) != []
    judging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await judging
    assert leftovers(court.state) == []


async def test_what_a_dead_worker_left_is_swept(court: Court) -> None:
    home = court.state / "trials" / "0123456789abcdef" / "tools" / "reckoner" / "home"
    home.mkdir(parents=True)
    (home / "note").write_text("left")
    await sweep_trials(court.state)
    await sweep_trials(court.state)
    assert not (court.state / "trials").exists()


async def test_a_call_on_trial_is_checked_as_every_call_is(court: Court, spoilt: Spoilt) -> None:
    async with court.subject(spoilt(('"count": len(numbers)', '"count": "many"'))) as subject:
        trial = subject.trial
        assert (await trial.call("reckoner", {"numbers": [1]})).came is Came.NOT_SENT
        assert (await trial.send("reckoner", {"numbers": [1]})).came is Came.REFUSAL
        assert (await trial.send("reckoner", b"{")).came is Came.REFUSAL
        reply = await trial.call("reckoner", SUM)
    assert (reply.came, reply.output) == (Came.MISFIT, {"result": 6, "count": "many"})
    assert "$.count" in reply.message


async def test_a_kill_is_no_death_of_its_own_and_a_crash_is(court: Court, spoilt: Spoilt) -> None:
    crash = ("total = sum(numbers)", "total = os._exit(3) if numbers == [9] else sum(numbers)")
    async with court.subject(spoilt(crash)) as subject:
        trial = subject.trial
        await trial.start()
        assert await trial.kill("reckoner")
        assert not await trial.kill("reckoner")
        assert (await trial.call("reckoner", SUM)).came is Came.ANSWER
        assert trial.account().deaths == 0
        reply = await trial.call("reckoner", {"numbers": [9], "operation": "sum"})
        assert reply.came is Came.LOST
        assert "exited with code 3" in reply.message
        assert trial.account().deaths == 1


async def test_what_it_raised_is_read_of_its_log(court: Court, spoilt: Spoilt) -> None:
    raising = (
        "total = sum(numbers)",
        "print('ConnectionError: no Redis', file=__import__('sys').stderr, flush=True); total = sum(numbers)",
    )
    async with court.subject(spoilt(raising)) as subject:
        assert await subject.trial.raised("reckoner", await subject.trial.log_size("reckoner")) == ""
        assert (await subject.trial.call("reckoner", SUM)).came is Came.ANSWER
        said = await _first(lambda: subject.trial.raised("reckoner", 0))
        assert await subject.trial.raised("reckoner", await subject.trial.log_size("reckoner")) == ""
    assert said == "ConnectionError: no Redis"


async def test_a_fresh_home_is_empty(court: Court, spoilt: Spoilt) -> None:
    counts = ("total = sum(numbers)", "(HOME / str(len(list(HOME.iterdir())))).mkdir()\n    total = len(list(HOME.iterdir()))")
    async with court.subject(spoilt(counts)) as subject:
        trial = subject.trial
        assert [(await trial.call("reckoner", SUM)).output for _ in range(2)] == [{"result": 1, "count": 3}, {"result": 2, "count": 3}]
        await trial.renew()
        assert (await trial.call("reckoner", SUM)).output == {"result": 1, "count": 3}


async def test_all_tools_of_a_group_are_judged(court: Court, spoilt: Spoilt) -> None:
    one = spoilt()
    other = one.model_copy(update={"manifest": one.manifest.model_copy(update={"tool_id": "reckoner_two"})})
    async with court.subject(one, other) as subject:
        await subject.trial.start()
        assert len([name for name in leftovers(court.state) if name.isdigit()]) > 1
        judgement = await judge(subject)
    assert failed_checks(judgement) == []
    assert "14 of 14 were refused." in {check.check: check.details for check in judgement.checks}["bad input"]


async def test_tools_that_share_a_process_are_judged_in_it(court: Court, spoilt: Spoilt) -> None:
    entry = spoilt()
    sources = tuple(source.model_copy(update={"process": "reckoner"}) for source in entry.sources)
    manifests = [entry.manifest.model_copy(update={"tool_id": f"reckoner_{name}"}) for name in ("one", "two")]
    judgement = await court.judge(*(ToolEntry(manifest=manifest, sources=sources) for manifest in manifests))
    assert failed_checks(judgement) == []


_HANGS = """
import json, sys, time

for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            version = asked["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        case "tools/call":
            time.sleep(600 if asked["params"]["name"] == "hangs" else 0)
            result = {"content": [{"type": "text", "text": "here"}]}
        case _:
            result = {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


async def test_a_case_that_is_not_answered_breaks_none_of_others_in_its_process(court: Court, tmp_path: Path) -> None:
    (tmp_path / "data/hanging").mkdir(parents=True)
    (tmp_path / "data/hanging/main.py").write_text(_HANGS)
    command = (str(Path(sys.base_prefix) / "bin/python3"), "main.py")
    entries = [
        ToolEntry(
            manifest=ToolManifest(tool_id=name, name=name, timeout_s=1.0),
            sources=(McpSource(tool_name=name, host_dir="hanging", command=command, process="hanging"),),
        )
        for name in ("hangs", "answers")
    ]
    async with court.subject(*entries) as subject:
        trial = subject.trial
        await trial.start()
        assert (await trial.call("hangs", {})).came is Came.SILENCE
        assert (await trial.call("answers", {})).came is Came.ANSWER
        assert trial.account().deaths == 0, "that we end it is no death of its own"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await trial.call("hangs", {})
        assert (await trial.call("answers", {})).came is Came.ANSWER


async def test_a_script_on_trial_is_seen_to_ask_for_a_host_that_it_does_not_declare(court: Court, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "asks.py").write_text(_ASKS)
    kept = court.parts.sandboxing
    executor = Executor(court.parts.launcher, kept.sandbox)
    parts = replace(court.parts, scripts=ScriptService(tmp_path / "scripts", court.state / "tools", executor, kept.environments))
    source = ScriptSource(script_path="asks.py", language=ScriptLanguage.PYTHON)
    entry = ToolEntry(manifest=ToolManifest(tool_id="asks", name="Asks"), sources=(source,))
    async with Court(parts, court.derived).subject(entry, given=(), withheld=()) as subject:
        assert (await subject.trial.call("asks", {})).output == "refused"
        result = await stays_within.check(subject)
    assert (result.applies, result.passed) == (True, False)
    assert "example.com:80" in result.details
    assert not (court.state / "tools").exists()


_AT_ONCE = (
    "import json\n",
    "import json\nimport threading\nimport urllib.request\n\n"
    "def ask(host):\n    try:\n        urllib.request.urlopen(f'http://{host}/', timeout=10)\n    except OSError:\n        pass\n\n",
)


async def test_what_is_asked_for_at_the_start_and_after_the_last_call_is_seen(court: Court, spoilt: Spoilt) -> None:
    at_start = ("HOME = Path(", "ask('early.example.com')\nHOME = Path(")
    later = (
        "    total = sum(numbers)",
        "    (threading.Timer(0.5, lambda: (ask('late.example.com'), (HOME / 'asked').touch())).start())\n    total = sum(numbers)",
    )
    async with court.subject(spoilt(_AT_ONCE, at_start, later)) as subject:
        await subject.trial.start()
        result = await stays_within.check(subject)
        assert (result.passed, "early.example.com:80" in result.details) == (False, True)
        assert (await subject.trial.call("reckoner", SUM)).came is Came.ANSWER
        await eventually(lambda: any((court.state / "trials").rglob("asked")), 20)
        result = await stays_within.check(subject)
    assert (result.passed, "late.example.com:80" in result.details) == (False, True)


async def test_a_tool_with_a_parameter_in_a_header_passes(court: Court, spoilt: Spoilt) -> None:
    entry = spoilt()
    (source,) = entry.sources
    assert isinstance(source, LocalSource)
    schema: JsonSchema = {**INPUT, "properties": {**INPUT["properties"], "unit": {"type": "string"}}}  # pyright: ignore[reportGeneralTypeIssues]
    told = entry.model_copy(
        update={
            "manifest": entry.manifest.model_copy(update={"input_schema": schema}),
            "sources": (source.model_copy(update={"header_parameters": {"unit": "X-Unit"}}),),
        }
    )
    assert failed_checks(await court.judge(told)) == []


class Away:
    """A content store that is unavailable."""

    async def fetch(self, content: str, folder: Path) -> Path:  # noqa: ARG002 - the protocol's
        raise await asyncio.sleep(0, ContentUnavailableError("The content store does not answer."))


async def test_that_the_store_is_away_is_raised_as_long_as_there_is_patience(court: Court, tmp_path: Path) -> None:
    parts = replace(court.parts, projects=Projects(tmp_path / "projects", Away()))
    kept = entry_of()
    kept = kept.model_copy(update={"sources": (LocalSource(host_dir="x", content=f"file_{32 * 'a'}", endpoint_path="/run"),)})
    async with on_trial((kept,), parts, task_id="create_00000000", is_patient=True) as trial:
        with pytest.raises(Outage):
            await starts.check(Subject((kept,), trial, DerivedOnce(court.derived)))
        with pytest.raises(Outage):
            await trial.call("reckoner", SUM)
    async with on_trial((kept,), parts, task_id="create_00000000") as trial:
        assert not (await starts.check(Subject((kept,), trial, DerivedOnce(court.derived)))).passed


async def test_a_server_of_others_gets_so_many_requests_and_no_more(court: Court) -> None:
    manifest = entry_of().manifest.model_copy(update={"input_schema": {}, "backend_runtime": "remote"})
    there = ToolEntry(manifest=manifest, sources=(RemoteSource(remote_url="http://127.0.0.1:9", http_method="GET"),))
    limits = TrialLimits(remote_requests=3)
    async with on_trial((there,), court.parts, task_id="create_00000000", limits=limits) as trial:
        await trial.start()
        assert await trial.health("reckoner", "/health") is None
        came = [(await trial.call("reckoner", {})).came for _ in range(4)]
    assert came == [Came.NOT_SENT, Came.NOT_SENT, Came.SPARED, Came.SPARED]


async def test_a_container_on_trial_sees_and_leaves_nothing_of_the_version_in_use(court: Court, tmp_path: Path) -> None:
    folder, shared = tmp_path / "trial", tmp_path / "shared"
    folder.mkdir(parents=True)
    shared.mkdir()
    there = DockerParts.by_default(tmp_path, court.state)
    settings = replace(there.settings, calls=court.state / "calls", policy=SandboxPolicy(write=(str(shared),)))
    docker = apart(replace(court.parts, docker=replace(there, settings=settings)), folder, NoAudit()).docker
    assert docker is not None
    volumes = {"data": "/data", str(shared): "/shared"}
    source = DockerSource(image="anything", volumes=volumes)
    mounts = volume_mounts(source.volumes, "ledger", docker.settings)
    assert [(mount["Source"], mount["ReadOnly"]) for mount in mounts] == [
        (str(folder / "volumes" / place_of_volumes("ledger") / "data"), False),
        (str(shared), True),
    ]
    takes_files = ToolManifest(tool_id="ledger", name="L", input_schema={"properties": {"f": {"format": "file-path"}}})
    assert calls_of(takes_files, source, docker.settings) == folder / "calls" / "ledger"
    assert docker.settings.kept == folder
    # An image stays when the trial is over, and is this worker's.
    assert docker.settings.origin == settings.origin
    assert volume_mounts(volumes, "ledger", settings)[1]["ReadOnly"] is False


async def _first(look: Callable[[], Awaitable[str]]) -> str:
    """The first line of its output, which may come a moment after its answer."""
    async with asyncio.timeout(60):
        for pause in itertools.repeat(0.05):
            if said := await look():
                return said
            await asyncio.sleep(pause)
    raise AssertionError
