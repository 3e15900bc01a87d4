"""Rules of calls outside of a session, of tools that have a role in a group with a lifecycle."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice

from pydantic import JsonValue

from toolagent.contracts.groups import GroupRole, GroupStep, ToolGroup
from toolagent.contracts.sessions import AdoptedCall
from toolagent.core.catalog.lifecycles import lifecycle_fault
from toolagent.core.digests import id_of
from toolagent_service.groups.sessions import NoSuchFieldError, bound, field_of, the_step

_MOST_MARKS = 1_000
"""Marks of one call. Each is a parameter of a database query."""

_LONGEST = 2_000
"""Characters of the value of a param that no session binds by name. Longer values are not compared."""

Part = tuple[ToolGroup, GroupStep]
"""A tool's role in a group."""


def parts_of(groups: Iterable[ToolGroup]) -> Mapping[str, tuple[Part, ...]]:
    """The roles of each tool in groups with a valid lifecycle, ordered by the id of the group."""
    parts: dict[str, tuple[Part, ...]] = {}
    for group in sorted(groups, key=lambda group: group.group_id):
        if group.lifecycle and lifecycle_fault(group) is None:
            for step in group.steps:
                parts[step.tool_id] = (*parts.get(step.tool_id, ()), (group, step))
    return parts


def session_for(group_id: str, *names: JsonValue) -> str:
    """The id of a session that adopts a call, or something that a provider runs."""
    return id_of("session-", group_id, *names)


def is_look(part: Part, params: Mapping[str, JsonValue]) -> bool:
    """Whether a call of the launch only looks for an earlier launch."""
    group, step = part
    probe = group.verify
    if step.role is not GroupRole.LAUNCH or probe is None or probe.tool_id != step.tool_id or probe.asks is None:
        return False
    # A param that is null counts as left out: then the call launches.
    return params.get(probe.asks) is not None


def look_in(group: ToolGroup, params: Mapping[str, JsonValue]) -> str | None:
    """Why these params of a launch begin no session: they look for an earlier launch, which may belong to another session."""
    step = group.step(GroupRole.LAUNCH)
    if step is None or group.verify is None or not is_look((group, step), {**step.params, **params}):
        return None
    return f"params.{group.verify.asks}: it looks for an earlier launch and begins none. Leave it out."


def names_session(step: GroupStep, launched: JsonValue, params: Mapping[str, JsonValue]) -> bool:
    """Whether the call is about this launch: each value that a session would bind is the value of some param.

    A stop without bindings is about every launch of its group.
    """
    try:
        wanted = bound(step, launched)
    except NoSuchFieldError:
        return False
    return (bool(wanted) or step.role is GroupRole.STOP) and all(_named(name, value, params) for name, value in wanted.items())


def marks_of(group: ToolGroup, launched: JsonValue) -> frozenset[str]:
    """The marks by which calls find the session: one for each field of the launch that a step binds."""
    places: dict[str, JsonValue] = {}
    for path in {path for step in group.steps for path in step.bindings.values()}:
        with suppress(NoSuchFieldError):
            places[path] = field_of(launched, path)
    return frozenset(_mark(group, path, _text(value)) for path, value in places.items())


def marks_in(group: ToolGroup, step: GroupStep, params: Mapping[str, JsonValue]) -> tuple[frozenset[str], ...]:
    """The condition of `names_session` as sets of marks: a matching session has one of each set.

    Each bound param gives a set. If the call has no param of that name, the set has the values of all its short params, up to a limit.
    """
    given = {name: _text(params[name]) for name in step.bindings if params.get(name) is not None}
    absent = len(step.bindings) - len(given)
    short = (text for text in map(_text, params.values()) if len(text) <= _LONGEST)
    others = [*islice(short, max(0, _MOST_MARKS - len(given)) // absent)] if absent else []
    values = ((path, [given[name]] if name in given else others) for name, path in step.bindings.items())
    return tuple(frozenset(_mark(group, path, text) for text in each) for path, each in values)


def first_stop(group: ToolGroup, launched: JsonValue, stops: Iterable[AdoptedCall]) -> AdoptedCall | None:
    """The first of these calls that stops this launch. Signals may come from anywhere, so each call is checked."""
    step = the_step(group, GroupRole.STOP)
    named = (one for one in stops if one.call.tool_id == step.tool_id and names_session(step, launched, one.call.params))
    return next(named, None)


def _mark(group: ToolGroup, path: str, text: str) -> str:
    told = f"{json.dumps([group.group_id, path])[:-1]}, {text}]"
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _text(value: JsonValue) -> str:
    return json.dumps(_alike(value), sort_keys=True)


def _alike(value: JsonValue) -> JsonValue:
    """Makes equal values identical: 1, 1.0 and true are equal."""
    match value:
        case bool():
            return int(value)
        case float():
            return int(value) if value.is_integer() else value
        case list():
            return [_alike(one) for one in value]
        case dict():
            return {name: _alike(one) for name, one in value.items()}
        case _:
            return value


def _named(name: str, value: JsonValue, params: Mapping[str, JsonValue]) -> bool:
    given = params.get(name)
    return given == value if given is not None else value in params.values()
