"""What a script sees and reaches: its folder, its grants, and nothing else of this machine."""

import json
import os
import socket
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.scripts.harness import POLICY, Scripts, script_service

SHARED, MARK = "/dev/shm/x", "/tmp/mark"  # noqa: S108 - of the sandbox
READ = """
import json
found = {}
for path in PATHS:
    try:
        with open(path, "rb") as file: found[path] = file.read(100).decode(errors="replace")
    except OSError as error: found[path] = None
print(json.dumps(found))
"""
WRITE = """
import json
found = {}
for path in PATHS:
    try:
        with open(path, "w") as file: found[path] = bool(file.write("x"))
    except OSError as error: found[path] = False
print(json.dumps(found))
"""


def is_there(path: str | Path) -> bool:
    return Path(path).exists()


def on(paths: list[str], text: str) -> str:
    return text.replace("PATHS", json.dumps(paths))


@pytest.mark.promise("tools-see-only-their-own")
async def test_nothing_outside_its_folder_can_be_read(scripts: Scripts, root: Path) -> None:
    other = scripts.state / "tools" / "other"
    other.mkdir(parents=True)
    secrets = [other / "file", scripts.state / "tool-agent.db", root / "other.py", root.parent / "secret"]
    for secret in secrets:
        secret.write_text("secret")
        secret.chmod(0o644)
    paths = [
        *map(str, secrets),
        "/proc/1/environ",
        "/etc/shadow",
        "/root/.bashrc",
        str(Path(__file__)),
        "../other.py",
        "/proc/1/root/etc/shadow",
    ]
    found = await scripts.code(on(paths, READ))
    assert isinstance(found, dict)
    # Process 1 is the sandbox's own, which has no environment of ours.
    assert {path: text for path, text in found.items() if text} == {path: found[path] for path in ("/proc/1/environ",) if found[path]}
    assert "TOOL_AGENT_OWNER" not in str(found["/proc/1/environ"])


async def test_nothing_of_the_machine_can_be_written(scripts: Scripts, root: Path) -> None:
    paths = [
        "main.py",
        "new.py",
        str(root / "x"),
        "/etc/x",
        "/usr/x",
        "/x",
        str(scripts.state / "x"),
        SHARED,
        "/var/x",
    ]
    found = await scripts.code(on(paths, WRITE))
    assert found == dict.fromkeys(paths, False) | {SHARED: True}
    assert not is_there(SHARED)
    assert (root / "code/main.py").read_text() == on(paths, WRITE)


async def test_its_temporary_files_are_its_own_and_are_gone_afterwards(scripts: Scripts) -> None:
    assert await scripts.code(on([MARK], WRITE)) == {MARK: True}
    assert await scripts.code(on([MARK], READ)) == {MARK: None}
    assert not is_there(MARK)


async def test_its_environment_holds_nothing_of_ours(scripts: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_AGENT_SECRET_KEY", "s3cret")
    found = await scripts.code("import json, os\nprint(json.dumps(dict(os.environ)))")
    assert isinstance(found, dict)
    assert "s3cret" not in str(found)
    assert not {name for name in found if name.startswith("TOOL_AGENT")} - {"TOOL_AGENT_TOOL_ID", "TOOL_AGENT_CALL_ID"}


async def test_a_variable_is_seen_when_asked_for_and_allowed(tmp_path: Path, root: Path, environments_folder: Path) -> None:
    variables = [("TZ", "Asia/Tokyo"), ("HOME_SECRET", "x")]
    async with script_service(tmp_path / "state", root, environments_folder, variables=variables) as scripts:
        text = "import json, os\nprint(json.dumps([os.environ.get('TZ'), os.environ.get('HOME_SECRET')]))"
        assert await scripts.code(text) == [None, None]
        assert await scripts.code(text, environment=["TZ", "HOME_SECRET"]) == ["Asia/Tokyo", None]
        assert [one.item for one in scripts.account.differences if one.item == "environment"] == ["environment"]


async def test_no_port_of_this_machine_can_be_reached(scripts: Scripts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = f"""
        import json, socket
        def tried(host, port):
            try: socket.create_connection((host, port), timeout=3).close(); return True
            except OSError: return False
        print(json.dumps([tried("127.0.0.1", {port}), tried("127.0.0.1", 7233), tried("192.0.2.1", 80), tried("169.254.169.254", 80)]))
        """
        assert await scripts.code(text) == [False] * 4


async def test_a_socket_in_the_state_directory_cannot_be_reached(scripts: Scripts) -> None:
    path = scripts.state / "x.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        path.chmod(0o777)
        text = f"""
        import socket
        try: print(1, socket.socket(socket.AF_UNIX).connect({str(path)!r}))
        except OSError: print("false")
        """
        assert await scripts.code(text) is False


@pytest.mark.promise("tools-see-only-their-own")
async def test_other_processes_are_not_seen(scripts: Scripts) -> None:
    text = "import json, os\nprint(json.dumps(sorted(int(name) for name in os.listdir('/proc') if name.isdigit())))"
    found = await scripts.code(text)
    assert isinstance(found, list)
    assert len(found) <= 4
    assert os.getpid() not in found


async def test_its_cache_lasts_and_is_its_own(scripts: Scripts, root: Path) -> None:
    access: dict[str, JsonValue] = {"allowRead": ["self", "./*", ".cache/**"], "allowWrite": [".cache/**"]}
    assert await scripts.code(on([".cache/x"], WRITE), fileAccess=access) == {".cache/x": True}
    assert await scripts.code(on([".cache/x"], READ), fileAccess=access) == {".cache/x": "x"}
    assert await scripts.code(on([".cache/x"], READ), fileAccess=access, own="another") == {".cache/x": None}
    assert not is_there(root / "code/.cache")
    assert (scripts.state / "tools/tool/files/.cache/x").read_text() == "x"


@pytest.mark.parametrize("pattern", ["self", "./*", "**", "*.py", "main.py", "../**", "node_modules/**"])
async def test_its_own_files_cannot_be_asked_for_to_be_written(scripts: Scripts, pattern: str) -> None:
    found = await scripts.code(on(["main.py", "x.py", "../x.py"], WRITE), fileAccess={"allowWrite": [pattern]})
    assert found == {"main.py": False, "x.py": False, "../x.py": False}
    assert "write" in {one.item for one in scripts.account.differences}


async def test_patterns_say_what_of_its_folder_is_seen(scripts: Scripts, root: Path) -> None:
    for name in ("code/data/a.json", "code/data/deep/b.json", "code/c.txt", "code/d.txt"):
        scripts.write(name, "1")
    (root / "secret").write_text("secret")
    (root / "code/link.txt").symlink_to(root / "secret")
    paths = ["main.py", "data/a.json", "data/deep/b.json", "c.txt", "d.txt", "link.txt"]

    async def seen(*patterns: str) -> set[str]:
        found = await scripts.code(on(paths, READ), fileAccess={"allowRead": list(patterns)})
        assert isinstance(found, dict)
        assert "secret" not in found.values()
        return {path for path, text in found.items() if text is not None}

    everything = set(paths) - {"link.txt"}
    assert await seen() == everything
    assert await seen("self") == {"main.py"}
    assert await seen("self", "./*") == everything
    assert await seen("data/**") == {"main.py", "data/a.json", "data/deep/b.json"}
    assert await seen("*.txt") == {"main.py", "c.txt", "d.txt"}
    assert await seen("../secret", "../*", "..") == {"main.py"}
    # With a folder mounted into it, it is put together piece by piece: links are left out.
    with_cache = await scripts.code(on(paths, READ), fileAccess={"allowWrite": [".cache/**"]})
    assert isinstance(with_cache, dict)
    assert {path for path, text in with_cache.items() if text is not None} == everything


async def test_a_folder_of_the_machine_is_seen_only_with_the_policys_word(tmp_path: Path, root: Path, environments_folder: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "x").write_text("shared")
    asked: dict[str, JsonValue] = {"allowRead": ["./*", str(shared)]}
    async with script_service(tmp_path / "state", root, environments_folder) as scripts:
        assert await scripts.code(on([str(shared / "x")], READ), fileAccess=asked) == {str(shared / "x"): None}
        policy = POLICY.model_copy(update={"read": (str(shared),)})
    async with script_service(tmp_path / "state", root, environments_folder, policy=policy) as scripts:
        assert await scripts.code(on([str(shared / "x")], READ), fileAccess=asked) == {str(shared / "x"): "shared"}


async def test_a_script_is_no_privileged_user(scripts: Scripts) -> None:
    text = "import json, os\nprint(json.dumps([os.getuid(), open('/proc/self/status').read()]))"
    found = await scripts.code(text)
    assert isinstance(found, list)
    assert found[0] != 0
    lines = dict(line.split(":\t", 1) for line in str(found[1]).splitlines() if ":\t" in line)
    assert {lines[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapInh")} <= {"0000000000000000"} or lines["CapEff"] == "0" * 16
    assert lines["NoNewPrivs"] == "1"
