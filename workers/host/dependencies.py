"""The operator's policy for dependencies of machine-written code."""

from pydantic import ConfigDict

from toolagent_service.contracts.dependency_policy import DependencyPolicy
from workers.host.policy_files import said_in, understood
from workers.settings.making import CodingSettings

_SETTING = "TOOL_AGENT_DEPENDENCY_POLICY"
_PAGE = "docs/security.md, What made tools may depend on"


class _Policy(DependencyPolicy):
    """The policy in a file, where unknown fields are errors."""

    model_config = ConfigDict(extra="forbid")


def dependency_policy_of(settings: CodingSettings) -> DependencyPolicy:
    """The policy; the default for fields that the file leaves out. Raises CannotRun if the file cannot be read or is not valid."""
    path = settings.dependency_policy
    if path is None:
        return DependencyPolicy()
    return DependencyPolicy.model_validate(understood(_SETTING, path, _Policy, said_in(_SETTING, path), _PAGE).model_dump())
