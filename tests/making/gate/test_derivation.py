"""Cases derived from a schema by the real library, in a process of its own."""

import asyncio
import json
import sys
import time
from pathlib import Path

import psutil
import pytest
from pydantic import JsonValue

from engine.making.gate.derivation import Derivation
from tests.programs import start_program
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.validation.schemas import issues_of

TEXTS: JsonSchema = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "when": {"type": "string", "format": "date-time"},
        "id": {"type": "string", "format": "uuid"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True},
        "place": {"$ref": "#/$defs/place"},
    },
    "required": ["text", "count", "ratio", "place"],
    "$defs": {"place": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 0}}, "required": ["x"]}},
}
ITSELF: JsonSchema = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
FOR_EVER: JsonSchema = {
    "type": "object",
    "properties": {"a": {"allOf": [{"type": "string", "pattern": f"a{number}"} for number in range(30)]}},
    "required": ["a"],
}
"""Two to the thirtieth ways of joining them are tried."""
PROGRAM = Path(__file__).parents[3] / "engine" / "making" / "gate" / "derivation_child.py"
NOTHING: JsonSchema = {"type": "object", "properties": {}}


def manifest(schema: JsonSchema, tool_id: str = "tool", version: str = "1.0.0") -> ToolManifest:
    return ToolManifest(tool_id=tool_id, name=tool_id, version=version, input_schema=schema)


@pytest.fixture
def folder(folders: tuple[Path, Path]) -> Path:
    return folders[1]


def numbers_in(value: JsonValue) -> list[float]:
    match value:
        case bool() | None | str():
            return []
        case int() | float():
            return [value]
        case dict():
            return [number for item in value.values() for number in numbers_in(item)]
        case list():
            return [number for item in value for number in numbers_in(item)]


async def test_all_cases_fit_the_schema_and_differ(folder: Path) -> None:
    async with Derivation(folder, 25) as derivation:
        cases = await derivation.of(manifest(TEXTS))
    assert 10 <= len(cases) <= 25
    assert [issues_of(TEXTS, case) for case in cases if issues_of(TEXTS, case)] == []
    assert len({str(case) for case in cases}) == len(cases)
    assert max(abs(number) for case in cases for number in numbers_in(case)) < 2**53


async def test_they_are_the_same_every_time_and_others_for_another_version(folder: Path) -> None:
    found: list[object] = []
    for version in ("1.0.0", "1.0.0", "1.0.1"):
        async with Derivation(folder, 10) as derivation:
            found.append(await derivation.of(manifest(TEXTS, version=version)))
    assert found[0] == found[1]
    assert found[0] != found[2]


ASKING = """
import json, os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", sys.argv[1], str(os.getpid())], stdin=-1, stdout=-3, cwd=sys.argv[2])
child.stdin.write(json.dumps({"schemas": [{"schema": json.loads(sys.argv[3]), "seed": 1}] * 3, "count": 5, "seconds": 60}).encode())
child.stdin.close()
print(child.pid, flush=True)
time.sleep(600)
"""


async def test_what_is_being_derived_ends_with_a_worker_that_is_killed(folder: Path) -> None:
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    command = (sys.executable, "-c", ASKING, str(PROGRAM), str(folder), json.dumps(FOR_EVER))
    worker = await start_program(*command, stdout=asyncio.subprocess.PIPE)
    assert worker.stdout is not None
    deriving = psutil.Process(int(await worker.stdout.readline()))
    async with asyncio.timeout(60):
        while not (forked := deriving.children()):  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)
    worker.kill()
    await worker.wait()
    gone, alive = await asyncio.to_thread(psutil.wait_procs, [deriving, *forked], timeout=10)
    for process in alive:
        process.kill()
    assert (len(gone), alive) == (2, [])


async def test_what_cannot_be_derived_from_is_no_other_tools_business(folder: Path) -> None:
    async with Derivation(folder, 5, timeout_s=2) as derivation:
        derivation.begin(
            [manifest(FOR_EVER, "for_ever"), manifest(ITSELF, "itself"), manifest(TEXTS, "texts"), manifest(NOTHING, "nothing")]
        )
        assert await derivation.of(manifest(FOR_EVER, "for_ever")) == ()
        assert await derivation.of(manifest(ITSELF, "itself")) == ()
        assert await derivation.of(manifest(TEXTS, "texts")) != ()
        assert await derivation.of(manifest(NOTHING, "nothing")) == ({},)


async def test_who_leaves_takes_its_processes_along(folder: Path) -> None:
    before = set(psutil.Process().children(recursive=True))

    def started() -> set[psutil.Process]:
        return {process for process in psutil.Process().children(recursive=True) if process.is_running()} - before

    async with Derivation(folder, 5, timeout_s=60) as derivation:
        derivation.begin([manifest(FOR_EVER)])
        async with asyncio.timeout(60):
            while len(started()) < 2:  # noqa: ASYNC110 - another process forks
                await asyncio.sleep(0.02)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    assert started() == set()
