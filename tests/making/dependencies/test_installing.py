"""The gate before a real installation: refused packages are never downloaded, and permitted ones are installed."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
import uv

from engine.making.dependencies.gate import DependencyGate
from engine.making.dependencies.index_addresses import addresses_from
from engine.making.dependencies.popular import PopularPackages
from engine.making.dependencies.simple_index import SimpleIndex
from engine.runtimes.environments.programs import Programs
from tests.making.dependencies.conftest import NOW
from tests.making.dependencies.test_gate import INVENTED, NEAR, YOUNG
from toolagent.testing.servers.index_packages import IndexedPackage, IndexPackages, Release
from toolagent.testing.servers.index_server import IndexServer
from toolagent_service.contracts.dependency_policy import DependencyPolicy
from workers.host.scripts import indexes_of

OLD, NEW = NOW - timedelta(days=400), NOW - timedelta(days=2)
PACKAGES = (
    *(IndexedPackage(name=name, releases=(Release(version="1.0", uploaded=OLD),)) for name in NEAR),
    *(IndexedPackage(name=name, releases=(Release(version="1.0", uploaded=NEW),)) for name in YOUNG),
    IndexedPackage(
        name="requests",
        releases=(Release(version="2.0", uploaded=OLD, requires=("idna",)), Release(version="2.1", uploaded=NEW)),
    ),
    IndexedPackage(name="idna", releases=(Release(version="3.0", uploaded=OLD), Release(version="3.1", uploaded=NEW))),
)


@pytest_asyncio.fixture
async def server() -> AsyncGenerator[IndexServer]:
    async with IndexServer(IndexPackages(packages=PACKAGES)) as server:
        yield server


def install(server: IndexServer, home: Path, requirements: list[str], not_after: str) -> list[str]:
    """Install, and return the installed packages."""
    folder = home / "installed"
    subprocess.run(
        [
            *(uv.find_uv_bin(), "pip", "install", "--no-cache", "--no-config", "--default-index", server.index_url),
            *("--exclude-newer", not_after, "--python", sys.executable, "--target", str(folder), *requirements),
        ],
        check=True,
        capture_output=True,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
    )
    return sorted(path.name for path in folder.glob("*.dist-info"))


@pytest.mark.promise("judged-packages-only")
async def test_of_50_bad_names_none_is_installed_and_of_a_good_one_what_was_judged(
    server: IndexServer, popular: PopularPackages, tmp_path: Path
) -> None:
    variables = {"HOME": str(tmp_path), "UV_DEFAULT_INDEX": server.index_url, "PATH": "/usr/bin:/bin"}
    index = SimpleIndex(addresses_from(indexes_of(Programs.found(Path(uv.find_uv_bin())), variables)))
    gate = DependencyGate(DependencyPolicy(), index, popular, lambda: NOW)
    verdicts = await gate.judge((*INVENTED, *NEAR, *YOUNG, "requests>=2"))
    await index.aclose()
    passed = [verdict for verdict in verdicts if verdict.passed]
    assert [verdict.requirement for verdict in passed] == ["requests>=2"]
    assert server.downloads == {}
    assert passed[0].not_after is not None
    installed = install(server, tmp_path, [verdict.requirement for verdict in passed], passed[0].not_after.isoformat())
    assert installed == ["idna-3.0.dist-info", "requests-2.0.dist-info"]
