"""Two processes on PostgreSQL, each a host and a front door: one drains, and is killed meanwhile."""

import itertools
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.postgres import PostgresServer, postgres_database
from tests.system.cluster import Cluster, Member, running_cluster
from tests.system.far_tools import FarServer, far_catalog, far_server
from tests.system.service_process import run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.lanes import Lane, LaneListing
from toolagent.core.calls.idempotency import call_id_for_key

pytestmark = pytest.mark.timeout(400)

_LEASE_S = 5


@pytest.fixture(scope="module")
def far() -> Generator[FarServer]:
    with far_server() as far:
        yield far


@pytest.fixture(scope="module")
def cluster(
    postgres: PostgresServer, temporal_address: str, far: FarServer, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Cluster]:
    folder = tmp_path_factory.mktemp("draining")
    settings = {"TEMPORAL_ADDRESS": temporal_address, "CONTENT_STORE": "database", "LANES": "all", "SHUTDOWN_GRACE_S": "5"}
    settings |= {"HOST_HEARTBEAT_S": "1", "HOST_LEASE_S": str(_LEASE_S)}
    with postgres_database(postgres) as url, running_cluster(folder, DATABASE_URL=url, **settings) as cluster:
        yield cluster


def _lane_of(cluster: Cluster, member: Member) -> Lane:
    lanes = LaneListing.model_validate_json(cluster.http.get("/lanes").content).lanes
    return next(lane for lane in lanes if lane.host == member.host)


@pytest.mark.long
@pytest.mark.promise("accepted-means-ended")
def test_the_lane_of_a_host_that_drains_takes_nothing_more_and_others_take_up_its_claims_when_it_is_killed(
    cluster: Cluster, far: FarServer, tmp_path: Path
) -> None:
    drained, other = (cluster.member("up", name, far_catalog(tmp_path / name, far.url)) for name in ("drained", "other"))
    for member in (drained, other):
        member.start()
        member.wait_until_ready()
    cluster.enter(other)
    host = drained.host
    with httpx.Client(base_url=drained.url, timeout=60, trust_env=False) as http, ThreadPoolExecutor(1) as threads:

        def call(tool_id: str, line: str, **more: bool) -> ToolResult:
            params = {"message": line} if tool_id == "echo" else {"line": line, **more}
            return run_tool(http, tool_id, params, line)[1]

        assert call("echo", "before").metadata["way"] == "lane"
        lost = threads.submit(call, "far_asks_0", "held", held=True)
        wait_until(lambda: far.begun["held"], "the tool is asked")
        assert cluster.http.post(f"/hosts/{host}/drain").is_success
        names = (f"after {number}" for number in itertools.count())
        wait_until(lambda: call("echo", next(names)).metadata["host"] == other.host, "the other host makes what is asked for here")

        before = _lane_of(cluster, drained).figures.calls
        results = [call(tool, f"{tool} {number}") for tool in ("echo", "far_asks_1", "far_acts_1") for number in range(5)]
        assert {(result.error, result.metadata["host"]) for result in results} == {(None, other.host)}
        seen = cluster.hosts()[host].seen_at
        wait_until(lambda: cluster.hosts()[host].seen_at > seen, "its figures are new")
        assert _lane_of(cluster, drained).figures.calls == before
        assert cluster.http.get(f"/hosts/{host}/drain").json()["calls"] == 1

        drained.kill()
        far.released.add("held")
        with pytest.raises(httpx.HTTPError):
            lost.result(60)
    ended = cluster.ended_task(call_id_for_key(None, "held"))
    assert ended.result is not None
    assert (ended.result.error, far.begun["held"]) == (None, 2)
    drained.start()
    drained.wait_until_ready()
    assert cluster.hosts()[host].draining_since is not None
    wait_until(lambda: cluster.http.get(f"/hosts/{host}/drain").json()["is_drained"], "nothing is left on it")
