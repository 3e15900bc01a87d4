"""The steps that runs of a session name."""

from toolagent.contracts.groups import GroupStep, ToolGroup
from toolagent.contracts.sessions import SessionRun
from toolagent_service.groups.sessions import NoSuchStepError, step_of
from workflows.inputs import malformed


def required_step(group: ToolGroup, asked: SessionRun) -> GroupStep:
    """The step of a run. Raises ApplicationError if the group has no such step."""
    try:
        return step_of(group, asked)
    except NoSuchStepError as error:
        raise malformed(str(error)) from error
