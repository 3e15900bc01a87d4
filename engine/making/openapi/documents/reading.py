"""Reads the documents of a repository: small ones in this process, large ones in the sandbox, with limits."""

import asyncio
import contextlib
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import cast

from pydantic import JsonValue

from engine.disk.leftovers import discard
from engine.disk.removal import remove
from engine.making.boxes import boxed, last_line, left_in
from engine.making.openapi.documents.bundling import bundled, files_referred_to
from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument, parsed
from engine.making.openapi.documents.parsing import __file__ as _program
from engine.making.repositories.trees import Tree
from engine.runtimes.environments.execution import Execution, Executor, Order
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.process.box import Mount
from toolagent.contracts.sandbox import SandboxLimits
from toolagent.core.texts import well_formed_json

MAX_BYTES = 32 * 1024 * 1024
SMALL_BYTES = 512 * 1024
_MIB = 1024 * 1024
_LIMITS = SandboxLimits(memory_bytes=1536 * _MIB, processes=16, open_files=256, output_bytes=_MIB, disk_bytes=128 * _MIB, wall_s=120)
_READ_S = 90.0
_MAX_READ = 64 * _MIB
_PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
_INSIDE = Path("/run/tool-agent-document")
_OUT = "parsed.json"
_TOO_LARGE = f"It is larger than {_MAX_READ >> 20} MiB when its aliases are written out."
_MOST_FILES = 5_000


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """Makes and removes the folder `work` for each document. Refuses large documents if there is no executor."""

    executor: Executor | None
    work: Path

    async def read(self, repository: Path, path: str) -> OpenApiDocument:
        """Reads a document and the files that it refers to. Raises DocumentRefused, ScriptFailure (`UnavailableError`)."""
        tree = await asyncio.to_thread(Tree.read, repository)
        documents = {path: await self._value(tree, path)}
        waiting = [path]
        left = MAX_BYTES
        while waiting:
            at = waiting.pop()
            for file in dict.fromkeys(await asyncio.to_thread(lambda: [*files_referred_to(documents[at], at)])):  # noqa: B023 - awaited
                left -= tree.size_of(PurePosixPath(file)) if file not in documents else 0
                if file in documents or not tree.has(file) or len(documents) == _MOST_FILES or left < 0:
                    continue
                with contextlib.suppress(DocumentRefused):  # the reference to it is refused later
                    documents[file] = await self._value(tree, file)
                    waiting.append(file)
        return await asyncio.to_thread(lambda: OpenApiDocument.of(bundled(documents) if len(documents) > 1 else documents[path]))

    async def _value(self, tree: Tree, path: str) -> JsonValue:
        """Raises DocumentRefused, ScriptFailure (`UnavailableError`)."""
        text = await asyncio.to_thread(tree.text, path, MAX_BYTES)
        if text is None:
            raise DocumentRefused(f"It is not there, is larger than {MAX_BYTES >> 20} MiB, or is no text.")
        if len(text) <= SMALL_BYTES:
            return await asyncio.to_thread(parsed, text, is_json=path.endswith(".json"))
        if self.executor is None:
            raise DocumentRefused(f"It is larger than {SMALL_BYTES >> 10} KiB, and there is no sandbox that it could be read in.")
        return await asyncio.to_thread(_document, await self._parsed(self.executor, text, PurePosixPath(path).suffix))

    async def _parsed(self, executor: Executor, text: str, ending: str) -> Path:
        """Parses the text in the sandbox; returns the file with the result. Raises DocumentRefused."""
        given = self.work / f"document{ending}"
        await asyncio.to_thread(_laid_out, self.work, given, text)
        try:
            done = await executor.run(_order(executor, self.work, given))
        except ScriptFailure:
            await asyncio.to_thread(discard, self.work)
            raise
        if done.code or done.cut:
            await asyncio.to_thread(discard, self.work)
            raise DocumentRefused(f"It could not be read within {_READ_S:g} s and {_LIMITS.memory_bytes or 0 >> 20} MiB: {_why(done)}.")
        return self.work / "out" / _OUT


def _order(executor: Executor, work: Path, given: Path) -> Order:
    program, out = _INSIDE / "parsing.py", work / "out"
    library = Path(cast("str", getattr(importlib.util.find_spec("yaml"), "origin", ""))).parent
    mounts = (Mount(Path(_program), program), Mount(library, _INSIDE / "yaml"), Mount(given, given), Mount(out, out, writable=True))
    box = boxed(executor, "read-document", out, _LIMITS, mounts, {"PYTHONDONTWRITEBYTECODE": "1"})
    return Order((str(_PYTHON), "-S", str(program), str(given), str(out / _OUT)), box, _READ_S, work.with_name(f"{work.name}-log"))


def _why(done: Execution) -> str:
    return done.ending.beyond or ("it took longer" if done.cut == "time" else last_line(done)[:300] or f"it ended with code {done.code}")


def _laid_out(work: Path, given: Path, text: str) -> None:
    remove(work)
    (work / "out").mkdir(parents=True)
    (work / "out").chmod(0o777)
    given.write_text(text, encoding="utf-8")


def _document(out: Path) -> JsonValue:
    """Raises DocumentRefused. Blocks."""
    try:
        content = left_in(out, _MAX_READ)
        said: object = json.loads(well_formed_json(content) or b"null") if len(content) <= _MAX_READ else {"fault": _TOO_LARGE}
    except (ValueError, RecursionError, OSError) as error:
        raise DocumentRefused(f"It cannot be read: {str(error)[:200]}") from error
    finally:
        discard(out.parent.parent)
    match cast("JsonValue", said):
        case {"document": document}:
            return document
        case {"fault": str(fault)}:
            raise DocumentRefused(fault)
        case _:
            raise DocumentRefused("The program that reads it wrote nothing of use.")
