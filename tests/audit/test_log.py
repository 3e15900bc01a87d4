"""The audit log: a line for each run, rotation, reading from the newest end."""

import asyncio
import json
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.runtimes.auditing.audit import AuditLog
from toolagent.contracts.audit import AuditEntry
from toolagent.contracts.calls import Caller, ErrorType
from toolagent.contracts.sandbox import Difference, SandboxAccount, SandboxGrant, SandboxLevel

BEGIN = datetime(2026, 3, 26, 10, 30, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Generator[AuditLog]:
    log = AuditLog(tmp_path / "audit")
    yield log
    log.close()


def entry(number: int, tool_id: str = "echo") -> AuditEntry:
    return AuditEntry(at=BEGIN + timedelta(seconds=number), action="call", tool_id=tool_id, call_id=f"call-{number:08}")


def whole() -> AuditEntry:
    """An entry with all fields set, and with line ends in them."""
    return AuditEntry(
        at=BEGIN,
        action="call",
        tool_id="core:execute-python-script",
        version="1.0.0",
        call_id="call-12345678",
        host="host-1",
        caller=Caller(caller_id="agent-1", caller_type="conversation_agent"),
        params={"text": "a\nb\u2028c", "token": "***"},
        command=("python", "main.py"),
        sandbox=SandboxAccount(
            level=SandboxLevel.BUBBLEWRAP,
            requested=SandboxGrant(hosts=("example.com",)),
            enforced=SandboxGrant(),
            differences=(Difference(item="hosts", requested=["example.com"], enforced=[], reason="not allowed"),),
        ),
        installs=("six==1.17.0",),
        advisories=("six 1.17.0: PYSEC-1",),
        refusals=("10.0.0.1:80: private address",),
        truncated=("stdout",),
        duration_s=0.25,
        outcome="error",
        error_type=ErrorType.EXECUTION_ERROR,
        message="exit code 1",
    )


def sizes_of(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


async def test_what_was_noted_is_read_whole(log: AuditLog) -> None:
    log.note(whole())
    assert (await log.read()).entries == (whole(),)


async def test_a_line_is_there_as_soon_as_it_is_noted_and_one_line_only(log: AuditLog, tmp_path: Path) -> None:
    log.note(whole())
    lines = (tmp_path / "audit/audit.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["tool_id"] for line in lines] == ["core:execute-python-script"]


async def test_the_newest_come_first_of_one_tool_since_a_time_and_not_too_many(log: AuditLog) -> None:
    for number in range(10):
        log.note(entry(number, "even" if number % 2 == 0 else "odd"))
    assert [one.call_id for one in (await log.read("even")).entries] == [f"call-{number:08}" for number in (8, 6, 4, 2, 0)]
    assert [one.call_id for one in (await log.read(since=BEGIN + timedelta(seconds=8))).entries] == ["call-00000009", "call-00000008"]
    page = await log.read(limit=3)
    assert ([one.call_id for one in page.entries], page.more) == ([f"call-{number:08}" for number in (9, 8, 7)], True)
    assert not (await log.read(limit=10)).more


async def test_the_log_is_rotated_read_across_its_files_and_bounded(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, max_bytes=2000, files=3)
    for number in range(200):
        log.note(entry(number))
    log.close()
    assert sizes_of(tmp_path).keys() == {"audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"}
    assert sum(sizes_of(tmp_path).values()) <= 6000
    numbers = [int(one.call_id.removeprefix("call-")) for one in (await log.read()).entries]
    assert numbers == [*range(199, 199 - len(numbers), -1)]
    assert len(numbers) > 20


async def test_what_is_read_while_the_log_is_rotated_is_whole_and_comes_once(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, max_bytes=400, files=8)
    writing = asyncio.create_task(asyncio.to_thread(lambda: [log.note(entry(number)) for number in range(5000)]))
    read = 0
    while not writing.done():
        numbers = [int(one.call_id.removeprefix("call-")) for one in (await log.read()).entries]
        assert numbers == sorted(set(numbers), reverse=True)
        read += 1
    await writing
    log.close()
    assert read > 1


async def test_a_line_that_a_crash_cut_off_does_not_spoil_the_next(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").write_text('{"at":"2026-03-26T10:30:00Z","action":"ca', "utf-8")
    log = AuditLog(tmp_path)
    log.note(entry(1))
    page = await log.read()
    log.close()
    assert (page.entries, page.unreadable) == ((entry(1),), 1)


async def test_an_entry_that_is_too_long_is_cut_and_not_lost(log: AuditLog) -> None:
    log.note(whole().model_copy(update={"refusals": tuple("x" * 100 for _ in range(10_000)), "params": {"a": "b"}}))
    (kept,) = (await log.read()).entries
    assert (kept.call_id, kept.refusals, kept.outcome) == ("call-12345678", ("too long",), "error")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
async def test_a_full_disk_is_no_failure_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").symlink_to("/dev/full")
    log = AuditLog(tmp_path)
    log.note(entry(1))
    log.close()


async def test_only_its_owner_may_read_it(log: AuditLog, tmp_path: Path) -> None:
    assert (tmp_path / "audit").stat().st_mode & 0o077 == 0
