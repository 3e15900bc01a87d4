"""The conformance suite of content stores; a test runs it for each registered store."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from engine.store.content.incoming import incoming, pieces_of
from engine.store.content.store import ContentStore
from engine.store.content.verified import VerifiedContent
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import ContentDamagedError, ContentMissingError

Damage = Callable[[str, bytes], Awaitable[None]]

# Over the chunks and parts of every backend, and no multiple of them.
_LARGE = bytes(range(256)) * 70_001
_NOW = datetime(2026, 11, 22, tzinfo=UTC)
_SOME = bytes(range(256)) * 9_001
"""Over the pieces of every backend."""

_ABSENT = hashlib.sha256(b"nobody put this").hexdigest()


class ContentFailure(AssertionError):
    """A store violates the protocol."""


async def check_content_store(store: ContentStore, folder: Path, damage: Damage) -> None:
    """Check everything that the protocol promises. Raises ContentFailure with the name of the check.

    `folder` is for incoming files; `damage` changes the stored bytes with this hash behind the store's back.
    """
    every: dict[str, Callable[[], Awaitable[None]]] = {name: partial(check, store, folder) for name, check in CHECKS.items()}
    every |= {name: partial(check, store, folder, damage) for name, check in DAMAGE_CHECKS.items()}
    for name, check in every.items():
        try:
            await check()
        except AssertionError as error:
            raise ContentFailure(f"{name}: {error}") from error


async def _gives_back_what_was_put(store: ContentStore, folder: Path) -> None:
    for content in (b"", b"x", b"small", _LARGE):
        sha256 = await _put(store, folder, content)
        _require(await store.size(sha256) == len(content), "the size is another")
        _require(await _read(store, sha256) == content, "the bytes are others")


async def _reads_any_range(store: ContentStore, folder: Path) -> None:
    sha256, size = await _put(store, folder, _LARGE), len(_LARGE)
    for start, length in ((0, 1), (0, 0), (size - 1, 1), (size - 1, 100), (size, 10), (524_287, 2), (1_000_000, 9_000_000), (5, None)):
        expected = _LARGE[start:] if length is None else _LARGE[start : start + length]
        _require(await _read(store, sha256, start, length) == expected, f"the range of {length} from {start} is another")


async def _is_left_by_a_reader_at_any_time(store: ContentStore, folder: Path) -> None:
    sha256 = await _put(store, folder, _LARGE)
    reader = store.read(sha256)
    _require(_LARGE.startswith(await anext(reader)), "the first piece is another")
    await reader.aclose()


async def _keeps_equal_bytes_once(store: ContentStore, folder: Path) -> None:
    await asyncio.gather(*(_put(store, folder, b"equal") for _ in range(5)))
    sha256 = hashlib.sha256(b"equal").hexdigest()
    _require([entry.sha256 async for entry in store.entries()].count(sha256) == 1, "it is listed more than once")
    _require(await _read(store, sha256) == b"equal", "the bytes are others")


async def _lists_with_the_time(store: ContentStore, folder: Path) -> None:
    sha256 = await _put(store, folder, b"listed")
    entry = {entry.sha256: entry async for entry in store.entries()}[sha256]
    _require(abs(datetime.now(UTC) - entry.stored_at) < timedelta(hours=2), f"the time is {entry.stored_at}")


async def _forgets_what_is_deleted(store: ContentStore, folder: Path) -> None:
    sha256 = await _put(store, folder, b"deleted")
    await store.delete(sha256)
    await store.delete(sha256)
    _require(await store.size(sha256) is None, "it is still there")
    _require(sha256 not in [entry.sha256 async for entry in store.entries()], "it is still listed")
    await _put(store, folder, b"deleted")
    _require(await _read(store, sha256) == b"deleted", "it cannot be put again")


async def _says_that_it_has_not_got_it(store: ContentStore, folder: Path) -> None:
    _require(await store.size(_ABSENT) is None, "it has a size")
    await store.delete(_ABSENT)
    try:
        await _read(store, _ABSENT)
    except ContentMissingError:
        return
    raise ContentFailure("reading what is not there raises nothing")


CHECKS: Mapping[str, Callable[[ContentStore, Path], Awaitable[None]]] = {
    "gives back what was put": _gives_back_what_was_put,
    "reads any range": _reads_any_range,
    "is left by a reader at any time": _is_left_by_a_reader_at_any_time,
    "keeps equal bytes once": _keeps_equal_bytes_once,
    "lists with the time": _lists_with_the_time,
    "forgets what is deleted": _forgets_what_is_deleted,
    "says that it has not got it": _says_that_it_has_not_got_it,
}


async def _replaces_damaged_bytes(store: ContentStore, folder: Path, damage: Damage) -> None:
    for content in (b"sound", _SOME):
        for changed in (content[:-1] + b"?", content[:-1]):
            sha256 = await _put(store, folder, content)
            await damage(sha256, changed)
            await _put(store, folder, content)
            _require(await _read(store, sha256) == content, "the bytes are others")


async def _sets_damaged_bytes_aside(store: ContentStore, folder: Path, damage: Damage) -> None:
    sha256 = await _put(store, folder, b"set aside")
    _require(not await store.is_set_aside(sha256), "whole bytes count as set aside")
    for _ in range(2):
        await damage(sha256, b"5et aside")
        await store.set_aside(sha256)
        await store.set_aside(sha256)
        _require(await store.size(sha256) is None, "they have a size")
        _require(sha256 not in [entry.sha256 async for entry in store.entries()], "they are listed as if they were there")
        damaged = {entry.sha256: entry async for entry in store.damaged()}
        _require(abs(datetime.now(UTC) - damaged[sha256].stored_at) < timedelta(hours=2), "they are listed without the time")
        _require(await store.is_set_aside(sha256), "they are not said to be set aside")
        await _put(store, folder, b"set aside")
        _require(await _read(store, sha256) == b"set aside", "the right ones cannot be put in again")
    await store.forget_damaged(sha256)
    await store.forget_damaged(sha256)
    _require(not await store.is_set_aside(sha256), "they are not forgotten")
    _require(await _read(store, sha256) == b"set aside", "the right ones are forgotten with them")


async def _gives_out_no_damaged_bytes(store: ContentStore, folder: Path, damage: Damage) -> None:
    for content in (b"verified", _SOME):
        for changed in (content[:-1] + b"?", content[:-1], content + b"?", b""):
            sha256, verified = await _put(store, folder, content), VerifiedContent(store)
            file = StoredFile(file_id="file_" + "0" * 32, name="x", media_type="x/y", size=len(content), sha256=sha256, created_at=_NOW)
            _require(await _given(verified, file) == content, "whole bytes are not given out")
            _require(await _given(verified, file, 3, 4) == content[3:7], "a range of whole bytes is another")
            await damage(sha256, changed)
            for _ in range(2):
                given = await _given(verified, file)
                _require(
                    given is None or (len(given) < len(content) and content.startswith(given)), "damaged bytes are given out to the end"
                )
                _require(await _given(verified, file, 3, 4) is None, "a range of damaged bytes is given out")
            _require(await store.size(sha256) is None, "they are still there")


async def _given(verified: VerifiedContent, file: StoredFile, start: int = 0, length: int | None = None) -> bytes | None:
    """None if the damage was found before the first byte."""
    given = b""
    try:
        async for piece in verified.read(file, start, length):
            given += piece
    except ContentDamagedError:
        return given or None
    return given


DAMAGE_CHECKS: Mapping[str, Callable[[ContentStore, Path, Damage], Awaitable[None]]] = {
    "replaces damaged bytes": _replaces_damaged_bytes,
    "sets damaged bytes aside": _sets_damaged_bytes_aside,
    "gives out no damaged bytes": _gives_out_no_damaged_bytes,
}


async def _put(store: ContentStore, folder: Path, content: bytes) -> str:
    async with incoming(folder, pieces_of(content), len(content)) as arrived:
        await store.put(arrived)
        return arrived.sha256


async def _read(store: ContentStore, sha256: str, start: int = 0, length: int | None = None) -> bytes:
    return b"".join([chunk async for chunk in store.read(sha256, start, length)])


def _require(holds: bool, words: str) -> None:
    if not holds:
        raise ContentFailure(words)
