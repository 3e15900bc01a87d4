"""What machine-written code may depend on, as the operator's policy file says."""

from pydantic import ConfigDict

from toolagent_service.contracts.dependency_policy import DependencyPolicy
from workers.host.policy_files import said_in, understood
from workers.settings.making import CodingSettings

_SETTING = "TOOL_AGENT_DEPENDENCY_POLICY"
_PAGE = "docs/security.md, What made tools may depend on"


class _Policy(DependencyPolicy):
    """As a file has it: what nobody reads is a mistake."""

    model_config = ConfigDict(extra="forbid")


def dependency_policy_of(settings: CodingSettings) -> DependencyPolicy:
    """What the file does not say is as it is without one. Raises CannotRun when it cannot be read, or says what nobody understands."""
    path = settings.dependency_policy
    if path is None:
        return DependencyPolicy()
    return DependencyPolicy.model_validate(understood(_SETTING, path, _Policy, said_in(_SETTING, path), _PAGE).model_dump())
