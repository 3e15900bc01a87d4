"""Cases derived from an input schema, in a separate process: some schemas make it run for ever."""

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
from pydantic import JsonValue, TypeAdapter, ValidationError

from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.validation.schemas import issues_of

Cases: TypeAlias = tuple[dict[str, JsonValue], ...]

_PROGRAM = Path(__file__).with_name("derivation_child.py")
_CASE = TypeAdapter(dict[str, JsonValue])
_TOLD = 500
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class Derivation:
    """For each tool the same cases every time: `count` at most, for which it takes `timeout_s` seconds at most; made once.

    In `folder` the library keeps what takes it long to find out. Used as a context: what is still being made ends with it.
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
        """Make those of all of these now, as they will be needed soon."""
        new = [manifest for manifest in manifests if manifest.tool_id not in self._made]
        if new:
            task = asyncio.create_task(self._make(new), name="derive cases")
            self._made |= {manifest.tool_id: task for manifest in new}

    async def of(self, manifest: ToolManifest) -> Cases:
        """The simplest first; all fit the input schema. Empty when none can be derived, as of a schema that refers to itself."""
        self.begin([manifest])
        return (await asyncio.shield(self._made[manifest.tool_id]))[manifest.tool_id]

    async def _make(self, manifests: Sequence[ToolManifest]) -> Mapping[str, Cases]:
        schemas = [{"schema": manifest.input_schema, "seed": _seed(manifest)} for manifest in manifests]
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
            # Its group: what it has forked may be at work still.
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


def _seed(manifest: ToolManifest) -> int:
    return int.from_bytes(hashlib.sha256(f"{manifest.tool_id}@{manifest.version}".encode()).digest()[:6], "big")


def _all_cases(lines: Sequence[bytes], manifests: Sequence[ToolManifest]) -> Mapping[str, Cases]:
    return {manifest.tool_id: _cases(number, lines, manifest.input_schema) for number, manifest in enumerate(manifests)}


def _cases(number: int, lines: Iterable[bytes], schema: JsonSchema) -> Cases:
    """Without what is not valid: the library knows older drafts than we do."""
    own = [text for line in lines for asked, _, text in [line.partition(b" ")] if asked == str(number).encode()]
    return tuple(case for text in own if (case := _case(text)) is not None and not issues_of(schema, case))


def _case(text: bytes) -> dict[str, JsonValue] | None:
    try:
        return _CASE.validate_json(text)
    except ValidationError:
        return None
