"""Runs the commands of the pages against a service of the test."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
from PIL import Image

from tests.contracts.compatibility import contains
from tests.docs.pages import PAGES, ROOT, Block, blocks, runnable
from tests.native_crash import crashed_at_exit
from tests.system.catalog import make_catalog
from tests.system.service_process import ServiceProcess
from workers.settings.environment import environment

pytestmark = pytest.mark.timeout(400)

RUNNABLE = [page for page in PAGES if any(block.reason is None for block in runnable(page))]
NOT_RUN = [block for page in PAGES for block in runnable(page) if block.reason]
MOST_NOT_RUN = 13
"""Blocks that no test runs. Lower it when one becomes runnable; raise it only with a reason that a reader would accept."""

# curl says with its exit code when the answer is a refusal.
CURL = '#!/bin/sh\nexec "{curl}" --fail-with-body --noproxy "*" "$@"\n'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, environments: Path) -> Generator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("documented")
    service = ServiceProcess(folder, make_catalog(folder, environments))
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """The reader's folder: the environment, the data, and two pictures."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for name in ("docs", "data"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name, colour in (("a.png", "red"), ("b.png", "blue")):
        Image.new("RGB", (16, 16), colour).save(tmp_path / name)
    curl = shutil.which("curl")
    assert curl is not None, "Install curl."
    shim = tmp_path / "bin/curl"
    shim.parent.mkdir()
    shim.write_text(CURL.format(curl=curl), "utf-8")
    shim.chmod(shim.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def surroundings(service: ServiceProcess, desk: Path) -> Mapping[str, str]:
    inherited = {name: value for name, value in environment().items() if not name.startswith("TOOL_AGENT_")}
    path = os.pathsep.join([str(desk / "bin"), str(Path(sys.prefix) / "bin"), inherited["PATH"]])
    own = {"TOOL_AGENT_URL": service.api_url, "TEMPORAL_ADDRESS": service.temporal_address, "TOOL_AGENT_API_KEY": "not-asked-for"}
    return inherited | own | {"PATH": path, "COLUMNS": "200", "NO_COLOR": "1"}


def with_addresses(text: str, service: ServiceProcess) -> str:
    """The text with the ports of this service instead of the default ports."""
    api = service.api_url.removeprefix("http://")
    return re.sub(r"(localhost|127\.0\.0\.1):7233", service.temporal_address, re.sub(r"(localhost|127\.0\.0\.1):8001", api, text))


def run(block: Block, service: ServiceProcess, desk: Path) -> str:
    """The output of the block. Raises AssertionError, with all output, if the block fails."""
    text = with_addresses(block.text, service)
    command = [sys.executable, "-c", text] if block.language == "python" else ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(
        command,
        cwd=desk,
        env=surroundings(service, desk),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0 or crashed_at_exit(done), (
        f"{block.name} ended with {done.returncode}:\n{text}\n{done.stdout}\n{done.stderr}"
    )
    return done.stdout


def is_answer(said: str, answer: Block) -> bool:
    """Whether the output matches; `…` stands for anything, and an object may have more than is shown."""
    if answer.language == "json":
        return contains(json.loads(said), json.loads(answer.text))
    pattern = re.escape(answer.text.strip()).replace("…", ".*")
    return re.fullmatch(pattern, said.strip(), re.DOTALL) is not None


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_says_to_type_works(page: Path, service: ServiceProcess, desk: Path) -> None:
    for block in runnable(page):
        if block.reason is None:
            said = run(block, service, desk)
            if block.answer is not None:
                assert is_answer(said, block.answer), f"{block.name} printed something else:\n{said}"


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.name)
def test_a_block_that_is_not_run_says_why(block: Block) -> None:
    pytest.skip(f"{block.name}: {block.reason}")


def test_few_blocks_are_not_run() -> None:
    assert len(NOT_RUN) <= MOST_NOT_RUN, [block.name for block in NOT_RUN]


def test_a_block_is_read_with_its_reason_and_its_answer(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: it would take a day -->\n```bash\nwait\n```\n\n```bash\necho 1\n```\n\n```json answer\n1\n```\n", "utf-8"
    )
    long, short = blocks(page)
    assert (long.reason, long.text, long.answer) == ("it would take a day", "wait\n", None)
    assert (short.reason, short.text, short.answer.text if short.answer else None) == (None, "echo 1\n", "1\n")


def test_a_block_that_fails_or_asks_in_vain_is_caught(service: ServiceProcess, desk: Path) -> None:
    for text in ("false | true", "curl -s localhost:8001/nowhere", "echo $NOT_SET_ANYWHERE"):
        with pytest.raises(AssertionError):
            run(Block(ROOT / "README.md", 1, "bash", text, None), service, desk)
    assert not is_answer('{"a": 1}', Block(ROOT / "README.md", 1, "json", '{"a": 2}', None))
