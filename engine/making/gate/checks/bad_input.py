"""The tool answers input that its schema does not allow with a 4xx."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from engine.making.gate.bad_params import bad_params
from engine.making.gate.checks.derived_cases import as_probed
from engine.making.gate.subject import Came, Params, Reply, Subject, in_time, not_asked
from engine.making.gate.wording import listed, quoted
from engine.making.json_values import part
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent.contracts.sources import HttpSource

NAME = "bad input"
_MOST = 12
_IN_PATH = re.compile(r"\{([^{}]+)\}")
_BODIES = (("a body that is no JSON", b'{"half": '), ("a body that is a list", b"[[]]"))
_WANTED = 'It has to answer 422 with {"error": {"type": "validation_error", "message": "…"}}, or another status from 400 to 499.'


async def check(subject: Subject) -> CheckResult:
    """Sends the input past our own check. Faults of others' tools are only reported, because calls are checked before."""
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
        return not_asked(NAME, "There is no input that it could be given and must refuse, or it may change something elsewhere.")
    told = f"{max(asked - len(faults), 0)} of {asked} were refused."
    details = f"{told}\n{listed(faults, subject.limits.told)}\n{_WANTED}" if faults else told
    died = subject.trial.account().deaths > deaths
    return CheckResult(check=NAME, passed=not faults or not (subject.written_by_us or died), details=details)


async def _tried(subject: Subject, entry: ToolEntry, source: HttpSource) -> tuple[int, list[str]]:
    """The number of inputs sent until the time was up or enough was seen, and the faults."""
    faults: list[str] = []
    done = 0

    async def try_all() -> None:
        nonlocal done
        async with aclosing(_replies(subject, entry, source)) as replies:
            async for what, reply in replies:
                done += 1
                if reply.came is not Came.REFUSAL:
                    took = reply.came in (Came.ANSWER, Came.MISFIT)
                    came = "took it and answered" if took else f"{reply.came}: {reply.message}"
                    faults.append(f"{entry.manifest.tool_id!r}, called {what}, {came}")
                if len(faults) == subject.limits.told:
                    return

    if not await in_time(try_all(), subject.limits.cases_s) and not done:
        faults.append(f"{entry.manifest.tool_id!r} was given bad input, which took all of {subject.limits.cases_s:g} s.")
    return done, faults


async def _replies(subject: Subject, entry: ToolEntry, source: HttpSource) -> AsyncGenerator[tuple[str, Reply]]:
    manifest, schema = entry.manifest, entry.manifest.input_schema
    base = await _base(subject, entry)
    names = as_text = frozenset(part(schema.get("properties")))
    if source.http_method not in ("GET", "DELETE") and source.body_encoding == "json":
        as_text = frozenset((*_IN_PATH.findall(source.endpoint_path), *source.query_parameters, *source.header_parameters))
    has_body = not names <= as_text
    takes_more = has_body and source.body_parameter is None
    # Others' apps may take more than their document says, but calls do not carry unknown parameters.
    is_strict = takes_more and subject.written_by_us
    most = min(_MOST, subject.remote_share(subject.limits.remote_bad)) if source.traits.elsewhere else _MOST
    found = await asyncio.to_thread(lambda: [*bad_params(schema, base, as_text=as_text, takes_more=is_strict, most=most)])
    for what, params in found:
        reply = await subject.trial.send(manifest.tool_id, params)
        if reply.came.was_sent:  # a part of the path cannot be left out
            yield f"{what} ({quoted(params)})", reply
    # These bodies say nothing if a part of the path is missing, or the body may be a list. Others' servers only get calls.
    has_bad_bodies = takes_more and source.body_encoding == "json" and "{" not in source.endpoint_path and not source.traits.elsewhere
    for what, body in _BODIES if has_bad_bodies else ():
        yield f"with {what}", await subject.trial.send(manifest.tool_id, body)


async def _base(subject: Subject, entry: ToolEntry) -> Params:
    """The best valid input there is, to be spoilt."""
    for example in subject.given:
        if entry in await subject.tools_for(example):
            return example.input
    cases = await subject.cases.of(as_probed(entry.manifest))
    return cases[0] if cases else {}
