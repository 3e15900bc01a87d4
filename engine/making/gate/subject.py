"""What the gate judges: a candidate that can be called, killed and looked at, and what it is asked."""

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
from toolagent.validation.schemas import find_issues

Params: TypeAlias = dict[str, JsonValue]


class Came(StrEnum):
    """What came of a request."""

    ANSWER = "answered"
    REFUSAL = "refused the input"
    ERROR = "failed"
    MISFIT = "answered what its output schema does not allow"
    LOST = "broke the connection"
    SILENCE = "did not answer in time"
    NOT_SENT = "could not be asked"
    UNSENDABLE = "could not be given that"
    """Our own client cannot send it: no fault of the tool's, and no caller could send it either."""
    KEYLESS = "wants a secret that is not set"
    SPARED = "was asked for nothing more"
    """The number of requests allowed to this remote server is used up."""

    @property
    def was_sent(self) -> bool:
        return self not in (Came.NOT_SENT, Came.UNSENDABLE, Came.KEYLESS, Came.SPARED)


@dataclass(frozen=True, slots=True)
class Reply:
    """`message` says what is wrong, and may quote what was sent and what came."""

    came: Came
    output: JsonValue = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """What was seen of a candidate so far.

    `hosts` are those it asked for and was refused, as `host:port`; `unnamed`: it asked for others after it was shown what its maker must
    not learn, and their number could tell of that as well as their names. `deaths` counts the processes that ended without being told to,
    `calls` what it was asked to do.
    """

    hosts: tuple[str, ...] = ()
    unnamed: bool = False
    deaths: int = 0
    calls: int = 0
    sandbox: SandboxAccount | None = None


class OnTrial(Protocol):
    """A candidate that runs apart from the version that is in use."""

    async def start(self) -> None:
        """Bring all its tools up, or find them up. Raises StartFailed or another NotSent."""
        ...

    async def health(self, tool_id: str, path: str) -> int | None:
        """The status that the path answers with; None when nothing answers."""
        ...

    async def call(self, tool_id: str, params: Params, *, withheld: bool = False) -> Reply:
        """As a caller's call: defaults filled in, input and output checked by the schemas. `withheld`: its maker must not learn of it."""
        ...

    async def send(self, tool_id: str, content: Params | bytes) -> Reply:
        """Past the check of the input; bytes are the body as it is."""
        ...

    async def kill(self, tool_id: str) -> bool:
        """End it as a crash does, and wait until it is gone. False when there is no process of it that could be killed.

        Raises NotSent when it is not seen to end.
        """
        ...

    async def renew(self) -> None:
        """End all its processes and forget what they left in their homes; the next call starts them."""
        ...

    def account(self) -> Account: ...

    async def log_size(self, tool_id: str) -> int:
        """Of what its process has written so far, for all tools that share it."""
        ...

    async def raised(self, tool_id: str, since: int) -> str:
        """The last exception that it wrote after its log was so large; empty where there is none.

        Only before something is withheld: it could quote that.
        """
        ...

    def tell(self, progress: str) -> None:
        """What is being done, for people."""
        ...


@dataclass(frozen=True, slots=True)
class GateLimits:
    """`cases`: how many are derived from an input schema at most. `script_cases`: calls of others' scripts.

    `remote_cases` and `remote_bad` are made-up requests, right and wrong ones, to servers of others, for all tools together.
    `cases_s`: how long those of one tool may take, and likewise its bad input; `whole_s`: how long all that is asked may take.
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
    """`given` are the examples that its maker has seen, `withheld` those it has not."""

    entries: tuple[ToolEntry, ...]
    trial: OnTrial
    cases: Derivation
    given: tuple[Example, ...] = ()
    withheld: tuple[Example, ...] = ()
    written_by_us: bool = False
    probe: Literal["none", "safe", "full"] = "safe"
    """Made-up input for servers of others: none, to what can do no harm and is shown no secret, or to all."""
    limits: GateLimits = field(default_factory=GateLimits)

    def each(self, check: str) -> Iterator[ToolEntry]:
        """Its tools, one after another; reports the progress of `check`."""
        for number, entry in enumerate(self.entries, 1):
            self.trial.tell(f"{check} {number}/{len(self.entries)}")
            yield entry

    async def tools_for(self, example: Example) -> tuple[ToolEntry, ...]:
        """Its tools whose input schema the example fits; a single tool in any case."""
        if len(self.entries) == 1:
            return self.entries
        return tuple([entry for entry in self.entries if not await find_issues(entry.manifest.input_schema, example.input)])

    def may_be_probed(self, entry: ToolEntry) -> bool:
        """Whether made-up input can do no harm: it changes nothing, or nothing that is not its own can be reached from where it runs.

        Of a server of others the task decides.
        """
        if is_of_others(entry):
            return self.probe == "full" or (self.probe == "safe" and _is_safe(entry))
        if entry.manifest.side_effect_scope in (SideEffectScope.NONE, SideEffectScope.LOCAL_STATE):
            return True
        return bool(entry.sources) and not entry.manifest.security_context.network_access.allow_hosts and entry.sources[0].traits.apart

    def remote_share(self, whole: int) -> int:
        """Of so many requests to servers of others those that each tool gets."""
        probed = sum(is_of_others(one) and self.may_be_probed(one) for one in self.entries)
        return whole // max(probed, 1)


Check: TypeAlias = Callable[[Subject], Awaitable[CheckResult]]
"""One question. Its result says what was seen, in words that the maker can act on; the caller adds the duration."""


def is_of_others(entry: ToolEntry) -> bool:
    """Whether its calls go to a server that this service has not started."""
    return any(source.traits.elsewhere for source in entry.sources[:1])


def _is_safe(entry: ToolEntry) -> bool:
    source = entry.sources[0]
    is_read = isinstance(source, HttpSource) and source.http_method == "GET" and entry.manifest.side_effect_scope is SideEffectScope.NONE
    return is_read and not wants_key([entry])
