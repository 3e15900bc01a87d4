"""The hosts that packages are installed from: asks the installers, as they are set up on this machine."""

import asyncio
import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import httpx
from pydantic import JsonValue, TypeAdapter, ValidationError

_ASK_S = 60.0
_TOLD = 500
_ADDRESS = re.compile(r"""https?://[^\s"'<>]+""")
# Only an index's answers name the hosts of files. Any package will do; nearly every index has one of these.
_LIKELY = ("pip", "setuptools")
_LIKELY_NPM = "npm"
_SETTINGS = TypeAdapter(dict[str, JsonValue])
_REGISTRY = "registry"
_TOLD_BY_UV = {"UV_DEFAULT_INDEX": "--index-url", "UV_INDEX": "--extra-index-url"}


Found: TypeAlias = tuple[tuple[str, ...], Mapping[str, str]]
"""Patterns for `Opening.hosts`, and variables for an installer that sees no files of this machine. These may hold passwords."""


class IndexesUnknown(Exception):
    """The installer could not tell; the message says why."""


@dataclass(slots=True)
class PackageIndexes:
    """`environment` is what the installers may see: HOME for their settings, their own variables, certificates.

    Each installer is asked once, and again after a failure. Without `npm`, `bun` is asked.
    """

    uv: str
    environment: Mapping[str, str]
    npm: str | None = None
    bun: str | None = None
    _known: dict[str, Found] = field(default_factory=dict[str, Found])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, language: Literal["python", "javascript"]) -> Found:
        """Raises IndexesUnknown."""
        async with self._lock:
            if language not in self._known:
                asked = self._ask_uv() if language == "python" else self._ask_npm(self.npm) if self.npm else self._ask_bun()
                self._known[language] = await asked
            return self._known[language]

    async def _ask_uv(self) -> Found:
        # Without any package, uv only prints the indexes and makes no request.
        compiling = (self.uv, "pip", "compile", "--quiet", "--no-header")
        indexes = await self._said((*compiling, "--emit-index-url", "--emit-find-links", "-"))
        told = {name: " ".join(re.findall(rf"(?m)^{option} (\S+)$", indexes)) for name, option in _TOLD_BY_UV.items()}
        variables = {name: value for name, value in told.items() if value}
        for package in _LIKELY:
            try:
                files = await self._said((*compiling, "--no-deps", "--format", "pylock.toml", "-"), package)
            except IndexesUnknown:
                continue
            return _hosts(indexes + files), variables
        return _hosts(indexes), variables

    async def _ask_npm(self, npm: str) -> Found:
        try:
            settings = _SETTINGS.validate_json(await self._said((npm, "config", "list", "--json")))
        except ValidationError as error:
            raise IndexesUnknown(f"npm does not list its settings as JSON: {error}") from error
        # The registry of a scope is named `@scope:registry`.
        registries = {name: str(value) for name, value in settings.items() if name == _REGISTRY or name.endswith(f":{_REGISTRY}")}
        addresses = [*registries.values()]
        with contextlib.suppress(IndexesUnknown):
            addresses.append(await self._said((npm, "view", _LIKELY_NPM, "dist.tarball")))
        return _hosts(" ".join(addresses)), {f"npm_config_{name}": value for name, value in registries.items()}

    async def _ask_bun(self) -> Found:
        if self.bun is None:
            raise IndexesUnknown("Neither npm nor bun is on this machine.")
        return _hosts(await self._said((self.bun, "info", _LIKELY_NPM, "dist.tarball"))), {}

    async def _said(self, argv: Sequence[str], stdin: str = "") -> str:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(*argv, env=dict(self.environment), cwd="/", stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            raise IndexesUnknown(f"{argv[0]} cannot be run: {error}") from error
        try:
            async with asyncio.timeout(_ASK_S):
                out, err = await process.communicate(stdin.encode())
        except TimeoutError:
            raise IndexesUnknown(f"{Path(argv[0]).name} did not say within {_ASK_S:g} s which package index it uses.") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            told = err.decode("utf-8", "replace").strip()[-_TOLD:]
            raise IndexesUnknown(f"{Path(argv[0]).name} does not say which package index it uses: {told}")
        return out.decode("utf-8", "replace")


def _hosts(text: str) -> tuple[str, ...]:
    """The hosts of all addresses in the text, without passwords and other parts."""
    urls = map(httpx.URL, _ADDRESS.findall(text))
    # Without a port a pattern means 80 and 443.
    return tuple(dict.fromkeys(url.netloc.decode("ascii").rpartition("@")[2] for url in urls if url.host))
