"""The first process of a sandbox: it forwards, and is otherwise transparent."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest

from engine.network.ports import free_port
from engine.runtimes.sandbox import inside
from engine.runtimes.sandbox.door import Door

PROGRAM = [str(Path(sys.base_prefix, "bin", "python3")), "-I", "-S", inside.__file__]
ECHO = """
import socket, threading
listening = socket.create_server(("127.0.0.1", {port}), backlog=500)
def echo(one):
    while chunk := one.recv(65536):
        one.sendall(chunk)
    one.sendall(b"end")
    one.close()
while True:
    threading.Thread(target=echo, args=(listening.accept()[0],), daemon=True).start()
"""


async def start(*arguments: str, environment: dict[str, str] | None = None) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*PROGRAM, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)


@contextlib.asynccontextmanager
async def serving(tmp_path: Path, program: str, port: int, files: int = 1024) -> AsyncGenerator[tuple[Path, asyncio.subprocess.Process]]:
    """A Python program that serves on `port`, behind the given socket."""
    listening, tool = socket.socket(socket.AF_UNIX), tmp_path / "tool.sock"
    listening.bind(str(tmp_path / "door.sock"))
    listening.listen()
    door = Door(listening, tool)
    door.start()
    options = ["--serve", str(tmp_path / "door.sock"), str(port), "--", PROGRAM[0], "-c", program.format(port=port)]
    command = ["/usr/bin/prlimit", f"--nofile={files}", *PROGRAM, *options]
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
    try:
        yield tool, process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()  # which it hands on to the program; nobody would end that after a SIGKILL
        await process.wait()
        door.close()


async def connected(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Wait until a server listens there."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_unix_connection(str(path))
                writer.write(b"?")
                if await reader.read(1) == b"?":
                    return reader, writer
                writer.close()
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("code", [0, 1, 7, 255])
async def test_it_ends_with_the_code_of_the_program_and_leaves_its_streams_alone(code: int) -> None:
    process = await start("--", "/bin/sh", "-c", f"cat; echo err >&2; exit {code}")
    assert await process.communicate(b"in\0put") == (b"in\0put", b"err\n")
    assert process.returncode == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
async def test_a_program_that_a_signal_ended_is_told_as_bubblewrap_tells_it(number: signal.Signals) -> None:
    process = await start("--", "/bin/sh", "-c", f"kill -{int(number)} $$")
    assert await process.wait() == 128 + number


async def test_a_program_that_stops_itself_goes_on() -> None:
    process = await start("--", "/bin/sh", "-c", "kill -STOP $$; kill -STOP $$; exit 7")
    async with asyncio.timeout(20):
        assert await process.wait() == 7


@pytest.mark.parametrize(("program", "code"), [("/nowhere/program", 127), ("/etc/passwd", 126)])
async def test_a_program_that_cannot_be_run_is_said(program: str, code: int) -> None:
    process = await start("--", program)
    assert program.encode() in (await process.communicate())[1]
    assert process.returncode == code


async def test_the_program_sees_the_environment_signals_and_descriptors_that_it_would_without_us() -> None:
    # Of the signals the usual ones: the C library's posix_spawn lets its own two be ignored. Whoever runs the tests may ignore some.
    usual = ("/usr/bin/env", "--default-signal")
    look = "grep -E 'Sig(Ign|Blk)' /proc/self/status | sed -E 's/.*(.{7})$/\\1/'; ls /proc/self/fd | wc -l; env"
    pipe, environment = asyncio.subprocess.PIPE, {"A": "b", "PATH": "/usr/bin:/bin"}
    said: list[tuple[bytes, bytes]] = []
    for first in ([*PROGRAM, "--proxy", str(free_port()), "/nowhere", "--"], []):
        process = await asyncio.create_subprocess_exec(
            *usual, *first, "/bin/sh", "-c", look, env=environment, stdin=pipe, stdout=pipe, stderr=pipe
        )
        said.append(await process.communicate())
    ours, theirs = said
    assert ours == theirs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
async def test_a_signal_is_passed_on(number: signal.Signals) -> None:
    process = await start("--", "/bin/sh", "-c", f"trap 'echo got; exit 9' {number.name[3:]}; echo ready; while :; do sleep 0.05; done")
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert (await process.communicate())[0] == b"got\n"
    assert process.returncode == 9


async def test_many_connections_at_once_carry_large_bodies_and_a_half_close(tmp_path: Path) -> None:
    async with serving(tmp_path, ECHO, free_port()) as (tool, _):
        (await connected(tool))[1].close()

        async def one(number: int) -> int:
            reader, writer = await asyncio.open_unix_connection(str(tool))
            body = bytes([number]) * 1_000_000
            writer.write(body)
            writer.write_eof()
            back = await reader.read(-1)
            writer.close()
            assert back == body + b"end"
            return number

        async with asyncio.timeout(60):
            assert await asyncio.gather(*(one(number) for number in range(100))) == list(range(100))


async def test_while_nobody_serves_connections_are_closed_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, "import time; time.sleep(100)", free_port()) as (tool, process):
        async with asyncio.timeout(60):
            while not tool.exists():  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_unix_connection(str(tool))
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()
        assert process.returncode is None


async def test_what_the_program_said_before_it_ended_still_arrives(tmp_path: Path) -> None:
    last_words = ECHO.replace(
        "one.sendall(chunk)", "one.sendall(chunk) if chunk == b'?' else (one.sendall(b'w' * 400_000), __import__('os')._exit(3))"
    )
    async with serving(tmp_path, last_words, free_port()) as (tool, process):
        reader, writer = await connected(tool)
        reading = writer.transport
        assert isinstance(reading, asyncio.ReadTransport)
        reading.pause_reading()  # so that it cannot all be handed on at once
        (program,) = psutil.Process(process.pid).children()
        writer.write(b"speak")
        await asyncio.to_thread(program.wait, 30)
        reading.resume_reading()
        async with asyncio.timeout(60):
            assert len(await reader.read(-1)) == 400_000
        writer.close()
        assert await process.wait() == 3


async def test_with_few_files_it_takes_few_connections_and_the_others_wait(tmp_path: Path) -> None:
    async with serving(tmp_path, ECHO, free_port(), files=40) as (tool, _):
        (await connected(tool))[1].close()
        held = [await asyncio.open_unix_connection(str(tool)) for _ in range(30)]
        async with asyncio.timeout(60):
            for reader, writer in held:
                writer.write(b"?")
                assert await reader.readexactly(1) == b"?"
                writer.close()


async def test_as_first_of_a_container_it_buries_what_was_left_to_it() -> None:
    # A process that has ended and is not buried can still be sent signals.
    wait = "while kill -0 $orphan 2>/dev/null; do sleep 0.01; done"
    command = [*PROGRAM, "--", "/bin/sh", "-c", f"orphan=$(/bin/sh -c 'sleep 0.1 >/dev/null & echo $!'); {wait}; echo buried"]
    # A subreaper gets orphans as the first process of a container does.
    program = f"import ctypes, os; ctypes.CDLL(None).prctl(36, 1); os.execv({PROGRAM[0]!r}, {command!r})"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(60):
            assert (await process.communicate())[0] == b"buried\n"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert process.returncode == 0


async def test_it_needs_nothing_but_the_standard_library_and_little_of_it() -> None:
    folder = str(Path(inside.__file__).parent)
    program = f"import sys; sys.path.insert(0, {folder!r}); import inside; print(*sys.modules)"
    done = await asyncio.create_subprocess_exec(*PROGRAM[:3], "-c", program, stdout=asyncio.subprocess.PIPE)
    loaded = (await done.communicate())[0].decode().split()
    assert "inside" in loaded
    assert not {"socket", "selectors", "asyncio", "subprocess", "enum", "typing"} & set(loaded)
