"""The subject of the gate: a candidate that can be called, killed and observed, and its examples."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from pydantic import JsonValue

from engine.making.gate.derivation import Derivation
from engine.making.gate.keys import wants_key
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent.contracts.manifest import SideEffectScope
from toolagent.contracts.sandbox import SandboxAccount
from toolagent.contracts.sources import HttpSource
from toolagent.contracts.task_specs import Example
from toolagent.core.catalog.expectations import unexpected
from toolagent.validation.schemas import find_issues

Params: TypeAlias = dict[str, JsonValue]


class Came(StrEnum):
    """The outcome of a request."""

    ANSWER = "answered"
    REFUSAL = "refused the input"
    ERROR = "failed"
    MISFIT = "answered what its output schema does not allow"
    LOST = "broke the connection"
    SILENCE = "did not answer in time"
    NOT_SENT = "could not be asked"
    UNSENDABLE = "could not be given that"
    """Our own client cannot send it. The tool is not at fault, and no caller could send it."""
    KEYLESS = "wants a secret that is not set"
    SPARED = "was asked for nothing more"
    """The number of requests allowed to this remote server is used up."""

    @property
    def was_sent(self) -> bool:
        return self not in (Came.NOT_SENT, Came.UNSENDABLE, Came.KEYLESS, Came.SPARED)


@dataclass(frozen=True, slots=True)
class Reply:
    """`message` says what is wrong, and may quote input and output."""

    came: Came
    output: JsonValue = None
    message: str = ""

    def holds(self, example: Example) -> bool:
        """Whether this is the answer that the example expects."""
        return self.came is Came.ANSWER and not any(True for _ in unexpected(example.expected_output, self.output))


@dataclass(frozen=True, slots=True)
class Account:
    """Observations of a candidate so far.

    `hosts` were asked for and refused, as `host:port`. `unnamed`: it asked for others after it was shown withheld examples; their names
    and their number could reveal these. `deaths` counts processes that ended by themselves.
    """

    hosts: tuple[str, ...] = ()
    unnamed: bool = False
    deaths: int = 0
    calls: int = 0
    sandbox: SandboxAccount | None = None


class OnTrial(Protocol):
    """A candidate that runs apart from the version in use."""

    async def start(self) -> None:
        """Starts all its tools, unless they run. Raises StartFailed or another NotSent."""
        ...

    async def health(self, tool_id: str, path: str) -> int | None:
        """The status of the path; None without an answer."""
        ...

    async def call(self, tool_id: str, params: Params, *, withheld: bool = False) -> Reply:
        """Runs the call like a caller's: fills in defaults, validates input and output.

        `withheld`: hide this call from the model that made the tool.
        """
        ...

    async def send(self, tool_id: str, content: Params | bytes) -> Reply:
        """Sends input without validation; bytes are the raw body."""
        ...

    async def kill(self, tool_id: str) -> bool:
        """Kills the tool's process and waits for its end. False if there is no process. Raises NotSent if the end is not seen."""
        ...

    async def renew(self) -> None:
        """Ends all its processes and removes their homes; the next call starts them."""
        ...

    def account(self) -> Account: ...

    async def log_size(self, tool_id: str) -> int:
        """The size of its process's log so far, also for tools that share the process."""
        ...

    async def raised(self, tool_id: str, since: int) -> str:
        """The last exception in its log after `since` bytes; empty if there is none.

        Not after a withheld call, which the exception could quote.
        """
        ...

    def tell(self, progress: str) -> None:
        """Reports progress to people."""
        ...


@dataclass(frozen=True, slots=True)
class GateLimits:
    """`cases`: most derived cases of a tool. `script_cases`: most calls of others' scripts together.

    `remote_cases` and `remote_bad`: most valid and invalid made-up requests to others' servers, for all tools together.
    `cases_s`: time for the cases of one tool, and for its bad input; `whole_s`: time for all checks. `told`: most faults in a report.
    """

    cases: int = 25
    script_cases: int = 12
    remote_cases: int = 100
    remote_bad: int = 40
    cases_s: float = 60.0
    whole_s: float = 3600.0
    told: int = 3


@dataclass(frozen=True, slots=True)
class Subject:
    """The maker has seen the examples in `given`, but not those in `withheld`."""

    entries: tuple[ToolEntry, ...]
    trial: OnTrial
    cases: Derivation
    given: tuple[Example, ...] = ()
    withheld: tuple[Example, ...] = ()
    written_by_us: bool = False
    probe: Literal["none", "safe", "full"] = "safe"
    """Made-up input for others' servers: none, only for harmless operations that get no secret, or for all."""
    limits: GateLimits = field(default_factory=GateLimits)

    def each(self, check: str) -> Iterator[ToolEntry]:
        """Yields its tools and reports the progress of `check`."""
        for number, entry in enumerate(self.entries, 1):
            self.trial.tell(f"{check} {number}/{len(self.entries)}")
            yield entry

    async def tools_for(self, example: Example) -> tuple[ToolEntry, ...]:
        """The tools whose input schema the example fits; a single tool in any case."""
        if len(self.entries) == 1:
            return self.entries
        return tuple([entry for entry in self.entries if not await find_issues(entry.manifest.input_schema, example.input)])

    def may_be_probed(self, entry: ToolEntry) -> bool:
        """Whether made-up input is harmless: the tool changes nothing, or can only reach what is its own.

        For others' servers, the task decides.
        """
        if is_of_others(entry):
            return self.probe == "full" or (self.probe == "safe" and _is_safe(entry))
        if entry.manifest.side_effect_scope in (SideEffectScope.NONE, SideEffectScope.LOCAL_STATE):
            return True
        return bool(entry.sources) and not entry.manifest.security_context.network_access.allow_hosts and entry.sources[0].traits.apart

    def remote_share(self, whole: int) -> int:
        """Each tool's share of `whole` requests to others' servers."""
        probed = sum(is_of_others(one) and self.may_be_probed(one) for one in self.entries)
        return whole // max(probed, 1)


Check: TypeAlias = Callable[[Subject], Awaitable[CheckResult]]
"""A check. Its result tells what was seen, in words that the maker can act on; the caller adds the duration."""


def not_asked(check: str, why: str) -> CheckResult:
    return CheckResult(check=check, passed=True, applies=False, details=why)


async def in_time(work: Awaitable[None], seconds: float) -> bool:
    """Waits for the work. False if it did not end in time; then it is cancelled."""
    over = asyncio.timeout(seconds)
    try:
        async with over:
            await work
    except TimeoutError:
        if not over.expired():  # another time-out
            raise
        return False
    return True


def is_of_others(entry: ToolEntry) -> bool:
    """Whether its calls go to a server that this service did not start."""
    return any(source.traits.elsewhere for source in entry.sources[:1])


def _is_safe(entry: ToolEntry) -> bool:
    source = entry.sources[0]
    is_read = isinstance(source, HttpSource) and source.http_method == "GET" and entry.manifest.side_effect_scope is SideEffectScope.NONE
    return is_read and not wants_key([entry])
