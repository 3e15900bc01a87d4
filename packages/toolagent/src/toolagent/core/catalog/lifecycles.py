"""Validates the lifecycle of a group."""

from toolagent.contracts.groups import GroupRole, ToolGroup

__all__ = ["lifecycle_fault"]


def lifecycle_fault(group: ToolGroup) -> str | None:
    """The fault of the steps of a group with a lifecycle, and its remedy; None if there is none."""
    if not group.lifecycle:
        return None
    for role in (GroupRole.LAUNCH, GroupRole.STOP):
        if sum(step.role is role for step in group.steps) != 1:
            return f"`steps`: a group with `lifecycle` has one step with the role {role.value!r}"
    if strange := [step.tool_id for step in group.steps if step.tool_id not in group.tool_ids]:
        return f"`steps`: {', '.join(strange)} is not among `tool_ids`; name it there too"
    if any(step.bindings for step in group.steps if step.role is GroupRole.LAUNCH):
        return "`steps`: the launch has no bindings, which come out of its result"
    return None
