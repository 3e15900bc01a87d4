"""The wire accepts the payloads of the specifications, and refuses invalid ones."""

from importlib import import_module
from inspect import getmembers, isclass
from pkgutil import iter_modules
from typing import get_args

import pytest
from pydantic import JsonValue, TypeAdapter, ValidationError

from toolagent.contracts import sources
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.calls import Caller, ErrorType, ToolCall, ToolResult
from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolExample, ToolManifest, ToolStatus
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sources import (
    LocalSource,
    RemoteSource,
    Source,
    ToolSource,
)

SOURCE: TypeAdapter[ToolSource] = TypeAdapter(ToolSource)


# What is written → the backend that it means.
SOURCES: tuple[tuple[dict[str, JsonValue], BackendRuntime], ...] = (
    (
        {"type": "local", "host_dir": "tools/local/x", "endpoint_path": "/", "http_method": "POST", "internal_port": 0},
        BackendRuntime.LOCAL,
    ),
    ({"type": "docker", "container_id": "25e8", "image": "ubuntu:22.04", "internal_port": 8080}, BackendRuntime.DOCKER),
    ({"type": "remote", "remote_url": "https://api.example.com", "remote_path": "/v1/compress"}, BackendRuntime.REMOTE),
    ({"type": "script", "script_path": "examples/echo.py", "language": "python"}, BackendRuntime.LOCAL),
    ({"type": "builtin", "handler": "core:echo"}, BackendRuntime.LOCAL),
    ({"type": "mcp", "tool_name": "x", "url": "http://127.0.0.1:1/mcp"}, BackendRuntime.REMOTE),
    ({"type": "mcp", "tool_name": "x", "command": ["server"]}, BackendRuntime.LOCAL),
)


@pytest.mark.parametrize(("written", "meant"), SOURCES)
def test_every_kind_of_source_is_read_and_means_a_backend(written: JsonValue, meant: BackendRuntime) -> None:
    source = SOURCE.validate_python(written)
    assert source.traits.runtime is meant
    assert SOURCE.validate_json(SOURCE.dump_json(source)) == source


def test_every_file_of_a_source_has_its_line_in_the_union() -> None:
    modules = [import_module(f"{sources.__name__}.{module.name}") for module in iter_modules(sources.__path__)]
    classes = {kind for module in modules for _, kind in getmembers(module, isclass) if kind.__module__ == module.__name__}
    typed = {kind for kind in classes if issubclass(kind, Source) and "type" in kind.model_fields}
    missing = sorted(kind.__name__ for kind in typed - {*get_args(get_args(ToolSource)[0])})
    assert missing == [], "Each needs a line in `ToolSource` of packages/toolagent/src/toolagent/contracts/sources/__init__.py."


def test_every_type_of_source_has_an_example_above() -> None:
    types: tuple[type[Source], ...] = get_args(get_args(ToolSource)[0])
    assert {str(written["type"]) for written, _ in SOURCES} == {type_.model_fields["type"].default for type_ in types}


@pytest.mark.parametrize("authority", ["user:pass@host", "user@host", "key@host:80/path", ":@host", "a\\@host", "u:p@host?x"])
def test_a_url_of_a_source_carries_no_user_name_or_password(authority: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        SOURCE.validate_python({"type": "remote", "remote_url": f"https://{authority}"})
    [error] = refusal.value.errors()
    assert (error["loc"][-1], error["type"]) == ("remote_url", "value_error")
    assert "remote_api_key" in error["msg"]


@pytest.mark.parametrize("url", ["https://host/@scope/package", "https://host?to=a@b", "http://[::1]:80/x", "http://host#@"])
def test_a_url_of_a_source_may_have_an_at_sign_after_the_host(url: str) -> None:
    assert RemoteSource(remote_url=url).remote_url == url


def test_a_literal_key_is_never_a_key() -> None:
    with pytest.raises(ValidationError) as refusal:
        SOURCE.validate_python({"type": "remote", "remote_url": "https://x", "remote_api_key": "sk-123"})
    assert refusal.value.errors()[0]["loc"][-1] == "remote_api_key"


def test_health_is_at_health_unless_somebody_says_otherwise() -> None:
    assert LocalSource(host_dir="x").health_path == "/health"


@pytest.mark.parametrize("tool_id", ["echo", "a", "image_stitcher", "core:execute-python-script", "x:y9_-"])
def test_ids_of_the_agreed_form_are_taken(tool_id: str) -> None:
    assert ToolManifest(tool_id=tool_id, name="T").tool_id == tool_id


@pytest.mark.parametrize("tool_id", ["", "Echo", "9a", "a:b:c", ":a", "a:", "a b", "a/b", "../a", "a\n", "é", "a" * 129])
def test_other_ids_are_refused_everywhere(tool_id: str) -> None:
    for make in (lambda: ToolManifest(tool_id=tool_id, name="T"), lambda: ToolCall(tool_id=tool_id), lambda: ToolRoute(tool_id=tool_id)):
        with pytest.raises(ValidationError):
            make()
    assert TOOL_ID_PATTERN == r"^([a-z][a-z0-9_-]*:)?[a-z][a-z0-9_-]*$"


def test_a_tool_that_says_nothing_is_taken_to_change_everything() -> None:
    silent = ToolManifest(tool_id="t", name="T")
    assert (silent.permission_class, silent.side_effect_scope, silent.repeatable) == (
        PermissionClass.EXTERNAL,
        SideEffectScope.NETWORK,
        False,
    )
    assert silent.status is ToolStatus.ACTIVE


def test_the_security_context_is_read_and_written_as_specified() -> None:
    written: dict[str, JsonValue] = {
        "fileAccess": {"allowRead": ["self", "./*"], "allowWrite": [".cache/**"]},
        "networkAccess": {"allowHosts": ["*.example.com"]},
        "requiredCapabilities": [],
    }
    manifest = ToolManifest.model_validate({"tool_id": "t", "name": "T", "securityContext": written})
    assert manifest.security_context.file_access.allow_write == (".cache/**",)
    dumped = manifest.model_dump(mode="json")["securityContext"]
    assert {name: dumped[name] for name in written} == written
    assert ToolExample.model_validate({"input": {}, "expectedOutput": 1}).expected_output == 1


@pytest.mark.parametrize("version", ["1.0", "v1.0.0", "1.0.0٠", "٠.0.0", "1.0.0-ä"])
def test_a_version_is_semver_in_ascii(version: str) -> None:
    with pytest.raises(ValidationError):
        ToolManifest(tool_id="t", name="T", version=version)


def test_a_route_is_written_as_specified() -> None:
    route = ToolRoute(tool_id="x", sources=(LocalSource(host_dir="x"),), state=RunState.RUNNING, pid=1, port=2)
    assert {"tool_id", "sources", "active_source", "state", "pid", "port", "started_at", "last_error", "host", "endpoint"} == set(
        route.model_dump()
    )


@pytest.mark.promise("errors-are-a-closed-set")
def test_results_carry_the_fields_that_were_promised() -> None:
    promised = {"status", "result", "error", "error_type", "validation_errors", "execution_time", "executed_at", "metadata", "call_id"}
    assert promised <= set(ToolResult.model_fields)
    assert len(ErrorType) == 13


def test_callers_are_made_for_conversations_and_workflows() -> None:
    assert Caller.for_conversation("a", "c").caller_type == "conversation_agent"
    assert Caller.for_workflow("w", "n") == Caller(caller_id="n", caller_type="workflow_node", workflow_id="w", node_id="n")


def test_a_newer_payload_is_read_by_an_older_worker() -> None:
    assert ToolCall.model_validate({"tool_id": "echo", "invented_later": 1}) == ToolCall(tool_id="echo")


def test_calls_whose_caller_nobody_named_share_one() -> None:
    """Copying it for each takes longer than reading the call."""
    assert ToolCall(tool_id="echo").caller is ToolCall(tool_id="echo").caller
