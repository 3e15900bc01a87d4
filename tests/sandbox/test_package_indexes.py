"""Hosts of package indexes, as uv and npm report them; no public registry is contacted."""

import asyncio
import os
import re
from pathlib import Path

import pytest
import uv

from engine.runtimes.sandbox.package_indexes import IndexesUnknown, PackageIndexes
from tests.machine import lacking
from tests.sandbox.upstream import site

ENVIRONMENT = {"PATH": os.defpath, "UV_NO_CONFIG": "1"}
FILE = b'{"filename": "pip-1.0-py3-none-any.whl", "url": "%s", "core-metadata": true, "hashes": {"sha256": "%s"}}'
FILES = b'{"meta": {"api-version": "1.0"}, "name": "pip", "files": [' + FILE + b"]}"


async def test_the_files_of_an_index_may_be_on_another_host(tmp_path: Path) -> None:
    metadata = b"Metadata-Version: 2.1\nName: pip\nVersion: 1.0\n"

    async def index(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        is_list = re.search(rb"/simple/pip/", line)
        body = FILES % (f"http://localhost:{there.port}/pip-1.0-py3-none-any.whl".encode(), b"0" * 64) if is_list else metadata
        kind = b"application/vnd.pypi.simple.v1+json" if is_list else b"text/plain"
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        await writer.drain()

    async with site(speak=index) as there:
        environment = {**ENVIRONMENT, "UV_DEFAULT_INDEX": f"http://127.0.0.1:{there.port}/simple", "UV_CACHE_DIR": str(tmp_path)}
        indexes = PackageIndexes(uv.find_uv_bin(), environment)
        assert (await indexes.of("python"))[0] == (f"127.0.0.1:{there.port}", f"localhost:{there.port}")


async def test_every_index_that_uv_is_told_counts_and_no_password_is_a_host(tmp_path: Path) -> None:
    environment = {
        **ENVIRONMENT, "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_INDEX": "a=http://me:secret@a.invalid:8443/simple",
        "UV_EXTRA_INDEX_URL": "https://b.invalid/simple", "UV_CACHE_DIR": str(tmp_path), "UV_HTTP_RETRIES": "0",
    }  # fmt: skip
    assert set((await PackageIndexes(uv.find_uv_bin(), environment).of("python"))[0]) == {"127.0.0.1:9", "a.invalid:8443", "b.invalid"}


async def test_settings_in_a_file_count_too(tmp_path: Path) -> None:
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv" / "uv.toml").write_text('index-url = "http://127.0.0.1:9/simple"\n')
    environment = {"PATH": os.defpath, "XDG_CONFIG_HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_HTTP_RETRIES": "0"}
    assert (await PackageIndexes(uv.find_uv_bin(), environment).of("python"))[0] == ("127.0.0.1:9",)


async def test_npm_names_its_registry_and_those_of_scopes(tmp_path: Path) -> None:
    npm = Path("/usr/bin/npm")
    if not await asyncio.to_thread(npm.exists):
        lacking("There is no npm on this machine.")
    (tmp_path / ".npmrc").write_text("registry=http://127.0.0.1:9/\n@own:registry=https://own.invalid/x/\nfetch-retries=0\n")
    indexes = PackageIndexes(uv.find_uv_bin(), {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, npm=str(npm))
    assert set((await indexes.of("javascript"))[0]) == {"127.0.0.1:9", "own.invalid"}


async def test_an_installer_that_is_not_there_is_said() -> None:
    with pytest.raises(IndexesUnknown):
        await PackageIndexes("/nowhere/uv", ENVIRONMENT).of("python")
    with pytest.raises(IndexesUnknown):
        await PackageIndexes("/nowhere/uv", ENVIRONMENT).of("javascript")
