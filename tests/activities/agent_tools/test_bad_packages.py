"""An agent that requests packages that do not exist, or imitate others, gets none of them, and is told what to do."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from tests.activities.agent_tools.conftest import Agent, Make
from tests.making.dependencies.bad_packages import HONEST, bad_packages
from tests.making.dependencies.test_gate import INVENTED, NEAR, YOUNG
from toolagent.testing.servers.index_server import IndexServer


@pytest_asyncio.fixture
async def index(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[IndexServer]:
    """The only index of uv."""
    async with IndexServer(bad_packages(datetime.now(UTC))) as server:
        for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("UV_DEFAULT_INDEX", server.index_url)
        yield server


@pytest_asyncio.fixture
async def agent(index: IndexServer, make_agent: Make) -> Agent:
    assert index.downloads == {}
    return make_agent("No engine runs.")


@pytest.mark.promise("judged-packages-only")
async def test_of_50_bad_packages_an_agent_gets_none_and_is_told_what_to_do(index: IndexServer, agent: Agent) -> None:
    await agent.told("create_uv_project", name="words")

    async def refusal(package: str) -> str:
        return await agent.refused("uv_add_dependency", project_dir="words", package=package)

    for name in INVENTED:
        message = await refusal(name)
        assert f"has no package '{name}'" in message
        assert "Did you mean" in message or "or do without" in message
    for name in NEAR:
        message = await refusal(name)
        assert "Did you mean '" in message or "Ask for that." in message
    for name in YOUNG:
        assert "was first published on" in (message := await refusal(name))
        assert "Use one that has been there for longer" in message
    assert index.downloads == {}
    await agent.told("uv_add_dependency", project_dir="words", package=HONEST)
    bench = await agent.bench()
    assert bench.environments.installed("words") == {"word_parts": "1.0"}
    assert [*index.downloads] == ["word_parts-1.0-py3-none-any.whl"]
    assert "dependencies = [\n" in (project := (bench.folder / "work/words/pyproject.toml").read_text("utf-8"))
    assert [name for name in (*INVENTED, *NEAR, *YOUNG) if name in project] == []
