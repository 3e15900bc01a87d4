"""Derives cases from input schemas in a separate process, because some schemas make it run for ever."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeAlias

import structlog
from pydantic import JsonValue, TypeAdapter

from toolagent.contracts.manifest import ToolManifest
from toolagent.validation.schemas import issues_of

Cases: TypeAlias = tuple[dict[str, JsonValue], ...]

_PROGRAM = Path(__file__).with_name("derivation_child.py")
_CASE = TypeAdapter(dict[str, JsonValue])
_TOLD = 500
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class Derivation:
    """Gives each tool the same cases every time: at most `count`, derived once within `timeout_s` seconds.

    The library caches data in `folder`. Leaving the context cancels derivations that still run.
    """

    folder: Path
    count: int = 25
    timeout_s: float = 15.0
    _made: dict[str, asyncio.Task[Mapping[str, Cases]]] = field(default_factory=dict[str, "asyncio.Task[Mapping[str, Cases]]"])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        making, self._made = set(self._made.values()), {}
        for task in making:
            task.cancel()
        await asyncio.gather(*making, return_exceptions=True)

    def begin(self, manifests: Iterable[ToolManifest]) -> None:
        """Starts to derive cases for all these tools at once."""
        new = [manifest for manifest in manifests if manifest.tool_id not in self._made]
        if new:
            task = asyncio.create_task(self._make(new), name="derive cases")
            self._made |= {manifest.tool_id: task for manifest in new}

    async def of(self, manifest: ToolManifest) -> Cases:
        """Cases that fit the input schema, the simplest first. Empty if none can be derived, as from a recursive schema."""
        self.begin([manifest])
        return (await asyncio.shield(self._made[manifest.tool_id]))[manifest.tool_id]

    async def _make(self, manifests: Sequence[ToolManifest]) -> Mapping[str, Cases]:
        digests = [hashlib.sha256(f"{manifest.tool_id}@{manifest.version}".encode()).digest() for manifest in manifests]
        seeds = [int.from_bytes(digest[:6], "big") for digest in digests]
        schemas = [{"schema": manifest.input_schema, "seed": seed} for manifest, seed in zip(manifests, seeds, strict=True)]
        asked = json.dumps({"schemas": schemas, "count": self.count, "seconds": self.timeout_s}).encode()
        await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", str(_PROGRAM), str(os.getpid())),
            cwd=self.folder,
            env={"HYPOTHESIS_STORAGE_DIRECTORY": str(self.folder)},
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        lines: list[bytes] = []
        try:
            await self._talk(process, asked, lines, self.timeout_s * (len(manifests) + 1))
        finally:
            # Its group, because forked children may still run.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
        return await asyncio.to_thread(_all_cases, lines, manifests)

    async def _talk(self, process: asyncio.subprocess.Process, asked: bytes, lines: list[bytes], timeout_s: float) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise RuntimeError("The program was started without pipes.")
        saying = asyncio.create_task(process.stderr.read())
        try:
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(timeout_s):
                    process.stdin.write(asked)
                    process.stdin.close()
                    lines += (await process.stdout.read()).splitlines()
                    said = (await saying).decode(errors="replace").strip()
                    if said and not lines:
                        _log.info("cases_not_derived", reason=said[-_TOLD:])
        finally:
            saying.cancel()


def _all_cases(lines: Sequence[bytes], manifests: Sequence[ToolManifest]) -> Mapping[str, Cases]:
    """The cases by tool id. Leaves invalid ones out, because the library knows only older drafts of JSON Schema."""
    found: list[list[dict[str, JsonValue]]] = [[] for _ in manifests]
    for number, _, text in (line.partition(b" ") for line in lines):
        with contextlib.suppress(ValueError):
            case = _CASE.validate_json(text)
            if not issues_of(manifests[int(number)].input_schema, case):
                found[int(number)].append(case)
    return {manifest.tool_id: tuple(cases) for manifest, cases in zip(manifests, found, strict=True)}
