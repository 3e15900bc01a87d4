"""Files that tools leave on the disk, made hard to remove."""

import time

import httpx

from tests.attacks.attack import Attack, Kind, Target, answered, at_once, expect
from tests.attacks.catalog import FILES, put_tool
from tests.attacks.remains import files_left
from tests.system.waiting import wait_until

__all__ = ["KIND"]


def _any_answer(answer: httpx.Response) -> str:
    """The call may fail or succeed; its answer is not an error of the service or of the attack."""
    told = answered(answer, {200, 502})
    expect("Traceback" not in answer.text, f"the attack did not come about: {answer.text[-300:]}")
    return told


def deep(target: Target) -> str:
    return _folders(target, 1)


def deep_and_long(target: Target) -> str:
    """The deepest folder has no path: it would be longer than the kernel accepts."""
    return _folders(target, 200)


def _folders(target: Target, name: int) -> str:
    params = {"mode": "folders", "depth": 1500, "bytes": 8 << 20, "name": name}
    return ", ".join(at_once(lambda: _any_answer(target.call(FILES, params)), 4, 4))


def locked(target: Target) -> str:
    return _any_answer(target.call(FILES, {"mode": "locked"}))


def children(target: Target) -> str:
    return _any_answer(target.call(FILES, {"mode": "children"}))


def flood(target: Target) -> str:
    return _any_answer(target.call(FILES, {"mode": "flood", "mib": 200}))


def cancelled(target: Target) -> str:
    """Cancelled while it makes folders."""
    answer = target.post("/run_tool", {"tool_id": FILES, "params": {"mode": "folders", "depth": 3000}, "mode": "async"})
    call_id = answer.json()["task_id"]
    time.sleep(0.3)
    target.post(f"/tasks/{call_id}/cancel", {})
    wait_until(lambda: target.ask("GET", f"/tasks/{call_id}").json()["result"], "the cancelled call ends")
    return "cancelled"


def cancelled_installation(target: Target) -> str:
    """Cancelled while its environment is built."""
    script = "# /// script\n# dependencies = ['numpy>=2', 'packaging']\n# ///\nprint(1)\n"
    put_tool(target.data, "attack:installs", script)
    wait_until(lambda: target.ask("GET", "/tools/attack:installs").is_success, "the tool is known")
    environments = target.service.state / "environments"
    before = {path.name for path in environments.iterdir()} if environments.exists() else set[str]()
    answer = target.post("/run_tool", {"tool_id": "attack:installs", "params": {}, "mode": "async"})
    call_id = answer.json()["task_id"]
    wait_until(lambda: {path.name for path in environments.iterdir()} - before, "its environment is begun")
    target.post(f"/tasks/{call_id}/cancel", {})
    wait_until(lambda: target.ask("GET", f"/tasks/{call_id}").json()["result"], "the cancelled call ends")
    wait_until(lambda: not files_left(target.service.state), "nothing half built is left", 30.0)
    return "cancelled"


KIND = Kind(
    "folders",
    (
        Attack("deep", "four calls with 1,500 nested folders and 8 MiB in each place that can be written", deep),
        Attack("deep-and-long", "the same with names of 200 letters", deep_and_long),
        Attack("locked", "folders that their owner may not read", locked),
        Attack("children", "twenty processes in sessions of their own, which stay", children),
        Attack("flood", "200 MiB on stderr and on stdout", flood),
        Attack("cancelled", "cancelled while it makes folders", cancelled),
        Attack("cancelled-installation", "cancelled while its environment is built", cancelled_installation, is_load=True, in_ci=False),
    ),
)
