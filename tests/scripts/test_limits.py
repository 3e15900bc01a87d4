"""The resources of a script are limited, and an error names the exceeded limit."""

import pytest

from engine.disk.removal import remove
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from tests.scripts.harness import MIB, Scripts
from toolagent.contracts.calls import ErrorType


def cause_of(failure: ScriptFailure) -> object:
    assert (failure.kind, failure.error_type) == (ScriptErrorKind.RESOURCE, ErrorType.EXECUTION_ERROR), failure.message
    return failure.facts["cause"]


@pytest.mark.parametrize(("stream", "fd"), [("stdout", 1), ("stderr", 2)])
async def test_a_gigabyte_of_output_ends_the_script(scripts: Scripts, stream: str, fd: int) -> None:
    failure = await scripts.failing(f"import os\nfor _ in range(16384): os.write({fd}, b'x' * 65536)\nprint(1)")
    assert (cause_of(failure), failure.facts["stream"], failure.facts["limit"]) == ("output", stream, MIB)
    assert scripts.runs[-1].truncated == (stream,)
    assert sum(map(len, failure.logs)) + len(failure.told) < 100_000
    assert scripts.leftovers() == []


async def test_a_fork_bomb_is_stopped_by_the_limit(scripts: Scripts) -> None:
    bomb = """
    import os, time
    while True:
        try: os.fork()
        except OSError: os._exit(3) if os.getpid() == 2 else time.sleep(60)
    """
    failure = await scripts.failing(bomb, wall_s=5.0, limits={"processes": 20})
    if failure.kind is ScriptErrorKind.TIMEOUT:  # the first of them waited, too
        assert scripts.leftovers() == []
        return
    assert cause_of(failure) == "processes"
    assert scripts.leftovers() == []


async def test_too_many_processes_are_named_as_the_cause(scripts: Scripts) -> None:
    text = "import subprocess\nrunning = [subprocess.Popen(['/bin/sleep', '60']) for _ in range(100)]\nprint(1)"
    failure = await scripts.failing(text, limits={"processes": 20})
    assert (cause_of(failure), failure.facts["limit"]) == ("processes", 20)
    assert scripts.leftovers() == []


async def test_taking_all_memory_ends_the_script(scripts: Scripts) -> None:
    failure = await scripts.failing("held = []\nwhile True: held.append(bytearray(1048576))", limits={"memoryBytes": 64 * MIB})
    assert (cause_of(failure), failure.facts["limit"]) == ("memory", 64 * MIB)


async def test_filling_the_disk_is_refused(scripts: Scripts) -> None:
    fill = "n = 0\nwhile True:\n    n += 1\n    with open(f'/tmp/{n}', 'wb') as file: file.write(b'x' * 1048576)"
    failure = await scripts.failing(fill, limits={"diskBytes": 8 * MIB})
    assert (cause_of(failure), failure.facts["limit"]) == ("disk", 8 * MIB)


async def test_filling_its_cache_ends_the_script(scripts: Scripts) -> None:
    fill = (
        "import time\nn = 0\nwhile True:\n    n += 1\n    with open(f'.cache/{n % 64}', 'wb') as file: file.write(b'x' * 1048576)\n"
        "    time.sleep(0.01)"
    )
    failure = await scripts.failing(fill, fileAccess={"allowWrite": [".cache/**"]}, limits={"diskBytes": 8 * MIB})
    assert cause_of(failure) == "disk"


async def test_folders_too_deep_to_be_counted_are_named_and_not_the_disk(scripts: Scripts) -> None:
    nest = "import os, time\nos.chdir('.cache')\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')\ntime.sleep(60)"
    failure = await scripts.failing(nest, fileAccess={"allowWrite": [".cache/**"]}, limits={"diskBytes": 512 * MIB})
    assert (cause_of(failure), failure.facts["limit"]) == ("levels", 128)
    remove(scripts.state / "tools")  # pytest cannot


async def test_one_file_may_not_grow_without_end(scripts: Scripts) -> None:
    fill = "with open('/tmp/x', 'wb') as file:\n    while True: file.write(b'x' * 65536)"
    failure = await scripts.failing(fill, limits={"fileBytes": 1 * MIB})
    assert cause_of(failure) == "file"


async def test_open_files_are_limited(scripts: Scripts) -> None:
    text = "held = []\ntry:\n    while True: held.append(open('/dev/null'))\nexcept OSError:\n    print(len(held))"
    found = await scripts.code(text, limits={"openFiles": 50})
    assert isinstance(found, int)
    assert 30 < found < 50


async def test_what_a_script_left_running_ends_with_it(scripts: Scripts) -> None:
    daemon = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(1000)
        os._exit(0)
    print(1)
    """
    assert await scripts.code(daemon) == 1
    assert scripts.leftovers() == []


async def test_a_tool_gets_no_more_than_the_policy_allows(scripts: Scripts) -> None:
    await scripts.code("print(1)", limits={"memoryBytes": 1 << 50})
    account = scripts.account
    assert account.enforced.limits.memory_bytes == 8192 * MIB
    assert "limits.memory_bytes" in {one.item for one in account.differences}
