"""Dependencies whose installation attacks."""

import asyncio
import base64
import json
import secrets
from collections.abc import Mapping
from pathlib import Path

import httpx
from pydantic import JsonValue

from engine.making.dependencies.gate import DependencyGate
from engine.making.dependencies.popular import PopularPackages
from engine.making.dependencies.simple_index import SimpleIndex
from tests.attacks.attack import Attack, Kind, Target, answered, expect
from tests.attacks.catalog import put_tool
from tests.attacks.npm_scripts import OF_A_PACKAGE, OF_A_PROJECT, TELLS, archive, harm
from tests.system.service_process import ROOT
from tests.system.waiting import wait_until
from toolagent_service.contracts.dependency_policy import DependencyPolicy, RefusalKind

__all__ = ["KIND"]

_SCRIPT = "import json, sys\njson.dump(1, sys.stdout)\n"
_NODE: JsonValue = {"type": "external-script", "scriptPath": "main.mjs", "language": "nodejs"}
_LIE = "0" * 64
_NEAR = ("reqeusts", "request5", "python-requests", "nunpy", "pandsa", "scikit-leam", "djang0", "cryptograpy", "pydantlc", "urlib3")
_TOOLS_FAULT = {200, 502, 503, 504}


def _call(target: Target, name: str, files: Mapping[str, str], handler: JsonValue = None) -> str:
    """Call a tool with these files; our own loopback must not be contacted meanwhile."""
    more = {"handler": handler} if handler else {}
    put_tool(target.data, f"attack:{name}", _SCRIPT, files, **more, timeoutSeconds=25)
    return answered(_called(target, f"attack:{name}"), _TOOLS_FAULT)


def _called(target: Target, tool_id: str) -> httpx.Response:
    """A tool that was just added."""
    before = sum(target.peer.asked.values())
    wait_until(lambda: target.ask("GET", f"/tools/{tool_id}").is_success, f"{tool_id} is known")
    answer = target.call(tool_id)
    expect(sum(target.peer.asked.values()) == before, "the installation reached this machine's own loopback")
    return answer


def lifecycle(target: Target) -> str:
    """Lifecycle scripts of a project and of a package that it installs run in the sandbox, and achieve nothing.

    The project itself installs the package by npm, from its own archive: beside a script, the installer sees `package.json` only.
    """
    state, key = target.service.state, secrets.token_hex(16)
    hidden = [state / f"{key}.key", state / "hidden" / f"{key}.key", target.data / f"{key}.key"]
    # Of these folders the sandbox has its own: only what is outside counts.
    shared = [Path(folder) / f"attack-{secrets.token_hex(4)}" for folder in ("/tmp", "/var/tmp", "/dev/shm")]  # noqa: S108
    places = [state / "owned", target.data / "owned", *shared]
    for file in hidden:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_text(key)
    does = harm(write=places, read=hidden, ask=f"{target.peer.url}/owned")
    evil = base64.b64encode(archive({"name": "evil", "version": "1.0.0", "scripts": dict.fromkeys(OF_A_PACKAGE, does)})).decode()
    installs = f"echo {evil} | base64 -d > evil.tgz && npm install --no-save --no-audit --no-fund ./evil.tgz"
    scripts = {**dict.fromkeys(OF_A_PROJECT, does), "postinstall": f"{does} && {installs}"}
    try:
        said = _node_tool_called(target, "lifecycle", {"name": "outer", "version": "1.0.0", "scripts": scripts})
        told = answered(said, {200})
        seen: dict[str, list[str]] = said.json()["result"]
        asked = {f"outer-{event}" for event in OF_A_PROJECT} | {f"evil-{event}" for event in OF_A_PACKAGE}
        expect(set(seen) == asked, f"of the scripts only these were run: {sorted(seen)}")
        expect(not any(seen.values()), f"a lifecycle script got {seen}")
        wrote = [str(place) for place in places if place.exists()]
        expect(not wrote, f"a lifecycle script wrote {wrote}")
    finally:
        for file in hidden:
            file.unlink()
    return f"{told}, {len(seen)} scripts were run and got nothing"


def beside(target: Target) -> str:
    """The installer does not see files beside a script, so nothing is installed."""
    does = harm(write=[target.service.state / "owned"], read=[], ask=f"{target.peer.url}/owned")
    evil = archive({"name": "evil", "version": "1.0.0", "scripts": dict.fromkeys(OF_A_PACKAGE, does)})
    outer = {"name": "outer", "version": "1.0.0", "dependencies": {"evil": "file:./evil.tgz"}}
    said = _node_tool_called(target, "beside", outer, evil)
    told = answered(said, {502})
    why = str(said.json()["error"])
    expect("ENOENT" in why and "evil.tgz" in why, f"it failed for something else: {why[:300]}")
    return told


def _node_tool_called(target: Target, name: str, package: Mapping[str, object], evil: bytes = b"") -> httpx.Response:
    """A tool in JavaScript with this `package.json`, and the archive `evil.tgz` beside it."""
    (folder := target.data / "tools" / f"attack-{name}").mkdir(parents=True)
    (folder / "evil.tgz").write_bytes(evil)
    files = {"main.mjs": TELLS, "package.json": json.dumps(package)}
    put_tool(target.data, f"attack:{name}", files=files, handler=_NODE, timeoutSeconds=25)
    return _called(target, f"attack:{name}")


def lying_lock(target: Target) -> str:
    """With a wrong hash nothing is installed."""
    lock = f"packaging==24.2 --hash=sha256:{_LIE}\n"
    told = _call(target, "lying-lock", {"requirements.lock": lock})
    expect(not told.startswith("200"), f"it was installed: {told}")
    return told


def lying_package_lock(target: Target) -> str:
    """An npm lock that points to this machine, with a wrong hash."""
    package = {"name": "x", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"}}
    entry = {"version": "1.3.0", "resolved": f"{target.peer.url}/left-pad.tgz", "integrity": f"sha512-{'A' * 86}=="}
    lock = {"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": package, "node_modules/left-pad": entry}}
    files = {"main.mjs": "console.log(1)\n", "package.json": json.dumps(package), "package-lock.json": json.dumps(lock)}
    told = _call(target, "lying-package-lock", files, _NODE)
    expect(not told.startswith("200"), f"it was installed: {told}")
    return told


def options(target: Target) -> str:
    """Lines of a requirements file that are options or addresses."""
    told: list[str] = []
    lines = (
        f"--index-url {target.peer.url}/simple\npackaging",
        f"--extra-index-url {target.peer.url}/simple\nno-such-package-of-ours",
        f"packaging @ {target.peer.url}/packaging-24.2-py3-none-any.whl",
        f"--find-links {target.peer.url}/links\nno-such-package-of-ours",
        f"-r {target.peer.url}/more.txt",
        "-e .",
        "/etc/passwd",
        f"git+{target.peer.url}/x.git",
    )
    for number, text in enumerate(lines):
        told.append(_call(target, f"options-{number}", {"requirements.txt": f"{text}\n"}))
    return ", ".join(told)


def near_names(target: Target) -> str:
    """The gate refuses these dependencies of a made tool before the index is asked."""
    return asyncio.run(_judged(target))


async def _judged(target: Target) -> str:
    async def where() -> tuple[str, ...]:
        return (f"{target.peer.url}/simple",)

    before = sum(target.peer.asked.values())
    index = SimpleIndex(where)
    try:
        gate = DependencyGate(DependencyPolicy(), index, PopularPackages.read(ROOT / "data/popular_packages.txt"))
        verdicts = await gate.judge([*_NEAR, *(f"{name}>=1" for name in _NEAR)])
    finally:
        await index.aclose()
    passed = [one.requirement for one in verdicts if one.refusal is None or one.refusal.kind is not RefusalKind.NEAR_MISS]
    expect(not passed, f"not refused for their names: {', '.join(passed)}")
    expect(sum(target.peer.asked.values()) == before, "the index was asked for one of them")
    return f"{len(verdicts)} refused: near miss"


KIND = Kind(
    "packages",
    (
        Attack(
            "lifecycle",
            "npm lifecycle scripts that write, read keys and ask our loopback, of a project and a package",
            lifecycle,
            in_ci=False,
        ),
        Attack("beside", "an archive with such scripts beside the tool, as `file:./evil.tgz`", beside, in_ci=False),
        Attack("lying-lock", "a lock whose hash is not that of the file", lying_lock, in_ci=False),
        Attack("lying-package-lock", "a package-lock.json that leads to our own loopback", lying_package_lock, in_ci=False),
        Attack("near-names", "names near to known ones as dependencies of a made tool", near_names),
        Attack("options", "requirements that are options, addresses, paths", options, in_ci=False),
    ),
    # npm asks again and again for what it cannot reach.
    settings={"TOOL_START_TIMEOUT_S": "20"},
)
