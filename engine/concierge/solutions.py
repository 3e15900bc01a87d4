"""Solutions: how tools do what was asked for."""

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from toolagent.contracts.agent_chat import CompositeWorkflow, Proposal, SingleCall, SolutionStep, SuggestedTool, UsageExample
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.parameter_schemas import property_schema, required_names, types_of
from toolagent.core.sample_params import sample_params

_SHOWN = 200
_LONG = 400
"""Characters of JSON."""


def suggested(tool: ToolManifest, reason: str) -> SuggestedTool:
    return SuggestedTool(tool_id=tool.tool_id, name=tool.name, reason=reason, usage_example=UsageExample(params=_example(tool)))


def brief(tool: ToolManifest) -> str:
    """The beginning of the description, or the name."""
    return tool.description[:_SHOWN] or tool.name


def single_call(tool: ToolManifest) -> SingleCall:
    return SingleCall(tool_id=tool.tool_id, params=_example(tool))


def making_of(description: str) -> Proposal:
    return Proposal(method="POST", path="/create_tool", body={"description": description})


def steps_of(group: ToolGroup) -> tuple[str, ...]:
    """The tools in the order of use; all tools of the group if it gives no order."""
    return tuple(dict.fromkeys((*group.usage_order, *(step.tool_id for step in group.steps)))) or group.tool_ids


def composite_workflow(group: ToolGroup, tools: Sequence[ToolManifest]) -> CompositeWorkflow:
    """The steps of the group, by those of its `tools` that exist."""
    known = {tool.tool_id: tool for tool in tools}
    numbers = {tool_id: number for number, tool_id in enumerate(filter(known.__contains__, steps_of(group)), 1)}
    launch = next((step.tool_id for step in group.steps if step.role == "launch"), None)
    bound = {step.tool_id: step.bindings for step in group.steps}
    given = {step.tool_id: step.params for step in group.steps}
    results = [path.rpartition(".")[2] for bindings in bound.values() for path in bindings.values() if path != "$"]
    steps = tuple(
        SolutionStep(
            step=numbers[tool.tool_id],
            action=tool.name,
            tool=tool.tool_id,
            params={
                **_params(tool, group.workflow_example.get("workflow_json")),
                **given.get(tool.tool_id, {}),
                **dict.fromkeys(bound.get(tool.tool_id, {}), f"<from_step_{numbers[launch]}>" if launch in numbers else "<from_launch>"),
            },
            returns=results[0] if tool.tool_id == launch and results else None,
        )
        for tool in map(known.__getitem__, numbers)
    )
    session = f"POST /groups/{group.group_id}/sessions" if group.lifecycle else None
    return CompositeWorkflow(group_id=group.group_id, base_tools=tuple(numbers), steps=steps, session=session)


def _example(tool: ToolManifest) -> dict[str, JsonValue]:
    """Example parameters. A model reads them, so long ones are cut to the required parameters."""
    params = sample_params(tool)
    return params if len(json.dumps(params, ensure_ascii=False)) <= _LONG else _required(tool)


def _required(tool: ToolManifest) -> dict[str, JsonValue]:
    required = required_names(tool.input_schema)
    return {name: value for name, value in sample_params(tool).items() if name in required}


def _params(tool: ToolManifest, workflow: JsonValue) -> Mapping[str, JsonValue]:
    """The required parameters, as an example. The workflow of the group replaces the first object among them."""
    required, params = required_names(tool.input_schema), _required(tool)
    if isinstance(workflow, dict):
        taken = next((name for name in sorted(required) if "object" in types_of(property_schema(tool.input_schema, name))), None)
        params |= {taken: workflow} if taken else {}
    return params
