"""A script reaches the requested and granted hosts only; refusals are reported."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from engine.network.proxy_rules import Asked, Asks
from engine.runtimes.environments.network import refusals_of, through
from engine.runtimes.sandbox.egress import Egress
from tests.scripts.harness import IDENTITY, POLICY, Scripts, script_service
from tests.scripts.index import HOST, PackageIndex, package_index, resolve

FETCH = """
import json, sys, urllib.request
found = {}
for address in json.load(sys.stdin)["addresses"]:
    try: found[address] = urllib.request.urlopen(address, timeout=10).read().decode()
    except OSError as error: found[address] = None
print(json.dumps(found))
"""


@pytest.fixture
def index() -> Generator[PackageIndex]:
    with package_index() as index:
        index.files["/hello"] = b"hello"
        yield index


@pytest_asyncio.fixture
async def scripts(tmp_path: Path, root: Path, environments_folder: Path, index: PackageIndex) -> AsyncGenerator[Scripts]:
    state = tmp_path / "state"
    network = through(Egress(state, index.hosts, IDENTITY, resolve=resolve))
    policy = POLICY.model_copy(update={"hosts": (f"{HOST}:{index.port}",)})
    async with script_service(state, root, environments_folder, network=network, policy=policy) as scripts:
        yield scripts


async def test_a_host_that_was_granted_is_reached_and_no_other(scripts: Scripts, index: PackageIndex) -> None:
    good, bad = f"{index.url}/hello", "http://example.com/"
    access = {"allowHosts": [f"{HOST}:{index.port}"]}
    assert await scripts.code(FETCH, {"addresses": [good, bad]}, networkAccess=access) == {good: "hello", bad: None}
    assert [refusal.split(": ")[0] for refusal in scripts.runs[-1].refusals] == ["example.com:80"]
    assert scripts.leftovers() == []
    assert not [path for path in scripts.state.rglob("*") if path.is_socket()]


async def test_without_a_word_nothing_is_reached(scripts: Scripts, index: PackageIndex) -> None:
    good = f"{index.url}/hello"
    assert await scripts.code(FETCH, {"addresses": [good]}) == {good: None}
    assert index.asked == []


async def test_a_host_that_the_policy_does_not_allow_is_not_granted(scripts: Scripts) -> None:
    other = "http://other.test/"
    assert await scripts.code(FETCH, {"addresses": [other]}, networkAccess={"allowHosts": ["other.test"]}) == {other: None}
    assert "hosts" in {one.item for one in scripts.account.differences}


def test_what_was_asked_for_beyond_what_is_kept_is_counted_among_the_refusals() -> None:
    asks = Asks()
    for number in range(1003):
        asks.add(Asked("a.test", 443, allowed=number > 0, reason="not allowed"))
    assert refusals_of(asks) == ("a.test:443: not allowed", "3 more connections were asked for, and are not listed")
