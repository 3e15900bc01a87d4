"""The test servers as processes of their own."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from tests.testing_servers.conversations import At, ask, scenario, user
from toolagent.testing.servers.command_line import app
from toolagent.testing.servers.index_packages import packages_schema
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.scenario import load_scenario, scenario_schema

COMMAND = [sys.executable, "-m", "toolagent.testing.servers"]
BOUND_S = 60


@contextmanager
def running(*words: str) -> Generator[tuple[str, subprocess.Popen[str]]]:
    """The address of a ready server, and its process, which ends with the block."""
    with subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("ready http://127.0.0.1:"), process.communicate(timeout=BOUND_S)[1]
            yield line.removeprefix("ready ").strip(), process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], by: signal.Signals) -> tuple[int, str, str]:
    process.send_signal(by)
    out, err = process.communicate(timeout=BOUND_S)
    return process.returncode, out, err


def refused(*words: str) -> tuple[int, str]:
    """Without a process."""
    ran = CliRunner().invoke(app, words)
    return ran.exit_code, ran.stderr


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text("turns: [{text: one, fault: cut}]", "utf-8")
    return path


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
async def test_a_model_runs_alone_until_it_is_told_to_stop(by: signal.Signals, file: Path) -> None:
    with running("model", "--port", "0", "--scenario", str(file)) as (url, process):
        with pytest.raises(Exception, match="Connection error"):
            await ask(At(url), user("hi"))
        assert (await ask(At(url), user("hi"))).stop_reason == "end_turn"
        async with httpx.AsyncClient(base_url=url) as client:
            turns = (await client.get("/scripted/turns")).json()
        end = ended(process, by)
    assert turns == [{"conversation": "conversation", "turn": 1, "asked": 2, "faults": 1, "served": 1}]
    assert end == (0, "", "")


async def test_what_was_not_expected_is_said_at_the_end(file: Path) -> None:
    with running("model", "--scenario", str(file)) as (url, process):
        with pytest.raises(Exception, match="only 1"):
            await ask(At(url), user("hi"), {"role": "assistant", "content": "one"}, user("go on"))
        code, _, err = ended(process, signal.SIGTERM)
    assert code == 1
    assert "turn 2 was asked for, but there are only 1" in err
    assert "Traceback" not in err


async def test_a_recorder_runs_alone(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded.yaml"
    async with ModelServer(scenario("turns: [{text: one}]")) as real:
        with running("record", "--to", real.url, "--scenario", str(recorded)) as (url, process):
            await ask(At(url), user("hi"))
            assert ended(process, signal.SIGTERM) == (0, "", "")
    assert [turn.text for turn in load_scenario(recorded).turns] == ["one"]
    # Nothing half-written is left.
    assert names_in(tmp_path) == ["recorded.yaml"]


def test_an_index_runs_alone(tmp_path: Path) -> None:
    packages = tmp_path / "packages.yaml"
    packages.write_text("packages: [{name: slugger, releases: [{version: '1.0'}]}]", "utf-8")
    with running("index", "--packages", str(packages)) as (url, process):
        assert "slugger-1.0-py3-none-any.whl" in httpx.get(f"{url}/simple/slugger/").text
        assert ended(process, signal.SIGTERM) == (0, "", "")


def test_a_file_that_is_wrong_is_a_wrong_usage(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("turns: [{tex: hi}]", "utf-8")
    assert refused("model", "--scenario", str(wrong)) == (
        2,
        f"{wrong}: $.turns[0].tex: there is no such field. Did you mean 'text'?\n",
    )


def test_a_port_that_is_taken_is_named(file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [*COMMAND, "model", "--port", str(port), "--scenario", str(file)]
        ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=BOUND_S)
    assert (ran.returncode, ran.stderr) == (
        2,
        f"Port {port} cannot be listened on: Address already in use. Choose another, or 0 for a free one.\n",
    )


def test_a_recorder_needs_an_endpoint_and_a_folder(tmp_path: Path) -> None:
    assert "no base URL" in refused("record", "--to", "example.test", "--scenario", str(tmp_path / "a.yaml"))[1]
    assert "Make it first" in refused("record", "--to", "http://example.test", "--scenario", str(tmp_path / "no" / "a.yaml"))[1]


@pytest.mark.parametrize(("of", "schema"), [("scenario", scenario_schema()), ("packages", packages_schema())])
def test_the_schemas_are_printed(of: str, schema: object) -> None:
    printed = CliRunner().invoke(app, ("schema", of))
    assert (printed.exit_code, json.loads(printed.stdout)) == (0, schema)
