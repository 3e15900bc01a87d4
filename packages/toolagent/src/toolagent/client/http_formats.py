"""Tools in the forms of vendors over HTTP, and calls by their models."""

from abc import abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import JsonValue

from toolagent.client.http_requests import Requests
from toolagent.client.http_results import result_of
from toolagent.contracts.calls import Caller, ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.formats import FormattedTools, ToolFormat
from toolagent.contracts.http import TaskAccepted
from toolagent.core.calls.results import failed
from toolagent.core.formats.names import tool_id_of
from toolagent.core.formats.uses import Dumped, ToolUse, anthropic_answer, openai_answer, use_of_anthropic, use_of_openai

__all__ = ["FormatRequests"]

_NOBODY = Caller()


class FormatRequests(Requests):
    """The methods of `ToolAgentHttp` for the forms of vendors.

    Vendors require an answer to every use of a tool. So all errors of a call, also of the service, are in the answer, which the
    model reads. Only something that is no use of a tool raises ValueError.
    """

    _offered: Mapping[str, str] | None = None
    """Ids by names of all tools that `tools_as` has listed; None before that."""

    _looked_up: Mapping[str, str] = {}

    def tools_as(self, form: ToolFormat | str, namespace: str | None = None, tag: str | None = None) -> FormattedTools:
        """The callable tools: `tools` goes into a request unchanged. Raises the same errors as the other methods."""
        listed = self._listed(form, namespace, tag)
        self._offered = {**(self._offered or {}), **listed.names}
        return listed

    def run_openai(
        self, tool_call: Mapping[str, object] | Dumped, caller: Caller = _NOBODY, key: str | None = None
    ) -> dict[str, JsonValue]:
        """Make the call of a `tool_call` (chat completions) or a `function_call` (responses); returns the message or item to send back.

        `key` is an idempotency key: the same key is the same call. The ids of some vendors are unique enough for that.
        """
        return openai_answer(tool_call, self._used(use_of_openai(tool_call), caller, key))

    def run_anthropic(
        self, tool_use: Mapping[str, object] | Dumped, caller: Caller = _NOBODY, key: str | None = None
    ) -> dict[str, JsonValue]:
        """Make the call of a `tool_use` block; returns the `tool_result` block to send back. `key` as in `run_openai`."""
        return anthropic_answer(tool_use, self._used(use_of_anthropic(tool_use), caller, key))

    @abstractmethod
    def run(self, call: ToolCall) -> ToolResult | TaskAccepted: ...

    def _used(self, use: ToolUse, caller: Caller, key: str | None) -> ToolResult:
        if use.fault:
            return _wrong(use, ErrorType.VALIDATION_ERROR, use.fault)

        def ask() -> ToolResult | TaskAccepted:
            tool_id = self._id_of(use.name)
            if tool_id is None:
                return _wrong(use, ErrorType.TOOL_NOT_FOUND, f"There is no tool {use.name[:64]!r}. Use one of those that were offered.")
            return self.run(ToolCall(tool_id=tool_id, params=use.params, caller=caller, idempotency_key=key))

        return result_of(ask, use.name)

    def _id_of(self, name: str) -> str | None:
        """The id of an offered tool. If nothing was offered yet, as in a restarted process, all tools count."""
        if self._offered is not None:
            return tool_id_of(name, self._offered)
        if name not in self._looked_up:
            self._looked_up = self._listed(ToolFormat.OPENAI).names
        return tool_id_of(name, self._looked_up)

    def _listed(self, form: ToolFormat | str, namespace: str | None = None, tag: str | None = None) -> FormattedTools:
        return self._get(FormattedTools, "tools", format=str(form), namespace=namespace, tag=tag)


def _wrong(use: ToolUse, kind: ErrorType, message: str) -> ToolResult:
    return failed("", use.name, ToolError(type=kind, message=message, details={"sent": False}), datetime.now(UTC))
