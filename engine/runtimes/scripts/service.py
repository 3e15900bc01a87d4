"""Executes scripts: the ExternalScriptExecutionService of script tools and of the built-in `execute_script`."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.runtimes.environments.dependencies import dependencies_of
from engine.runtimes.environments.environments import ScriptEnvironments
from engine.runtimes.environments.execution import Executor, Order
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.paths import find_script
from engine.runtimes.http.json_answers import MAX_RESULT_VALUES
from engine.runtimes.process.box import Network, no_network
from engine.runtimes.runtime import Progress
from engine.runtimes.sandbox.sandbox import Grant
from engine.runtimes.scripts.commands import Prepared, ScriptCall, box_of, command_of
from engine.runtimes.scripts.progress import ProgressLines
from engine.runtimes.scripts.verdicts import ScriptReply, verdict
from toolagent.contracts.sandbox import SandboxAccount, SandboxGrant
from toolagent.contracts.sources import ScriptLanguage


@dataclass(slots=True)
class ScriptRun:
    """The account of one run, for the audit. Without `reply` and `failure` it was cancelled.

    Without a command it was refused before anything ran.
    """

    call: ScriptCall
    at: datetime
    command: tuple[str, ...] = ()
    account: SandboxAccount | None = None
    duration_s: float = 0.0
    failure: ScriptFailure | None = None
    reply: ScriptReply | None = None
    refusals: tuple[str, ...] = ()

    @property
    def truncated(self) -> tuple[str, ...]:
        """The streams that were cut."""
        stream = self.failure.facts.get("stream") if self.failure else None
        return (stream,) if isinstance(stream, str) else self.reply.truncated if self.reply else ()


class ScriptService:
    """`root` holds the scripts; `state` holds the tools' writable folders and the logs of their last runs.

    `variables` are the host's variables that a tool may be granted.
    """

    def __init__(
        self,
        root: Path,
        state: Path,
        executor: Executor,
        environments: ScriptEnvironments,
        *,
        variables: Mapping[str, str] | None = None,
        network: Network = no_network,
        max_input_bytes: int = 1_310_720,
        max_result_values: int = MAX_RESULT_VALUES,
        note: Callable[[ScriptRun], None] = lambda _: None,
    ) -> None:
        self.root, self._state, self._executor, self._environments = root, state, executor, environments
        self._variables, self._network, self._note = dict(variables or {}), network, note
        self._max_input_bytes, self._max_result_values = max_input_bytes, max_result_values

    @property
    def environments(self) -> ScriptEnvironments:
        """The environments of all Python, Node.js and Bun programs of this host, also of tools that keep running."""
        return self._environments

    def observed(
        self, state: Path, environments: ScriptEnvironments, network: Network, note: Callable[[ScriptRun], None]
    ) -> "ScriptService":
        """A copy with another network, other folders of tools, and another listener."""
        return ScriptService(
            self.root,
            state,
            self._executor,
            environments,
            variables=self._variables,
            network=network,
            max_input_bytes=self._max_input_bytes,
            max_result_values=self._max_result_values,
            note=note,
        )

    async def prepare(self, root: Path, path: str, language: ScriptLanguage, tool_id: str, progress: Progress) -> Prepared:
        """Finds the script below `root`, and makes its environment if need be. Raises ScriptFailure."""
        script = await asyncio.to_thread(find_script, root, path)
        _ = self._executor.sandbox  # raises before the installation if there is no sandbox
        await self._environments.provide(language, tool_id, progress)
        dependencies = await asyncio.to_thread(dependencies_of, script, language)
        return Prepared(script, dependencies, await self._environments.ensure(dependencies, tool_id, progress))

    async def is_current(self, prepared: Prepared) -> bool:
        """Whether the script is still there with the same dependencies, and its environment is whole."""
        return await asyncio.to_thread(self._is_current, prepared)

    async def execute(self, prepared: Prepared, call: ScriptCall, progress: Progress) -> ScriptReply:
        """Runs the script once, and leaves none of its processes running. Raises ScriptFailure."""
        run, began = ScriptRun(call, datetime.now(UTC)), time.monotonic()
        try:
            with self._environments.using(prepared.environment):
                run.reply = await self._run(run, prepared, progress)
        except ScriptFailure as failure:
            run.failure = failure
            raise
        finally:
            run.duration_s = time.monotonic() - began
            self._note(run)
        return run.reply

    def usual_wall_s(self, call: ScriptCall) -> float | None:
        """Seconds that a script may take if the caller sets no limit: the tool's own limit, else the policy's default."""
        return self._executor.sandbox.grant(call.context).enforced.limits.wall_s

    def refuse(self, call: ScriptCall, failure: ScriptFailure) -> None:
        """Records a call that was not executed."""
        self._note(ScriptRun(call, datetime.now(UTC), failure=failure))

    async def _run(self, run: ScriptRun, prepared: Prepared, progress: Progress) -> ScriptReply:
        call, programs = run.call, self._environments.programs
        stdin = self._input(call)
        grant = self._executor.sandbox.grant(call.context)
        run.account, run.command = grant.account, command_of(prepared, call, programs)
        try:
            own = self._state / call.own / "files"
            box, unmet = await asyncio.to_thread(box_of, prepared, call, _seeing(grant), programs, own, self._variables)
        except OSError as error:
            raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, f"The script's files cannot be handed to the sandbox: {error}") from error
        run.account = grant.account.model_copy(update={"differences": (*grant.account.differences, *unmet)})
        wall_s = self._wall_s(call, grant)
        async with self._network(box, run.command, grant.enforced.hosts) as opened:
            order = Order(opened.argv, opened.box, wall_s, self._state / call.own, stdin, ProgressLines(progress).feed)
            try:
                done = await self._executor.run(order)
                return await asyncio.to_thread(verdict, done, box.limits, wall_s, self._max_result_values)
            finally:
                run.refusals = opened.refusals()

    def _input(self, call: ScriptCall) -> bytes:
        stdin = json.dumps(dict(call.params), allow_nan=False).encode()
        if len(stdin) > self._max_input_bytes:
            message = f"The input has {len(stdin)} bytes of JSON; a script takes at most {self._max_input_bytes}."
            raise ScriptFailure(ScriptErrorKind.INPUT, message, {"bytes": len(stdin), "max_bytes": self._max_input_bytes})
        return stdin

    def _is_current(self, prepared: Prepared) -> bool:
        try:
            now = dependencies_of(prepared.script, prepared.environment.language)
        except ScriptFailure:
            return False
        return now == prepared.dependencies and self._environments.is_whole(prepared.environment)

    def _wall_s(self, call: ScriptCall, grant: Grant) -> float:
        """The shortest of the call's time-out, the tool's own limit and the policy's ceiling. The policy's default does not apply."""
        asked, ceiling = call.context.limits.wall_s, self._executor.sandbox.policy.ceilings.wall_s
        return min((call.wall_s, *(bound for bound in (asked and grant.enforced.limits.wall_s, ceiling) if bound is not None)))


def _seeing(grant: Grant) -> SandboxGrant:
    """The grant; a script whose read patterns are all refused sees itself alone, not its folder."""
    denied = grant.account.requested.read and not grant.enforced.read
    return grant.enforced.model_copy(update={"read": ("self",)}) if denied else grant.enforced
