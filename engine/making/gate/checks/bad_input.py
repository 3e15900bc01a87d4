"""Input that its schema does not allow is answered with a 4xx."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator

from engine.making.gate.bad_params import bad_params
from engine.making.gate.checks.derived_cases import as_probed
from engine.making.gate.subject import Came, Params, Reply, Subject
from engine.making.gate.wording import listed, quoted
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.making import CheckResult
from toolagent.contracts.sources import HttpSource

NAME = "bad input"
_MOST = 12
_IN_PATH = re.compile(r"\{([^{}]+)\}")
_BODIES = (("a body that is no JSON", b'{"half": '), ("a body that is a list", b"[[]]"))
_WANTED = 'It has to answer 422 with {"error": {"type": "validation_error", "message": "…"}}, or another status from 400 to 499.'


async def check(subject: Subject) -> CheckResult:
    """Sent past our own check, as whatever else may reach it later would. Of others' tools it is only told: calls are checked."""
    faults: list[str] = []
    asked = 0
    deaths = subject.trial.account().deaths
    for entry in subject.each(NAME):
        source = entry.sources[0]
        if isinstance(source, HttpSource) and subject.may_be_probed(entry):
            done, wrong = await _tried(subject, entry, source)
            asked += done
            faults += wrong
    if not asked and not faults:
        details = "There is no input that it could be given and must refuse, or it may change something elsewhere."
        return CheckResult(check=NAME, passed=True, applies=False, details=details)
    told = f"{max(asked - len(faults), 0)} of {asked} were refused."
    details = f"{told}\n{listed(faults, subject.limits.told)}\n{_WANTED}" if faults else told
    died = subject.trial.account().deaths > deaths
    return CheckResult(check=NAME, passed=not faults or not (subject.written_by_us or died), details=details)


async def _tried(subject: Subject, entry: ToolEntry, source: HttpSource) -> tuple[int, list[str]]:
    """How many were sent, until the time was up or enough was seen; and what was wrong."""
    faults: list[str] = []
    done = 0
    over = asyncio.timeout(subject.limits.cases_s)
    try:
        async with over, contextlib.aclosing(_replies(subject, entry, source)) as replies:
            async for what, reply in replies:
                done += 1
                faults += _faults(entry, what, reply)
                if len(faults) == subject.limits.told:
                    break
    except TimeoutError:
        if not over.expired():  # not this one
            raise
        faults += [f"{entry.manifest.tool_id!r} was given bad input, which took all of {subject.limits.cases_s:g} s."] if not done else []
    return done, faults


async def _replies(subject: Subject, entry: ToolEntry, source: HttpSource) -> AsyncGenerator[tuple[str, Reply]]:
    manifest = entry.manifest
    base = await _base(subject, entry)
    names, as_text = _names(manifest.input_schema), _as_text(manifest.input_schema, source)
    has_body = not names <= as_text
    takes_more = has_body and source.body_parameter is None
    # Others' apps may take more than their document says; what is strange does not come as far as them.
    is_strict = takes_more and subject.written_by_us
    schema = manifest.input_schema
    most = min(_MOST, subject.remote_share(subject.limits.remote_bad)) if source.traits.elsewhere else _MOST
    found = await asyncio.to_thread(lambda: [*bad_params(schema, base, as_text=as_text, takes_more=is_strict, most=most)])
    for what, params in found:
        reply = await subject.trial.send(manifest.tool_id, params)
        if reply.came.was_sent:  # a part of the path cannot be left out
            yield f"{what} ({quoted(params)})", reply
    # Where a part of the path is missing, or the body may be a list, these are no bad bodies. To others' servers only calls are sent.
    has_bad_bodies = takes_more and source.body_encoding == "json" and "{" not in source.endpoint_path and not source.traits.elsewhere
    for what, body in _BODIES if has_bad_bodies else ():
        yield f"with {what}", await subject.trial.send(manifest.tool_id, body)


def _names(schema: JsonSchema) -> frozenset[str]:
    properties = schema.get("properties")
    return frozenset(properties) if isinstance(properties, dict) else frozenset()


def _as_text(schema: JsonSchema, source: HttpSource) -> frozenset[str]:
    """Parameters that go into the path, the query, a header or a form."""
    if source.http_method in ("GET", "DELETE") or source.body_encoding != "json":
        return _names(schema)
    return frozenset((*_IN_PATH.findall(source.endpoint_path), *source.query_parameters, *source.header_parameters))


async def _base(subject: Subject, entry: ToolEntry) -> Params:
    """Good input, to be spoilt; the best there is."""
    for example in subject.given:
        if entry in await subject.tools_for(example):
            return example.input
    cases = await subject.cases.of(as_probed(entry.manifest))
    return cases[0] if cases else {}


def _faults(entry: ToolEntry, what: str, reply: Reply) -> list[str]:
    if reply.came is Came.REFUSAL:
        return []
    came = "took it and answered" if reply.came in (Came.ANSWER, Came.MISFIT) else f"{reply.came}: {reply.message}"
    return [f"{entry.manifest.tool_id!r}, called {what}, {came}"]
