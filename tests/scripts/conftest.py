"""A script service for each test; the environment without packages is made once."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.scripts.harness import Scripts, script_service


@pytest.fixture(scope="session")
def environments_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environments")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    return tmp_path / "scripts"


@pytest_asyncio.fixture
async def scripts(tmp_path: Path, root: Path, environments_folder: Path) -> AsyncGenerator[Scripts]:
    async with script_service(tmp_path / "state", root, environments_folder) as scripts:
        yield scripts
