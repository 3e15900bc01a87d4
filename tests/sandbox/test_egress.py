"""Network access out of and into real sandboxes, and its clean-up."""

import asyncio
import os
import secrets
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
import uv

from engine.network.proxy_rules import Asked
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.readiness import Exited, Ready, await_ready
from engine.runtimes.process.box import Mount
from engine.runtimes.sandbox.egress import Egress, Opening
from engine.runtimes.sandbox.identities import DEFAULT_UIDS
from engine.runtimes.sandbox.package_indexes import PackageIndexes
from engine.runtimes.sandbox.socket_folder import SocketFolders
from tests.copies import start_text
from tests.machine import lacking
from tests.sandbox.networked import Resolver, boxes
from tests.sandbox.upstream import site

HERE = ("127.0.0.1",)
CURL = ("/usr/bin/curl", "-sS", "-m", "20")
SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = b'{"active": 0}'
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): ...
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


async def test_a_program_reaches_the_hosts_it_may_and_no_others_and_each_is_noted() -> None:
    heard: list[Asked] = []
    async with site() as there, boxes(Resolver(a_test=[HERE], inner_test=[HERE]), private_hosts=[f"a.test:{there.port}"]) as made:
        hosts = (f"a.test:{there.port}", f"inner.test:{there.port}")
        async with made.opened(Opening(hosts=hosts, tell=heard.append)) as box:
            assert (await box.run(*CURL, f"http://a.test:{there.port}/")).out == "ok"
            assert (await box.run(*CURL, "-p", f"http://a.test:{there.port}/")).out == "ok"
            refused = await box.run(*CURL, "http://b.test/")
            assert "b.test:80 is not among the hosts that this tool may reach" in refused.out
            tunnel = await box.run(*CURL, "https://b.test/")
            assert (tunnel.code != 0, "403" in tunnel.err) == (True, True)
            assert "not a public address" in (await box.run(*CURL, f"http://inner.test:{there.port}/")).out
            assert [(asked.host, asked.allowed) for asked in heard] == [
                ("a.test", True), ("a.test", True), ("b.test", False), ("b.test", False), ("inner.test", False),
            ]  # fmt: skip
            assert heard == box.way.asks.kept


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "[::1]", "10.0.0.1"])
async def test_around_the_proxy_there_is_nothing(address: str) -> None:
    async with site() as there, boxes() as made, made.opened(Opening(hosts=("*", f"*:{there.port}"))) as box:
        port = there.port if address == "127.0.0.1" else 80
        ended = await box.run(*CURL, "--noproxy", "*", f"http://{address}:{port}/")
        assert ended.code in (6, 7)
        assert there.seen == []


async def test_python_finds_the_proxy_by_itself() -> None:
    async with (
        site() as there,
        boxes(Resolver(a_test=[HERE]), private_hosts=[f"a.test:{there.port}"]) as made,
        made.opened(Opening(hosts=(f"a.test:{there.port}",))) as box,
    ):
        program = f"import urllib.request; print(urllib.request.urlopen('http://a.test:{there.port}/').read())"
        assert (await box.python(program)).out == "b'ok'\n"
        ended = await box.python("import urllib.request; urllib.request.urlopen('https://b.test/')")
        assert "not among the allowed hosts" in ended.err


async def test_a_program_may_be_told_no_host_and_then_has_no_proxy() -> None:
    async with boxes() as made, made.opened(Opening()) as box:
        assert (box.way.mounts, box.way.prefix, box.way.environment) == ((), (), {})
        assert (await box.run(*CURL, "https://a.test/")).code == 6
        assert not await asyncio.to_thread((made.state / "run").exists)


async def test_uv_installs_from_the_index_of_this_machine_and_only_from_there(tmp_path: Path) -> None:
    binary = uv.find_uv_bin()
    hosts = (await PackageIndexes(binary, {**os.environ}).of("python"))[0]  # noqa: TID251 - what a user's uv would see
    async with boxes(private_hosts=hosts) as made:
        async with made.opened(Opening(hosts=hosts), Mount(Path(binary), Path("/run/uv"))) as box:
            python = f"{sys.base_prefix}/bin/python3"
            install = ("/run/uv", "--no-cache", "pip", "install", "--target", "/tmp/there", "--python", python, "six")  # noqa: S108 - its own
            ended = await box.run(*install)
            assert (ended.code, "six" in ended.err) == (0, True), ended.err
            assert all(asked.allowed for asked in box.way.asks.kept)
        async with made.opened(Opening(hosts=("a.test",)), Mount(Path(binary), Path("/run/uv"))) as box:
            assert (await box.run("/usr/bin/env", "UV_HTTP_RETRIES=0", *install)).code != 0
            assert {asked.allowed for asked in box.way.asks.kept} == {False}


async def test_npm_installs_from_the_registry_of_this_machine(tmp_path: Path) -> None:
    npm = "/usr/bin/npm"
    if not await asyncio.to_thread(Path(npm).exists):
        lacking("There is no npm on this machine.")
    hosts = (await PackageIndexes(uv.find_uv_bin(), {**os.environ}, npm=npm).of("javascript"))[0]  # noqa: TID251 - what a user's npm would see
    async with boxes(private_hosts=hosts) as made, made.opened(Opening(hosts=hosts)) as box:
        ended = await box.run(npm, "install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", "/tmp/there", "is-odd")  # noqa: S108 - its own
        assert ended.code == 0, ended.err
        assert all(asked.allowed for asked in box.way.asks.kept)


async def test_a_server_inside_is_reached_and_gone_when_it_has_ended() -> None:
    http = HttpExchange()
    async with boxes() as made, made.opened(Opening(port=8000)) as box:
        process = await box.launch(f"{sys.base_prefix}/bin/python3", "-c", SERVER)
        assert isinstance(await await_ready(process, box.way.endpoint, "/health", http, 60), Ready)
        health = await asyncio.gather(*(http.health(box.way.endpoint, "/health", 20) for _ in range(64)))
        assert {(one.status, one.active) for one in health if one} == {(200, 0)}
        assert None not in health
        await process.stop(10)
        await http.forget(box.way.endpoint)
        assert await http.health(box.way.endpoint, "/health", 5) is None
    await http.aclose()


async def test_a_program_that_ends_before_it_serves_is_seen_to_end() -> None:
    http = HttpExchange()
    async with boxes() as made, made.opened(Opening(port=8000)) as box:
        process = await box.launch("/bin/sh", "-c", "sleep 0.3; exit 3")
        assert isinstance(await await_ready(process, box.way.endpoint, "/health", http, 60), Exited)
        assert await process.wait() == 3
    await http.aclose()


async def test_the_sockets_of_a_run_are_its_own_and_go_with_it() -> None:
    async with boxes() as made:
        async with made.opened(Opening(hosts=("a.test",), port=8000)) as one, made.opened(Opening(hosts=("b.test",))) as other:
            boxed = one.way.mounts[0].source
            for path, mode in ((boxed, 0o700), (boxed / "proxy.sock", 0o600), (boxed / "door.sock", 0o600)):
                assert stat.S_IMODE(path.lstat().st_mode) == mode
            assert stat.S_IMODE(boxed.parent.stat().st_mode) == 0o700
            assert boxed != other.way.mounts[0].source
            seen = await one.run("/bin/sh", "-c", "ls /run /run/tool-agent; touch /run/tool-agent/x; ls /run/tool-agent/..")
            assert (
                seen.out.split() == ["certificates.pem", "inside.pyc", "tool-agent", "door.sock", "proxy.sock"]
                or "x" not in seen.out.split()
            )
            assert "Read-only" in seen.err
            users = {path.lstat().st_uid for path in (boxed, boxed / "proxy.sock", boxed / "door.sock")}
            assert users < {*DEFAULT_UIDS} if os.geteuid() == 0 else users == {os.geteuid()}
        assert sorted(path.name for path in (made.state / "run").iterdir()) == ["inside.pyc"]


async def test_a_state_directory_with_a_long_path_has_its_sockets_elsewhere(tmp_path: Path) -> None:
    state = tmp_path / ("long" * 20)
    async with boxes(state=state) as made, made.opened(Opening(hosts=("a.test",))) as box:
        source = box.way.mounts[0].source
        assert not source.is_relative_to(state)
        assert stat.S_IMODE(source.parent.parent.stat().st_mode) == 0o700
        assert "not among" in (await box.run(*CURL, "http://b.test/")).out


@pytest.mark.parametrize("lasting", [True, False])
async def test_who_ends_leaves_nothing_elsewhere_but_for_runs_that_outlast_him(tmp_path: Path, lasting: bool) -> None:
    egress = Egress(tmp_path / ("long" * 20))
    async with egress.open("run", Opening(hosts=("a.test",), lasting=lasting)) as way:
        elsewhere = way.mounts[0].source.parent.parent
    egress.close()
    assert elsewhere.is_dir() is lasting
    egress.forget("run")
    egress.close()
    egress.close()
    assert not elsewhere.exists()


@pytest.mark.parametrize(("is_gone", "is_dead", "stays"), [(True, True, False), (True, False, True), (False, True, True)])
def test_sockets_elsewhere_go_when_their_state_directory_and_its_worker_are_gone(
    tmp_path: Path, is_gone: bool, is_dead: bool, stays: bool
) -> None:
    state = tmp_path / ("long" * 20)
    state.mkdir()
    # pytest is the worker that lives; the other ends at once.
    make = "import sys, pathlib; from engine.runtimes.sandbox.socket_folder import SocketFolders"
    make += "; print(SocketFolders(pathlib.Path(sys.argv[1]), None).make('run').path.parent)"
    worker, said = start_text(make, str(state))
    with said:
        made = said.read().decode().strip()
    assert worker.wait() == 0
    if not is_dead:
        assert str(SocketFolders(state, None).root) == made
    if is_gone:
        state.rmdir()
    other = tmp_path / "other"
    Egress(other).sweep()
    assert Path(made).exists() is stays
    shutil.rmtree(made, ignore_errors=True)


def test_a_folder_elsewhere_of_which_nobody_knows_whose_it_is_stays(tmp_path: Path) -> None:
    strange = Path(tempfile.gettempdir(), f"tool-agent-{secrets.token_hex(8)}")
    strange.mkdir()
    try:
        for text in (None, "", "{}", '{"owner": "nobody", "state": "/nowhere"}'):
            if text is not None:
                (strange / "of.json").write_text(text)
            Egress(tmp_path).sweep()
            assert strange.is_dir()
    finally:
        shutil.rmtree(strange)


async def test_a_lasting_way_is_found_again_by_the_next_worker() -> None:
    async with boxes(Resolver()) as made:
        opening = Opening(hosts=("a.test",), port=8000, lasting=True)
        async with made.egress.open("container-1", opening) as first:
            pass
        assert made.egress.sweep(keep=("container-1",)) == ()
        again = Egress(made.state)
        async with again.open("container-1", opening) as second:
            assert (second.endpoint, second.mounts[0]) == (first.endpoint, first.mounts[0])
        again.forget("container-1")
        assert not await asyncio.to_thread(first.mounts[0].source.exists)


async def test_where_nothing_is_apart_two_ways_do_not_meet() -> None:
    async with boxes() as made:
        opening = Opening(hosts=("a.test",), port=8000, is_apart=False)
        async with made.egress.open("one", opening) as one, made.egress.open("two", opening) as other:
            assert [mount.target for mount in one.mounts] == [mount.source for mount in one.mounts]
            for way in (one, other):
                process = await asyncio.create_subprocess_exec(
                    *way.argv((*CURL, "http://b.test/")), env=dict(way.environment), stdout=asyncio.subprocess.PIPE
                )
                assert b"not among the hosts" in (await process.communicate())[0]
            assert [len(way.asks.kept) for way in (one, other)] == [1, 1]


WORKER = """
import asyncio, sys
from tests.sandbox.networked import boxes
from engine.runtimes.sandbox.egress import Opening
from pathlib import Path
async def main():
    async with boxes(state=Path(sys.argv[1])) as made, made.opened(Opening(hosts=("a.test",), port=8000)) as box:
        process = await box.launch("/bin/sleep", "1000")
        print(process.pid, flush=True)
        await process.wait()
asyncio.run(main())
"""


def test_after_kill_9_of_the_worker_the_sweep_removes_what_is_left(tmp_path: Path) -> None:
    worker, said = start_text(WORKER, str(tmp_path))
    with said:
        pid = int(said.readline())
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    until = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()
    assert len(_folders(tmp_path)) == 1
    assert list(Egress(tmp_path).sweep()) == _folders(tmp_path) or _folders(tmp_path) == []
    assert _folders(tmp_path) == []


def _folders(state: Path) -> Sequence[str]:
    return sorted(path.name for path in (state / "run").iterdir() if path.is_dir())


async def test_httpx_reaches_a_socket_with_a_client_for_each() -> None:
    async with boxes() as made, made.opened(Opening(port=8000)) as box:
        process = await box.launch(f"{sys.base_prefix}/bin/python3", "-c", SERVER)
        http = HttpExchange()
        await await_ready(process, box.way.endpoint, "/health", http, 60)
        path = box.way.endpoint.removeprefix("unix:")
        async with httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=path)) as client:
            assert (await client.get("http://tool/")).json() == {"active": 0}
        await http.aclose()
        await process.kill()
