"""Single checks, with a candidate whose behaviour the test sets."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from engine.making.gate.bad_params import bad_params
from engine.making.gate.checks import bad_input, comes_back, derived_cases, given_examples, health, stays_within, withheld_examples
from engine.making.gate.replies import failed
from engine.making.gate.subject import Account, Came, GateLimits, Params, Reply, Subject
from engine.runtimes.failures import CallFailed
from tests.making.gate.conftest import GIVEN, INPUT, OUTPUT, WITHHELD, DerivedOnce
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import NetworkAccess, SecurityContext, SideEffectScope, ToolExample, ToolManifest
from toolagent.contracts.sandbox import Difference, SandboxAccount, SandboxGrant, SandboxLevel
from toolagent.contracts.sources import BuiltinSource, DockerSource, LocalSource, McpSource, RemoteSource, ToolSource
from toolagent.contracts.task_specs import Example

LOCAL = LocalSource(host_dir="anything", endpoint_path="/run")


READING = RemoteSource(remote_url="http://example.test", http_method="GET")


@dataclass
class Candidate:
    """An OnTrial with set answers."""

    replies: Callable[[str, Params | bytes], Reply] = lambda _tool, _content: Reply(Came.ANSWER)
    statuses: Mapping[str, int] = field(default_factory=dict[str, int])
    seen: Account = field(default_factory=Account)
    can_be_killed: bool = True
    sent: list[tuple[str, Params | bytes]] = field(default_factory=list[tuple[str, Params | bytes]])
    killed: list[str] = field(default_factory=list[str])
    told: list[str] = field(default_factory=list[str])
    wrote: str = ""

    async def start(self) -> None:
        await asyncio.sleep(0)

    async def health(self, tool_id: str, path: str) -> int | None:  # noqa: ARG002 - the protocol's
        await asyncio.sleep(0)
        return self.statuses.get(path)

    async def call(self, tool_id: str, params: Params, *, withheld: bool = False) -> Reply:  # noqa: ARG002 - the protocol's
        return await self.send(tool_id, params)

    async def send(self, tool_id: str, content: Params | bytes) -> Reply:
        await asyncio.sleep(0)
        self.sent.append((tool_id, content))
        return self.replies(tool_id, content)

    async def kill(self, tool_id: str) -> bool:
        await asyncio.sleep(0)
        self.killed.append(tool_id)
        return self.can_be_killed

    async def renew(self) -> None:
        await asyncio.sleep(0)

    def tell(self, progress: str) -> None:
        self.told.append(progress)

    async def log_size(self, tool_id: str) -> int:  # noqa: ARG002 - the protocol's
        return await asyncio.sleep(0, len(self.sent))

    async def raised(self, tool_id: str, since: int) -> str:  # noqa: ARG002 - the protocol's
        return await asyncio.sleep(0, self.wrote if not since else "")

    def account(self) -> Account:
        return self.seen


def entry(
    source: ToolSource = LOCAL,
    *,
    tool_id: str = "tool",
    schema: JsonSchema = INPUT,
    scope: SideEffectScope = SideEffectScope.NETWORK,
    hosts: tuple[str, ...] = (),
) -> ToolEntry:
    context = SecurityContext(network_access=NetworkAccess(allow_hosts=hosts))
    manifest = ToolManifest(
        tool_id=tool_id, name=tool_id, input_schema=schema, output_schema=OUTPUT, side_effect_scope=scope, security_context=context
    )
    return ToolEntry(manifest=manifest, sources=(source,))


@pytest.fixture
def subject(folders: tuple[Path, Path]) -> Callable[..., Subject]:
    def make(
        candidate: Candidate,
        *entries: ToolEntry,
        given: tuple[Example, ...] = GIVEN,
        withheld: tuple[Example, ...] = (),
        written_by_us: bool = False,
    ) -> Subject:
        return Subject(entries or (entry(),), candidate, DerivedOnce(folders[1]), given, withheld, written_by_us=written_by_us)

    return make


Make = Callable[..., Subject]


@pytest.mark.parametrize(
    ("statuses", "passed"),
    [
        ({"/well": 200}, True),
        ({"/well": 401}, False),
        ({"/well": 503}, False),
        ({"/well": 404, "/": 404}, True),
        ({"/well": 404, "/": 500}, False),
        ({}, False),
    ],
)
async def test_the_health_of_what_others_wrote(subject: Make, statuses: dict[str, int], *, passed: bool) -> None:
    result = await health.check(subject(Candidate(statuses=statuses), entry(LOCAL.model_copy(update={"health_path": "/well"}))))
    assert result.passed is passed


@pytest.mark.parametrize(
    ("status", "passed"), [(200, True), (307, True), (401, True), (405, True), (422, True), (500, False), (503, False)]
)
@pytest.mark.parametrize("source", [LOCAL, RemoteSource(remote_url="https://example.test")])
async def test_where_no_health_path_was_declared_whoever_answers_is_well(
    subject: Make, source: ToolSource, status: int, *, passed: bool
) -> None:
    assert (await health.check(subject(Candidate(statuses={"/health": status}), entry(source)))).passed is passed


async def test_what_is_no_server_has_no_health_path(subject: Make) -> None:
    result = await health.check(subject(Candidate(), entry(BuiltinSource(handler="x"))))
    assert (result.passed, result.applies) == (True, False)


@pytest.mark.parametrize(
    ("judged", "harmless"),
    [
        (entry(), True),
        (entry(hosts=("example.test",)), False),
        (entry(hosts=("example.test",), scope=SideEffectScope.NONE), True),
        (entry(RemoteSource(remote_url="http://example.test")), False),
        (entry(RemoteSource(remote_url="http://example.test"), scope=SideEffectScope.NONE), False),
        (entry(RemoteSource(remote_url="http://example.test", http_method="GET")), False),
        (entry(READING, scope=SideEffectScope.NONE), True),
        (entry(READING.model_copy(update={"remote_api_key": "secret:KEY"}), scope=SideEffectScope.NONE), False),
        (entry(READING.model_copy(update={"endpoint_path": "/x?key=secret:KEY"}), scope=SideEffectScope.NONE), False),
        (entry(DockerSource(image="x")), True),
        (entry(DockerSource(image="x", volumes={"/data": "/srv/data"})), False),
        (entry(DockerSource(container_id="x")), False),
        (entry(McpSource(tool_name="x", url="http://example.test")), False),
        (entry(BuiltinSource(handler="x")), False),
    ],
)
async def test_made_up_input_goes_only_where_it_does_no_harm(subject: Make, judged: ToolEntry, *, harmless: bool) -> None:
    candidate = Candidate(lambda _tool, content: Reply(Came.REFUSAL if isinstance(content, bytes) else Came.ANSWER))
    results = [await check(subject(candidate, judged, given=())) for check in (derived_cases.check, bad_input.check)]
    assert [result.applies for result in results] == [harmless, harmless]
    assert bool(candidate.sent) is harmless


async def test_an_example_is_for_the_tool_whose_input_it_fits(subject: Make) -> None:
    other: JsonSchema = {"type": "object", "required": ["name"]}
    candidate = Candidate(lambda tool, _content: Reply(Came.ANSWER, {"result": 6 if tool == "sums" else 0}))
    result = await given_examples.check(subject(candidate, entry(tool_id="greets", schema=other), entry(tool_id="sums"), given=GIVEN[:1]))
    assert result.passed
    assert [tool for tool, _ in candidate.sent] == ["sums"]


async def test_what_is_wrong_with_a_given_example_is_told(subject: Make) -> None:
    result = await given_examples.check(subject(Candidate(lambda _tool, _content: Reply(Came.ANSWER, {"result": 7})), given=GIVEN[:1]))
    assert not result.passed
    assert "at $.result 6 was expected and 7 came" in result.details


async def test_of_withheld_examples_only_counts_are_told(subject: Make) -> None:
    replies = iter([Reply(Came.ANSWER, {"result": 70_707}), Reply(Came.ERROR, message="90909 is too much")])
    result = await withheld_examples.check(subject(Candidate(lambda _tool, _content: next(replies)), withheld=WITHHELD))
    assert not result.passed
    assert "2 of 2" in result.details
    assert "70" not in result.details
    assert "909" not in result.details


async def test_why_an_answer_is_a_failure_is_told_first(subject: Make) -> None:
    candidate = Candidate(lambda _tool, _content: Reply(Came.ERROR, message="status 500"), wrote="ConnectionError: no Redis")
    result = await derived_cases.check(subject(candidate, entry(), entry(tool_id="later")))
    assert result.faults["tool"].startswith("Its log ends with ConnectionError: no Redis\n- It failed: status 500")
    assert result.faults["later"].startswith("- It failed: status 500")


async def test_what_is_hanging_is_seen_after_three_cases(subject: Make) -> None:
    candidate = Candidate(lambda _tool, _content: Reply(Came.SILENCE, message="It did not answer within 30 s."))
    result = await derived_cases.check(subject(candidate))
    assert not result.passed
    assert len(candidate.sent) == 3


async def test_a_process_that_ends_after_its_answer_is_seen(subject: Make) -> None:
    candidate = Candidate()

    def die(_tool: str, _content: Params | bytes) -> Reply:
        candidate.seen = Account(deaths=len(candidate.sent))
        return Reply(Came.ANSWER, {"result": 0, "count": 0})

    candidate.replies = die
    result = await derived_cases.check(subject(candidate))
    assert "It answered. Its process ended. Its input, which its schema allows: {" in result.details


async def test_what_cannot_be_killed_need_not_come_back(subject: Make) -> None:
    result = await comes_back.check(subject(Candidate(can_be_killed=False)))
    assert (result.passed, result.applies) == (True, False)


async def test_what_comes_back_but_does_otherwise_is_told(subject: Make) -> None:
    replies = iter([Reply(Came.ANSWER), Reply(Came.ERROR)])
    result = await comes_back.check(subject(Candidate(lambda _tool, _content: next(replies))))
    assert not result.passed
    assert "before it answered now it failed" in result.details


async def test_an_example_that_holds_no_more_after_a_kill_is_told(subject: Make) -> None:
    right, wrong = Reply(Came.ANSWER, {"result": 6, "count": 3}), Reply(Came.ANSWER, {"result": 0, "count": 3})
    for replies, passes in (((right, wrong), False), ((right, right), True), ((wrong, right), True), ((wrong, wrong), True)):
        coming = iter(replies)
        result = await comes_back.check(subject(Candidate(lambda _tool, _content, coming=coming: next(coming))))
        assert result.passed is passes


async def test_what_shares_a_process_is_killed_once_and_all_of_it_has_to_come_back(subject: Make) -> None:
    def reply(tool_id: str, _content: Params | bytes) -> Reply:
        return Reply(Came.ERROR if candidate.killed and tool_id == "second" else Came.ANSWER)

    candidate = Candidate(reply)
    shared = LOCAL.model_copy(update={"process": "both"})
    result = await comes_back.check(subject(candidate, entry(shared, tool_id="first"), entry(shared, tool_id="second"), entry()))
    assert candidate.killed == ["first", "tool"]
    assert not result.passed
    assert "'second' was killed and started again." in result.details


@pytest.mark.parametrize(
    ("hosts", "passed"),
    [
        (("api.example.test:443",), True),
        (("api.example.test:8080",), False),
        (("other.test:443",), False),
        (("::1:80",), False),
        ((), True),
    ],
)
async def test_hosts_that_are_declared_may_be_refused(subject: Make, hosts: tuple[str, ...], *, passed: bool) -> None:
    account = SandboxAccount(level=SandboxLevel.BUBBLEWRAP, requested=SandboxGrant(), enforced=SandboxGrant())
    candidate = Candidate(seen=Account(hosts=hosts, calls=1, sandbox=account))
    result = await stays_within.check(subject(candidate, entry(hosts=("*.example.test",)), written_by_us=True))
    assert (result.passed, result.applies) == (passed, True)


async def test_where_no_call_was_made_nothing_is_shown(subject: Make) -> None:
    account = SandboxAccount(level=SandboxLevel.BUBBLEWRAP, requested=SandboxGrant(), enforced=SandboxGrant())
    result = await stays_within.check(subject(Candidate(seen=Account(sandbox=account))))
    assert (result.passed, result.applies) == (True, False)
    seen = Account(hosts=("other.test:443",), sandbox=account)
    assert not (await stays_within.check(subject(Candidate(seen=seen), written_by_us=True))).passed


async def test_what_others_programs_ask_for_is_refused_to_them_and_told(subject: Make) -> None:
    account = SandboxAccount(level=SandboxLevel.BUBBLEWRAP, requested=SandboxGrant(), enforced=SandboxGrant())
    result = await stays_within.check(subject(Candidate(seen=Account(hosts=("other.test:443",), calls=1, sandbox=account))))
    assert result.passed
    assert "other.test:443" in result.details
    assert "`hosts`" in result.details


def failing(*tool_ids: str) -> Candidate:
    return Candidate(lambda tool_id, _content: Reply(Came.ERROR if tool_id in tool_ids else Came.ANSWER, message="HTTP 500"))


async def test_one_that_fails_every_case_is_told_apart_from_the_others(subject: Make) -> None:
    result = await derived_cases.check(subject(failing("second"), entry(tool_id="first"), entry(tool_id="second")))
    assert (result.passed, list(result.faults)) == (False, ["second"])


async def test_one_of_others_that_fails_a_case_only_is_not_held_to_be_broken(subject: Make) -> None:
    coming = iter((Reply(Came.ERROR, message="HTTP 500"),))
    candidate = Candidate(lambda _tool, _content: next(coming, Reply(Came.ANSWER)))
    result = await derived_cases.check(subject(candidate))
    assert result.passed
    assert "HTTP 500" in result.details


@pytest.mark.parametrize(("refused", "failed", "passed"), [(1, 99, False), (5, 3, True)])
async def test_a_tool_that_answers_nothing_and_mostly_fails_is_held_to_be_broken(
    subject: Make, refused: int, failed: int, *, passed: bool
) -> None:
    coming = iter([*[Reply(Came.REFUSAL, message="HTTP 404")] * refused, *[Reply(Came.ERROR, message="HTTP 500")] * failed])
    candidate = Candidate(lambda _tool, _content: next(coming, Reply(Came.REFUSAL)))
    assert (await derived_cases.check(subject(candidate))).passed is passed


async def test_a_tool_of_others_that_answers_nothing_in_all_the_time_is_held_to_be_broken(subject: Make) -> None:
    class Hanging(Candidate):
        async def send(self, tool_id: str, content: Params | bytes) -> Reply:
            await asyncio.Event().wait()
            return await super().send(tool_id, content)

    judged = replace(subject(Hanging()), limits=GateLimits(cases_s=0.05))
    assert not (await derived_cases.check(judged)).passed


async def test_a_tool_that_takes_the_example_of_its_author_is_not_held_to_be_broken(subject: Make) -> None:
    judged = entry()
    example = ToolExample(input={"numbers": [1, 2, 3], "operation": "sum"})
    with_example = judged.model_copy(update={"manifest": judged.manifest.model_copy(update={"examples": (example,)})})
    candidate = Candidate(lambda _tool, content: Reply(Came.ANSWER if content == example.input else Came.ERROR))
    assert not (await derived_cases.check(subject(candidate, judged))).passed
    assert (await derived_cases.check(subject(candidate, with_example))).passed


async def test_how_many_hosts_it_asked_for_with_what_was_kept_back_is_not_told(subject: Make) -> None:
    account = SandboxAccount(level=SandboxLevel.BUBBLEWRAP, requested=SandboxGrant(), enforced=SandboxGrant())
    result = await stays_within.check(subject(Candidate(seen=Account(unnamed=True, sandbox=account)), written_by_us=True))
    assert not result.passed
    assert not [character for character in result.details if character.isdigit()]


async def test_what_is_declared_but_not_had_is_said(subject: Make) -> None:
    unmet = Difference(item="environment", requested=["API_KEY"], enforced=[], reason="The policy does not allow it.")
    account = SandboxAccount(level=SandboxLevel.RLIMITS, requested=SandboxGrant(), enforced=SandboxGrant(), differences=(unmet,))
    result = await stays_within.check(subject(Candidate(seen=Account(sandbox=account))))
    assert result.passed
    assert "API_KEY" in result.details
    assert "rlimits" in result.details


def test_a_parameter_of_several_types_is_spoilt_where_no_text_is_one_of_them() -> None:
    schema: JsonSchema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"type": ["integer", "null"]}}}
    found = bad_params(schema, {"a": "x", "b": 1}, as_text=("a", "b"), takes_more=False, most=12)
    assert [what for what, _ in found] == ["with 'b' of a wrong type"]


def test_bad_input_breaks_the_schema_in_each_way() -> None:
    found = dict(bad_params(INPUT, GIVEN[0].input, as_text=(), takes_more=True, most=12))
    assert list(found) == [
        "without 'numbers', which is required",
        "without 'operation', which is required",
        "with 'numbers' of a wrong type",
        "with 'operation' of a wrong type",
        "with a parameter that it does not have",
    ]
    assert found["with 'numbers' of a wrong type"] == {"numbers": "text that was not asked for", "operation": "sum"}


def test_what_arrives_as_text_is_bad_only_where_no_text_fits() -> None:
    schema: JsonSchema = {"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}, "required": ["name"]}
    found = dict(bad_params(schema, {"name": "a", "count": 1}, as_text=("name", "count"), takes_more=False, most=12))
    assert list(found) == ["without 'name', which is required", "with 'count' of a wrong type"]


def test_what_a_schema_allows_is_not_bad() -> None:
    assert dict(bad_params({"type": "object", "properties": {"x": {}}}, {"x": 1}, as_text=(), takes_more=True, most=12)) == {}


async def test_how_far_it_is_is_told(subject: Make) -> None:
    candidate = Candidate()
    for check in (derived_cases.check, bad_input.check):
        await check(subject(candidate, entry(), entry(tool_id="other")))
    assert candidate.told == ["derived cases 1/2", "derived cases 2/2", "bad input 1/2", "bad input 2/2"]


def test_what_a_server_of_mcp_says_is_an_error_may_be_that_it_refuses_the_input() -> None:
    said = CallFailed(ErrorType.EXECUTION_ERROR, "Invalid timezone: 'x'", {"is_error": True})
    assert failed(said).came is Came.REFUSAL


async def test_that_a_tool_refused_every_case_is_told_with_what_it_said(subject: Make) -> None:
    result = await derived_cases.check(subject(Candidate(lambda _tool, _content: Reply(Came.REFUSAL, message="no"))))
    assert result.passed
    assert "'tool' refused all of its" in result.details
    assert ', the last with "no"' in result.details
