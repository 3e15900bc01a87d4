"""The measurements run with a few real calls, of the service and of a peer."""

import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest

from api.errors import Refusal, refusal_response
from bench.processes import bare_environment
from bench.results import Results
from bench.service import ROOT, python_path, why_refused
from tests.system.leftovers import processes_of
from toolagent.contracts.calls import ErrorType

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def temporary() -> Generator[Path]:
    """A folder outside of pytest's, whose path is too long for sockets."""
    with tempfile.TemporaryDirectory(prefix="tool-agent-test-") as name:
        yield Path(name)


def test_what_the_service_does_not_do_is_told_in_its_words() -> None:
    answer = refusal_response(Refusal(ErrorType.UNAVAILABLE, "There is no Docker engine."))
    request = httpx.Request("POST", "http://127.0.0.1/tools/a/start")
    refused = httpx.Response(answer.status_code, content=bytes(answer.body), headers=answer.headers, request=request)
    with pytest.raises(httpx.HTTPStatusError) as error:
        refused.raise_for_status()
    assert why_refused(error.value) == "There is no Docker engine."


@pytest.mark.long
def test_a_few_calls_are_measured_and_judged_and_nothing_is_left(temporary: Path, tmp_path: Path) -> None:
    few = [
        "--only",
        "calls",
        "--peers",
        "bare,mcp",
        "--targets",
        "ours.echo,bare.local,mcp",
        "--callers",
        "1",
        "--calls",
        "5",
        "--rounds",
        "1",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", *few, "--results", str(tmp_path), "--name", "few"],
        cwd=tmp_path,
        env=bare_environment() | {"PYTHONPATH": python_path(), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = Results.model_validate_json((tmp_path / "few.json").read_text("utf-8"))
    assert {(row.target, row.callers) for row in results.rows} == {
        (name, 1) for name in ("ours.echo", "bare.local", "mcp.session.echo", "mcp.single.echo")
    }
    assert sum(verdict.met is not None for verdict in results.verdicts) == 3
    assert str(ROOT) not in (tmp_path / "few.md").read_text("utf-8")
    assert [*temporary.iterdir()] == []
    assert processes_of(temporary) == {}
