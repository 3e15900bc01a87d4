"""Runs an attack on a service with the monitor, and again with SIGTERM during it."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from temporalio.service import RPCError

from tests.attacks.attack import Attack, Kind, Target, expect
from tests.attacks.catalog import ATTACKER, attack_catalog
from tests.attacks.monitor import watching
from tests.attacks.peer import Peer
from tests.attacks.remains import files_left, sandboxed
from tests.attacks.verdict import Row, figures_of, judge
from tests.system.service_process import ServiceProcess
from tests.system.waiting import wait_until

__all__ = ["GRACE_S", "MOST_S", "Extent", "run_kind"]

GRACE_S = 5.0
MOST_S = 2_520.0
_MORE_S = 5.0
_SETTLE_S = 30.0
_START_BESIDE_S = 1.0
_OVER_AT_ONCE_S = 1.0
"""What took no longer has no middle: SIGTERM would come after it, as after any other."""
_FOUND = (AssertionError, RPCError, httpx.HTTPError, ValueError, KeyError, OSError, subprocess.SubprocessError)


class Extent:
    """How long a service is observed before an attack, which attacks are made, and which get SIGTERM; none begins after `most_s`."""

    def __init__(self, *, quick: bool = False, only: str | None = None, most_s: float = MOST_S) -> None:
        self.before_s = 1.0 if quick else 2.0
        self.is_quick = quick
        self._only = only
        self._most_s, self._until = most_s, time.monotonic() + most_s

    @property
    def over(self) -> str:
        """Why no attack begins any more; empty if there is time."""
        return f"not made: {self._most_s / 60:g} minutes were over" if time.monotonic() > self._until else ""

    def wants(self, kind: Kind, attack: Attack) -> bool:
        return self._only is None or f"{kind.name}.{attack.name}".startswith(self._only)

    def stops(self, kind: Kind, attack: Attack, took: float) -> bool:
        """Among very short attacks only the first of a kind; the others would cost a start each."""
        return attack.has_middle and (attack is kind.attacks[0] or (not self.is_quick and took > _OVER_AT_ONCE_S))


class Stand:
    """A service for one kind of attack, restarted if the last attack left it unfit."""

    def __init__(self, kind: Kind, folder: Path, peer: Peer, extent: Extent) -> None:
        self._kind, self._folder, self._peer, self._extent = kind, folder, peer, extent
        self._stack = ExitStack()
        self._target: Target | None = None
        self._starts = 0

    def target(self) -> Target:
        """A healthy service, with a new catalog and state if just started."""
        if self._target is None:
            self._starts += 1
            folder = self._folder / str(self._starts)
            (folder / "catalog").mkdir(parents=True)
            data = attack_catalog(folder / "catalog", self._peer.url)
            with ExitStack() as stack:
                more: Mapping[str, str] = stack.enter_context(self._kind.around(folder, self._peer)) if self._kind.around else {}
                # Environments too: what an installation leaves has to be seen.
                own = {"SHUTDOWN_GRACE_S": f"{GRACE_S:g}", "ENVIRONMENTS_DIR": str(folder / "service/state/environments")}
                settings = {**own, "TEMPORAL_PATIENCE_S": "20", **self._kind.settings, **more}
                service = ServiceProcess(folder / "service", data, **settings)
                service.state = Path(settings.get("STATE_DIR", service.state))
                stack.callback(_end, service)
                service.start()
                self._target = Target(service, data, self._peer, is_long=not self._extent.is_quick)
                stack.callback(self._target.http.close)
                expect(not (faults := self._target.http.get("/tools").json()["catalog_faults"]), f"the catalog has faults: {faults}")
                # Its environment is built once, and that is no part of any attack.
                self._target.call(ATTACKER, {"mode": "sleep", "seconds": 0})
                self._stack = stack.pop_all()
        return self._target

    def end(self) -> None:
        """The remains of an attack may be deeper than Python can remove."""
        self._target = None
        self._stack.close()
        self._stack = ExitStack()
        subprocess.run(["rm", "-rf", "--", str(self._folder)], check=False)  # noqa: S607 - of whoever attacks


def run_kind(kind: Kind, folder: Path, peer: Peer, extent: Extent) -> Iterator[Row]:
    """Returns a row for each requested attack. Nothing of the service is left."""
    stand = Stand(kind, folder, peer, extent)
    try:
        for attack in kind.attacks:
            if extent.wants(kind, attack):
                yield _run(kind, attack, stand, extent)
    finally:
        stand.end()


def _run(kind: Kind, attack: Attack, stand: Stand, extent: Extent) -> Row:
    if extent.over:
        return Row(kind.name, attack.name, attack.what, "–", None, "–", None, (extent.over,))
    faults: list[str] = []
    try:
        target = stand.target()
    except pytest.skip.Exception as error:
        return Row(kind.name, attack.name, attack.what, f"not made: {error}", None, "–", None, ())
    except AssertionError as error:
        return Row(kind.name, attack.name, attack.what, "", None, "", None, (f"the service did not start: {error}"[:300],))
    state = target.service.state
    files, processes = files_left(state), sandboxed(state)
    with watching(target.service.api_url, target.service.pid) as watch:
        time.sleep(extent.before_s)
        began = time.monotonic()
        answer = _attempt(attack, target, faults)
        took = time.monotonic() - began
        # What is wrong may come a moment later than the answer.
        time.sleep(1.0)
        ended = time.monotonic()
    figures = figures_of(watch.seen, began, ended)
    faults += judge(figures, may_refuse=attack.may_refuse, is_load=attack.is_load, quick_s=attack.quick_s)
    left = _left(state, files, processes)
    if left:
        faults.append(f"left: {left}")
    stopped_s: float | None = None
    if faults:
        stand.end()
    if extent.stops(kind, attack, took):
        stopped_s = _stopped_in_the_middle(attack, stand, took, faults)
    return Row(kind.name, attack.name, attack.what, answer, figures, left or "nothing", stopped_s, tuple(faults))


def _attempt(attack: Attack, target: Target, faults: list[str]) -> str:
    try:
        return attack.run(target)
    except pytest.skip.Exception as error:
        return f"not made: {error}"
    except _FOUND as error:
        faults.append(f"{type(error).__name__}: {error}"[:500])
        return "–"


def _left(state: Path, files: set[str], processes: set[int]) -> str:
    def what() -> str:
        more = sorted(files_left(state) - files)
        alive = len(sandboxed(state) - processes)
        return ", ".join([*more[:3], *([f"{len(more) - 3} more"] if len(more) > 3 else []), *([f"{alive} processes"] if alive else [])])

    with suppress(AssertionError):
        wait_until(lambda: not what(), "nothing is left", _SETTLE_S)
    return what()


def _stopped_in_the_middle(attack: Attack, stand: Stand, took: float, faults: list[str]) -> float | None:
    """Seconds from SIGTERM to the end of a service that is attacked for `took` seconds. Requires that nothing of it is left."""
    try:
        target = stand.target()
    except AssertionError as error:
        faults.append(f"the service did not start again: {error}"[:300])
        return None
    service = target.service
    beside = threading.Thread(target=_attempt, args=(attack, target, []), daemon=True)
    beside.start()
    beside.join(min(_START_BESIDE_S, took / 2))
    began = time.monotonic()
    with suppress(ProcessLookupError):
        os.kill(service.pid, signal.SIGTERM)
    try:
        service.wait()
    except subprocess.TimeoutExpired:
        faults.append("SIGTERM did not stop the service within 60 s")
    stopped_s = time.monotonic() - began
    if stopped_s > GRACE_S + _MORE_S:
        faults.append(f"SIGTERM in the middle of it: stopped after {stopped_s:.1f} s")
    try:
        wait_until(lambda: not service.leftovers(), "no process is left", 20.0)
    except AssertionError:
        faults.append(f"after the end: {'; '.join(service.leftovers().values())[:200]}")
    stand.end()
    beside.join(60)
    return stopped_s


def _end(service: ServiceProcess) -> None:
    """End the service in any state: one that does not stop is killed with its remains."""
    with suppress(AssertionError, OSError, subprocess.TimeoutExpired):
        service.kill()
    with suppress(AssertionError):
        wait_until(lambda: not service.leftovers(), "nothing is left of a killed service", 20.0)
    for pid in service.leftovers():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
