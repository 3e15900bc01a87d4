"""A candidate has the dependencies that were judged and tried, whatever else its files name."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from tests.activities.agent_tools.conftest import Agent
from tests.activities.agent_tools.test_building import ABOUT, archive_of
from toolagent.contracts.sources import LocalSource
from toolagent_service.contracts.dependency_policy import DependencyVerdict

INLINE = '# /// script\n# requires-python = ">=3.11"\n# dependencies = ["reqeusts"]\n# ///\n'
DECLARED = '[project]\nname = "words"\nversion = "1"\ndependencies = [{}]\n'


@pytest.mark.parametrize(
    "main",
    [
        f"{INLINE}print()\n".encode(),
        f"{INLINE}#{'x' * 600_000}\n".encode(),
        f"# -*- coding: latin-1 -*-\n{INLINE}# \xe9\n".encode("latin-1"),
    ],
    ids=["plain", "large", "latin-1"],
)
async def test_what_a_comment_says_of_packages_is_found_however_it_is_written(agent: Agent, main: bytes) -> None:
    await agent.told("create_uv_project", name="words")
    folder = (await agent.bench()).folder / "work" / "words"
    await asyncio.to_thread((folder / "main.py").write_bytes, main)
    await asyncio.to_thread((folder / "main.py.lock").write_text, "version = 1\n")
    assert "/// script" in await agent.refused("register_tool", **ABOUT)
    assert not await asyncio.to_thread((folder.parent.parent / "packed").exists)


async def test_a_text_that_is_no_metadata_is_no_reason_to_refuse_and_no_list_is_kept(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    await agent.told("write_file", path="words/main.py", content='print("# /// script")\n')
    await agent.told("write_file", path="words/main.py.lock", content="version = 1\n")
    note = await agent.use("register_tool", **ABOUT)
    assert note.product is not None, (await agent.shown()).content
    source = (await agent.candidates.load(note.product)).entries[0].sources[0]
    assert isinstance(source, LocalSource)
    assert sorted(await archive_of(agent, source.content or "")) == ["main.py", "pyproject.toml", "requirements.lock"]


async def test_an_extra_that_was_written_by_hand_was_not_tried(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    await agent.told("write_file", path="words/main.py", content="print()\n")
    await agent.told("uv_add_dependency", project_dir="words", package="urllib3")
    await agent.told("write_file", path="words/pyproject.toml", content=DECLARED.format('"urllib3[socks]"'))
    assert "'pysocks' along" in await agent.refused("register_tool", **ABOUT)


async def test_what_was_not_installed_here_is_of_the_age_that_was_judged_too(agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")
    await agent.told("write_file", path="words/main.py", content="print()\n")
    await agent.told("write_file", path="words/pyproject.toml", content=DECLARED.format("\"iniconfig>=2.1; sys_platform == 'win32'\""))
    proposals = agent.role._proposals  # pyright: ignore[reportPrivateUsage]
    for then, is_old in ((datetime(2024, 1, 1, tzinfo=UTC), False), (datetime(2026, 1, 1, tzinfo=UTC), True)):
        proposals._gate = Judged(then)  # pyright: ignore[reportPrivateUsage]
        note = await agent.use("register_tool", **ABOUT)
        assert (note.product is not None) is is_old, (await agent.shown()).content


class Judged:
    """A judge that permits everything older than its date."""

    def __init__(self, not_after: datetime) -> None:
        self._not_after = not_after

    async def judge(self, requirements: Sequence[str]) -> tuple[DependencyVerdict, ...]:
        return tuple(DependencyVerdict(requirement=one, not_after=self._not_after) for one in requirements)
